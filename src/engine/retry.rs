//! Whether a broken connection is tried again, and after how long.
//!
//! Only network kinds are tried again, and only once a connection has been there: a wrong name or a
//! refused port does not get better by waiting, and the user would look at a job that seems to
//! work. The wait is 1, 2, 4 ... 60 s, give or take a quarter so that jobs that lost the same link
//! do not come back at the same moment. Five tries without progress end it; an attempt that settled
//! a file or left fewer bytes to send than any before it starts the count afresh.

use std::time::Duration;

use crate::model::error::Error;

/// Tries without progress before the job ends.
pub const TRIES: u32 = 5;

const LONGEST_SECONDS: f64 = 60.0;

/// What an attempt that failed has achieved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Attempt {
    /// The connection was there.
    pub connected: bool,
    /// Files that arrived during the attempt.
    pub arrived: u64,
    /// Bytes that were left to send, if the listing was complete.
    pub left: Option<u64>,
}

/// The memory of the attempts of one job.
#[derive(Debug, Default)]
pub struct Retry {
    connected: bool,
    tries: u32,
    least_left: Option<u64>,
}

impl Retry {
    /// Says how long to wait before the next attempt; `None` when there is none. `chance` is
    /// random, 0 to 1.
    pub fn after(&mut self, error: &Error, attempt: Attempt, chance: f64) -> Option<Duration> {
        self.connected |= attempt.connected;
        let fewer = match (attempt.left, self.least_left) {
            (Some(left), Some(least)) => left < least,
            _ => false,
        };
        if attempt.arrived > 0 || fewer {
            self.tries = 0;
        }
        if let Some(left) = attempt.left {
            self.least_left = Some(self.least_left.map_or(left, |least| least.min(left)));
        }
        if !error.kind.is_network() || !self.connected || self.tries >= TRIES {
            return None;
        }
        let wait = f64::from(1u32 << self.tries.min(6)).min(LONGEST_SECONDS);
        self.tries += 1;
        Some(Duration::from_secs_f64(
            wait * (0.75 + 0.5 * chance.clamp(0.0, 1.0)),
        ))
    }

    /// Returns the number of tries without progress so far.
    pub fn tries(&self) -> u32 {
        self.tries
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::ErrorKind;

    fn error(kind: ErrorKind) -> Error {
        Error::new(kind, "send", "x")
    }

    fn nothing_new() -> Attempt {
        Attempt {
            connected: true,
            arrived: 0,
            left: Some(100),
        }
    }

    #[test]
    fn five_tries_without_progress_are_the_last_and_waits_double() {
        let mut retry = Retry::default();
        let lost = error(ErrorKind::Disconnected);
        let waits: Vec<_> = std::iter::from_fn(|| retry.after(&lost, nothing_new(), 0.5))
            .map(|wait| wait.as_secs_f64())
            .collect();
        assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0]);
    }

    #[test]
    fn progress_starts_the_count_afresh() {
        let mut retry = Retry::default();
        let lost = error(ErrorKind::Timeout);
        for left in (1..1000).rev() {
            let wait = retry.after(
                &lost,
                Attempt {
                    connected: true,
                    arrived: 0,
                    left: Some(left),
                },
                0.5,
            );
            assert_eq!(wait, Some(Duration::from_secs(1)), "{left} left");
        }
    }

    #[test]
    fn a_file_that_breaks_every_attempt_does_not_count_as_progress() {
        let mut retry = Retry::default();
        let lost = error(ErrorKind::Disconnected);
        let first = Attempt {
            arrived: 7,
            ..nothing_new()
        };
        assert!(retry.after(&lost, first, 0.5).is_some());
        for _ in 1..TRIES {
            assert!(retry.after(&lost, nothing_new(), 0.5).is_some());
        }
        assert!(retry.after(&lost, nothing_new(), 0.5).is_none());
    }

    #[test]
    fn other_kinds_and_hosts_never_reached_end_at_once() {
        for kind in ErrorKind::ALL {
            let mut retry = Retry::default();
            assert_eq!(
                retry.after(&error(kind), nothing_new(), 0.0).is_some(),
                kind.is_network()
            );
            let mut retry = Retry::default();
            assert!(retry.after(&error(kind), Attempt::default(), 0.0).is_none());
        }
    }

    #[test]
    fn waits_differ_by_at_most_a_quarter() {
        for chance in [0.0, 1.0, 7.0, -1.0] {
            let mut retry = Retry::default();
            let wait = retry
                .after(&error(ErrorKind::Timeout), nothing_new(), chance)
                .unwrap();
            assert!((0.75..=1.25).contains(&wait.as_secs_f64()));
        }
    }
}
