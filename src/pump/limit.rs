//! Holds senders back: a bandwidth limit that may change at any time, and pause.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::control::{LimitCell, Pause};
use crate::pump::abort::Abort;

/// How long a held sender sleeps at most before it looks at limit and pause again.
const LOOK: Duration = Duration::from_millis(50);

/// What all senders of one job look at before each frame, and the account that they share: the limit
/// holds for their sum, however many of them have something to send.
pub struct Throttle {
    /// Bytes a second; 0 for none.
    pub limit: LimitCell,
    /// While set nothing is sent.
    pub pause: Pause,
    /// When all that was sent so far is paid for.
    paid: Mutex<Instant>,
}

impl Default for Throttle {
    fn default() -> Self {
        Self::new(LimitCell::default(), Pause::default())
    }
}

impl Throttle {
    /// Starts with nothing owed.
    pub fn new(limit: LimitCell, pause: Pause) -> Self {
        Self {
            limit,
            pause,
            paid: Mutex::new(Instant::now()),
        }
    }

    /// Waits until `bytes` may be sent. Up to a tenth of a second is let through at once.
    pub fn wait(&self, bytes: usize, abort: &Abort) {
        while self.pause.is_set() && !abort.is_stopped() {
            std::thread::sleep(LOOK);
            *self.paid() = Instant::now();
        }
        let rate = self.limit.0.load(Relaxed);
        if rate == 0 {
            return;
        }
        let now = Instant::now();
        let burst = Duration::from_millis(100);
        let cost = bytes as f64 / rate as f64;
        let due = {
            let mut paid = self.paid();
            // One frame is never charged more than an hour; the limit may be lifted meanwhile.
            *paid = (*paid).max(now.checked_sub(burst).unwrap_or(now))
                + Duration::from_secs_f64(cost.min(3600.0));
            *paid
        };
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() || abort.is_stopped() {
                return;
            }
            if self.limit.0.load(Relaxed) != rate {
                *self.paid() = Instant::now();
                return;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn paid(&self) -> MutexGuard<'_, Instant> {
        self.paid.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_for_the_sum_and_one_alone_gets_all_of_it() {
        // Whoever is ended does not wait, but what it sends is on the bill.
        let abort = Abort::default();
        abort.fail(crate::model::error::Error::cancelled());
        for senders in [
            &[40_000_000][..],
            &[20_000_000, 20_000_000],
            &[40_000_000, 0],
        ] {
            let throttle = Throttle::default();
            throttle.limit.0.store(1_000_000, Relaxed);
            let began = Instant::now();
            for &bytes in senders {
                throttle.wait(bytes, &abort);
            }
            let owed = throttle.paid().duration_since(began).as_secs_f64();
            assert!((39.8..41.0).contains(&owed), "{senders:?} {owed}");
        }
    }
}
