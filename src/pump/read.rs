//! The read thread: opens what the receiver wants and turns it into frames.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender};

use crate::fs::meta::advise_sequential;
use crate::fs::root::{Dir, Root};
use crate::fs::stat::Stat;
use crate::model::digest::Algorithm;
use crate::model::entry::{EntryKind, FileTime};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::Counters;
use crate::model::relpath::RelPath;
use crate::pump::abort::Abort;
use crate::pump::control::ControlWriter;
use crate::pump::digest::{self, Feed, Work};
use crate::pump::lane::Outgoing;
use crate::pump::pool::{Chunk, Pool};
use crate::pump::scan::{Book, Item};
use crate::pump::{CHUNK, SMALL};
use crate::verify::tree::{Growing, STEP};
use crate::wire::frame::{self, Header, Kind};
use crate::wire::message::{Gone, Message, Sent, Want, block_size};

/// How often a file that changes while it is read is tried.
const TRIES: usize = 2;
/// Files of one batch: their table has to fit beside a full chunk.
const BATCH: usize = 2048;
/// Bytes of one batch: half a buffer, so that the other side has something to do soon.
const BATCH_BYTES: usize = CHUNK / 2;

/// What the read thread needs.
pub(super) struct Reader<'a> {
    pub wants: &'a Receiver<Want>,
    pub book: &'a Book,
    pub pool: &'a Pool,
    pub lanes: Vec<Sender<Outgoing>>,
    pub hash: Sender<Work<Sent>>,
    pub algorithm: Algorithm,
    /// Whether the leaf of each block is of use: for tags or for the digest.
    pub leaves: bool,
    pub control: &'a ControlWriter,
    pub counters: &'a Counters,
    pub abort: &'a Abort,
    /// The folder opened last; most files have the folder of the one before.
    pub last: Option<(Arc<Root>, Option<RelPath>, Arc<Dir>)>,
    pub lane: usize,
}

/// Small files that travel together.
struct Batch {
    chunk: Chunk,
    items: Vec<frame::Item>,
    sents: Vec<Sent>,
}

/// What a file was like when it was opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub size: u64,
    pub mtime: FileTime,
}

impl Snapshot {
    pub fn of(file: &File) -> Result<Self> {
        let stat =
            rustix::fs::fstat(file).map_err(|e| Error::io("look at the source file", &e.into()))?;
        Ok(Stat::from(stat).into())
    }
}

impl From<Stat> for Snapshot {
    fn from(stat: Stat) -> Self {
        Self {
            size: stat.size,
            mtime: stat.mtime,
        }
    }
}

