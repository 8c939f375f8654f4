//! Fetches files, many at a time, into parts: each is opened, read, looked at once more and closed,
//! and none waits for the replies of another.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_channel::Sender;

use crate::backend::cx::Cx;
use crate::backend::sftp::ask::unexpected;
use crate::backend::sftp::channel::Channel;
use crate::backend::sftp::packet::{Attrs, Reply, broken};
use crate::backend::sftp::request::{READ, Request};
use crate::backend::sftp::{IN_FLIGHT, at_once, window};
use crate::fs::meta::set_file_meta;
use crate::fs::root::Dir;
use crate::model::digest::Algorithm;
use crate::model::entry::FileTime;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::profile::Preserve;
use crate::pump::abort::Abort;
use crate::pump::admit::Expected;
use crate::pump::commit::Note;
use crate::pump::disk::{Landed, umask};
use crate::pump::limit::Throttle;
use crate::pump::staging::Part;
use crate::verify::hash::Hasher;
use crate::wire::message::{Gone, Sent, Want};

/// How often a file that changes while it is read is tried.
const TRIES: u8 = 2;

/// A file there, as it was listed.
#[derive(Clone, Debug)]
pub(super) struct There {
    pub path: Vec<u8>,
    pub size: u64,
    pub mtime: FileTime,
}

/// All files on the way.
pub(super) struct Gets<'a, 'c> {
    pub channel: &'a mut Channel,
    pub cx: &'a Cx<'c>,
    pub abort: &'a Abort,
    pub algorithm: Algorithm,
    pub preserve: Preserve,
    pub throttle: &'a Throttle,
    /// Where small parts go.
    pub small: Option<Arc<Dir>>,
    pub notes: Sender<Note>,
    pub gets: BTreeMap<u64, Get>,
    /// Which request belongs to which file.
    pub waiting: HashMap<u32, (u64, What)>,
    /// Bytes that were asked for and have not come.
    pub unread: u64,
    pub parts: u64,
    /// Whether it was said that times or permissions are not kept here.
    pub told: bool,
}

/// What a request was for.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Open,
    /// Bytes from here on, so many.
    Read(u64, u64),
    Look,
    Close,
}

/// One file on the way.
pub(super) struct Get {
    want: Want,
    there: There,
    expected: Arc<Expected>,
    part: Part,
    file: File,
    hasher: Hasher,
    handle: Option<Vec<u8>>,
    asked: u64,
    /// Up to here everything has come and was digested.
    done: u64,
    /// What came out of its order.
    ahead: BTreeMap<u64, Vec<u8>>,
    got: u64,
    pending: u32,
    closing: bool,
    /// What the server says of it after the last byte.
    after: Option<Attrs>,
    failed: Option<Error>,
    tries: u8,
}

impl Gets<'_, '_> {
    /// Takes a file, waiting while too many are on the way.
    ///
    /// # Errors
    /// What ends the run.
    pub fn add(&mut self, want: &Want, there: There, expected: Arc<Expected>) -> Result<()> {
        while self.gets.len() >= IN_FLIGHT {
            self.step()?;
        }
        self.begin(want.clone(), there, expected, 1)?;
        self.feed()
    }

    /// Waits until every file is handed on.
    ///
    /// # Errors
    /// What ends the run.
    pub fn finish(&mut self) -> Result<()> {
        while !self.gets.is_empty() {
            self.step()?;
        }
        Ok(())
    }

