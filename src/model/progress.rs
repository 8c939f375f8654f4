//! How far a job is: atomics that data threads add to, and the snapshot that readers take.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use serde::{Deserialize, Serialize};

/// What a running job is busy with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Logging in, starting the agent, opening data connections.
    #[default]
    Connecting,
    /// Listing and comparing; nothing is sent yet.
    Planning,
    /// Bytes move (listing may go on meanwhile).
    Transferring,
    /// Only reading back and making durable is left.
    Verifying,
}

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Waiting for its turn.
    Queued,
    /// At work.
    Running,
    /// Connected, but no bytes for 10 s.
    Stalled,
    /// The connection broke; the next try comes after a back-off.
    Reconnecting,
    /// Paused by the user.
    Paused,
    /// Cancelled; ends within 2 s.
    Stopping,
    /// Over; see its outcome.
    Finished,
}

/// Counters of one job. Adding costs nanoseconds; nobody is woken by it.
#[derive(Debug, Default)]
pub struct Counters {
    /// Bytes of files that the destination has taken.
    pub bytes_done: AtomicU64,
    /// Bytes of files that are to be sent, as far as the listing has come.
    pub bytes_total: AtomicU64,
    /// Items that are settled.
    pub items_done: AtomicU64,
    /// Items that were listed.
    pub items_total: AtomicU64,
    /// Bytes on the data connections, headers and tags included.
    pub wire_bytes: AtomicU64,
    /// Warnings.
    pub warnings: AtomicU64,
    /// 1 when the listing is complete and the totals are final.
    listed: AtomicU8,
    phase: AtomicU8,
    current: Mutex<Vec<u8>>,
}

impl Counters {
    /// Sets the phase.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }

    /// Says that the totals are final.
    pub fn set_listed(&self) {
        self.listed.store(1, Relaxed);
    }

    /// Names the file in transfer; called at most once a file and only for large ones or once a batch.
    pub fn set_current(&self, path: &[u8]) {
        if let Ok(mut current) = self.current.try_lock() {
            current.clear();
            current.extend_from_slice(path);
        }
    }

    /// Starts again at zero, for a new attempt.
    pub fn reset(&self) {
        for counter in [
            &self.bytes_done,
            &self.bytes_total,
            &self.items_done,
            &self.items_total,
        ] {
            counter.store(0, Relaxed);
        }
        self.listed.store(0, Relaxed);
        self.set_phase(Phase::Connecting);
    }

    /// Returns the values as they are now.
    pub fn snapshot(&self) -> Progress {
        Progress {
            bytes_done: self.bytes_done.load(Relaxed),
            bytes_total: self.bytes_total.load(Relaxed),
            items_done: self.items_done.load(Relaxed),
            items_total: self.items_total.load(Relaxed),
            wire_bytes: self.wire_bytes.load(Relaxed),
            warnings: self.warnings.load(Relaxed),
            listed: self.listed.load(Relaxed) == 1,
            phase: match self.phase.load(Relaxed) {
                0 => Phase::Connecting,
                1 => Phase::Planning,
                2 => Phase::Transferring,
                _ => Phase::Verifying,
            },
            current: self.current.lock().map(|c| c.clone()).unwrap_or_default(),
        }
    }
}

/// A snapshot of [`Counters`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of files that the destination has taken.
    pub bytes_done: u64,
    /// Bytes of files that are to be sent.
    pub bytes_total: u64,
    /// Items that are settled.
    pub items_done: u64,
    /// Items that were listed.
    pub items_total: u64,
    /// Bytes on the data connections.
    pub wire_bytes: u64,
    /// Warnings.
    pub warnings: u64,
    /// The totals are final.
    pub listed: bool,
    /// What the job is busy with.
    pub phase: Phase,
    /// The file in transfer, bytes.
    pub current: Vec<u8>,
}
