//! One session's talk with the far side's shell before it becomes the agent: a line out, an answer
//! in, and an error in words for everything else that can come instead.

use std::fmt::Write as _;
use std::io::Write as _;
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Host;
use crate::model::untrusted::{Untrusted, shown};
use crate::proc::ready::{self, For, Waited};
use crate::proc::{Child, ChildStdin, Pipe, Tail};
use crate::remote::agents::Image;
use crate::remote::bootstrap::{AgentChannel, AgentFound, Bootstrap, COMMAND};
use crate::remote::connection::{Mode, ssh_argv, ssh_program};
use crate::remote::failure::{ended, is_sshs_own, last_line, login_failure, why_ended};
use crate::remote::replies::{Heard, Replies};
use crate::remote::target::label;

/// How long each step may take once the far side has begun to speak.
const STEP: Duration = Duration::from_secs(10);

/// The slowest line, in bytes a second, over which a copy is waited for.
const SLOWEST: u64 = 16 << 10;

/// A session whose far side has not become the agent yet.
pub(super) struct Talk<'a> {
    host: &'a Host,
    child: Child,
    input: ChildStdin,
    replies: Replies,
    stderr: Tail,
    /// The far side has answered, so the log-in worked and a POSIX shell runs there.
    answered: bool,
    cancel: &'a dyn Fn() -> bool,
}

impl<'a> Talk<'a> {
    pub fn open(start: &Bootstrap<'a>, marker: &str, cancel: &'a dyn Fn() -> bool) -> Result<Self> {
        let argv = ssh_argv(start.host, start.ssh, Mode::Command(COMMAND))?;
        let mut child = ssh_program()?
            .args(argv)
            .stdin(Pipe::Piped)
            .stdout(Pipe::Piped)
            .stderr(Pipe::Piped)
            .spawn()?;
        let stderr = Tail::of(&mut child)?;
        let input = child.take_stdin().expect("stdin was asked for as a pipe");
        let output = child.take_stdout().expect("stdout was asked for as a pipe");
        Ok(Self {
            host: start.host,
            child,
            input,
            replies: Replies::new(output, marker),
            stderr,
            answered: false,
            cancel,
        })
    }