    fn begin(
        &mut self,
        want: Want,
        there: There,
        expected: Arc<Expected>,
        tries: u8,
    ) -> Result<()> {
        let part = match (&expected.part, &self.small) {
            (Some(part), _) => part.clone(),
            (None, Some(small)) => {
                self.parts += 1;
                Part {
                    dir: small.clone(),
                    name: format!("{:x}", self.parts).into_bytes(),
                }
            }
            (None, None) => return Err(Error::new(ErrorKind::Bug, "take a file", "no staging")),
        };
        part.discard();
        let file = match part.dir.create_part(&part.name) {
            Ok(file) => file,
            Err(error) if error.kind == ErrorKind::NoSpace => return Err(error),
            Err(error) => {
                self.gone(want.file, Gone::Failed(error.at(expected.path.as_bytes())));
                return Ok(());
            }
        };
        let id = self
            .channel
            .send(&Request::Open(&there.path, READ, Attrs::default()))?;
        self.waiting.insert(id, (want.file, What::Open));
        let get = Get {
            hasher: Hasher::new(self.algorithm),
            want,
            there,
            expected,
            part,
            file,
            handle: None,
            asked: 0,
            done: 0,
            ahead: BTreeMap::new(),
            got: 0,
            pending: 1,
            closing: false,
            after: None,
            failed: None,
            tries,
        };
        self.gets.insert(get.want.file, get);
        Ok(())
    }

    /// Asks for what there is room for and takes one reply.
    fn step(&mut self) -> Result<()> {
        self.cx.cancel.check()?;
        self.abort.result()?;
        self.feed()?;
        let (id, reply) = self.channel.reply()?;
        self.channel.count(self.cx.counters);
        let Some((n, what)) = self.waiting.remove(&id) else {
            return Err(broken("it is about something that is done"));
        };
        self.take(n, what, reply)
    }

    fn take(&mut self, n: u64, what: What, reply: Reply) -> Result<()> {
        let Some(get) = self.gets.get_mut(&n) else {
            return Err(broken("it is about a file that is done"));
        };
        get.pending -= 1;
        match what {
            What::Open => match reply {
                Reply::Handle(handle) => get.handle = Some(handle),
                other => {
                    let error = unexpected(&other, "open the source");
                    get.failed = Some(error);
                    return self.closed(n);
                }
            },
            What::Read(offset, len) => {
                self.unread -= len;
                match reply {
                    Reply::Data(data) if !data.is_empty() && data.len() as u64 <= len => {
                        let more = len - data.len() as u64;
                        get.got += data.len() as u64;
                        self.cx
                            .counters
                            .bytes_done
                            .fetch_add(data.len() as u64, Relaxed);
                        let next = offset + data.len() as u64;
                        get.receive(offset, data)?;
                        // A server may give less than was asked for.
                        if let (Some(handle), true, None) = (&get.handle, more > 0, &get.failed) {
                            let id =
                                self.channel
                                    .send(&Request::Read(handle, next, more as u32))?;
                            self.waiting.insert(id, (n, What::Read(next, more)));
                            get.pending += 1;
                            self.unread += more;
                        }
                    }
                    // It became shorter.
                    Reply::Status(1, _) => {
                        get.failed.get_or_insert_with(changed);
                    }
                    other => {
                        get.failed
                            .get_or_insert(unexpected(&other, "read the source"));
                    }
                }
            }
            What::Look => match reply {
                Reply::Attrs(attrs) => get.after = Some(attrs),
                other => {
                    get.failed
                        .get_or_insert(unexpected(&other, "look at the source"));
                }
            },
            // What was read is not worse for it.
            What::Close => {}
        }
        if get.closing && get.pending == 0 {
            return self.closed(n);
        }
        self.feed()
    }

    /// Asks for more of the files that are open, oldest first, as far as the window allows.
    fn feed(&mut self) -> Result<()> {
        for (n, get) in &mut self.gets {
            let Some(handle) = &get.handle else { continue };
            while get.failed.is_none()
                && get.asked < get.there.size
                && self.unread < window(&self.cx.limit)
            {
                let most = at_once(self.channel.read_size.into(), &self.cx.limit);
                let len = most.min(get.there.size - get.asked);
                self.throttle.wait(len as usize, self.abort);
                self.cx.cancel.check()?;
                let id = self
                    .channel
                    .send(&Request::Read(handle, get.asked, len as u32))?;
                self.waiting.insert(id, (*n, What::Read(get.asked, len)));
                get.asked += len;
                get.pending += 1;
                self.unread += len;
            }
            // What is short is asked for again, so the last bytes may be long in coming.
            let whole = get.done == get.there.size;
            if whole || (get.failed.is_some() && get.pending == 0) {
                for (request, what) in [
                    (Request::Fstat(handle), What::Look),
                    (Request::Close(handle), What::Close),
                ] {
                    let id = self.channel.send(&request)?;
                    self.waiting.insert(id, (*n, what));
                    get.pending += 1;
                }
                get.handle = None;
                get.closing = true;
            }
        }
        Ok(())
    }

