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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::{Child, Pipe, Program};

    const MARKER: &str = "00112233445566778899aabbccddeeff";
    const LONG: Duration = Duration::from_secs(60);
    const NEVER: &dyn Fn() -> bool = &|| false;

    fn replies(script: &str) -> (Replies, Child) {
        let program = Program::named("sh").unwrap();
        let program = program.args(["-c", script, "sh", MARKER]);
        let mut child = program.stdout(Pipe::Piped).spawn().unwrap();
        let out = child.take_stdout().unwrap();
        (Replies::new(out, MARKER), child)
    }

    fn next(replies: &mut Replies) -> Heard {
        replies.next(Instant::now() + LONG, LONG, NEVER).unwrap()
    }

    fn answer(text: &str) -> Heard {
        Heard::Answer(text.as_bytes().to_vec())
    }

    #[test]
    fn an_answer_is_what_follows_the_last_marker_in_a_line() {
        let (mut replies, _child) = replies(
            "echo hello; printf 'no end'; echo $1 one; echo $1; echo x$1; \
             echo $1 noise $1 two words; printf \"$1 agent\\r\\nframes\"",
        );
        assert_eq!(next(&mut replies), answer("one"));
        assert_eq!(replies.noise(), b"hello\nno end");
        // A marker without a blank after it is an echo of ours, no answer.
        assert_eq!(next(&mut replies), answer("two words"));
        assert_eq!(next(&mut replies), answer("agent"));
        let mut rest = String::new();
        io::Read::read_to_string(&mut replies.into_inner(), &mut rest).unwrap();
        assert_eq!(rest, "frames");
    }

    #[test]
    fn an_answer_in_pieces_is_one_answer() {
        let (mut replies, _child) = replies(
            "for a in 0 0 1 1 22334455667788 99aabbccddeef 'f ' part; do printf \"$a\"; done; echo",
        );
        assert_eq!(next(&mut replies), answer("part"));
        assert_eq!(next(&mut replies), Heard::Ended);
    }

    #[test]
    fn noise_ends_at_its_cap_with_or_without_lines() {
        let limit = NOISE_CAP;
        let at_cap = format!("head -c {limit} /dev/zero; echo $1 in");
        assert_eq!(next(&mut replies(&at_cap).0), answer("in"));
        let above = format!("head -c {} /dev/zero; echo $1 out", limit + 1);
        assert_eq!(next(&mut replies(&above).0), Heard::TooMuchNoise);
        assert_eq!(next(&mut replies("yes").0), Heard::TooMuchNoise);
        assert_eq!(next(&mut replies("cat /dev/zero").0), Heard::TooMuchNoise);
    }

    #[test]
    fn waiting_ends_with_the_deadline_a_step_after_the_first_byte_or_a_cancel() {
        let short = Duration::from_millis(30);
        let (mut silent, _child) = replies("sleep 60");
        let heard = silent.next(Instant::now() + short, LONG, NEVER).unwrap();
        assert_eq!(heard, Heard::TimedOut);
        let (mut slow, _child) = replies("printf hello; sleep 60");
        let heard = slow.next(Instant::now() + LONG, short, NEVER).unwrap();
        assert_eq!(heard, Heard::TimedOut);
        assert_eq!(slow.line, b"hello");
        let heard = slow.next(Instant::now() + LONG, LONG, &|| true).unwrap();
        assert_eq!(heard, Heard::Cancelled);
    }
}
