//! Where a method puts its rows and steps: counted in passing, then handed to the store thread.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::backend::cx::Rows;
use crate::engine::ending::Arrived;
use crate::engine::store::{Store, Write};
use crate::model::control::Cancel;
use crate::model::entry::Reason;
use crate::model::job::JobId;
use crate::model::plan::Step;
use crate::model::verdict::Row;

/// Paths that a question about conflicts shows.
const EXAMPLES: usize = 100;

/// The rows and steps of one run of a job.
pub struct Sink {
    job: JobId,
    store: Store,
    cancel: Cancel,
    /// Set when the engine stopped waiting for the run: what still comes is dropped.
    closed: AtomicBool,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// What arrived in all attempts.
    all: Arrived,
    /// What had arrived when this attempt began.
    earlier: Arrived,
    /// The first paths that the conflict rule has to decide.
    conflicts: Vec<Vec<u8>>,
}

impl Sink {
    /// Makes the sink of a run.
    pub fn new(job: JobId, store: Store, cancel: Cancel) -> Self {
        Self {
            job,
            store,
            cancel,
            closed: AtomicBool::new(false),
            seen: Mutex::default(),
        }
    }

    /// Drops what comes from now on.
    pub fn close(&self) {
        self.closed.store(true, Relaxed);
    }

    /// Tells the store that a further attempt begins, whose rows replace those of the same paths.
    pub fn begin_again(&self) {
        let mut seen = self.seen();
        seen.earlier = seen.all.clone();
        drop(seen);
        self.store.write(Write::Again(self.job));
    }

    /// Returns what arrived in all attempts.
    pub fn arrived(&self) -> Arrived {
        self.seen().all.clone()
    }

    /// Returns what arrived before this attempt.
    pub fn earlier(&self) -> Arrived {
        self.seen().earlier.clone()
    }

    /// Returns the number of files that arrived in this attempt.
    pub fn arrived_now(&self) -> u64 {
        let seen = self.seen();
        seen.all.files() - seen.earlier.files()
    }

    /// Takes the first paths that the conflict rule has to decide.
    pub fn take_conflicts(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.seen().conflicts)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rows for Sink {
    fn rows(&self, rows: &mut Vec<Row>) {
        if self.closed.load(Relaxed) || rows.is_empty() {
            return rows.clear();
        }
        let mut seen = self.seen();
        for row in rows.iter() {
            seen.all.add(row);
        }
        drop(seen);
        // The caller gets a new buffer as large as this one.
        self.store.rows(self.job, rows.split_off(0), &self.cancel);
    }

    fn steps(&self, steps: &mut Vec<Step>) {
        if self.closed.load(Relaxed) || steps.is_empty() {
            return steps.clear();
        }
        let mut seen = self.seen();
        for step in steps.iter().filter(|step| step.reason == Reason::Conflict) {
            if seen.conflicts.len() >= EXAMPLES {
                break;
            }
            seen.conflicts.push(step.path.clone());
        }
        drop(seen);
        self.store.steps(self.job, steps.split_off(0), &self.cancel);
    }
}
