//! A run within one computer: the same decisions, parts and commits as over the wire, one read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};

use crate::fs::filter::Filter;
use crate::fs::meta::{advise_sequential, preallocate, set_file_meta};
use crate::fs::root::Root;
use crate::model::entry::{Entry, EntryKind};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::{Counters, Phase};
use crate::pump::abort::Abort;
use crate::pump::admit::{Admit, Admitted, Expectations, Expected, FolderMeta};
use crate::pump::commit::{Commit, Note, Sink};
use crate::pump::disk::{Landed, umask};
use crate::pump::limit::Throttle;
use crate::pump::pool::{Chunk, Pool};
use crate::pump::read::{Snapshot, block_digest, changed, read_at};
use crate::pump::report::Observer;
use crate::pump::scan::{Book, Item, Scan};
use crate::pump::source::Source;
use crate::pump::staging::{Part, Staging};
use crate::pump::{BUFFERS, CHUNK};
use crate::verify::hash::Hasher;
use crate::wire::message::{Gone, Sent, Settled, Terms, Want, block_size};

/// Threads that copy: one reads or hashes while the other writes.
const COPIERS: usize = 2;
/// Bytes that the kernel copies by itself between looks at cancel and limit.
const STEP: usize = 8 << 20;

/// What a local run is given.
pub struct DirectRun<'a> {
    /// What to copy.
    pub sources: &'a [Source],
    /// What to leave out.
    pub filter: &'a Filter,
    /// Where everything lands; `None` in a dry run whose destination is not there.
    pub root: Option<Arc<Root>>,
    /// The name that the one source gets; `None` for its own.
    pub top: Option<&'a [u8]>,
    /// Names the job's staging folder.
    pub job: [u8; 16],
    /// What to keep to.
    pub terms: Terms,
    /// Limit and pause.
    pub throttle: &'a Throttle,
    /// How far it is.
    pub counters: &'a Counters,
    /// Who hears of each item.
    pub observer: &'a dyn Observer,
    /// Ends the run.
    pub abort: &'a Abort,
}

impl DirectRun<'_> {
    /// Copies everything and returns when all is settled and durable.
    ///
    /// # Errors
    /// What ended the run; single items are told to the observer instead.
    pub fn run(self) -> Result<()> {
        umask();
        let staging = match (&self.root, self.terms.dry_run) {
            (Some(root), false) => Some(Staging::open(root, &self.job, COPIERS)?),
            _ => None,
        };
        self.with_threads(staging.as_ref());
        let result = self.abort.result();
        if let Some(staging) = staging {
            staging.close(result.is_ok(), self.top.is_some());
        }
        result
    }

    fn with_threads(&self, staging: Option<&Staging>) {
        let pool = Pool::new(BUFFERS);
        let (book, expected) = (Book::default(), Expectations::default());
        let folders: Mutex<Vec<FolderMeta>> = Mutex::default();
        let busy = AtomicBool::new(false);
        let (commit_tx, notes) = bounded::<Note>(256);
        // Holds at most the window of entries and retries of it.
        let (want_tx, wants) = unbounded::<Want>();
        let (abort, terms, counters) = (self.abort, self.terms, self.counters);
        let (pool, book, expected, folders) = (&pool, &book, &expected, &folders);
        let (busy, notes, wants) = (&busy, &notes, &wants);
        // What commit sends again goes the same way; when it ends, the copiers do.
        let sink = Local {
            run: self,
            book,
            wants: Mutex::new(Some(want_tx)),
        };
        let sink = &sink;
        std::thread::scope(|scope| {
            if let (Some(root), Some(staging)) = (&self.root, staging) {
                for n in 0..COPIERS {
                    let copier = Copier {
                        run: self,
                        book,
                        expected,
                        pool,
                        small: staging.small[n].clone(),
                        commit: commit_tx.clone(),
                        parts: 0,
                        told: false,
                    };
                    abort.thread(scope, format!("copy-{n}"), move || copier.run(wants));
                }
                abort.thread(scope, "commit".into(), move || {
                    let commit = Commit {
                        notes,
                        root,
                        terms,
                        expected,
                        folders,
                        sink,
                        busy,
                        abort,
                    };
                    let result = commit.run();
                    sink.close();
                    result
                });
            }
            let mut admit = Admit {
                root: self.root.as_ref(),
                terms,
                staging,
                expected,
                folders,
                pool,
                abort,
                last: None,
                links: 0,
                whole_seconds: false,
            };
            let mut announce =
                |first, entries| sink.entries(&mut admit, &commit_tx, first, entries);
            let scan = Scan {
                sources: self.sources,
                filter: self.filter,
                top: self.top,
                book,
                announce: &mut announce,
                counters,
                observer: self.observer,
                abort,
            };
            match scan.run() {
                Ok(_) if terms.dry_run => {}
                Ok(_) => {
                    abort.send(&commit_tx, Note::Ended);
                }
                Err(error) => abort.fail(error),
            }
            drop(commit_tx);
        });
    }
}

