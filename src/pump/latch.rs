//! Tells a thread that works at intervals that it is no longer needed, without making anybody wait
//! for the interval.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Set once.
#[derive(Default)]
pub struct Latch {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Latch {
    /// Sets it and wakes whoever waits.
    pub fn set(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for it, at most so long; says whether it is set.
    pub fn wait(&self, limit: Duration) -> bool {
        let set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let (set, _) = self
            .changed
            .wait_timeout_while(set, limit, |set| !*set)
            .unwrap_or_else(PoisonError::into_inner);
        *set
    }
}
