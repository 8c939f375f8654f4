//! Runs jobs: a queue with limits, pause, resume, cancel and retry, kept in the database so that it
//! survives being killed. It names no method and no toolkit.

pub mod ledger;
pub mod memory;
pub mod recover;

mod board;
mod control;
mod durable;
mod ending;
mod job;
mod live;
mod meter;
mod pages;
mod people;
mod queue;
mod retry;
mod runner;
mod sink;
mod store;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::backend::{self, contract::Backend};
use crate::engine::board::{Board, Shown};
use crate::engine::control::{Control, Msg};
use crate::engine::ledger::Ledger;
use crate::engine::live::Job;
use crate::engine::pages::Pages;
use crate::engine::store::Store;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::event::{Answer, Event};
use crate::model::job::{JobId, JobSpec};
use crate::model::outcome::{Outcome, Report};
use crate::model::plan::{PlanTotals, Step};
use crate::model::progress::{Progress, RunState};
use crate::model::units::Rate;
use crate::model::verdict::Row;
use crate::store::history::History;

/// Events that one listener may leave unread before it is cut off: those of dozens of jobs that
/// all say as much as they may.
const UNREAD: usize = 4096;
/// Jobs of the history that a window starts with.
const RESTORED: usize = 200;
/// How long shutting down may take.
const SHUTDOWN: Duration = Duration::from_secs(5);
/// How long a blocking read of rows may take.
const FETCH: Duration = Duration::from_secs(30);

/// How an engine is set up.
#[derive(Clone)]
pub struct EngineConfig {
    /// The database file; made if missing.
    pub database: PathBuf,
    /// Jobs at once.
    pub parallel: usize,
    /// Jobs at once that use the same host.
    pub per_host: usize,
    /// Show jobs of the history too: those that are over or were cut off. Jobs that another living
    /// process runs are never shown.
    pub restore: bool,
    /// The methods, in the order in which they are offered.
    pub methods: &'static [&'static dyn Backend],
    /// Called, from any thread, when there is something new to look at. Must not block, and must
    /// not own the engine.
    pub waker: Arc<dyn Fn() + Send + Sync>,
}

impl EngineConfig {
    /// Returns the usual set-up: two jobs at once, one a host, all methods, nothing restored and
    /// nobody woken.
    pub fn new(database: PathBuf) -> Self {
        Self {
            database,
            parallel: 2,
            per_host: 1,
            restore: false,
            methods: backend::ALL,
            waker: Arc::new(|| {}),
        }
    }
}

/// What the engine is told. Never blocks the sender.
#[derive(Debug)]
pub enum Command {
    /// Queue this job at the end. One with the id of a job that is over takes its place.
    Submit(Box<JobSpec>),
    /// Hold a job, also one that waits. A running one keeps its connection and its place among those
    /// at work.
    Pause(JobId),
    /// Go on with a paused job.
    Resume(JobId),
    /// End a job; ends within 2 s.
    Cancel(JobId),
    /// Queue an ended job again, going on where it stopped.
    Retry(JobId),
    /// Move a queued job to this place of the queue, 0 is next.
    Move(JobId, usize),
    /// Take an ended job off the list; its history stays.
    Remove(JobId),
    /// Answer question `.1` of a job.
    Answer(JobId, u64, Answer),
    /// Change a job's limit; `None` lifts it.
    Limit(JobId, Option<Rate>),
}

/// What a list shows of a job.
#[derive(Clone, Debug)]
pub struct JobView {
    /// What it is to do.
    pub spec: Arc<JobSpec>,
    /// Where it is in its life.
    pub state: RunState,
    /// How far it is.
    pub progress: Progress,
    /// Useful bytes per second over the last 4 s.
    pub goodput: f64,
    /// Seconds left by the last 60 s; `None` in the first seconds, while stalled and while the
    /// total is not known.
    pub eta: Option<f64>,
    /// Goodput, one value each half second from the start; at most 1200 values, older ones merged.
    pub series: Arc<Vec<f32>>,
    /// Seconds that each value of `series` stands for.
    pub series_step: f32,
    /// Counts of the plan, once known.
    pub plan: Option<PlanTotals>,
    /// The open question.
    pub question: Option<crate::model::event::Question>,
    /// Notes and warnings, oldest first, with seconds since the start.
    pub log: Arc<Vec<(f64, String)>>,
    /// How it ended.
    pub end: Option<(Outcome, Report)>,
}

