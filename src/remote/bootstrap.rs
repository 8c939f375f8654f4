//! Starts the agent on a host: one constant remote command, everything else on its standard
//! input, one answer awaited before the next thing is sent.
//!
//! | we send (a line each)      | the far side answers, after the marker        |
//! |----------------------------|-----------------------------------------------|
//! | marker; `any` or `cache`   | `path` and becomes the agent, or `none LINUX MACHINE` |
//! | the agent's cache name     | `cache` and becomes the agent, or `absent`    |
//! | its size                   | `send`, or `fail`                             |
//! | its bytes                  | `sum SIZE SHA256` (or `-` for the digest)     |
//! | `ok`                       | `new` and becomes the agent                   |
//!
//! The agent's own first line is `agent`, after the same marker; from there on both directions
//! carry binary frames. An empty line instead of a name or size gives up. Nothing is ever sent
//! ahead of an answer: some `head` programs read more than they were asked to.

use std::fmt::Write as _;
use std::io::{BufReader, Write as _};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Host;
use crate::model::profile::SshSettings;
use crate::model::untrusted::{Untrusted, shown};
use crate::proc::ready::{self, For, Waited};
use crate::proc::{Child, ChildStdin, ChildStdout, Pipe, Tail};
use crate::remote::agents::{Agents, Image};
use crate::remote::connection::{Mode, login_limit, ssh_argv, ssh_program};
use crate::remote::failure::{ended, is_sshs_own, last_line, login_failure, why_ended};
use crate::remote::replies::{Heard, Replies};
use crate::remote::target::label;

/// How long each step may take once the far side has begun to speak.
const STEP: Duration = Duration::from_secs(10);

/// The slowest line, in bytes a second, over which a copy is waited for.
const SLOWEST: u64 = 16 << 10;

/// The remote command, the same for every host, job and file: it holds no quote, backslash, bang
/// or newline within its quotes, so every login shell passes it on unchanged. Globbing and word
/// splitting are off (`set -f`, empty `IFS`), which makes unquoted variables safe.
pub const COMMAND: &str = concat!(
    "exec /bin/sh -c '",
    "set -f; IFS=; umask 077; read -r m; read -r w; p=; ",
    "case $w in any) p=$(command -v transload-agent);; esac; ",
    "case $p in /*) echo $m path; exec $p serve $m;; esac; ",
    "echo $m none $(uname -sm); ",
    "read -r f; case $f in agent-*) ;; *) exit 0;; esac; ",
    "case $HOME in /*) ;; *) echo $m fail; exit 1;; esac; ",
    "d=$HOME/.cache/transload; ",
    "if test -f $d/$f && test -x $d/$f; then echo $m cache; exec $d/$f serve $m; fi; ",
    "echo $m absent; ",
    "read -r n; case $n in [1-9]*) ;; *) exit 0;; esac; ",
    "t=$d/.new-$m; z() { rm -f $t; exit 1; }; trap z 1 13 15; set -C; ",
    "mkdir -p $d && chmod 700 $d || { echo $m fail; exit 1; }; ",
    "echo $m send; ",
    "head -c $n > $t || { echo $m fail; z; }; ",
    "echo $m sum $(wc -c < $t) $(sha256sum < $t 2>/dev/null || echo -); ",
    "read -r g; case $g in ok) ;; *) z;; esac; ",
    "chmod 700 $t && mv -f $t $d/$f || { echo $m fail; z; }; ",
    "echo $m new; exec $d/$f serve $m",
    "'"
);

/// Where the agent came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFound {
    /// It is installed there, in the login shell's `PATH`.
    InPath,
    /// An earlier job copied it to the cache folder.
    Cached,
    /// It was copied there just now.
    Uploaded,
}

/// A running agent and its control channel.
#[derive(Debug)]
pub struct AgentChannel {
    /// The ssh process; dropping it ends the session, and with it the agent.
    pub child: Child,
    /// To the agent.
    pub input: ChildStdin,
    /// From the agent, right after its first line.
    pub output: BufReader<ChildStdout>,
    /// Where the agent came from.
    pub found: AgentFound,
    /// The last words of ssh, the login shell and the agent.
    pub stderr: Tail,
}

/// How to start an agent on one host.
#[derive(Clone, Debug)]
pub struct Bootstrap<'a> {
    /// Where.
    pub host: &'a Host,
    /// How to log in.
    pub ssh: &'a SshSettings,
    /// Take one from the login shell's `PATH`; off when that one turned out to be too old.
    pub use_path: bool,
    /// What can be copied there.
    pub agents: &'a Agents,
}

/// Starts the agent on a host: from its `PATH`, else from its cache folder, else copied there
/// when `ask_upload` (given the size in bytes) says so.
///
/// # Errors
/// What [`Bootstrap::start`] returns.
pub fn start_agent(
    host: &Host,
    ssh: &SshSettings,
    ask_upload: &mut dyn FnMut(u64) -> bool,
    cancel: &dyn Fn() -> bool,
) -> Result<AgentChannel> {
    let agents = Agents::usual();
    let bootstrap = Bootstrap {
        host,
        ssh,
        use_path: true,
        agents: &agents,
    };
    bootstrap.start(ask_upload, cancel)
}

