//! What is shared with running threads: cancel, pause and limit. Looking costs nanoseconds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use crate::model::error::{Error, Result};

/// Set once, by anybody, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Cancels.
    pub fn set(&self) {
        self.0.store(true, Relaxed);
    }

    /// Says whether it was cancelled.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Ends the caller when it was cancelled.
    ///
    /// # Errors
    /// `Cancelled`.
    pub fn check(&self) -> Result<()> {
        if self.is_set() {
            Err(Error::cancelled())
        } else {
            Ok(())
        }
    }
}

/// Set and cleared by the user; senders wait while it is set.
#[derive(Clone, Debug, Default)]
pub struct Pause(Arc<AtomicBool>);

impl Pause {
    /// Pauses or goes on.
    pub fn set(&self, paused: bool) {
        self.0.store(paused, Relaxed);
    }

    /// Says whether it is paused.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// The live bandwidth limit in bytes a second; 0 means none. Changed at any time.
#[derive(Clone, Debug, Default)]
pub struct LimitCell(pub Arc<AtomicU64>);
