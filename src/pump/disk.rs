//! The disk threads: write what the lanes bring into parts.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_channel::{Receiver, Sender};

use crate::fs::meta::{MetaKept, preallocate, set_file_meta};
use crate::fs::root::{Dir, Root};
use crate::model::digest::Digest;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::Counters;
use crate::pump::CHUNK;
use crate::pump::abort::Abort;
use crate::pump::admit::{Expectations, Expected};
use crate::pump::commit::Note;
use crate::pump::digest::{Feed, Work};
use crate::pump::lane::Incoming;
use crate::pump::pool::{Chunk, Pool};
use crate::pump::read::read_at;
use crate::pump::staging::Part;
use crate::verify::hash;
use crate::wire::codec::broken;
use crate::wire::frame::{Kind, read_batch};
use crate::wire::message::Terms;

/// A part that is whole, or why it never will be.
pub(crate) struct Landed {
    pub file: u64,
    pub attempt: u8,
    pub size: u64,
    pub digest: Option<Digest>,
    pub part: Result<Part>,
}

/// What one disk thread needs.
pub(super) struct Disk<'a> {
    pub frames: &'a Receiver<Incoming>,
    pub small: Arc<Dir>,
    pub root: &'a Root,
    pub terms: Terms,
    pub expected: &'a Expectations,
    pub pool: &'a Pool,
    pub hash: Sender<Work<Landed>>,
    pub commit: Sender<Note>,
    pub counters: &'a Counters,
    pub abort: &'a Abort,
    pub open: HashMap<u64, Open>,
    pub parts: u64,
    /// Whether it was said already that modes or times are not kept there.
    pub told: bool,
}

/// Whether the disk has room for more.
enum Room {
    Some,
    None,
}

/// A large file in the making.
pub(super) struct Open {
    file: File,
    part: Part,
    expected: Arc<Expected>,
    attempt: u8,
    /// Where the next block must begin.
    next: u64,
    feed: Feed,
}

