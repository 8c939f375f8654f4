//! Finds the far side's answers in what its login shell prints.
//!
//! Start-up files may print anything before our command runs: greetings, binary, even text made
//! to look like an answer. An answer is only what follows this session's random marker and a
//! blank, up to the end of that line; the rest is skipped, up to a limit.

use std::io::{self, BufRead as _, BufReader};
use std::time::{Duration, Instant};

use crate::proc::ChildStdout;
use crate::proc::ready::{self, For, Waited};

/// How much other text is skipped over a whole bootstrap.
pub const NOISE_CAP: usize = 64 << 10;
/// The longest answer.
const ANSWER_CAP: usize = 1024;
/// How much of the noise is kept to be shown.
const SHOWN: usize = 120;

/// What waiting for an answer brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Heard {
    /// The text after the marker.
    Answer(Vec<u8>),
    /// The far side closed its output.
    Ended,
    /// Nothing within the time allowed.
    TimedOut,
    /// More than [`NOISE_CAP`] bytes of other text.
    TooMuchNoise,
    /// The caller's flag was raised.
    Cancelled,
}

/// Reads answers. What follows the last answer stays unread.
#[derive(Debug)]
pub struct Replies {
    out: BufReader<ChildStdout>,
    mark: Vec<u8>,
    /// The line so far.
    line: Vec<u8>,
    skipped: usize,
    noise: Vec<u8>,
}

impl Replies {
    pub fn new(out: ChildStdout, marker: &str) -> Self {
        Self {
            out: BufReader::with_capacity(64 << 10, out),
            mark: format!("{marker} ").into_bytes(),
            line: Vec::new(),
            skipped: 0,
            noise: Vec::new(),
        }
    }

    /// Returns the beginning of what was skipped.
    pub fn noise(&self) -> &[u8] {
        self.noise.trim_ascii()
    }

    /// Says whether anything was skipped.
    pub fn is_noisy(&self) -> bool {
        !self.noise().is_empty()
    }

    /// Returns the stream, which stands right after the last answer.
    pub fn into_inner(self) -> BufReader<ChildStdout> {
        self.out
    }

    /// Waits until `until` for the first byte, from then for `step` for a whole answer.
    pub fn next(
        &mut self,
        until: Instant,
        step: Duration,
        cancel: &dyn Fn() -> bool,
    ) -> io::Result<Heard> {
        let mut until = until;
        let mut begun = false;
        loop {
            if self.out.buffer().is_empty() {
                match ready::wait(self.out.get_ref(), For::Reading, until, cancel)? {
                    Waited::Ready => {}
                    Waited::TimedOut => return Ok(Heard::TimedOut),
                    Waited::Cancelled => return Ok(Heard::Cancelled),
                }
            }
            let available = match self.out.fill_buf() {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if available.is_empty() {
                let rest = std::mem::take(&mut self.line);
                self.skip(&rest);
                return Ok(Heard::Ended);
            }
            if !begun {
                begun = true;
                until = until.min(Instant::now() + step);
            }
            let end = available.iter().position(|&b| b == b'\n');
            let used = end.map_or(available.len(), |at| at + 1);
            self.line.extend_from_slice(&available[..used]);
            self.out.consume(used);
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                if let Some(answer) = self.answer(&line) {
                    return Ok(self.within_cap(Heard::Answer(answer)));
                }
                self.skip(&line);
            }
            if self.skipped + self.line.len() > NOISE_CAP + ANSWER_CAP {
                let line = std::mem::take(&mut self.line);
                self.skip(&line);
            }
            if self.skipped > NOISE_CAP {
                return Ok(Heard::TooMuchNoise);
            }
        }
    }

    fn within_cap(&self, heard: Heard) -> Heard {
        if self.skipped > NOISE_CAP {
            Heard::TooMuchNoise
        } else {
            heard
        }
    }

    /// Splits a line into noise and an answer; the last marker in it counts.
    fn answer(&mut self, line: &[u8]) -> Option<Vec<u8>> {
        let at = line
            .windows(self.mark.len())
            .rposition(|window| window == self.mark)?;
        self.skip(&line[..at]);
        let answer = line[at + self.mark.len()..].trim_ascii_end();
        Some(answer.to_vec())
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.skipped += bytes.len();
        if !self.is_noisy() {
            self.noise.clear();
        }
        let room = SHOWN.saturating_sub(self.noise.len());
        self.noise
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}