    /// Sends bytes, in pieces that never block longer than the cancel may go unnoticed.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(ready::WRITE_AT_ONCE) {
            let until = Instant::now() + STEP;
            let state = ready::wait(&self.input, For::Writing, until, self.cancel);
            match state.map_err(|e| Error::io("send to the far side", &e))? {
                Waited::Ready => {}
                Waited::TimedOut => return Err(self.silent("send to the far side", STEP)),
                Waited::Cancelled => return Err(Error::cancelled()),
            }
            if self.input.write_all(piece).is_err() {
                // Nobody reads any more. The next answer tells why.
                break;
            }
        }
        Ok(())
    }

    pub fn ask(&mut self, line: &str) -> Result<Vec<u8>> {
        self.send(line.as_bytes())?;
        self.answer("start the agent", Instant::now() + STEP)
    }

    pub fn answer(&mut self, doing: &str, until: Instant) -> Result<Vec<u8>> {
        let since = Instant::now();
        let heard = self.replies.next(until, STEP, self.cancel);
        match heard.map_err(|e| Error::io("read from the far side", &e))? {
            Heard::Answer(text) => {
                self.answered = true;
                Ok(text)
            }
            Heard::Cancelled => Err(Error::cancelled()),
            Heard::TimedOut => Err(self.silent(doing, since.elapsed())),
            Heard::TooMuchNoise => Err(self.too_noisy()),
            Heard::Ended if self.answered => {
                Err(why_ended(&mut self.child, &self.stderr, self.host, doing))
            }
            Heard::Ended => Err(self.no_shell(doing)),
        }
    }

    /// Waits for the agent's own first line.
    pub fn agent(mut self, found: AgentFound) -> Result<AgentChannel> {
        let since = Instant::now();
        let heard = self.replies.next(since + STEP, STEP, self.cancel);
        match heard.map_err(|e| Error::io("read from the far side", &e))? {
            Heard::Answer(text) if text == b"agent" => Ok(AgentChannel {
                child: self.child,
                input: self.input,
                output: self.replies.into_inner(),
                found,
                stderr: self.stderr,
            }),
            Heard::Answer(text) => Err(self.odd(&text)),
            Heard::Cancelled => Err(Error::cancelled()),
            Heard::TimedOut => Err(self.silent("start the agent", since.elapsed())),
            Heard::TooMuchNoise => Err(self.too_noisy()),
            Heard::Ended => Err(self.agent_ended(found)),
        }
    }

    pub fn upload(&mut self, image: &Image) -> Result<()> {
        let size = image.bytes.len();
        let answer = self.ask(&format!("{size}\n"))?;
        match answer.as_slice() {
            b"send" => {}
            b"fail" => return Err(self.refused_by_system("make its cache folder")),
            _ => return Err(self.odd(&answer)),
        }
        self.send(&image.bytes)?;
        // Much of it may still wait in the sockets' buffers on a slow line.
        let slow = Duration::from_secs(size as u64 / SLOWEST);
        let answer = self.answer("copy the agent there", Instant::now() + STEP + slow)?;
        if answer == b"fail" {
            return Err(self.refused_by_system("store the agent"));
        }
        let mut digest = String::new();
        for byte in Sha256::digest(&image.bytes) {
            // Writing to a String cannot fail.
            let _ = write!(digest, "{byte:02x}");
        }
        if !same_copy(&answer, size, &digest) {
            self.send(b"no\n")?;
            return Err(Error::new(
                ErrorKind::Corrupt,
                "copy the agent there",
                "its digest there is not the one it has here",
            )
            .at(label(self.host))
            .hint("try again; if it happens again, check that computer's disk and memory"));
        }
        let answer = self.ask("ok\n")?;
        match answer.as_slice() {
            b"new" => Ok(()),
            b"fail" => Err(self.refused_by_system("store the agent")),
            _ => Err(self.odd(&answer)),
        }
    }

    /// The session ended before any answer: ssh failed, or the account runs no commands.
    fn no_shell(&mut self, doing: &str) -> Error {
        let (status, stderr) = match ended(&mut self.child, &self.stderr) {
            Ok(end) => end,
            Err(error) => return error,
        };
        if is_sshs_own(status) {
            return login_failure(doing, self.host, stderr.as_bytes());
        }
        let words = last_line(self.replies.noise()).or(last_line(stderr.as_bytes()));
        let cause = words.map_or_else(|| "its login shell ended at once".into(), Untrusted::from);
        Error::new(ErrorKind::Unsupported, "run a command there", cause)
            .at(label(self.host))
            .hint(
                "the account may not be allowed to run commands; use another account, or a method \
                 that needs none, such as sftp",
            )
    }

    /// The shell said that it becomes the agent, and then the session ended.
    fn agent_ended(&mut self, found: AgentFound) -> Error {
        let (status, stderr) = match ended(&mut self.child, &self.stderr) {
            Ok(end) => end,
            Err(error) => return error,
        };
        let doing = "start the agent there";
        if is_sshs_own(status) {
            return why_ended(&mut self.child, &self.stderr, self.host, doing);
        }
        let cause = last_line(stderr.as_bytes());
        let cause = cause.map_or_else(|| "it ended at once".into(), Untrusted::from);
        let error = Error::new(ErrorKind::Tool, doing, cause).at(label(self.host));
        error.hint(match found {
            AgentFound::InPath => {
                "the transload-agent that is installed there does not run; install it again"
            }
            AgentFound::Cached | AgentFound::Uploaded => {
                "programs may not be allowed to run from the home folder there; install Transload \
                 on that computer, or choose another method"
            }
        })
    }

    pub fn refused_by_system(&mut self, doing: &str) -> Error {
        // The shell ends after it has said that something failed.
        let stderr = match ended(&mut self.child, &self.stderr) {
            Ok((_, stderr)) => stderr,
            Err(error) => return error,
        };
        let cause = last_line(stderr.as_bytes());
        let cause = cause.map_or_else(|| "it gave no reason".into(), Untrusted::from);
        Error::new(ErrorKind::Io, format!("{doing} there"), cause)
            .at(label(self.host))
            .hint("check its free space and the rights of ~/.cache/transload there")
    }

    pub fn no_agent(&self, machine: &str) -> Error {
        let machine = shown(machine.as_bytes());
        Error::new(
            ErrorKind::Unsupported,
            "start the agent there",
            format!("none is installed, and there is none here for its machine type ({machine})"),
        )
        .at(label(self.host))
        .hint("install Transload there, or choose another method")
    }

    pub fn not_allowed(&self) -> Error {
        Error::new(
            ErrorKind::Denied,
            "start the agent there",
            "none is installed, and copying it there was not allowed",
        )
        .at(label(self.host))
        .hint("allow the copy (--upload-agent), install Transload there, or choose another method")
    }

    fn silent(&self, doing: &str, waited: Duration) -> Error {
        let seconds = waited.as_secs_f32();
        let cause = if self.replies.is_noisy() {
            let noise = shown(self.replies.noise());
            format!(
                "no answer within {seconds:.0} s; its login shell printed \u{201c}{noise}\u{201d}"
            )
        } else {
            format!("no answer within {seconds:.0} s")
        };
        Error::new(ErrorKind::Timeout, doing, cause)
            .at(label(self.host))
            .hint("check that its start-up files do not wait for input; try again")
    }

    fn too_noisy(&self) -> Error {
        let noise = shown(self.replies.noise());
        Error::new(
            ErrorKind::Protocol,
            "start the agent there",
            format!(
                "the login shell prints too much text before it runs a command; it begins \
                 \u{201c}{noise}\u{201d}"
            ),
        )
        .at(label(self.host))
        .hint("let its start-up files (.bashrc, .profile, .cshrc) print only in a terminal")
    }

    pub fn odd(&self, answer: &[u8]) -> Error {
        let answer = shown(answer);
        Error::new(
            ErrorKind::Protocol,
            "start the agent there",
            format!("unexpected answer \u{201c}{answer}\u{201d}"),
        )
        .at(label(self.host))
        .hint("install the same version of Transload on both computers")
    }
}

/// Says whether `sum SIZE SHA256 …` (or `-` without a digest program there) names our bytes.
fn same_copy(answer: &[u8], size: usize, digest: &str) -> bool {
    let Ok(text) = std::str::from_utf8(answer) else {
        return false;
    };
    let mut words = text.split_ascii_whitespace();
    words.next() == Some("sum")
        && words.next().and_then(|w| w.parse().ok()) == Some(size)
        && words.next().is_some_and(|w| w == digest || w == "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_counts_only_with_the_right_size_and_digest() {
        for (answer, good) in [
            ("sum 3 abc  -", true),
            ("sum  3  abc", true),
            ("sum 3 -", true),
            ("sum 4 abc", false),
            ("sum 3 abd", false),
            ("sum 3", false),
            ("sum", false),
            ("3 abc", false),
        ] {
            assert_eq!(same_copy(answer.as_bytes(), 3, "abc"), good, "{answer}");
        }
    }
}
