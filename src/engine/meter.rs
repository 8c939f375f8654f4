//! Goodput, time left, stalls and the throughput curve of one job, from samples of its counters.
//!
//! Pure: the caller passes seconds of a monotonic clock, so setting the computer's clock changes
//! nothing and tests need no waiting.
//!
//! *Goodput* is the mean of the last 4 s. *Time left* divides the work that is left by the slower
//! of the rates of the last 60 s and of the last 15 s: after fast files give way to a slow one the
//! first alone would be wrong for a minute. What is shown counts down by itself and follows the
//! computed value smoothly, so that it never jumps. Work is bytes plus a constant an item, which
//! makes empty files count.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::model::progress::{Phase, Progress};

/// Seconds that goodput looks back.
const GOODPUT_SECONDS: f64 = 4.0;
/// Seconds that time left looks back.
const ETA_SECONDS: f64 = 60.0;
/// Seconds that time left looks back at least, to notice that things became slower.
const ETA_RECENT_SECONDS: f64 = 15.0;
/// Seconds of data before the first time left is shown.
const ETA_AFTER_SECONDS: f64 = 3.0;
/// Seconds in which the shown time left comes two thirds nearer to the computed one.
const ETA_FOLLOWS_SECONDS: f64 = 5.0;
/// The shown time left grows or shrinks by at most this factor's logarithm a second, beside
/// counting down ...
const ETA_MAX_PULL: f64 = 0.5;
/// ... or grows by so many seconds a second, which lets a short one become a long one.
const ETA_MAX_GROWTH: f64 = 3.0;
/// Seconds without any movement after which a job counts as stalled.
const QUIET_SECONDS: f64 = 10.0;
/// What handling an item costs, in bytes: about what moves in the time that a small file takes.
const ITEM_BYTES: u64 = 16 << 10;
/// Samples closer than this to the one before replace it.
const SAMPLE_SECONDS: f64 = 0.05;

/// One look at the counters.
#[derive(Clone, Copy, Debug)]
struct Sample {
    at: f64,
    bytes: u64,
    work: u64,
}

/// Adds up the time in which a run waits for people: paused, or with a question open.
#[derive(Debug, Default)]
pub struct Waits {
    total: Duration,
    since: Option<Duration>,
}

impl Waits {
    /// Looks at `now`, counted from the start of the run: whether it waits from here on. What it did
    /// up to now is what the last look said.
    pub fn look(&mut self, now: Duration, waits: bool) {
        if let Some(since) = self.since.take() {
            self.total += now.saturating_sub(since);
        }
        self.since = waits.then_some(now);
    }

    /// Returns the sum up to the last look.
    pub fn total(&self) -> Duration {
        self.total
    }
}

/// What the meter says now.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// Useful bytes a second; never negative.
    pub goodput: f64,
    /// Seconds left, when that can be said.
    pub eta: Option<f64>,
    /// Nothing has moved for 10 s although it should.
    pub quiet: bool,
    /// Useful bytes since the last sample.
    pub delta: u64,
}

/// The meter of one job.
#[derive(Debug, Default)]
pub struct Meter {
    samples: VecDeque<Sample>,
    /// The last counters, to notice movement and to feed the curve.
    last: Progress,
    moved_at: f64,
    /// When data began to flow in this stretch.
    flows_since: Option<f64>,
    eta: Option<f64>,
    at: f64,
    /// Nothing was expected to move at the last sample.
    held: bool,
    /// The throughput curve.
    pub series: Series,
}

impl Meter {
    /// Takes the counters at `now` seconds. `held` says that nothing is expected to move: the job
    /// is paused, reconnecting, or waits for an answer.
    pub fn sample(&mut self, now: f64, progress: &Progress, held: bool) -> Reading {
        let now = now.max(self.at);
        // The time of a pause counts for no rate.
        let goes_on = std::mem::replace(&mut self.held, held) && !held;
        let elapsed = if goes_on { 0.0 } else { now - self.at };
        self.at = now;
        let again = progress.bytes_done < self.last.bytes_done
            || progress.items_done < self.last.items_done;
        let delta = if again {
            0
        } else {
            progress.bytes_done - self.last.bytes_done
        };
        self.series.add(now, delta);
        if held || moved(&self.last, progress) {
            self.moved_at = now;
        }
        let flowing = delta > 0 || progress.items_done > self.last.items_done;
        self.last.clone_from(progress);

        if held || goes_on || again || matches!(progress.phase, Phase::Connecting | Phase::Planning)
        {
            self.samples.clear();
            self.flows_since = None;
        }
        let work = progress.bytes_done + progress.items_done * ITEM_BYTES;
        self.push(Sample {
            at: now,
            bytes: progress.bytes_done,
            work,
        });
        if flowing && self.flows_since.is_none() && !held {
            self.flows_since = Some(now - elapsed);
        }
        let quiet = !held
            && matches!(progress.phase, Phase::Planning | Phase::Transferring)
            && now - self.moved_at >= QUIET_SECONDS;
        let left = (progress.bytes_total + progress.items_total * ITEM_BYTES).saturating_sub(work);
        let known = progress.listed
            && !quiet
            && left > 0
            && self
                .flows_since
                .is_some_and(|since| now - since >= ETA_AFTER_SECONDS);
        self.eta = if known {
            self.follow(left, elapsed)
        } else {
            None
        };
        Reading {
            goodput: self.rate(GOODPUT_SECONDS, |sample| sample.bytes),
            eta: self.eta,
            quiet,
            delta,
        }
    }

