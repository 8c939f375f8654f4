//! Sends files, many at a time: each is opened, written, closed and renamed, and none waits for the
//! replies of another. [`place`](super::place) has what follows the last byte, [`small`](super::small)
//! folders and links.
//!
//! A file gets its name only when the server has confirmed every write, its length, the flush if one
//! was asked for, and the close; and when the source did not change meanwhile.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::backend::collect::Collector;
use crate::backend::cx::Cx;
use crate::backend::sftp::ask::{done, unexpected};
use crate::backend::sftp::channel::Channel;
use crate::backend::sftp::far::join;
use crate::backend::sftp::packet::{self, Attrs, Reply, broken};
use crate::backend::sftp::place::Placed;
use crate::backend::sftp::request::{Request, WRITE_NEW};
use crate::backend::sftp::small::Small;
use crate::backend::sftp::{IN_FLIGHT, at_once, window};
use crate::fs::root::Root;
use crate::model::entry::{Entry, FileTime};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::Phase;
use crate::model::relpath::RelPath;
use crate::model::verdict::Verdict;
use crate::plan::compare::Decision;
use crate::pump::abort::Abort;
use crate::pump::limit::Throttle;
use crate::pump::report::Observer as _;
use crate::verify::hash::Hasher;
use crate::wire::message::{Settled, Terms};

/// Where a file is on this computer.
pub(super) struct From {
    pub root: Arc<Root>,
    /// Where it is below the root.
    pub real: RelPath,
}

/// Everything that is on the way to the other side.
pub(super) struct Puts<'a, 'c> {
    pub channel: &'a mut Channel,
    pub cx: &'a Cx<'c>,
    pub collector: &'a Collector<'c>,
    pub abort: &'a Abort,
    pub terms: Terms,
    pub throttle: &'a Throttle,
    /// Told to the watch: the server waits for its disk.
    pub busy: &'a AtomicBool,
    /// The folder that everything lands in.
    pub folder: Vec<u8>,
    /// The private folder of parts.
    pub parts: Vec<u8>,
    /// Files, oldest first.
    pub files: BTreeMap<u64, Put>,
    /// Folders and links.
    pub small: HashMap<u64, Small>,
    /// Folders whose making is not confirmed, with the request.
    pub making: HashMap<RelPath, u32>,
    /// Folders that could not be made.
    pub unmade: HashMap<RelPath, Error>,
    /// Files that have their names and are to be read back.
    pub placed: Vec<Placed>,
    /// Which request belongs to which item.
    pub waiting: HashMap<u32, (u64, What)>,
    /// Bytes that were sent and not confirmed.
    pub unacked: u64,
    /// Flushes that were asked for and not confirmed.
    pub flushing: usize,
    pub next: u64,
    /// Whether it was said that times or permissions are not kept there.
    pub told: bool,
    /// The piece of a file that is being sent.
    pub buffer: Vec<u8>,
}

/// What a request was for.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Open,
    Write(u64),
    Length,
    Meta,
    Flush,
    Close,
    Name,
    Discard,
    /// A folder was made.
    Folder,
    /// A link was made under its temporary name.
    Link,
    /// A link got its name.
    LinkName,
}

/// One file on the way.
pub(super) struct Put {
    pub entry: Entry,
    pub decision: Decision,
    pub from: From,
    pub file: File,
    /// Length and time when it was opened.
    pub before: (u64, FileTime),
    pub hasher: Option<Hasher>,
    pub part: Vec<u8>,
    handle: Option<Vec<u8>>,
    pub sent: u64,
    pub acked: u64,
    /// Requests without a reply.
    pub pending: u32,
    /// Everything was asked for, also the close.
    closing: bool,
    pub failed: Option<Error>,
    pub attempt: u8,
}