/// Which rows are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RowFilter {
    /// Only those of this verdict name.
    pub verdict: Option<&'static str>,
    /// Only those whose path holds these bytes.
    pub text: String,
}

/// Rows as they are known now.
#[derive(Clone, Debug, Default)]
pub struct RowPage {
    /// The index of the first row among those that pass the filter.
    pub start: usize,
    /// The rows.
    pub rows: Arc<Vec<Row>>,
    /// How many pass the filter.
    pub total: usize,
}

/// Sums over all jobs that are not over.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Jobs at work, also paused ones that are connected.
    pub running: usize,
    /// Those of them that are paused.
    pub paused: usize,
    /// Jobs that wait.
    pub queued: usize,
    /// Useful bytes per second of all together.
    pub goodput: f64,
    /// Seconds until all are over; `None` when any cannot say, as those that wait cannot.
    pub eta: Option<f64>,
    /// Goodput of all together, as in [`JobView::series`]; time in which nothing ran is left out.
    pub series: Arc<Vec<f32>>,
    /// Seconds that each value of `series` stands for.
    pub series_step: f32,
}

/// Returns a name for a new job.
///
/// # Errors
/// When the system has no randomness to give.
pub fn new_job_id() -> Result<JobId> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|e| {
        Error::new(ErrorKind::Io, "name the job", e.to_string())
            .hint("the system gives no random numbers; see getrandom(2)")
    })?;
    Ok(JobId(id))
}

/// A handle; clones share one engine. Dropping the last one stops it in order.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<Inner>,
}

struct Inner {
    to: UnboundedSender<Msg>,
    shown: Arc<Shown>,
    pages: Arc<Pages>,
    /// What a person has to know of the database.
    notices: Mutex<Vec<String>>,
    /// Each ends when its thread does: the engine's, the store's, the reader's.
    threads: Mutex<Vec<crossbeam_channel::Receiver<()>>>,
}

impl Engine {
    /// Opens the database, marks jobs that were cut off as `Aborted(LeftRunning)`, and starts.
    ///
    /// # Errors
    /// When the database cannot be opened; the text says what to do.
    pub fn start(config: EngineConfig) -> Result<Self> {
        let history = History::open(&config.database)?;
        Self::start_with(config, Box::new(history))
    }

