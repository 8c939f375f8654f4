//! Runs jobs: a queue with limits, pause, resume, cancel and retry, kept in the database so that it
//! survives being killed. It names no method and no toolkit.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::model::error::Result;
use crate::model::event::{Answer, Event};
use crate::model::job::{JobId, JobSpec};
use crate::model::outcome::{Outcome, Report};
use crate::model::plan::{PlanTotals, Step};
use crate::model::progress::{Progress, RunState};
use crate::model::units::Rate;
use crate::model::verdict::Row;

/// How an engine is set up.
pub struct EngineConfig {
    /// The database file; made if missing.
    pub database: PathBuf,
    /// Jobs at once.
    pub parallel: usize,
    /// Jobs at once that use the same host.
    pub per_host: usize,
    /// Called, from any thread, when there is something new to look at. Must not block.
    pub waker: Arc<dyn Fn() + Send + Sync>,
}

/// What the engine is told. Never blocks the sender.
#[derive(Debug)]
pub enum Command {
    /// Queue this job at the end.
    Submit(Box<JobSpec>),
    /// Hold a job; its connection stays.
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

/// A handle; clones share one engine. Dropping the last one stops it in order.
#[derive(Clone)]
pub struct Engine {}

impl Engine {
    /// Opens the database, marks jobs that were cut off as `Aborted(LeftRunning)`, and starts.
    ///
    /// # Errors
    /// When the database cannot be opened; the text says what to do.
    pub fn start(_config: EngineConfig) -> Result<Self> {
        todo!()
    }

    /// Tells the engine something. Never blocks.
    pub fn send(&self, _command: Command) {
        todo!()
    }

    /// Returns the jobs in the order of the list. Cheap: a snapshot made by the engine.
    pub fn jobs(&self) -> Arc<Vec<JobView>> {
        todo!()
    }

    /// Returns rows of a job. Never blocks: what is not at hand is fetched in the background and
    /// the waker called.
    pub fn rows(&self, _job: JobId, _filter: &RowFilter, _range: Range<usize>) -> RowPage {
        todo!()
    }

    /// Returns steps of a job's plan, as `rows` does.
    pub fn steps(&self, _job: JobId, _range: Range<usize>) -> (Arc<Vec<Step>>, usize) {
        todo!()
    }

    /// Returns the events from now on.
    pub fn events(&self) -> std::sync::mpsc::Receiver<Event> {
        todo!()
    }

    /// Stops all jobs (they are marked `Aborted(Shutdown)` and can go on later) and waits for them,
    /// at most 5 s.
    pub fn shutdown(&self) {
        todo!()
    }
}