impl<'a, 'c> Puts<'a, 'c> {
    /// Starts with nothing on the way.
    #[expect(clippy::too_many_arguments)] // what a run has, each thing once
    pub fn new(
        channel: &'a mut Channel,
        cx: &'a Cx<'c>,
        collector: &'a Collector<'c>,
        abort: &'a Abort,
        busy: &'a AtomicBool,
        terms: Terms,
        throttle: &'a Throttle,
        (folder, parts): (Vec<u8>, Vec<u8>),
    ) -> Self {
        Self {
            channel,
            cx,
            collector,
            abort,
            terms,
            throttle,
            busy,
            folder,
            parts,
            files: BTreeMap::new(),
            small: HashMap::new(),
            making: HashMap::new(),
            unmade: HashMap::new(),
            placed: Vec::new(),
            waiting: HashMap::new(),
            unacked: 0,
            flushing: 0,
            next: 0,
            told: false,
            buffer: Vec::new(),
        }
    }
}

impl Puts<'_, '_> {
    /// Takes a file, waiting while too many are on the way.
    ///
    /// # Errors
    /// What ends the run.
    pub fn add(&mut self, entry: Entry, decision: Decision, from: From) -> Result<()> {
        while self.files.len() >= IN_FLIGHT {
            self.step()?;
        }
        let counters = self.cx.counters;
        counters.bytes_total.fetch_add(entry.size, Relaxed);
        counters.set_phase(Phase::Transferring);
        counters.set_current(entry.path.as_bytes());
        self.begin(entry, decision, from, 0)?;
        self.feed()
    }

    /// Waits until everything is settled.
    ///
    /// # Errors
    /// What ends the run.
    pub fn finish(&mut self) -> Result<()> {
        loop {
            while !self.files.is_empty() || !self.small.is_empty() {
                self.step()?;
            }
            if self.placed.is_empty() {
                return Ok(());
            }
            self.cx.counters.set_phase(Phase::Verifying);
            // What arrived changed is sent once more.
            self.check()?;
        }
    }

    /// Closes what is open there, so that parts can be removed. The run has ended.
    ///
    /// # Errors
    /// Those of the conversation.
    pub fn cut_off(&mut self) -> Result<()> {
        for put in self.files.values_mut() {
            if let Some(handle) = put.handle.take() {
                self.channel.tell(&Request::Close(&handle))?;
            }
        }
        Ok(())
    }