/// Starts exactly our own version of the agent: as [`start_agent`], but not from `PATH`.
///
/// # Errors
/// What [`Bootstrap::start`] returns.
pub fn start_own_agent(
    host: &Host,
    ssh: &SshSettings,
    ask_upload: &mut dyn FnMut(u64) -> bool,
    cancel: &dyn Fn() -> bool,
) -> Result<AgentChannel> {
    let agents = Agents::usual();
    let bootstrap = Bootstrap {
        host,
        ssh,
        use_path: false,
        agents: &agents,
    };
    bootstrap.start(ask_upload, cancel)
}

impl Bootstrap<'_> {
    /// Logs in and starts the agent.
    ///
    /// # Errors
    /// `Config` for a name or option that may not be used, `Tool` without ssh, the kinds of
    /// [`login_failure`] when the log-in fails, `Unsupported` when there is no agent for that
    /// machine or the account may not run commands, `Denied` when the copy was not allowed,
    /// `Protocol` for a shell that prints too much, `Corrupt` when the copy arrived changed,
    /// `Tool` when the agent cannot run there, `Timeout`, `Cancelled`.
    pub fn start(
        &self,
        ask_upload: &mut dyn FnMut(u64) -> bool,
        cancel: &dyn Fn() -> bool,
    ) -> Result<AgentChannel> {
        let marker = random_marker()?;
        let mut talk = Talk::open(self, &marker, cancel)?;
        let which = if self.use_path { "any" } else { "cache" };
        talk.send(format!("{marker}\n{which}\n").as_bytes())?;

        let login = Instant::now() + login_limit(self.ssh)?;
        let answer = talk.answer("log in", login)?;
        if answer == b"path" {
            return talk.agent(AgentFound::InPath);
        }
        let machine = match answer.strip_prefix(b"none ") {
            Some(machine) => String::from_utf8_lossy(machine).into_owned(),
            None => return Err(talk.odd(&answer)),
        };
        let image = match self.agents.load(&machine) {
            Ok(Some(image)) => image,
            Ok(None) => return Err(talk.no_agent(&machine)),
            Err(error) => return Err(error),
        };
        let answer = talk.ask(&format!("{}\n", image.cache_name))?;
        match answer.as_slice() {
            b"cache" => return talk.agent(AgentFound::Cached),
            b"absent" => {}
            b"fail" => return Err(talk.refused_by_system("find its home folder")),
            _ => return Err(talk.odd(&answer)),
        }
        if !ask_upload(image.bytes.len() as u64) {
            return Err(talk.not_allowed());
        }
        talk.upload(&image)?;
        talk.agent(AgentFound::Uploaded)
    }
}

/// A session whose far side has not become the agent yet.
struct Talk<'a> {
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
    fn open(start: &Bootstrap<'a>, marker: &str, cancel: &'a dyn Fn() -> bool) -> Result<Self> {
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
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
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

    fn ask(&mut self, line: &str) -> Result<Vec<u8>> {
        self.send(line.as_bytes())?;
        self.answer("start the agent", Instant::now() + STEP)
    }

    fn answer(&mut self, doing: &str, until: Instant) -> Result<Vec<u8>> {
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
    fn agent(mut self, found: AgentFound) -> Result<AgentChannel> {
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

    fn upload(&mut self, image: &Image) -> Result<()> {
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

    fn refused_by_system(&mut self, doing: &str) -> Error {
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

    fn no_agent(&self, machine: &str) -> Error {
        let machine = shown(machine.as_bytes());
        Error::new(
            ErrorKind::Unsupported,
            "start the agent there",
            format!("none is installed, and there is none here for its machine type ({machine})"),
        )
        .at(label(self.host))
        .hint("install Transload there, or choose another method")
    }

    fn not_allowed(&self) -> Error {
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

    fn odd(&self, answer: &[u8]) -> Error {
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

/// Returns 32 random hexadecimal digits. It is no secret: it only tells our answers from noise.
fn random_marker() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| {
        Error::new(
            ErrorKind::Io,
            "get random bytes from the system",
            e.to_string(),
        )
    })?;
    let mut marker = String::with_capacity(32);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(marker, "{byte:02x}");
    }
    Ok(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_command_passes_unchanged_through_every_login_shell() {
        let inner = COMMAND.strip_prefix("exec /bin/sh -c '").unwrap();
        let inner = inner.strip_suffix('\'').unwrap();
        for bad in ['\'', '"', '\\', '!', '\n', '`'] {
            assert!(!inner.contains(bad), "{bad:?}");
        }
        assert!(inner.bytes().all(|b| (b' '..=b'~').contains(&b)));
    }

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

    #[test]
    fn markers_are_32_digits_and_never_the_same() {
        let (a, b) = (random_marker().unwrap(), random_marker().unwrap());
        assert_eq!(a.len(), 32);
        assert!(a.bytes().all(|c| c.is_ascii_hexdigit()));
        assert_ne!(a, b);
    }
}
