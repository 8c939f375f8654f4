//! Reads what a program prints in lines of bounded length, and keeps the end of its error output.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::untrusted::Untrusted;
use crate::proc::child::Child;

/// The longest line that is kept; the rest of a longer one is dropped.
pub const LINE_CAP: usize = 64 << 10;
/// How much of the end of a stream a [`Tail`] keeps.
pub const TAIL_CAP: usize = 64 << 10;
/// How long [`Tail::finish`] waits for the stream's end: a process that left the group may hold
/// the pipe open after its program ended.
const END_LIMIT: Duration = Duration::from_secs(2);

/// Which bytes end a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// A line feed.
    Feed,
    /// A line feed or a carriage return, as progress displays print them.
    FeedOrReturn,
}

/// Reads bounded lines; memory stays at one line whatever the program prints.
#[derive(Debug)]
pub struct Lines<R> {
    from: R,
    ends: Ends,
    line: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    /// Reads lines from a stream.
    pub fn new(from: R, ends: Ends) -> Self {
        Self {
            from,
            ends,
            line: Vec::new(),
        }
    }

    /// Returns the next line without its end, cut at [`LINE_CAP`]; `None` at the end of the
    /// stream. A last line without an end is returned like the others.
    ///
    /// # Errors
    /// What the stream returns.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        self.line.clear();
        let mut any = false;
        loop {
            let available = match self.from.fill_buf() {
                Ok(bytes) => bytes,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            if available.is_empty() {
                return Ok(any.then_some(self.line.as_slice()));
            }
            any = true;
            let returns = self.ends == Ends::FeedOrReturn;
            let end = available
                .iter()
                .position(|&b| b == b'\n' || (returns && b == b'\r'));
            let part = &available[..end.unwrap_or(available.len())];
            let room = LINE_CAP - self.line.len();
            self.line.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(end.is_some());
            self.from.consume(used);
            if end.is_some() {
                return Ok(Some(&self.line));
            }
        }
    }
}

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    ended: bool,
}

/// The end of a child's error output, read by its own thread so that the child never blocks on
/// it. Clones show the same text.
#[derive(Clone, Debug)]
pub struct Tail {
    shared: Arc<(Mutex<Kept>, Condvar)>,
}

impl Tail {
    /// Takes a child's error output, which must be piped, and starts to read it.
    ///
    /// # Errors
    /// `Io` when no thread can be started, `Bug` when the stream is not piped.
    pub fn of(child: &mut Child) -> Result<Self> {
        let name = format!("stderr-{}", child.name());
        match child.take_stderr() {
            Some(pipe) => Self::start(name, pipe),
            None => Err(Error::new(
                ErrorKind::Bug,
                "read a program's error output",
                "it has no pipe",
            )
            .at(child.name())),
        }
    }

    /// Reads a stream to its end on a thread of this name.
    ///
    /// # Errors
    /// `Io` when no thread can be started.
    pub fn start(thread: String, from: impl Read + Send + 'static) -> Result<Self> {
        let tail = Self {
            shared: Arc::default(),
        };
        let kept = Self::clone(&tail);
        std::thread::Builder::new()
            .name(thread)
            .spawn(move || {
                let mut lines = Lines::new(BufReader::new(from), Ends::Feed);
                // A stream that cannot be read any more has ended.
                while let Ok(Some(line)) = lines.next_line() {
                    kept.add(line);
                }
                kept.lock().ended = true;
                kept.shared.1.notify_all();
            })
            .map_err(|e| Error::io("start a thread", &e))?;
        Ok(tail)
    }

    /// Returns what was kept so far.
    pub fn text(&self) -> Untrusted {
        let bytes: Vec<u8> = self.lock().bytes.iter().copied().collect();
        Untrusted::from(bytes)
    }

    /// Returns the last lines kept so far, oldest first, without empty ones.
    pub fn last_lines(&self, count: usize) -> Vec<Untrusted> {
        let text = self.text();
        let mut lines: Vec<_> = text
            .as_bytes()
            .split(|&b| b == b'\n')
            .map(<[u8]>::trim_ascii_end)
            .filter(|line| !line.is_empty())
            .rev()
            .take(count)
            .map(Untrusted::from)
            .collect();
        lines.reverse();
        lines
    }

    /// Waits a moment for the stream's end, then returns what was kept. For use after the
    /// program has ended: its last words may still be in the pipe.
    pub fn finish(&self) -> Untrusted {
        let guard = self.lock();
        // Whether it ended or the wait did, what is there is all there is.
        let _ = self
            .shared
            .1
            .wait_timeout_while(guard, END_LIMIT, |kept| !kept.ended);
        self.text()
    }

    fn add(&self, line: &[u8]) {
        let mut kept = self.lock();
        kept.bytes.extend(line);
        kept.bytes.push_back(b'\n');
        let excess = kept.bytes.len().saturating_sub(TAIL_CAP);
        kept.bytes.drain(..excess);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Bytes are complete after every step, so a poisoned lock still holds good ones.
        self.shared.0.lock().unwrap_or_else(|bad| bad.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], ends: Ends) -> Vec<Vec<u8>> {
        let mut lines = Lines::new(BufReader::with_capacity(7, input), ends);
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(line.to_vec());
        }
        found
    }

    #[test]
    fn lines_end_where_they_should() {
        assert_eq!(all(b"", Ends::Feed), Vec::<Vec<u8>>::new());
        assert_eq!(
            all(b"a\n\nlonger than the buffer", Ends::Feed),
            [
                b"a".to_vec(),
                b"".to_vec(),
                b"longer than the buffer".to_vec()
            ]
        );
        assert_eq!(
            all(b"1%\r2%\r\n", Ends::FeedOrReturn),
            [b"1%".to_vec(), b"2%".to_vec(), b"".to_vec()]
        );
    }

    #[test]
    fn an_endless_line_is_cut_and_the_next_one_is_whole() {
        let mut input = vec![b'x'; 3 * LINE_CAP];
        input.extend_from_slice(b"\nnext\n");
        let found = all(&input, Ends::Feed);
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].len(), LINE_CAP);
        assert_eq!(found[1], b"next");
    }

    #[test]
    fn a_tail_keeps_the_end_of_a_flood() {
        let mut input = Vec::new();
        for n in 0..100_000 {
            input.extend_from_slice(format!("line {n}\r\n").as_bytes());
        }
        input.extend_from_slice(b"\n\nlast words");
        let tail = Tail::start("stderr-test".into(), io::Cursor::new(input)).unwrap();
        assert_eq!(tail.finish().as_bytes().len(), TAIL_CAP);
        let lines = tail.last_lines(2);
        assert_eq!(
            lines,
            [Untrusted::from("line 99999"), Untrusted::from("last words")]
        );
    }
}