impl Disk<'_> {
    /// Writes until the frames end.
    pub fn run(mut self) -> Result<()> {
        while let Some(frame) = self.abort.recv(self.frames) {
            match self.take(frame)? {
                // What still comes is let go, so that what is whole can be named meanwhile.
                Room::None => while self.abort.recv(self.frames).is_some() {},
                Room::Some => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, Incoming { header, chunk }: Incoming) -> Result<Room> {
        let file = header.file;
        let done = match header.kind {
            Kind::Batch => return self.batch(&chunk),
            Kind::End => return Ok(Room::Some),
            Kind::Block => self.block(file, header.attempt, header.offset, header.size, chunk),
            Kind::Keep => {
                let len = chunk.bytes().try_into().map(u64::from_le_bytes);
                let len = len.map_err(|_| broken("a kept block has no length"))?;
                self.keep(file, header.attempt, header.offset, header.size, len)
            }
        };
        match done {
            Err(error) => self.failed(file, header.attempt, error),
            Ok(()) => Ok(Room::Some),
        }
    }

    /// Gives one file up; a broken rule ends the run instead. On a full disk its part stays, for
    /// when there is room.
    fn failed(&mut self, file: u64, attempt: u8, error: Error) -> Result<Room> {
        let full = error.kind == ErrorKind::NoSpace;
        if error.kind == ErrorKind::Protocol {
            return Err(error);
        }
        if let Some(open) = self.open.remove(&file).filter(|_| !full) {
            open.part.discard();
        }
        let landed = Landed {
            file,
            attempt,
            size: 0,
            digest: None,
            part: Err(error),
        };
        if full && self.terms.verify.hashes() {
            // Behind what is whole and not digested yet.
            self.abort
                .send(&self.hash, Work::Whole(file, attempt, landed));
            return Ok(Room::None);
        }
        self.abort.send(&self.hash, Work::Forget(file));
        self.abort.send(&self.commit, Note::Landed(vec![landed]));
        Ok(if full { Room::None } else { Room::Some })
    }

    /// Writes the files of a batch, each whole.
    fn batch(&mut self, chunk: &Chunk) -> Result<Room> {
        let mut room = Room::Some;
        let mut landed = Vec::new();
        let mut messages = Vec::new();
        read_batch(chunk.bytes(), |item, bytes| {
            let expected = self
                .expected
                .get(item.file)
                .ok_or_else(|| broken("a file came that nobody asked for"))?;
            if let Room::None = room {
                return Ok(());
            }
            let part = match self.write_small(&expected, bytes) {
                Err(error) if error.kind == ErrorKind::NoSpace => {
                    room = Room::None;
                    Err(error.at(expected.path.as_bytes()))
                }
                part => part,
            };
            self.counters
                .bytes_done
                .fetch_add(bytes.len() as u64, Relaxed);
            messages.push(bytes);
            landed.push(Landed {
                file: item.file,
                attempt: item.attempt,
                size: bytes.len() as u64,
                digest: None,
                part,
            });
            Ok(())
        })?;
        if self.terms.verify.hashes() {
            for (landed, digest) in landed
                .iter_mut()
                .zip(hash::many(self.terms.verify, &messages))
            {
                landed.digest = digest;
            }
        }
        self.abort.send(&self.commit, Note::Landed(landed));
        Ok(room)
    }

    fn write_small(&mut self, expected: &Expected, bytes: &[u8]) -> Result<Part> {
        self.parts += 1;
        let part = Part {
            dir: self.small.clone(),
            name: format!("{:x}", self.parts).into_bytes(),
        };
        let file = part.dir.create_part(&part.name)?;
        let written = file
            .write_all_at(bytes, 0)
            .map_err(|e| Error::io("write the file", &e))
            .and_then(|()| self.set_meta(&file, expected));
        if let Err(error) = written {
            part.discard();
            return Err(error);
        }
        Ok(part)
    }

    fn set_meta(&mut self, file: &File, expected: &Expected) -> Result<()> {
        let preserve = self.terms.preserve;
        // Without permissions to keep, the usual ones: what a program would make.
        let mode = if preserve.permissions {
            expected.mode & 0o777
        } else {
            0o666 & !umask()
        };
        let mtime = preserve.times.then_some(expected.mtime);
        let kept = set_file_meta(file, Some(mode), mtime)?;
        if !kept.all() && !self.told {
            self.told = true;
            self.abort.send(&self.commit, Note::NotKept(kept));
        }
        Ok(())
    }

    /// Writes one block of a large file.
    fn block(&mut self, id: u64, attempt: u8, offset: u64, size: u64, chunk: Chunk) -> Result<()> {
        let counters = self.counters;
        let Some(open) = self.at(id, attempt, offset, size)? else {
            return Ok(());
        };
        let place = open.expected.path.clone();
        open.file
            .write_all_at(chunk.bytes(), offset)
            .map_err(|e| Error::io("write the file", &e).at(place.as_bytes()))?;
        open.next += chunk.len as u64;
        counters.bytes_done.fetch_add(chunk.len as u64, Relaxed);
        if let Some(work) = open.feed.block(offset, Arc::new(chunk)) {
            self.abort.send(&self.hash, work);
        }
        self.whole(id, size)
    }

    /// Takes what the part has already; it is read once more for the digest.
    fn keep(&mut self, id: u64, attempt: u8, offset: u64, size: u64, len: u64) -> Result<()> {
        let hashes = self.terms.verify.hashes();
        let (pool, abort, hash) = (self.pool, self.abort, self.hash.clone());
        let Some(open) = self.at(id, attempt, offset, size)? else {
            return Ok(());
        };
        if len > size - offset {
            return Err(broken("a kept block lies outside its file"));
        }
        let mut done = 0;
        while done < len && hashes {
            let Some(mut chunk) = pool.take(abort) else {
                return Ok(());
            };
            let want = (len - done).min(CHUNK as u64) as usize;
            if read_at(&open.file, &mut chunk.room()[..want], offset + done)? < want {
                return Err(broken("a block is kept that is not there"));
            }
            chunk.len = want;
            if let Some(work) = open.feed.block(offset + done, Arc::new(chunk)) {
                abort.send(&hash, work);
            }
            done += want as u64;
        }
        open.next += len;
        self.counters.bytes_done.fetch_add(len, Relaxed);
        self.whole(id, size)
    }

    /// Returns the part that a block belongs to, opening it for the first one; `None` when the
    /// file was given up.
    fn at(&mut self, id: u64, attempt: u8, offset: u64, size: u64) -> Result<Option<&mut Open>> {
        if offset == 0 {
            let Some(expected) = self.expected.get(id) else {
                return Err(broken("a file came that nobody asked for"));
            };
            // Something that grew may not fill the disk under a small name.
            if size > expected.size && size - expected.size > self.root.free_bytes() {
                let cause = "it grew beyond the free space";
                return Err(Error::new(ErrorKind::NoSpace, "take the file", cause)
                    .at(expected.path.as_bytes()));
            }
            let open = self.start(id, expected, attempt, size)?;
            self.open.insert(id, open);
        }
        match self.open.get_mut(&id) {
            Some(open) if open.attempt == attempt && open.next == offset => Ok(Some(open)),
            Some(_) => Err(broken("a block came out of order")),
            None if offset > 0 => Ok(None),
            None => Err(broken("a block came out of order")),
        }
    }

    fn start(&mut self, id: u64, expected: Arc<Expected>, attempt: u8, size: u64) -> Result<Open> {
        let feed = Feed::new(self.terms.verify, id, attempt, size);
        let part = match &expected.part {
            Some(part) => part.clone(),
            None => {
                self.parts += 1;
                Part {
                    dir: self.small.clone(),
                    name: format!("{:x}", self.parts).into_bytes(),
                }
            }
        };
        let kept = if expected.kept && attempt == 0 {
            part.open()?
        } else {
            None
        };
        let file = match kept {
            Some(file) => file,
            None => {
                if part.open()?.is_some() {
                    part.dir.remove_file(&part.name)?;
                }
                part.dir.create_part(&part.name)?
            }
        };
        preallocate(&file, size);
        self.counters.set_current(expected.path.as_bytes());
        Ok(Open {
            file,
            part,
            expected,
            attempt,
            next: 0,
            feed,
        })
    }

    /// Hands a part on when it is whole.
    fn whole(&mut self, id: u64, size: u64) -> Result<()> {
        if self.open.get(&id).is_none_or(|open| open.next < size) {
            return Ok(());
        }
        let Some(open) = self.open.remove(&id) else {
            return Ok(());
        };
        let Open {
            file,
            part,
            expected,
            attempt,
            mut feed,
            ..
        } = open;
        // A kept part may be longer than what it became.
        file.set_len(size)
            .map_err(|e| Error::io("write the file", &e).at(expected.path.as_bytes()))?;
        self.set_meta(&file, &expected)?;
        let landed = Landed {
            file: id,
            attempt,
            size,
            digest: None,
            part: Ok(part),
        };
        if let Some(work) = feed.rest() {
            self.abort.send(&self.hash, work);
        }
        if self.terms.verify.hashes() {
            self.abort
                .send(&self.hash, Work::Whole(id, attempt, landed));
        } else {
            self.abort.send(&self.commit, Note::Landed(vec![landed]));
        }
        Ok(())
    }
}

/// Returns this process's mask for new files, read once: reading it means setting it.
pub(crate) fn umask() -> u32 {
    use rustix::fs::Mode;
    static MASK: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *MASK.get_or_init(|| {
        let mask = rustix::process::umask(Mode::from_bits_truncate(0o077));
        rustix::process::umask(mask);
        mask.bits()
    })
}

/// Says what a file system does not keep.
pub(crate) fn not_kept(kept: MetaKept, root: &Root) -> Error {
    let what = match (kept.times, kept.mode) {
        (false, false) => "modification times and permissions",
        (false, true) => "modification times",
        _ => "permissions",
    };
    Error::new(
        ErrorKind::Unsupported,
        format!("keep {what}"),
        "the file system there does not store them",
    )
    .at(root.path())
    .hint("the contents are whole; compare by size or digest next time")
}
