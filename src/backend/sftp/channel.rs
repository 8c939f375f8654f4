//! A conversation with an sftp server over the user's ssh: many requests may be on the way, and each
//! reply is known by its number.
//!
//! Requests are gathered and leave together before a reply is awaited. Nobody waits for the other
//! for ever: where much is written the replies are small and fit into the pipes, where much is read
//! the requests do. A thread that watches kills ssh to end a wait.
//!
//! A server that means harm gets nowhere: a reply that nobody asked for ends the conversation, and
//! so does more than we are ready to hold.

use std::collections::{HashSet, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crate::backend::cx::Cx;
use crate::backend::sftp::USE;
use crate::backend::sftp::packet::{self, LONGEST, Reply, broken};
use crate::backend::sftp::request::{self, Request};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Host;
use crate::model::profile::SshSettings;
use crate::model::progress::Counters;
use crate::model::untrusted::Untrusted;
use crate::proc::ready::{self, For, Waited};
use crate::proc::{Child, Killer, Pipe, Tail};
use crate::remote::connection::{Mode, login_limit, ssh_argv, ssh_program};
use crate::remote::failure::{login_failure, why_ended};

/// The most that a login shell may print before the server speaks.
const MOST_NOISE: usize = 64 << 10;
/// Length, kind and version: what a server's first packet begins with.
const VERSION_HEAD: usize = 9;
/// How long ssh may take to end once it has closed its output.
const END: Duration = Duration::from_secs(2);
/// Requests are sent when so many bytes wait, also when no reply is awaited.
const GATHER: usize = 64 << 10;
/// What the pipes to and from ssh hold: enough that neither side often waits for the other.
const PIPE: usize = 1 << 20;
/// What every server reads and writes at once.
const USUAL: u32 = 32 << 10;
/// More than this at once gains nothing.
const MOST_AT_ONCE: u64 = 255 << 10;
/// Replies that wait for somebody take no more than this: what we ask for at a time is less.
const MOST_LATE: usize = 32 << 20;

/// A running server.
pub(super) struct Channel {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    stderr: Tail,
    host: Host,
    extensions: Vec<Vec<u8>>,
    /// Whether the server was asked for its limits.
    asked: bool,
    next: u32,
    out: Vec<u8>,
    /// The packet that is being read; kept for its memory.
    body: Vec<u8>,
    /// Requests without a reply so far.
    asked_for: HashSet<u32>,
    /// Those of them whose reply nobody wants.
    unwanted: HashSet<u32>,
    /// Replies that came while another was awaited.
    late: VecDeque<(u32, Reply)>,
    /// What those take.
    late_bytes: usize,
    moved: u64,
    /// How much one read may ask for.
    pub read_size: u32,
    /// How much one write may bring.
    pub write_size: usize,
}

impl Channel {
    /// Logs in and starts the server.
    ///
    /// # Errors
    /// What kept ssh from logging in, `Unsupported` when there is no sftp, `Timeout`, `Cancelled`.
    pub fn connect(host: &Host, ssh: &SshSettings, cx: &Cx<'_>) -> Result<Self> {
        let mut child = ssh_program()?
            .args(ssh_argv(host, ssh, Mode::Subsystem("sftp"))?)
            .stdin(Pipe::Piped)
            .stdout(Pipe::Piped)
            .stderr(Pipe::Piped)
            .spawn()?;
        let no_pipe = || Error::new(ErrorKind::Bug, USE, "ssh has no pipe");
        let to = child.take_stdin().ok_or_else(no_pipe)?;
        let from = child.take_stdout().ok_or_else(no_pipe)?;
        // Where the system allows no more it stays as it is.
        let _ = rustix::pipe::fcntl_setpipe_size(&to, PIPE);
        let _ = rustix::pipe::fcntl_setpipe_size(&from, PIPE);
        let mut channel = Self {
            to,
            from: BufReader::with_capacity(256 << 10, from),
            stderr: Tail::of(&mut child)?,
            child,
            host: host.clone(),
            extensions: Vec::new(),
            asked: false,
            next: 0,
            out: Vec::new(),
            body: Vec::new(),
            asked_for: HashSet::new(),
            unwanted: HashSet::new(),
            late: VecDeque::new(),
            late_bytes: 0,
            moved: 0,
            read_size: USUAL,
            write_size: USUAL as usize,
        };
        request::init(&mut channel.out);
        // A log-in that fails ends the pipe; the words that tell why come below.
        let _ = channel.to.write_all(&channel.out);
        channel.out.clear();
        let limit = login_limit(ssh)?;
        channel.extensions = packet::read_version(&channel.version(limit, cx)?)
            .map_err(|error| error.at(host.name.as_str()))?;
        Ok(channel)
    }

    /// Reads the server's first packet, and past what a careless start-up file prints before it.
    fn version(&mut self, limit: Duration, cx: &Cx<'_>) -> Result<Vec<u8>> {
        let until = Instant::now() + limit;
        let mut seen: Vec<u8> = Vec::new();
        let mut begins = None;
        loop {
            if begins.is_none() && is_version(&seen) {
                begins = Some(seen.len() - VERSION_HEAD);
            }
            if let Some(at) = begins {
                let whole = at + 4 + length(&seen[at..]);
                if seen.len() >= whole {
                    return Ok(seen[at + 4..whole].to_vec());
                }
            }
            if seen.len() > MOST_NOISE && begins.is_none() {
                let cause = "what came is no sftp: the login shell there prints too much";
                return Err(Error::new(ErrorKind::Unsupported, USE, cause)
                    .at(self.host.name.as_str())
                    .hint("make its start-up file print only in a terminal"));
            }
            if self.from.buffer().is_empty() {
                let stop = || cx.cancel.is_set();
                match ready::wait(self.from.get_ref(), For::Reading, until, &stop)
                    .map_err(|e| Error::io(USE, &e))?
                {
                    Waited::Ready => {}
                    Waited::Cancelled => return Err(Error::cancelled()),
                    Waited::TimedOut => {
                        let cause = format!("no answer within {} s", limit.as_secs());
                        return Err(Error::new(ErrorKind::Timeout, "log in", cause)
                            .at(self.host.name.as_str()));
                    }
                }
            }
            // One at a time, so that nothing of what follows the packet is taken.
            let next = self.from.fill_buf().map_err(|e| Error::io(USE, &e))?;
            match next.first() {
                Some(byte) => seen.push(*byte),
                None => return Err(self.no_server()),
            }
            self.from.consume(1);
        }
    }

    /// Says why there is no server.
    fn no_server(&mut self) -> Error {
        let status = match self.child.wait_deadline(END) {
            Ok(status) => status.and_then(|status| status.code()),
            Err(error) => return error,
        };
        let words = self.stderr.finish();
        let words = words.as_bytes();
        let refused = b"subsystem request failed";
        if words.windows(refused.len()).any(|part| part == refused) {
            let cause = format!("sftp is switched off on {}", self.host.name);
            return Error::new(ErrorKind::Unsupported, USE, cause)
                .at(self.host.name.as_str())
                .hint("switch it on in the sshd configuration there, or choose another method");
        }
        if status.is_none_or(|code| code == 255) {
            return login_failure("log in", &self.host, words);
        }
        let last = words
            .split(|b| *b == b'\n')
            .map(<[u8]>::trim_ascii)
            .rfind(|line| !line.is_empty());
        let cause: Untrusted = match last {
            Some(line) => line.into(),
            None => "there is no sftp server".into(),
        };
        Error::new(ErrorKind::Unsupported, USE, cause)
            .at(self.host.name.as_str())
            .hint("install one there (package openssh-sftp-server), or choose another method")
    }

    /// Asks once how much fits into a packet.
    ///
    /// # Errors
    /// Those of the conversation.
    pub fn ask_limits(&mut self) -> Result<()> {
        if self.asked || !self.offers("limits@openssh.com") {
            return Ok(());
        }
        self.asked = true;
        if let Reply::Extended(body) = self.call(&Request::Limits)? {
            let (read, write) = packet::read_limits(&body)?;
            let at_once = |told: u64| match told {
                0 => MOST_AT_ONCE,
                told => told.clamp(1, MOST_AT_ONCE),
            };
            self.read_size = at_once(read) as u32;
            self.write_size = at_once(write) as usize;
        }
        Ok(())
    }

    /// Says whether the server has an extension.
    pub fn offers(&self, extension: &str) -> bool {
        self.extensions.iter().any(|e| e == extension.as_bytes())
    }

    /// Returns a handle that ends the conversation from another thread.
    pub fn killer(&self) -> Killer {
        self.child.killer()
    }

    /// Adds what went either way since it was counted last.
    pub fn count(&mut self, counters: &Counters) {
        let moved = std::mem::take(&mut self.moved);
        counters.wire_bytes.fetch_add(moved, Relaxed);
    }

    /// Puts ssh's own words to a conversation that broke.
    pub fn explain(&mut self, error: Error) -> Error {
        if error.kind != ErrorKind::Disconnected {
            return error;
        }
        why_ended(
            &mut self.child,
            &self.stderr,
            &self.host,
            "go on with the transfer",
        )
    }

    /// Sends a request and returns its number.
    ///
    /// # Errors
    /// `Disconnected`.
    pub fn send(&mut self, request: &Request<'_>) -> Result<u32> {
        self.next = self.next.wrapping_add(1);
        self.asked_for.insert(self.next);
        request.write(self.next, &mut self.out);
        if self.out.len() >= GATHER {
            self.flush()?;
        }
        Ok(self.next)
    }

    /// Sends a request whose reply, good or bad, changes nothing.
    ///
    /// # Errors
    /// `Disconnected`.
    pub fn tell(&mut self, request: &Request<'_>) -> Result<()> {
        let id = self.send(request)?;
        self.unwanted.insert(id);
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.moved += self.out.len() as u64;
        let done = self.to.write_all(&self.out).and_then(|()| self.to.flush());
        self.out.clear();
        done.map_err(|_| closed())
    }

    /// Awaits the next reply.
    ///
    /// # Errors
    /// `Disconnected`, or `Protocol` for one that makes no sense.
    pub fn reply(&mut self) -> Result<(u32, Reply)> {
        if let Some((id, reply)) = self.late.pop_front() {
            self.late_bytes -= reply.weight();
            return Ok((id, reply));
        }
        self.flush()?;
        self.receive()
    }

    fn receive(&mut self) -> Result<(u32, Reply)> {
        loop {
            let mut head = [0; 4];
            self.from.read_exact(&mut head).map_err(|_| closed())?;
            let len = length(&head);
            if len > LONGEST {
                return Err(broken("it is longer than a megabyte"));
            }
            self.body.resize(len, 0);
            self.from.read_exact(&mut self.body).map_err(|_| closed())?;
            self.moved += 4 + len as u64;
            let (id, reply) = packet::read(&self.body)?;
            if !self.asked_for.remove(&id) {
                return Err(broken("it answers what nobody asked"));
            }
            if !self.unwanted.remove(&id) {
                return Ok((id, reply));
            }
        }
    }

    /// Sends a request and awaits its reply; replies to others wait for [`Channel::reply`].
    ///
    /// # Errors
    /// As [`Channel::reply`].
    pub fn call(&mut self, request: &Request<'_>) -> Result<Reply> {
        let wanted = self.send(request)?;
        self.reply_to(wanted)
    }

    /// Awaits the reply to one request that was sent.
    ///
    /// # Errors
    /// As [`Channel::reply`].
    pub fn reply_to(&mut self, wanted: u32) -> Result<Reply> {
        if let Some(at) = self.late.iter().position(|(id, _)| *id == wanted) {
            if let Some((_, reply)) = self.late.remove(at) {
                self.late_bytes -= reply.weight();
                return Ok(reply);
            }
        }
        self.flush()?;
        loop {
            let (id, reply) = self.receive()?;
            if id == wanted {
                return Ok(reply);
            }
            self.late_bytes += reply.weight();
            if self.late_bytes > MOST_LATE {
                return Err(broken("it is one of more than were asked for"));
            }
            self.late.push_back((id, reply));
        }
    }
}

/// Says whether what came so far ends in the head of a first packet, of version 3 or older.
fn is_version(seen: &[u8]) -> bool {
    let Some(head) = seen.last_chunk::<VERSION_HEAD>() else {
        return false;
    };
    head[4] == 2
        && head[5..8] == [0, 0, 0]
        && head[8] <= 3
        && (5..MOST_NOISE).contains(&length(head))
}

fn length(head: &[u8]) -> usize {
    head[..4].iter().fold(0, |n, b| n << 8 | usize::from(*b))
}

fn closed() -> Error {
    Error::new(
        ErrorKind::Disconnected,
        "go on with the transfer",
        "the connection was closed",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_found_behind_noise() {
        let packet = b"\0\0\0\x05\x02\0\0\0\x03";
        assert!(is_version(packet));
        assert!(is_version(&[&b"welcome\r\n"[..], packet].concat()));
        assert!(!is_version(b"\0\0\0\x05\x02\0\0\0"));
        assert!(!is_version(b"welcome to the machine, my friend"));
        assert!(!is_version(b"\xff\xff\xff\xff\x02\0\0\0\x03"));
    }
}