    /// Starts with a ledger of the caller's; the configuration's database is not looked at.
    ///
    /// # Errors
    /// When the ledger cannot be read or a thread cannot be started.
    pub fn start_with(config: EngineConfig, mut ledger: Box<dyn Ledger>) -> Result<Self> {
        crate::proc::limits::raise_open_files();
        let EngineConfig {
            database,
            parallel,
            per_host,
            restore,
            methods,
            waker,
        } = config;
        ledger.mark_left_running(&recover::is_alive)?;
        let mut jobs = Vec::new();
        if restore {
            for record in ledger.jobs(RESTORED)? {
                if record.end.is_some() {
                    let id = record.spec.id;
                    jobs.push(Job::restored(record, ledger.log(id)?, ledger.series(id)?));
                }
            }
        }
        let (shown, pages) = (Arc::new(Shown::default()), Arc::new(Pages::default()));
        let (to, inbox) = unbounded_channel();
        let (reads, read_ends) = crossbeam_channel::bounded(0);
        let (writes, write_ends) = crossbeam_channel::bounded(0);
        let (controls, control_ends) = crossbeam_channel::bounded::<()>(0);
        pages.start(ledger.reader()?, Arc::clone(&waker), reads)?;
        // From here on an early return must end the thread that was started: dropping does it.
        let engine = Self {
            inner: Arc::new(Inner {
                to: to.clone(),
                shown: Arc::clone(&shown),
                pages: Arc::clone(&pages),
                notices: Mutex::new(ledger.notes()),
                threads: Mutex::new(vec![control_ends, write_ends, read_ends]),
            }),
        };
        let tell = to.clone();
        let store = Store::start(
            ledger,
            Arc::clone(&pages),
            // An engine that is gone listens no more.
            move |told| drop(tell.send(Msg::Store(told))),
            writes,
        )?;
        let control = Control {
            inbox,
            to,
            methods,
            // Beside the database, which belongs to one user.
            claims: database.with_file_name("running"),
            limits: queue::Limits { parallel, per_host },
            store,
            jobs,
            board: Board::new(shown, pages, waker),
            listeners: Vec::new(),
            runs: 0,
            questions: Arc::new(AtomicU64::new(1)),
            closing: false,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|e| Error::io("start the engine", &e))?;
        std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || {
                runtime.block_on(control.run());
                drop(controls);
            })
            .map_err(|e| Error::io("start the engine's thread", &e))?;
        Ok(engine)
    }

    /// Tells the engine something. Never blocks. An engine that was shut down ignores it.
    pub fn send(&self, command: Command) {
        let _ = self.inner.to.send(Msg::Command(command));
    }

    /// Returns the jobs in the order of the list. Cheap: a snapshot made by the engine.
    pub fn jobs(&self) -> Arc<Vec<JobView>> {
        self.inner.shown.jobs()
    }

    /// Returns the sums over all jobs, of the same snapshot as `jobs`.
    pub fn totals(&self) -> Totals {
        self.inner.shown.totals()
    }

    /// Returns rows of a job. Never blocks: what is not at hand is fetched in the background and
    /// the waker called. The page may begin before the range; ranges over 16384 are cut.
    pub fn rows(&self, job: JobId, filter: &RowFilter, range: Range<usize>) -> RowPage {
        self.inner.pages.rows(job, filter, range)
    }

    /// Returns steps of a job's plan in that range, and how many there are; as `rows` does.
    pub fn steps(&self, job: JobId, range: Range<usize>) -> (Arc<Vec<Step>>, usize) {
        let (start, steps, total) = self.inner.pages.steps(job, range.clone());
        let at = |index: usize| index.saturating_sub(start).min(steps.len());
        let wanted = at(range.start)..at(range.end).max(at(range.start));
        if wanted == (0..steps.len()) {
            return (steps, total);
        }
        (Arc::new(steps[wanted].to_vec()), total)
    }

    /// Fetches rows and waits for them, at most 30 s; exactly that range, at most 16384. For
    /// callers that may block, such as the command line.
    ///
    /// # Errors
    /// When the database does not answer.
    pub fn fetch_rows(
        &self,
        job: JobId,
        filter: &RowFilter,
        range: Range<usize>,
    ) -> Result<RowPage> {
        self.inner.pages.fetch_rows(job, filter, range, FETCH)
    }

    /// Fetches steps and waits for them, as `fetch_rows` does.
    ///
    /// # Errors
    /// When the database does not answer.
    pub fn fetch_steps(&self, job: JobId, range: Range<usize>) -> Result<(Arc<Vec<Step>>, usize)> {
        self.inner.pages.fetch_steps(job, range, FETCH)
    }

    /// Takes what a person has to know of the database, for example that it was damaged and begun
    /// anew; whole sentences.
    pub fn take_notices(&self) -> Vec<String> {
        let mut notices = self
            .inner
            .notices
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *notices)
    }

    /// Returns the events from now on: ask before submitting. Snapshots already have what an event
    /// says when it arrives. A receiver that leaves 4096 events unread is cut off and ends; it can
    /// ask for another and look at `jobs`.
    pub fn events(&self) -> Receiver<Event> {
        let (listener, events) = sync_channel(UNREAD);
        let _ = self.inner.to.send(Msg::Listen(listener));
        events
    }

    /// Stops all jobs (they are marked `Aborted(Shutdown)` and can go on later) and waits for them,
    /// at most 5 s.
    pub fn shutdown(&self) {
        self.inner.stop();
    }
}

impl Inner {
    fn stop(&self) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let until = Instant::now() + SHUTDOWN;
        let _ = self.to.send(Msg::Shutdown);
        for (index, thread) in threads.drain(..).enumerate() {
            // The reader has nothing to finish; it ends when it is told.
            if index == 2 {
                self.pages.close();
            }
            // Nothing is ever sent: this waits for the other end to be dropped.
            let _ = thread.recv_deadline(until);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop();
    }
}
