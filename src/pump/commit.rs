//! The commit thread: compares digests, makes groups durable, gives final names, and only then
//! says that a file is done.
//!
//! # Crash contract
//! A final name is at every instant either what was there before or the whole new file. For each
//! group: parts are flushed, then renamed, then the folders are flushed, then the entries are
//! settled. A power cut loses at most parts and renames that nobody was told about.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::fs::meta::{MetaKept, drop_cache, sync_data};
use crate::fs::root::{Dir, Root};
use crate::model::digest::{Algorithm, Digest};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::relpath::RelPath;
use crate::model::verdict::{Verdict, When};
use crate::plan::compare::Decision;
use crate::pump::CHUNK;
use crate::pump::abort::Abort;
use crate::pump::admit::{Expectations, Expected, FolderMeta, place};
use crate::pump::disk::{Landed, not_kept};
use crate::pump::staging::Part;
use crate::verify::hash::Hasher;
use crate::wire::message::{Gone, Sent, Settled, Terms, Want};

/// A group is made durable at the latest when it has so many files,
const GROUP_FILES: usize = 4096;
/// or so many bytes.
const GROUP_BYTES: u64 = 256 << 20;
/// Up to so many files are flushed one by one, so that a small job does not wait for the rest of
/// a busy disk.
const ONE_BY_ONE: usize = 8;
/// How long a group waits for more while nothing else is ready.
const GROUP_TIME: Duration = Duration::from_millis(20);
/// How long a full disk waits for the sender's digests of files that are whole.
const LAST: Duration = Duration::from_secs(5);
/// How often a file is sent again because it arrived changed.
const AGAIN: u8 = 1;

/// What the commit thread is told.
pub(crate) enum Note {
    /// So many files were asked for.
    Wanted(u64),
    /// Parts are whole.
    Landed(Vec<Landed>),
    /// Sources were read whole.
    Sent(Vec<Sent>),
    /// A file will not come.
    Gone(u64, Gone),
    /// The file system does not keep something.
    NotKept(MetaKept),
    /// Nothing more will be asked for.
    Ended,
}

/// Where the results go.
pub(crate) trait Sink {
    /// Entries are settled.
    fn settled(&self, list: Vec<(Settled, Arc<Expected>)>) -> Result<()>;
    /// A file is to be sent again.
    fn again(&self, want: Want) -> Result<()>;
    /// Something to know.
    fn note(&self, error: Error) -> Result<()>;
}

/// What the commit thread needs.
pub(crate) struct Commit<'a> {
    pub notes: &'a Receiver<Note>,
    pub root: &'a Arc<Root>,
    pub terms: Terms,
    pub expected: &'a Expectations,
    pub folders: &'a Mutex<Vec<FolderMeta>>,
    pub sink: &'a dyn Sink,
    /// Set while it waits for the disk.
    pub busy: &'a AtomicBool,
    pub abort: &'a Abort,
}

#[derive(Default)]
struct State {
    landed: HashMap<u64, Landed>,
    sent: HashMap<u64, Sent>,
    ready: Vec<Ready>,
    ready_bytes: u64,
    open: u64,
    ended: bool,
    again: HashMap<u64, u8>,
    flushed: Option<(Instant, Duration)>,
    /// The disk is full, since when.
    full: Option<(Error, Instant)>,
}

impl State {
    /// Says whether the disk is full and nothing that is whole waits for its digest.
    fn is_through(&self) -> bool {
        self.full
            .as_ref()
            .is_some_and(|(_, since)| self.landed.is_empty() || since.elapsed() > LAST)
    }
}

/// A file that arrived whole and right.
struct Ready {
    file: u64,
    part: Part,
    sent: Sent,
    expected: Arc<Expected>,
}

