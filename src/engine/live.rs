//! One job as the control loop holds it: its state, what waits for the disk before it may be shown,
//! and the view that is made of it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crossbeam_channel::Sender;

use crate::backend;
use crate::engine::JobView;
use crate::engine::ending::{self, Facts};
use crate::engine::job::{Line, State};
use crate::engine::meter::{Meter, Reading, Waits};
use crate::engine::recover;
use crate::engine::runner::Story;
use crate::engine::sink::Sink;
use crate::model::control::{Cancel, LimitCell, Pause};
use crate::model::error::Error;
use crate::model::event::{Answer, EventKind, Question};
use crate::model::job::JobSpec;
use crate::model::outcome::{Abort, Outcome, Report};
use crate::model::plan::PlanTotals;
use crate::model::progress::{Counters, Progress, RunState};
use crate::model::units::Rate;
use crate::store::history::JobRecord;

/// Lines of a job's log that are kept in memory: notes and warnings of a few runs.
const LOG_LINES: usize = 1000;

/// What may happen only when the job is in the database as it then is.
pub enum After {
    /// Show this state, and tell it.
    Show(RunState),
    /// Start its thread.
    Launch,
    /// Tell how it ended.
    Finish,
}

/// What the control loop shares with a run.
pub struct Cells {
    /// Tells runs of one engine apart.
    pub run: u64,
    /// When it began.
    pub started: Instant,
    /// How far it is.
    pub counters: Arc<Counters>,
    /// Set to end it.
    pub cancel: Cancel,
    /// Set to hold it.
    pub paused: Pause,
    /// Its bandwidth limit.
    pub limit: LimitCell,
    /// Wakes it from waiting.
    pub nudge: Sender<()>,
    /// Its rows and steps.
    pub sink: Arc<Sink>,
}

/// One job.
pub struct Job {
    /// What it is to do.
    pub spec: Arc<JobSpec>,
    /// Its host, for the limits.
    pub host: String,
    /// Where it really is in its life; shown once that is in the database.
    pub state: State,
    /// What people see.
    pub shown: RunState,
    /// Its run, while it is active.
    pub cells: Option<Cells>,
    /// A run whose thread did not end in time; the job must not start again before it is gone.
    pub orphan: Option<u64>,
    /// When the engine stops waiting for the thread.
    pub give_up_at: Option<Instant>,
    /// What the thread had to show.
    pub story: Option<Box<Story>>,
    /// The open question and where the answer goes.
    pub question: Option<(Question, Sender<Answer>)>,
    /// The counts of the plan.
    pub plan: Option<PlanTotals>,
    /// How it ended.
    pub end: Option<(Outcome, Report)>,
    /// Counts changes; the database has the one that was `saved`.
    pub version: u64,
    /// The last version that is in the database; 0 when it never was.
    pub saved: u64,
    /// A save is under way.
    pub saving: bool,
    /// This run is not in the database yet; it may not begin when it cannot get there.
    pub claiming: bool,
    /// What waits for a version to be saved, in order.
    pub after: VecDeque<(u64, After)>,
    /// Its figures over time.
    pub meter: Meter,
    reading: Reading,
    progress: Progress,
    log: Arc<Vec<(f64, String)>>,
    /// Time of this run in which it was paused or waited for an answer.
    waits: Waits,
}

impl Job {
    /// Makes a new job.
    pub fn new(spec: JobSpec) -> Self {
        Self {
            host: spec.host_key(),
            spec: Arc::new(spec),
            state: State::Queued { held: false },
            shown: RunState::Queued,
            cells: None,
            orphan: None,
            give_up_at: None,
            story: None,
            question: None,
            plan: None,
            end: None,
            version: 0,
            saved: 0,
            saving: false,
            claiming: true,
            after: VecDeque::new(),
            meter: Meter::default(),
            reading: Reading::default(),
            progress: Progress::default(),
            log: Arc::default(),
            waits: Waits::default(),
        }
    }

    /// Makes a job that is over from what the database has of it.
    pub fn restored(record: JobRecord, log: Vec<(f64, String)>, series: (f32, Vec<f32>)) -> Self {
        let report = record.end.as_ref().map(|(_, report)| report);
        let bytes = report.map_or(0, |report| report.bytes);
        let files = report.map_or(0, |report| report.files);
        let mut job = Self {
            state: State::Finished,
            shown: RunState::Finished,
            plan: record.plan,
            end: record.end,
            version: 1,
            saved: 1,
            claiming: false,
            log: Arc::new(log),
            progress: Progress {
                bytes_done: bytes,
                bytes_total: bytes.max(record.plan.map_or(0, |plan| plan.bytes)),
                items_done: files,
                items_total: files,
                ..Progress::default()
            },
            ..Self::new(JobSpec::clone(&record.spec))
        };
        (job.meter.series.step, job.meter.series.values) =
            (f64::from(series.0), Arc::new(series.1));
        job
    }

    /// Returns what the database is to keep.
    pub fn record(&self) -> JobRecord {
        JobRecord {
            spec: Arc::clone(&self.spec),
            state: self.state.shown(),
            plan: self.plan,
            end: self.end.clone(),
            owner: recover::me(),
        }
    }