    /// Everything about a file has come: hands it on.
    fn closed(&mut self, n: u64) -> Result<()> {
        let Some(mut get) = self.gets.remove(&n) else {
            return Ok(());
        };
        let error = get.failed.take().or_else(|| get.changed().then(changed));
        let Some(error) = error else {
            return self.whole(get);
        };
        self.cx.counters.bytes_done.fetch_sub(get.got, Relaxed);
        get.part.discard();
        if error.kind == ErrorKind::SourceChanged && get.tries < TRIES {
            let mut there = get.there;
            if let Some(after) = get.after {
                there.size = after.size.unwrap_or(there.size);
                there.mtime = after.time();
            }
            return self.begin(get.want, there, get.expected, get.tries + 1);
        }
        let gone = match error.kind {
            ErrorKind::NotFound => Gone::Vanished,
            ErrorKind::SourceChanged => Gone::Changed,
            ErrorKind::NoSpace => return Err(error.at(get.expected.path.as_bytes())),
            _ if error.place.is_empty() => Gone::Failed(error.at(get.expected.path.as_bytes())),
            _ => Gone::Failed(error),
        };
        self.gone(n, gone);
        Ok(())
    }

    fn whole(&mut self, get: Get) -> Result<()> {
        let mode = match self.preserve.permissions {
            true => get.expected.mode & 0o777,
            false => 0o666 & !umask(),
        };
        let mtime = self.preserve.times.then_some(get.there.mtime);
        match set_file_meta(&get.file, Some(mode), mtime) {
            Ok(kept) if kept.all() => {}
            Ok(kept) => {
                if !std::mem::replace(&mut self.told, true) {
                    self.abort.send(&self.notes, Note::NotKept(kept));
                }
            }
            Err(error) => {
                get.part.discard();
                self.gone(
                    get.want.file,
                    Gone::Failed(error.at(get.expected.path.as_bytes())),
                );
                return Ok(());
            }
        }
        let (file, attempt, size) = (get.want.file, get.want.attempt, get.there.size);
        let digest = get.hasher.finish();
        let landed = Landed {
            file,
            attempt,
            size,
            digest,
            part: Ok(get.part),
        };
        let sent = Sent {
            file,
            attempt,
            size,
            mtime: get.there.mtime,
            digest,
        };
        self.abort.send(&self.notes, Note::Landed(vec![landed]));
        self.abort.send(&self.notes, Note::Sent(vec![sent]));
        Ok(())
    }

    fn gone(&self, file: u64, gone: Gone) {
        self.abort.send(&self.notes, Note::Gone(file, gone));
    }
}

impl Get {
    /// Writes bytes to their place and digests what is in order.
    fn receive(&mut self, offset: u64, data: Vec<u8>) -> Result<()> {
        if let Err(source) = self.file.write_all_at(&data, offset) {
            let error = Error::io("write the file", &source);
            if error.kind == ErrorKind::NoSpace {
                return Err(error.at(self.expected.path.as_bytes()));
            }
            self.failed.get_or_insert(error);
        }
        if offset != self.done {
            self.ahead.insert(offset, data);
            return Ok(());
        }
        self.hasher.update(&data);
        self.done += data.len() as u64;
        while let Some(next) = self.ahead.remove(&self.done) {
            self.hasher.update(&next);
            self.done += next.len() as u64;
        }
        Ok(())
    }

    /// Says whether the source is not as it was listed, now that it was read.
    fn changed(&self) -> bool {
        self.after.is_some_and(|after| {
            after.size.is_some_and(|size| size != self.there.size)
                || after.mtime.is_some() && after.time() != self.there.mtime
        })
    }
}

fn changed() -> Error {
    Error::new(
        ErrorKind::SourceChanged,
        "read the source",
        "it was changed while it was read",
    )
}