impl Reader<'_> {
    /// Serves wants until they end.
    pub fn run(mut self) -> Result<()> {
        let mut batch: Option<Batch> = None;
        loop {
            let want = match self.wants.try_recv() {
                Ok(want) => want,
                Err(_) => {
                    // Nothing waits: what is in the batch need not wait either.
                    self.flush(&mut batch)?;
                    match self.abort.recv(self.wants) {
                        Some(want) => want,
                        None => return Ok(()),
                    }
                }
            };
            let Some(item) = self.book.get(want.file) else {
                continue;
            };
            if item.kind != EntryKind::File {
                return Err(crate::wire::codec::broken(
                    "the other side wants what is not a file",
                ));
            }
            let done = if item.size <= SMALL && want.blocks.is_empty() {
                self.small(&want, &item, &mut batch)
            } else {
                self.flush(&mut batch)?;
                self.counters.set_current(item.path.as_bytes());
                self.large(&want, &item)
            };
            match done {
                Ok(()) => {}
                Err(error) if self.abort.is_stopped() => return Err(error),
                Err(error) => self.gone(&want, &item, error)?,
            }
        }
    }

    /// Tells the receiver that a file will not come, and why.
    fn gone(&self, want: &Want, item: &Item, error: Error) -> Result<()> {
        self.hash_work(Work::Forget(want.file));
        let gone = match error.kind {
            ErrorKind::Disconnected => return Err(error),
            ErrorKind::NotFound => Gone::Vanished,
            ErrorKind::SourceChanged => Gone::Changed,
            _ => Gone::Failed(if error.place.is_empty() {
                error.at(item.root.path().join(item.real.as_path()).as_path())
            } else {
                error
            }),
        };
        self.control.send(&Message::Gone(want.file, gone))
    }

    fn open(&mut self, item: &Item) -> Result<(File, Snapshot)> {
        let parent = item.real.parent();
        let known = self
            .last
            .as_ref()
            .is_some_and(|(root, path, _)| Arc::ptr_eq(root, &item.root) && *path == parent);
        if !known {
            let dir = item.root.dir(parent.as_ref())?;
            self.last = Some((item.root.clone(), parent, dir));
        }
        let dir = &self.last.as_ref().expect("it was set above").2;
        let (file, stat) = dir.open_read(item.real.name())?;
        Ok((file, stat.into()))
    }

    /// Reads a small file into the batch; one that has grown is sent as a large one.
    fn small(&mut self, want: &Want, item: &Item, batch: &mut Option<Batch>) -> Result<()> {
        let (file, mut before) = self.open(item)?;
        for _ in 0..TRIES {
            if before.size > SMALL {
                self.flush(batch)?;
                return self.large(want, item);
            }
            let room = before.size as usize + 1;
            if batch
                .as_ref()
                .is_some_and(|b| b.chunk.len + room > BATCH_BYTES || b.items.len() >= BATCH)
            {
                self.flush(batch)?;
            }
            if batch.is_none() {
                let Some(chunk) = self.pool.take(self.abort) else {
                    return Ok(());
                };
                *batch = Some(Batch {
                    chunk,
                    items: Vec::new(),
                    sents: Vec::new(),
                });
                self.counters.set_current(item.path.as_bytes());
            }
            let open = batch.as_mut().expect("it was set above");
            let start = open.chunk.len;
            // Room for one byte more than it should be: a file that grew is seen by that.
            let got = read_at_least(
                &file,
                &mut open.chunk.room()[start..start + room],
                0,
                room - 1,
            )?;
            let after = Snapshot::of(&file)?;
            if got as u64 == before.size && after == before {
                open.chunk.len += got;
                open.items.push(frame::Item {
                    file: want.file,
                    attempt: want.attempt,
                    len: got as u32,
                });
                open.sents.push(Sent {
                    file: want.file,
                    attempt: want.attempt,
                    size: before.size,
                    mtime: before.mtime,
                    digest: None,
                });
                return Ok(());
            }
            before = after;
        }
        Err(changed())
    }

    /// Sends a batch and tells its digests.
    fn flush(&mut self, batch: &mut Option<Batch>) -> Result<()> {
        let Some(Batch {
            chunk,
            items,
            sents,
        }) = batch.take()
        else {
            return Ok(());
        };
        if items.is_empty() {
            return Ok(());
        }
        let chunk = Arc::new(chunk);
        let mut table = Vec::new();
        frame::encode_table(&items, &mut table);
        let header = header(Kind::Batch, 0, 0, 0, 0);
        let lane = self.next_lane();
        self.abort.send(
            &self.lanes[lane],
            Outgoing {
                header,
                table,
                chunk: Some(chunk.clone()),
            },
        );
        let files = items.iter().map(|item| item.len).zip(sents).collect();
        self.hash_work(Work::Batch(digest::Batch { chunk, files }));
        Ok(())
    }

    fn next_lane(&mut self) -> usize {
        self.lane = (self.lane + 1) % self.lanes.len();
        self.lane
    }

    /// Sends a large file block by block, all on one lane so that it arrives in order.
    fn large(&mut self, want: &Want, item: &Item) -> Result<()> {
        let (file, _) = self.open(item)?;
        advise_sequential(&file);
        let lane = self.next_lane();
        for attempt in (want.attempt..).take(TRIES) {
            let before = Snapshot::of(&file)?;
            let keep: &[[u8; 32]] = if attempt == want.attempt {
                &want.blocks
            } else {
                &[]
            };
            let whole = self.blocks(&file, want.file, attempt, before.size, keep, lane)?;
            if self.abort.is_stopped() {
                return Ok(());
            }
            if whole && Snapshot::of(&file)? == before {
                let sent = Sent {
                    file: want.file,
                    attempt,
                    size: before.size,
                    mtime: before.mtime,
                    digest: None,
                };
                self.hash_work(Work::Whole(want.file, attempt, sent));
                return Ok(());
            }
        }
        Err(changed())
    }

    /// Sends the blocks of one attempt; `false` when the file was shorter than it said.
    fn blocks(
        &self,
        file: &File,
        id: u64,
        attempt: u8,
        size: u64,
        keep: &[[u8; 32]],
        lane: usize,
    ) -> Result<bool> {
        let block = block_size(size);
        let mut feed = Feed::new(self.algorithm, id, attempt, size);
        let mut offset = 0;
        let mut kept_until = 0;
        while offset < size || size == 0 {
            if offset % block == 0 && offset >= kept_until {
                if let Some(theirs) = keep.get((offset / block) as usize) {
                    let len = block.min(size - offset);
                    if self.same_block(file, offset, len, theirs)? {
                        kept_until = offset + len;
                        let header = header(Kind::Keep, attempt, id, offset, size);
                        let frame = Outgoing {
                            header,
                            table: len.to_le_bytes().to_vec(),
                            chunk: None,
                        };
                        self.abort.send(&self.lanes[lane], frame);
                    }
                }
            }
            let Some(mut chunk) = self.pool.take(self.abort) else {
                return Ok(true);
            };
            let want = (size - offset).min(CHUNK as u64) as usize;
            // Both tag and digest are made of the leaf.
            let mut leaf = self.leaves.then(|| Growing::new(offset));
            let room = &mut chunk.room()[..want];
            let step = if self.leaves { STEP } else { CHUNK };
            for (n, piece) in room.chunks_mut(step).enumerate() {
                if read_at(file, piece, offset + (n * step) as u64)? < piece.len() {
                    return Ok(false);
                }
                if let Some(leaf) = &mut leaf {
                    leaf.update(piece);
                }
            }
            chunk.len = want;
            chunk.leaf = leaf.map(Growing::finish);
            let chunk = Arc::new(chunk);
            if let Some(work) = feed.block(offset, chunk.clone()) {
                self.hash_work(work);
            }
            if offset >= kept_until {
                let header = header(Kind::Block, attempt, id, offset, size);
                self.abort.send(
                    &self.lanes[lane],
                    Outgoing {
                        header,
                        table: Vec::new(),
                        chunk: Some(chunk),
                    },
                );
            }
            offset += want as u64;
            if size == 0 {
                break;
            }
        }
        if let Some(work) = feed.rest() {
            self.hash_work(work);
        }
        Ok(true)
    }

    /// Says whether a block is what the receiver has.
    fn same_block(&self, file: &File, offset: u64, len: u64, theirs: &[u8; 32]) -> Result<bool> {
        let Some(mut chunk) = self.pool.take(self.abort) else {
            return Ok(false);
        };
        Ok(block_digest(file, offset, len, &mut chunk)?.as_ref() == Some(theirs))
    }

    fn hash_work(&self, work: Work<Sent>) {
        self.abort.send(&self.hash, work);
    }
}