/// Where decisions and results meet.
struct Local<'a> {
    run: &'a DirectRun<'a>,
    book: &'a Book,
    wants: Mutex<Option<Sender<Want>>>,
}

impl Local<'_> {
    fn entries(
        &self,
        admit: &mut Admit<'_>,
        commit: &Sender<Note>,
        first: u64,
        entries: Vec<Entry>,
    ) -> Result<()> {
        for (file, entry) in (first..).zip(&entries) {
            match admit.admit(file, entry) {
                Admitted::Settled(settled) => {
                    self.settle(entry.path.as_bytes(), entry.kind, &settled)
                }
                Admitted::Wanted(want) => {
                    self.run.counters.bytes_total.fetch_add(entry.size, Relaxed);
                    self.run.counters.set_phase(Phase::Transferring);
                    self.run.abort.send(commit, Note::Wanted(1));
                    self.again(want)?;
                }
            }
        }
        Ok(())
    }

    fn settle(&self, path: &[u8], kind: EntryKind, settled: &Settled) {
        self.book.take(settled.file);
        self.run.counters.items_done.fetch_add(1, Relaxed);
        self.run.observer.settled(path, kind, settled);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Sender<Want>>> {
        self.wants
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn close(&self) {
        *self.lock() = None;
    }
}

impl Sink for Local<'_> {
    fn settled(&self, list: Vec<(Settled, Arc<Expected>)>) -> Result<()> {
        for (settled, expected) in list {
            let path = match settled.name.as_slice() {
                b"" => expected.path.clone(),
                name => expected.path.with_name(name)?,
            };
            self.settle(path.as_bytes(), EntryKind::File, &settled);
        }
        Ok(())
    }

    fn again(&self, want: Want) -> Result<()> {
        if let Some(wants) = &*self.lock() {
            // The copiers are gone only when the run is ended.
            let _ = wants.send(want);
        }
        Ok(())
    }

    fn note(&self, error: Error) -> Result<()> {
        self.run.observer.note(&error);
        Ok(())
    }
}

/// One copying thread.
struct Copier<'a> {
    run: &'a DirectRun<'a>,
    book: &'a Book,
    expected: &'a Expectations,
    pool: &'a Pool,
    small: Arc<crate::fs::root::Dir>,
    commit: Sender<Note>,
    parts: u64,
    told: bool,
}