impl Commit<'_> {
    /// Works until everything is settled and durable.
    pub fn run(self) -> Result<()> {
        let mut state = State::default();
        loop {
            if state.ended && state.open == 0 {
                break;
            }
            let wait = if state.ready.is_empty() || state.full.is_some() {
                Duration::from_millis(100)
            } else {
                Duration::from_millis(5)
            };
            match self.notes.recv_timeout(wait) {
                Ok(note) => self.take(note, &mut state)?,
                Err(RecvTimeoutError::Timeout) if self.abort.is_stopped() => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {
                    if state.is_through() {
                        return self.full(state);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return self.full(state),
            }
            if self.due(&state) {
                self.flush(&mut state)?;
            }
        }
        self.finish_folders()
    }

    /// Names what was whole when the disk was full, and ends the run with that.
    fn full(&self, mut state: State) -> Result<()> {
        let Some((error, _)) = state.full.take() else {
            return Ok(());
        };
        self.flush(&mut state)?;
        Err(error)
    }

    /// Gives one file up; a full disk ends the run instead.
    fn failed(&self, file: u64, error: Error, state: &mut State) -> Result<()> {
        if error.kind == ErrorKind::NoSpace {
            state.full.get_or_insert((error, Instant::now()));
            return Ok(());
        }
        self.settle(file, Verdict::Failed(error), state)
    }

    fn take(&self, note: Note, state: &mut State) -> Result<()> {
        match note {
            Note::Wanted(count) => state.open += count,
            Note::Ended => state.ended = true,
            Note::NotKept(kept) => self.sink.note(not_kept(kept, self.root))?,
            Note::Landed(list) => {
                for landed in list {
                    let file = landed.file;
                    state.landed.insert(file, landed);
                    self.pair(file, state)?;
                }
            }
            Note::Sent(list) => {
                for sent in list {
                    state.sent.insert(sent.file, sent);
                    self.pair(sent.file, state)?;
                }
            }
            Note::Gone(file, gone) => {
                let verdict = match gone {
                    Gone::Vanished => Verdict::Vanished,
                    Gone::Changed => Verdict::SourceChanged,
                    Gone::Failed(error) => Verdict::Failed(error),
                };
                if let Some(landed) = state.landed.remove(&file) {
                    let _ = landed.part.map(|part| part.discard());
                }
                self.settle(file, verdict, state)?;
            }
        }
        Ok(())
    }

    /// Compares what was read with what arrived, once both are known.
    fn pair(&self, file: u64, state: &mut State) -> Result<()> {
        let (Some(landed), Some(sent)) = (state.landed.get(&file), state.sent.get(&file)) else {
            // A part that failed needs no digest.
            if state.landed.get(&file).is_some_and(|l| l.part.is_err()) {
                if let Some(Landed {
                    part: Err(error), ..
                }) = state.landed.remove(&file)
                {
                    return self.failed(file, error, state);
                }
            }
            return Ok(());
        };
        if landed.attempt != sent.attempt && landed.part.is_ok() {
            return Ok(());
        }
        let same = landed.size == sent.size && agree(self.terms.verify, landed.digest, sent.digest);
        let (Some(landed), Some(sent)) = (state.landed.remove(&file), state.sent.remove(&file))
        else {
            return Ok(());
        };
        match landed.part {
            Err(error) => self.failed(file, error, state),
            Ok(part) if same => {
                let Some(expected) = self.expected.get(file) else {
                    return Ok(());
                };
                state.ready_bytes += sent.size;
                state.ready.push(Ready {
                    file,
                    part,
                    sent,
                    expected,
                });
                Ok(())
            }
            Ok(part) => {
                part.discard();
                if !self.ask_again(file, landed.attempt, state)? {
                    let error = Error::new(
                        ErrorKind::Corrupt,
                        "receive the file",
                        "it arrived changed, twice",
                    )
                    .hint("memory or disk of one of the computers may be damaged");
                    self.settle(file, Verdict::Failed(error), state)?;
                }
                Ok(())
            }
        }
    }

    /// Asks for a file once more, if that was not done before.
    fn ask_again(&self, file: u64, attempt: u8, state: &mut State) -> Result<bool> {
        let tries = state.again.entry(file).or_default();
        let Some(next) = attempt.checked_add(1) else {
            return Ok(false);
        };
        if *tries >= AGAIN {
            return Ok(false);
        }
        *tries += 1;
        if let Some(expected) = self.expected.get(file) {
            expected.attempt.store(next, Relaxed);
        }
        self.sink.again(Want {
            file,
            attempt: next,
            blocks: Vec::new(),
        })?;
        Ok(true)
    }

    fn settle(&self, file: u64, verdict: Verdict, state: &mut State) -> Result<()> {
        state.sent.remove(&file);
        let Some(expected) = self.expected.take(file) else {
            return Ok(());
        };
        state.open = state.open.saturating_sub(1);
        let settled = self.word(file, verdict, &expected, Vec::new());
        self.sink.settled(vec![(settled, expected)])
    }

    fn word(&self, file: u64, verdict: Verdict, expected: &Expected, name: Vec<u8>) -> Settled {
        let (action, reason) = expected.decision.step();
        Settled {
            file,
            action,
            reason,
            bytes: expected.size,
            verdict,
            name,
        }
    }

    fn due(&self, state: &State) -> bool {
        if state.ready.is_empty() {
            return false;
        }
        if state.ready.len() >= GROUP_FILES || state.ready_bytes >= GROUP_BYTES {
            return true;
        }
        if !self.notes.is_empty() {
            return false;
        }
        if !self.terms.durable || state.ready.len() as u64 == state.open {
            return true;
        }
        // A slow disk gets larger groups: at most a fifth of the time goes into waiting for it.
        state
            .flushed
            .is_none_or(|(at, took)| at.elapsed() >= GROUP_TIME.max(took * 4))
    }

    /// Makes the group that is ready durable and gives it its names.
    fn flush(&self, state: &mut State) -> Result<()> {
        if state.ready.is_empty() {
            return Ok(());
        }
        let started = Instant::now();
        let ready = std::mem::take(&mut state.ready);
        state.ready_bytes = 0;
        let one_by_one = ready.len() <= ONE_BY_ONE;
        self.busy.store(true, Relaxed);
        let flushed = self.flush_parts(&ready, one_by_one);
        let mut dirs: Vec<(Option<RelPath>, Arc<Dir>)> = Vec::new();
        let mut placed = Vec::new();
        for (n, item) in ready.into_iter().enumerate() {
            let done = match flushed.get(n) {
                Some(Err(error)) => Err(error.clone()),
                _ => self.place(&item, &mut dirs),
            };
            placed.push((item, done));
        }
        if self.terms.durable {
            if one_by_one {
                for (_, dir) in &dirs {
                    dir.sync()?;
                }
            } else {
                self.root.sync_fs().map_err(|e| e.at(self.root.path()))?;
            }
        }
        let mut settled = Vec::new();
        for (item, done) in placed {
            let (verdict, name) = match done {
                Ok(name) => match self.verdict(&item, &name, state)? {
                    Some(verdict) => (verdict, name),
                    None => continue,
                },
                Err(error) if error.kind == ErrorKind::Exists && self.is_there(&item) => {
                    item.part.discard();
                    let why = "the same file appeared there meanwhile";
                    (Verdict::Skipped(why.to_owned()), Vec::new())
                }
                Err(error) => {
                    item.part.discard();
                    if error.kind == ErrorKind::NoSpace {
                        return Err(error);
                    }
                    let error = if error.place.is_empty() {
                        error.at(item.expected.path.as_bytes())
                    } else {
                        error
                    };
                    (Verdict::Failed(error), Vec::new())
                }
            };
            let Some(expected) = self.expected.take(item.file) else {
                continue;
            };
            state.open = state.open.saturating_sub(1);
            let mut word = self.word(item.file, verdict, &expected, name);
            word.bytes = item.sent.size;
            settled.push((word, expected));
        }
        self.busy.store(false, Relaxed);
        state.flushed = Some((Instant::now(), started.elapsed()));
        self.sink.settled(settled)
    }

    /// Flushes the parts; a result for each where they are flushed one by one.
    fn flush_parts(&self, ready: &[Ready], one_by_one: bool) -> Vec<Result<()>> {
        if !self.terms.durable {
            return Vec::new();
        }
        if one_by_one {
            let flush = |item: &Ready| match item.part.open()? {
                Some(file) => sync_data(&file),
                None => Err(Error::new(
                    ErrorKind::NotFound,
                    "flush the file",
                    "its part is gone",
                )),
            };
            return ready.iter().map(flush).collect();
        }
        match self.root.sync_fs() {
            Ok(()) => Vec::new(),
            // After a failed flush nothing of the group can be trusted to be on the disk.
            Err(error) => ready.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// Gives one part its final name.
    fn place(&self, item: &Ready, dirs: &mut Vec<(Option<RelPath>, Arc<Dir>)>) -> Result<Vec<u8>> {
        let path = &item.expected.path;
        let parent = path.parent();
        // Most files have the folder of the one before.
        let known = match dirs.last() {
            Some((last, dir)) if *last == parent => Some(dir.clone()),
            _ => None,
        };
        let dir = match known {
            Some(dir) => dir,
            None => {
                let dir = self.root.dir(parent.as_ref())?;
                dirs.push((parent, dir.clone()));
                dir
            }
        };
        if self.terms.preserve.times && item.sent.mtime != item.expected.mtime {
            item.part.dir.set_times(&item.part.name, item.sent.mtime)?;
        }
        place(&item.part, &dir, path.name(), item.expected.decision)
    }

    /// Says whether what got the file's name before it could is the same, as another run at the
    /// same time leaves it.
    fn is_there(&self, item: &Ready) -> bool {
        item.sent.digest.is_some()
            && matches!(self.read_back(item, b""), Ok(there) if Some(there) == item.sent.digest)
    }

    /// Returns the verdict of a file in place; `None` when it is sent once more.
    fn verdict(&self, item: &Ready, name: &[u8], state: &mut State) -> Result<Option<Verdict>> {
        let Some(digest) = item.sent.digest else {
            return Ok(Some(match self.terms.verify {
                Algorithm::Size => Verdict::SizeOnly,
                _ => Verdict::Unverified("no check was asked for".to_owned()),
            }));
        };
        if !self.terms.read_back {
            return Ok(Some(Verdict::Verified {
                digest,
                when: When::InFlight,
            }));
        }
        match self.read_back(item, name) {
            Ok(there) if there == digest => Ok(Some(Verdict::Verified {
                digest,
                when: When::ReadBack,
            })),
            Ok(there) => {
                if self.ask_again(item.file, item.sent.attempt, state)? {
                    self.take_back(item, name)?;
                    return Ok(None);
                }
                Ok(Some(Verdict::Differs {
                    here: digest,
                    there,
                }))
            }
            Err(error) => Ok(Some(Verdict::Failed(
                error.at(item.expected.path.as_bytes()),
            ))),
        }
    }

    /// Makes room for the next attempt: what this job put there and found wrong does not keep it
    /// from getting the name again. A file that was replaced is simply replaced once more.
    fn take_back(&self, item: &Ready, name: &[u8]) -> Result<()> {
        if matches!(item.expected.decision, Decision::Replace(_)) {
            return Ok(());
        }
        let path = &item.expected.path;
        let name = if name.is_empty() { path.name() } else { name };
        self.root.dir(path.parent().as_ref())?.remove_file(name)
    }

    /// Digests the file from the disk, past the cache.
    fn read_back(&self, item: &Ready, name: &[u8]) -> Result<Digest> {
        let path = &item.expected.path;
        let dir = self.root.dir(path.parent().as_ref())?;
        let name = if name.is_empty() { path.name() } else { name };
        let (file, _) = dir.open_read(name)?;
        sync_data(&file)?;
        drop_cache(&file);
        let found = digest_file(&file, self.terms.verify, self.abort)?;
        found.ok_or_else(|| Error::new(ErrorKind::Bug, "read the file back", "no digest"))
    }

    /// Sets the folders' own metadata, deepest first, now that nothing is written into them.
    fn finish_folders(&self) -> Result<()> {
        let folders =
            std::mem::take(&mut *self.folders.lock().unwrap_or_else(PoisonError::into_inner));
        let mut touched = HashSet::new();
        for meta in folders.iter().rev() {
            let set = self.root.dir(Some(&meta.path)).and_then(|dir| {
                let kept = dir.set_own_meta(meta.mode, meta.mtime)?;
                if self.terms.durable && folders.len() <= ONE_BY_ONE {
                    dir.sync()?;
                    if let Some(parent) = meta.path.parent() {
                        touched.insert(parent);
                    }
                }
                Ok(kept)
            });
            match set {
                Ok(kept) if kept.all() => {}
                Ok(kept) => self.sink.note(not_kept(kept, self.root))?,
                Err(error) => self.sink.note(error.at(meta.path.as_bytes()))?,
            }
        }
        if !self.terms.durable || folders.is_empty() {
            return Ok(());
        }
        if folders.len() > ONE_BY_ONE {
            return self.root.sync_fs().map_err(|e| e.at(self.root.path()));
        }
        for parent in &touched {
            self.root.dir(Some(parent))?.sync()?;
        }
        self.root.top().sync()
    }
}

/// Says whether two digests prove the same contents: for an algorithm that hashes both must be
/// there.
fn agree(algorithm: Algorithm, here: Option<Digest>, there: Option<Digest>) -> bool {
    match (here, there) {
        (Some(here), Some(there)) => here == there && here.algorithm() == algorithm,
        (None, None) => !algorithm.hashes(),
        _ => false,
    }
}

/// Digests an open file from its beginning.
pub(crate) fn digest_file(
    file: &File,
    algorithm: Algorithm,
    abort: &Abort,
) -> Result<Option<Digest>> {
    let mut hasher = Hasher::new(algorithm);
    let mut buffer = vec![0; CHUNK];
    let mut offset = 0;
    loop {
        abort.result()?;
        let got = crate::pump::read::read_at(file, &mut buffer, offset)?;
        if got == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buffer[..got]);
        offset += got as u64;
    }
}
