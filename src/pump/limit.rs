//! Holds senders back: a bandwidth limit that may change at any time, and pause.

use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::model::control::{LimitCell, Pause};
use crate::pump::abort::Abort;

/// How long a held sender sleeps at most before it looks at limit and pause again.
const LOOK: Duration = Duration::from_millis(50);

/// What one job's senders look at before each frame.
#[derive(Clone, Default)]
pub struct Throttle {
    /// Bytes a second; 0 for none.
    pub limit: LimitCell,
    /// While set nothing is sent.
    pub pause: Pause,
}

/// One lane's token bucket.
pub struct Bucket<'a> {
    throttle: &'a Throttle,
    /// How many lanes share the limit.
    share: u64,
    /// When all that was sent so far is paid for.
    paid: Instant,
}

impl<'a> Bucket<'a> {
    /// Starts with nothing owed.
    pub fn new(throttle: &'a Throttle, share: u64) -> Self {
        Self {
            throttle,
            share: share.max(1),
            paid: Instant::now(),
        }
    }

    /// Waits until `bytes` may be sent. Up to a tenth of a second is let through at once.
    pub fn wait(&mut self, bytes: usize, abort: &Abort) {
        while self.throttle.pause.is_set() && !abort.is_stopped() {
            std::thread::sleep(LOOK);
            self.paid = Instant::now();
        }
        let rate = self.throttle.limit.0.load(Relaxed);
        if rate == 0 {
            return;
        }
        let now = Instant::now();
        let burst = Duration::from_millis(100);
        self.paid = self.paid.max(now.checked_sub(burst).unwrap_or(now));
        let cost = bytes as f64 / (rate / self.share).max(1) as f64;
        // One frame is never charged more than an hour; the limit may be lifted meanwhile.
        self.paid += Duration::from_secs_f64(cost.min(3600.0));
        loop {
            let left = self.paid.saturating_duration_since(Instant::now());
            if left.is_zero() || abort.is_stopped() {
                return;
            }
            if self.throttle.limit.0.load(Relaxed) != rate {
                self.paid = Instant::now();
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }
}