/// Digests one block of a file; `None` when the file is shorter.
pub(super) fn block_digest(
    file: &File,
    offset: u64,
    len: u64,
    chunk: &mut Chunk,
) -> Result<Option<[u8; 32]>> {
    let mut hasher = blake3::Hasher::new();
    let mut done = 0;
    while done < len {
        let want = (len - done).min(CHUNK as u64) as usize;
        let room = &mut chunk.room()[..want];
        if read_at(file, room, offset + done)? < want {
            return Ok(None);
        }
        hasher.update(room);
        done += want as u64;
    }
    Ok(Some(*hasher.finalize().as_bytes()))
}

fn header(kind: Kind, attempt: u8, file: u64, offset: u64, size: u64) -> Header {
    Header {
        kind,
        attempt,
        stream: 0,
        len: 0,
        sequence: 0,
        file,
        offset,
        size,
    }
}

pub(super) fn changed() -> Error {
    Error::new(
        ErrorKind::SourceChanged,
        "read the source file",
        "it changed while it was read",
    )
    .hint("close the program that writes it, then run this again")
}

/// Reads until the buffer is full or the file ends.
pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> Result<usize> {
    let all = buffer.len();
    read_at_least(file, buffer, offset, all)
}

/// Reads until there are `least` bytes or the file ends; what a call gives beyond that is kept.
fn read_at_least(file: &File, buffer: &mut [u8], offset: u64, least: usize) -> Result<usize> {
    let mut got = 0;
    while got < least || got == 0 {
        match file.read_at(&mut buffer[got..], offset + got as u64) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("read the file", &e)),
        }
    }
    Ok(got)
}