impl Copier<'_> {
    fn run(mut self, wants: &Receiver<Want>) -> Result<()> {
        let abort = self.run.abort;
        let throttle = self.run.throttle;
        while let Some(want) = abort.recv(wants) {
            let (Some(item), Some(expected)) =
                (self.book.get(want.file), self.expected.get(want.file))
            else {
                continue;
            };
            self.run.counters.set_current(item.path.as_bytes());
            match self.copy(&want, &item, &expected, throttle) {
                Ok(Some((landed, sent))) => {
                    abort.send(&self.commit, Note::Landed(vec![landed]));
                    abort.send(&self.commit, Note::Sent(vec![sent]));
                }
                // The run is ended.
                Ok(None) => return Ok(()),
                Err(error) if error.kind == ErrorKind::NoSpace => {
                    // What is whole gets its name before that ends the run.
                    let full = Landed {
                        file: want.file,
                        attempt: want.attempt,
                        size: 0,
                        digest: None,
                        part: Err(error.at(expected.path.as_bytes())),
                    };
                    abort.send(&self.commit, Note::Landed(vec![full]));
                    return Ok(());
                }
                Err(error) => {
                    let gone = match error.kind {
                        ErrorKind::NotFound => Gone::Vanished,
                        ErrorKind::SourceChanged => Gone::Changed,
                        _ if error.place.is_empty() => Gone::Failed(error.at(item.path.as_bytes())),
                        _ => Gone::Failed(error),
                    };
                    abort.send(&self.commit, Note::Gone(want.file, gone));
                }
            }
        }
        Ok(())
    }

    fn copy(
        &mut self,
        want: &Want,
        item: &Item,
        expected: &Expected,
        throttle: &Throttle,
    ) -> Result<Option<(Landed, Sent)>> {
        let dir = item.root.dir(item.real.parent().as_ref())?;
        let (from, _) = dir.open_read(item.real.name())?;
        let before = Snapshot::of(&from)?;
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
        let kept = if want.blocks.is_empty() {
            None
        } else {
            part.open()?
        };
        let keep: &[[u8; 32]] = if kept.is_some() { &want.blocks } else { &[] };
        let to = match kept {
            Some(to) => to,
            None => {
                if part.open()?.is_some() {
                    part.discard();
                }
                part.dir.create_part(&part.name)?
            }
        };
        let terms = self.run.terms;
        let digest = if terms.verify.hashes() {
            match self.through(&from, &to, before.size, keep, throttle)? {
                Some(hasher) => hasher.finish(),
                None => return Ok(None),
            }
        } else {
            if !self.in_kernel(&from, &to, before.size, throttle)? {
                return Ok(None);
            }
            None
        };
        to.set_len(before.size)
            .map_err(|e| Error::io("write the file", &e))?;
        if Snapshot::of(&from)? != before {
            part.discard();
            return Err(changed());
        }
        let mode = if terms.preserve.permissions {
            expected.mode & 0o777
        } else {
            0o666 & !umask()
        };
        let kept = set_file_meta(
            &to,
            Some(mode),
            terms.preserve.times.then_some(before.mtime),
        )?;
        if !kept.all() && !self.told {
            self.told = true;
            self.run.abort.send(&self.commit, Note::NotKept(kept));
        }
        let (file, attempt, size) = (want.file, want.attempt, before.size);
        let landed = Landed {
            file,
            attempt,
            size,
            digest,
            part: Ok(part),
        };
        Ok(Some((
            landed,
            Sent {
                file,
                attempt,
                size,
                mtime: before.mtime,
                digest,
            },
        )))
    }

    /// Copies through our own memory and digests what passes; `None` when the run is ended.
    fn through(
        &self,
        from: &File,
        to: &File,
        size: u64,
        keep: &[[u8; 32]],
        throttle: &Throttle,
    ) -> Result<Option<Hasher>> {
        let (abort, counters) = (self.run.abort, self.run.counters);
        advise_sequential(from);
        preallocate(to, size);
        let mut hasher = Hasher::new(self.run.terms.verify);
        let Some(mut chunk) = self.pool.take(abort) else {
            return Ok(None);
        };
        let block = block_size(size);
        let (mut offset, mut kept_until) = (0, 0);
        while offset < size {
            if abort.is_stopped() {
                return Ok(None);
            }
            if offset % block == 0 && offset >= kept_until {
                kept_until = self.kept(
                    from,
                    offset,
                    block.min(size - offset),
                    keep,
                    block,
                    &mut chunk,
                )?;
            }
            let want = (size - offset).min(CHUNK as u64) as usize;
            let room = &mut chunk.room()[..want];
            if read_at(from, room, offset)? < want {
                return Err(changed());
            }
            hasher.update(room);
            if offset >= kept_until {
                throttle.wait(want, abort);
                to.write_all_at(room, offset)
                    .map_err(|e| Error::io("write the file", &e))?;
            }
            offset += want as u64;
            counters.bytes_done.fetch_add(want as u64, Relaxed);
        }
        Ok(Some(hasher))
    }

    /// Returns up to where the part is right already.
    fn kept(
        &self,
        from: &File,
        offset: u64,
        len: u64,
        keep: &[[u8; 32]],
        block: u64,
        chunk: &mut Chunk,
    ) -> Result<u64> {
        let Some(theirs) = keep.get((offset / block) as usize) else {
            return Ok(0);
        };
        let same = block_digest(from, offset, len, chunk)?.as_ref() == Some(theirs);
        Ok(if same { offset + len } else { 0 })
    }

    /// Lets the kernel copy: shared blocks where the file system can, else without passing through
    /// our memory; `false` when the run is ended.
    fn in_kernel(&self, from: &File, to: &File, size: u64, throttle: &Throttle) -> Result<bool> {
        let (abort, counters) = (self.run.abort, self.run.counters);
        if rustix::fs::ioctl_ficlone(to, from).is_ok() {
            counters.bytes_done.fetch_add(size, Relaxed);
            return Ok(true);
        }
        let (mut read, mut write) = (0, 0);
        while read < size {
            if abort.is_stopped() {
                return Ok(false);
            }
            let step = (size - read).min(STEP as u64) as usize;
            throttle.wait(step, abort);
            match rustix::fs::copy_file_range(from, Some(&mut read), to, Some(&mut write), step) {
                Ok(0) => return Err(changed()),
                Ok(n) => {
                    counters.bytes_done.fetch_add(n as u64, Relaxed);
                }
                Err(rustix::io::Errno::INTR) => {}
                // Some pairs of file systems cannot; then through our memory from where it stopped.
                Err(_) if read == 0 => {
                    return Ok(self.through(from, to, size, &[], throttle)?.is_some());
                }
                Err(errno) => return Err(Error::io("copy the file", &errno.into())),
            }
        }
        Ok(true)
    }
}