    /// Returns a number that nothing else on the way has.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Opens a file on both sides.
    pub fn begin(
        &mut self,
        entry: Entry,
        decision: Decision,
        from: From,
        attempt: u8,
    ) -> Result<()> {
        let opened = from
            .root
            .dir(from.real.parent().as_ref())
            .and_then(|dir| dir.open_read(from.real.name()))
            .and_then(|(file, _)| Ok((snapshot(&file)?, file)));
        let (before, file) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                let verdict = match error.kind {
                    ErrorKind::NotFound => Verdict::Vanished,
                    _ => Verdict::Failed(error.at(entry.path.as_bytes())),
                };
                self.settle(&entry, decision, entry.size, Vec::new(), verdict);
                return Ok(());
            }
        };
        let n = self.number();
        let part = join(&self.parts, format!("{n:x}").as_bytes());
        let private = Attrs {
            mode: self.terms.preserve.permissions.then_some(0o600),
            ..Attrs::default()
        };
        self.request(n, &Request::Open(&part, WRITE_NEW, private), What::Open)?;
        let hashes = self.terms.read_back && self.terms.verify.hashes();
        self.files.insert(
            n,
            Put {
                entry,
                decision,
                from,
                file,
                before,
                hasher: hashes.then(|| Hasher::new(self.terms.verify)),
                part,
                handle: None,
                sent: 0,
                acked: 0,
                pending: 1,
                closing: false,
                failed: None,
                attempt,
            },
        );
        Ok(())
    }

    /// Sends a request about an item.
    pub fn request(&mut self, n: u64, request: &Request<'_>, what: What) -> Result<u32> {
        let id = self.channel.send(request)?;
        self.waiting.insert(id, (n, what));
        Ok(id)
    }

    /// Sends what there is room for and takes one reply.
    pub fn step(&mut self) -> Result<()> {
        self.cx.cancel.check()?;
        self.feed()?;
        let (id, reply) = self.channel.reply()?;
        self.channel.count(self.cx.counters);
        self.take(id, &reply)
    }

    /// Takes the reply to one request.
    pub fn take(&mut self, id: u32, reply: &Reply) -> Result<()> {
        let Some((n, what)) = self.waiting.remove(&id) else {
            return Err(broken("it is about something that is done"));
        };
        match what {
            What::Folder | What::Link | What::LinkName => self.take_small(n, what, reply),
            _ => self.take_file(n, what, reply),
        }
    }

    fn take_file(&mut self, n: u64, what: What, reply: &Reply) -> Result<()> {
        let Some(put) = self.files.get_mut(&n) else {
            return Err(broken("it is about a file that is done"));
        };
        put.pending -= 1;
        let mut failed = None;
        match what {
            What::Open => match reply {
                Reply::Handle(handle) => {
                    put.handle = Some(handle.clone());
                    return self.feed();
                }
                other => {
                    let error = unexpected(other, "create the file there");
                    let error = self.or_full(error)?;
                    return self.not_opened(n, error);
                }
            },
            What::Write(len) => {
                self.unacked -= len;
                match done(reply, "write the file there") {
                    Ok(()) => {
                        put.acked += len;
                        self.cx.counters.bytes_done.fetch_add(len, Relaxed);
                    }
                    Err(error) => failed = Some(error),
                }
            }
            What::Length => match reply {
                Reply::Attrs(attrs) if attrs.size.is_none_or(|size| size == put.sent) => {}
                Reply::Attrs(_) => {
                    let cause = "it has another length there than was sent";
                    let error = Error::new(ErrorKind::Corrupt, "write the file there", cause);
                    put.failed.get_or_insert(error);
                }
                other => failed = Some(unexpected(other, "look at the file there")),
            },
            What::Meta => {
                if let Err(error) = done(reply, "keep times and permissions") {
                    if !std::mem::replace(&mut self.told, true) {
                        self.cx.people.warn(error.at(put.entry.path.as_bytes()));
                    }
                }
            }
            What::Flush => {
                self.flushing -= 1;
                self.busy.store(self.flushing > 0, Relaxed);
                failed = done(reply, "write the file to the disk there").err();
            }
            What::Close => failed = done(reply, "close the file there").err(),
            What::Name => return self.named(n, done(reply, "").is_ok()),
            _ => return self.discarded(n),
        }
        if let Some(error) = failed {
            let error = self.or_full(error)?;
            if let Some(put) = self.files.get_mut(&n) {
                put.failed.get_or_insert(error);
            }
        }
        match self.files.get(&n) {
            Some(put) if put.closing && put.pending == 0 => self.closed(n),
            _ => Ok(()),
        }
    }

    /// Finds out whether the disk there is full, for which the protocol has no word of its own: then
    /// it ends the run. Else returns the error.
    ///
    /// # Errors
    /// `NoSpace`, and those of the conversation.
    pub fn or_full(&mut self, error: Error) -> Result<Error> {
        if error.kind != ErrorKind::Io || !self.channel.offers("statvfs@openssh.com") {
            return Ok(error);
        }
        let Reply::Extended(body) = self.channel.call(&Request::Statvfs(&self.parts))? else {
            return Ok(error);
        };
        let (bytes, files) = packet::read_room(&body)?;
        if bytes >= self.channel.write_size as u64 && files > 0 {
            return Ok(error.hint("look at the rights and the quota there"));
        }
        let cause = match files {
            0 => "there is no room for another file",
            _ => "the disk there is full",
        };
        Err(Error::new(ErrorKind::NoSpace, error.doing, cause)
            .at(&self.folder[..])
            .hint("make room there, then run this again"))
    }

    /// Sends more of the files that are open, oldest first, as far as the window allows.
    fn feed(&mut self) -> Result<()> {
        let ready = |(_, put): &(&u64, &Put)| put.handle.is_some() && !put.closing;
        let ready: Vec<u64> = self.files.iter().filter(ready).map(|(n, _)| *n).collect();
        for n in ready {
            while self.unacked < window(&self.cx.limit) {
                let Some(put) = self.files.get_mut(&n) else {
                    break;
                };
                let left = put.before.0 - put.sent;
                let Some(handle) = put.handle.as_ref() else {
                    break;
                };
                if left == 0 || put.failed.is_some() {
                    self.close(n)?;
                    break;
                }
                let len = at_once(self.channel.write_size as u64, &self.cx.limit).min(left);
                self.buffer.resize(len as usize, 0);
                if let Err(error) = put.file.read_exact_at(&mut self.buffer, put.sent) {
                    put.failed = Some(match error.kind() {
                        std::io::ErrorKind::UnexpectedEof => changed(),
                        _ => Error::io("read the file", &error),
                    });
                    continue;
                }
                if let Some(hasher) = &mut put.hasher {
                    hasher.update(&self.buffer);
                }
                self.throttle.wait(self.buffer.len(), self.abort);
                self.cx.cancel.check()?;
                let write = Request::Write(handle, put.sent, &self.buffer);
                let id = self.channel.send(&write)?;
                self.waiting.insert(id, (n, What::Write(len)));
                put.sent += len;
                put.pending += 1;
                self.unacked += len;
            }
        }
        Ok(())
    }

    /// Asks for everything that follows the last byte. A server does what concerns one file in the
    /// order in which it was asked.
    fn close(&mut self, n: u64) -> Result<()> {
        let flushes = self.terms.durable && self.channel.offers("fsync@openssh.com");
        let preserve = self.terms.preserve;
        let Some(put) = self.files.get_mut(&n) else {
            return Ok(());
        };
        let Some(handle) = put.handle.take() else {
            return Ok(());
        };
        put.closing = true;
        let mut requests = Vec::new();
        if put.failed.is_none() {
            requests.push((Request::Fstat(&handle), What::Length));
            let attrs = Attrs::to_set(
                preserve.permissions.then_some(put.entry.mode & 0o777),
                preserve.times.then_some(put.before.1),
            );
            if !attrs.is_empty() {
                requests.push((Request::Fsetstat(&handle, attrs), What::Meta));
            }
            if flushes {
                requests.push((Request::Fsync(&handle), What::Flush));
                self.flushing += 1;
                self.busy.store(true, Relaxed);
            }
        }
        requests.push((Request::Close(&handle), What::Close));
        put.pending += requests.len() as u32;
        for (request, what) in requests {
            self.request(n, &request, what)?;
        }
        Ok(())
    }

    /// Tells what became of an item. `name` is its last component where that is not the usual one.
    pub fn settle(
        &self,
        entry: &Entry,
        decision: Decision,
        bytes: u64,
        name: Vec<u8>,
        verdict: Verdict,
    ) {
        let (action, reason) = decision.step();
        let path = match name.as_slice() {
            b"" => entry.path.as_bytes().to_vec(),
            other => entry
                .path
                .with_name(other)
                .map_or_else(|_| other.to_vec(), |path| path.as_bytes().to_vec()),
        };
        let settled = Settled {
            file: 0,
            action,
            reason,
            bytes,
            verdict,
            name,
        };
        self.cx.counters.items_done.fetch_add(1, Relaxed);
        self.collector.settled(&path, entry.kind, &settled);
    }
}

/// Returns length and time of an open file, by which a change shows.
pub(super) fn snapshot(file: &File) -> Result<(u64, FileTime)> {
    let meta = file
        .metadata()
        .map_err(|e| Error::io("look at the source file", &e))?;
    let time = FileTime {
        secs: meta.mtime(),
        nanos: u32::try_from(meta.mtime_nsec())
            .unwrap_or(0)
            .min(999_999_999),
    };
    Ok((meta.len(), time))
}

/// Makes the error of a source that was written to.
pub(super) fn changed() -> Error {
    Error::new(
        ErrorKind::SourceChanged,
        "read the file",
        "it was changed while it was read",
    )
}