    /// Says whether its counters have to be looked at again soon.
    pub fn moves(&self) -> bool {
        self.question.is_none()
            && matches!(
                self.state.shown(),
                RunState::Running | RunState::Stalled | RunState::Stopping
            )
    }

    /// Looks at the counters; says whether anything that people see changed.
    pub fn sample(&mut self, now: Instant) -> (Reading, bool) {
        let Some(cells) = &self.cells else {
            return (Reading::default(), false);
        };
        // Every change of what it waits for is followed by a look.
        let waits = self.question.is_some() || self.state.shown() == RunState::Paused;
        let since_start = now.saturating_duration_since(cells.started);
        self.waits.look(since_start, waits);
        let mut progress = cells.counters.snapshot();
        // Done and total are two counters that threads add to at different moments.
        progress.bytes_total = progress.bytes_total.max(progress.bytes_done);
        progress.items_total = progress.items_total.max(progress.items_done);
        let held = !self.moves()
            || matches!(
                self.state,
                State::Active {
                    line: Line::Down,
                    ..
                }
            );
        let before = (self.reading, self.meter.series.values.len());
        let seconds = now.saturating_duration_since(cells.started).as_secs_f64();
        self.reading = self.meter.sample(seconds, &progress, held);
        let after = (self.reading, self.meter.series.values.len());
        let changed = progress != self.progress || before != after;
        self.progress = progress;
        (self.reading, changed)
    }

    /// Says whether nothing has moved for a while.
    pub fn quiet(&self) -> bool {
        self.reading.quiet
    }

    /// Adds a line to the log and returns its time, in seconds since the start.
    pub fn note(&mut self, text: String) -> f64 {
        let at = match (&self.cells, &self.end) {
            (Some(cells), _) => cells.started.elapsed().as_secs_f64(),
            (None, Some((_, report))) => report.seconds,
            (None, None) => 0.0,
        };
        let log = Arc::make_mut(&mut self.log);
        if log.len() >= LOG_LINES {
            log.remove(0);
        }
        log.push((at, text));
        at
    }

    /// Sets the bandwidth limit, now and for later runs.
    pub fn limit(&mut self, limit: Option<Rate>) {
        Arc::make_mut(&mut self.spec).settings.limit = limit;
        if let Some(cells) = &self.cells {
            cells.limit.0.store(limit.map_or(0, |rate| rate.0), Relaxed);
        }
    }

    /// Gets ready for another run that goes on where the last one stopped.
    pub fn renew(&mut self) {
        Arc::make_mut(&mut self.spec).resume = true;
        self.meter = Meter::default();
        self.reading = Reading::default();
        self.progress = Progress::default();
        self.waits = Waits::default();
        self.plan = None;
        self.end = None;
        self.claiming = true;
    }

    /// Decides how it ended.
    pub fn finish(&mut self, stop: Option<Abort>) {
        let story = self.story.take().unwrap_or_else(|| {
            // It never ran, or its thread was given up.
            Box::new(Story::new(Err(Error::cancelled())))
        });
        let waited = self.waits.total();
        let progress = self.cells.as_ref().map(|cells| {
            let seconds = cells.started.elapsed().saturating_sub(waited);
            let whole = story
                .arrived
                .bytes
                .saturating_sub(cells.sink.earlier().bytes);
            (cells.counters.snapshot(), seconds.as_secs_f64(), whole)
        });
        let (progress, seconds, whole) = progress.unwrap_or_default();
        let keeps = backend::by_id(story.method).is_some_and(|method| method.caps().resume);
        let outcome = ending::decide(&Facts {
            stop,
            result: &story.result,
            arrived: &story.arrived,
            settled: progress.listed && progress.items_done >= progress.items_total,
            dry_run: self.spec.dry_run,
        });
        let report = Report {
            files: story.tally.verified + story.tally.unchecked,
            bytes: story.arrived.bytes,
            wire_bytes: progress.wire_bytes,
            kept: match outcome {
                Outcome::Aborted(_) | Outcome::Failed(_) | Outcome::Partial(Some(_))
                    if keeps && !self.spec.dry_run =>
                {
                    progress.bytes_done.saturating_sub(whole)
                }
                _ => 0,
            },
            seconds,
            connect_seconds: story.connect_seconds,
            method: story.method.to_owned(),
            route: story.route,
            why: story.why,
            tally: story.tally,
            missing: progress
                .listed
                .then(|| progress.items_total.saturating_sub(progress.items_done)),
        };
        self.end = Some((outcome, report));
    }

    /// Returns the last event of a run.
    pub fn finished(&self) -> Option<EventKind> {
        let (outcome, report) = self.end.clone()?;
        Some(EventKind::Finished(outcome, report))
    }

    /// Returns what a list shows of it.
    pub fn view(&self) -> JobView {
        let over = self.shown == RunState::Finished;
        JobView {
            spec: Arc::clone(&self.spec),
            state: self.shown,
            progress: self.progress.clone(),
            goodput: if over { 0.0 } else { self.reading.goodput },
            eta: self.reading.eta.filter(|_| !over),
            series: Arc::clone(&self.meter.series.values),
            series_step: self.meter.series.step as f32,
            plan: self.plan,
            question: self.question.as_ref().map(|(question, _)| question.clone()),
            log: Arc::clone(&self.log),
            end: self.end.clone().filter(|_| over),
        }
    }
}
