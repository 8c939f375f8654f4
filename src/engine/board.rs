//! What readers see: snapshots of all jobs, made at most every 100 ms, swapped in whole, with the
//! events that belong to them told right after.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::live::Job;
use crate::engine::meter::Series;
use crate::engine::pages::Pages;
use crate::engine::{JobView, Totals};
use crate::model::event::{Event, EventKind};
use crate::model::job::JobId;
use crate::model::progress::RunState;

/// Snapshots are at least so far apart, but for endings and questions, which somebody waits for.
const TICK: Duration = Duration::from_millis(100);

/// The snapshot that readers take; the lock is held only to clone or swap it.
#[derive(Default)]
pub struct Shown(Mutex<(Arc<Vec<JobView>>, Totals)>);

impl Shown {
    /// Returns the jobs.
    pub fn jobs(&self) -> Arc<Vec<JobView>> {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&shown.0)
    }

    /// Returns the sums.
    pub fn totals(&self) -> Totals {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shown.1.clone()
    }
}

/// Makes the snapshots; owned by the control loop.
pub struct Board {
    shown: Arc<Shown>,
    pages: Arc<Pages>,
    wake: Arc<dyn Fn() + Send + Sync>,
    events: Vec<Event>,
    dirty: bool,
    urgent: bool,
    /// Something was published of which nobody was woken yet.
    news: bool,
    published: Instant,
    /// Goodput of all jobs together, over the time in which any was at work.
    overall: Series,
    busy_seconds: f64,
    was_busy: bool,
}

impl Board {
    /// Makes the board.
    pub fn new(shown: Arc<Shown>, pages: Arc<Pages>, wake: Arc<dyn Fn() + Send + Sync>) -> Self {
        Self {
            shown,
            pages,
            wake,
            events: Vec::new(),
            dirty: false,
            urgent: true,
            news: false,
            published: Instant::now(),
            overall: Series::default(),
            busy_seconds: 0.0,
            was_busy: false,
        }
    }

    /// Says that something people see has changed.
    pub fn touch(&mut self) {
        self.dirty = true;
    }

    /// Tells an event when the next snapshot has what it says.
    pub fn say(&mut self, job: JobId, kind: EventKind) {
        self.dirty = true;
        self.urgent |= matches!(kind, EventKind::Finished(..) | EventKind::Asked(_));
        self.events.push(Event { job, kind });
    }

    /// Takes the events that the published snapshot covers.
    pub fn take_events(&mut self) -> Vec<Event> {
        if self.dirty {
            Vec::new()
        } else {
            std::mem::take(&mut self.events)
        }
    }

    /// Forgets what is kept of a job that left the list.
    pub fn forget(&mut self, job: JobId) {
        self.pages.forget(job);
        self.dirty = true;
    }

    /// Returns when to publish next; `None` while nothing moves and all is shown.
    pub fn wake_at(&self, jobs: &[Job]) -> Option<Instant> {
        (self.dirty || jobs.iter().any(Job::moves)).then(|| self.published + TICK)
    }

    /// Makes a snapshot when one is due.
    pub fn publish(&mut self, jobs: &mut [Job]) {
        let now = Instant::now();
        let busy = jobs.iter().any(Job::moves);
        let due = (self.dirty || busy) && now >= self.published + TICK;
        if !due && !self.urgent {
            return;
        }
        let mut changed = self.dirty || self.urgent;
        let mut totals = Totals::default();
        let mut delta = 0;
        let mut eta = Some(0.0f64);
        for job in jobs.iter_mut() {
            let (reading, moved) = job.sample(now);
            changed |= moved;
            delta += reading.delta;
            match job.shown {
                RunState::Finished => continue,
                RunState::Queued => totals.queued += 1,
                RunState::Paused if job.cells.is_none() => totals.queued += 1,
                state => {
                    totals.running += 1;
                    totals.paused += usize::from(state == RunState::Paused);
                }
            }
            totals.goodput += reading.goodput;
            eta = eta.zip(reading.eta).map(|(all, one)| all.max(one));
        }
        if self.was_busy {
            self.busy_seconds += now.saturating_duration_since(self.published).as_secs_f64();
        }
        self.overall.add(self.busy_seconds, delta);
        self.was_busy = busy;
        self.published = now;
        if changed {
            totals.eta = eta.filter(|_| totals.running > 0);
            totals.series = Arc::clone(&self.overall.values);
            totals.series_step = self.overall.step as f32;
            let views = Arc::new(jobs.iter().map(Job::view).collect());
            *self.shown.0.lock().unwrap_or_else(PoisonError::into_inner) = (views, totals);
            (self.dirty, self.urgent) = (false, false);
            self.news = true;
        }
    }

    /// Wakes whoever looks, once snapshot and events are out: who is woken before finds nothing and
    /// is not woken again.
    pub fn wake(&mut self) {
        if std::mem::take(&mut self.news) {
            (self.wake)();
        }
    }
}