    fn push(&mut self, sample: Sample) {
        let close = |last: &Sample| sample.at - last.at < SAMPLE_SECONDS;
        if self.samples.len() > 1 && self.samples.back().is_some_and(close) {
            self.samples.pop_back();
        }
        self.samples.push_back(sample);
        while self.samples.len() > 2 && self.samples[1].at <= sample.at - ETA_SECONDS {
            self.samples.pop_front();
        }
    }

    /// Returns the mean of the last `seconds`, or of what there is.
    fn rate(&self, seconds: f64, value: impl Fn(&Sample) -> u64) -> f64 {
        let Some(new) = self.samples.back() else {
            return 0.0;
        };
        let start = self
            .samples
            .partition_point(|sample| sample.at <= new.at - seconds);
        let old = &self.samples[start.saturating_sub(1)];
        let elapsed = new.at - old.at;
        if elapsed < SAMPLE_SECONDS {
            return 0.0;
        }
        value(new).saturating_sub(value(old)) as f64 / elapsed
    }

    /// Returns the next time left to show: it counts down and follows what the rates say.
    fn follow(&self, left: u64, elapsed: f64) -> Option<f64> {
        let recent = self.rate(ETA_RECENT_SECONDS, |sample| sample.work);
        let rate = recent.min(self.rate(ETA_SECONDS, |sample| sample.work));
        if rate <= 0.0 {
            return None;
        }
        let computed = left as f64 / rate;
        let Some(shown) = self.eta else {
            return Some(computed);
        };
        // Below half a second ratios mean nothing.
        let expected = (shown - elapsed).max(0.5);
        let pull = (computed.max(0.5) / expected).ln();
        let follow = pull * (1.0 - (-elapsed / ETA_FOLLOWS_SECONDS).exp());
        let most = ETA_MAX_PULL * elapsed;
        let next = expected * follow.clamp(-most, most).exp();
        Some(next.max(computed.min(expected + ETA_MAX_GROWTH * elapsed)))
    }
}

/// Says whether anything that a person would call movement happened.
fn moved(before: &Progress, now: &Progress) -> bool {
    let of = |p: &Progress| {
        (
            p.bytes_done,
            p.bytes_total,
            p.items_done,
            p.items_total,
            p.wire_bytes,
            p.phase,
        )
    };
    of(before) != of(now)
}

/// Goodput over time: a value each half second from the start; when there are 1200, neighbours are
/// merged and each stands for twice the time.
#[derive(Clone, Debug)]
pub struct Series {
    /// Bytes a second.
    pub values: Arc<Vec<f32>>,
    /// Seconds that each value stands for.
    pub step: f64,
    /// When the value that is being gathered began.
    from: f64,
    bytes: f64,
    at: f64,
}

/// The most values of a series.
pub const SERIES_VALUES: usize = 1200;

impl Default for Series {
    fn default() -> Self {
        Self {
            values: Arc::default(),
            step: 0.5,
            from: 0.0,
            bytes: 0.0,
            at: 0.0,
        }
    }
}

impl Series {
    /// Takes `bytes` that moved since the last call, up to `now` seconds.
    pub fn add(&mut self, now: f64, bytes: u64) {
        let now = now.max(self.at);
        if now == self.at {
            self.bytes += bytes as f64;
            return;
        }
        // After a long sleep of the whole program one value must not hold minutes of bytes.
        let per_second = bytes as f64 / (now - self.at);
        loop {
            while self.values.len() >= SERIES_VALUES
                || (now - self.from) / self.step > SERIES_VALUES as f64
            {
                self.merge();
            }
            let end = self.from + self.step;
            if end > now {
                break;
            }
            let value = (self.bytes + per_second * (end - self.at)) / self.step;
            Arc::make_mut(&mut self.values).push(value as f32);
            (self.from, self.at, self.bytes) = (end, end, 0.0);
        }
        self.bytes += per_second * (now - self.at);
        self.at = now;
    }

    /// Merges neighbours; one that has none goes back to what is being gathered.
    fn merge(&mut self) {
        let values = Arc::make_mut(&mut self.values);
        if values.len() % 2 == 1 {
            let last = values.pop().map_or(0.0, f64::from);
            self.from -= self.step;
            self.bytes += last * self.step;
        }
        *values = values
            .chunks(2)
            .map(|pair| (pair[0] + pair[1]) / 2.0)
            .collect();
        self.step *= 2.0;
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
