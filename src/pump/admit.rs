//! Decides about each announced entry at the receiver: makes folders and links, asks for files.

use std::collections::HashMap;

use std::sync::atomic::AtomicU8;
use std::sync::{Arc, Mutex, PoisonError};

use crate::fs::meta::set_file_meta;
use crate::fs::root::{Dir, Replace, Root};
use crate::model::entry::{Action, Entry, EntryKind, FileTime, Reason};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::relpath::RelPath;
use crate::model::rules::Conflict;
use crate::model::verdict::Verdict;
use crate::plan::compare::{Decision, Existing, Rules, decide};
use crate::pump::RESUMABLE;
use crate::pump::abort::Abort;
use crate::pump::pool::Pool;
use crate::pump::read::block_digest;
use crate::pump::staging::{Part, Staging};
use crate::wire::message::{Settled, Terms, Want, block_size};

/// A file that was asked for and did not come yet.
pub(crate) struct Expected {
    pub path: RelPath,
    pub decision: Decision,
    pub size: u64,
    pub mtime: FileTime,
    pub mode: u32,
    /// The part of a large file; small ones get theirs when they come.
    pub part: Option<Part>,
    /// Its first attempt keeps what is in the part.
    pub kept: bool,
    /// The newest attempt that was asked for.
    pub attempt: AtomicU8,
}

/// The files that were asked for and are not settled.
#[derive(Default)]
pub(crate) struct Expectations(Mutex<HashMap<u64, Arc<Expected>>>);

impl Expectations {
    pub fn get(&self, file: u64) -> Option<Arc<Expected>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&file)
            .cloned()
    }

    pub fn take(&self, file: u64) -> Option<Arc<Expected>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&file)
    }

    fn add(&self, file: u64, expected: Expected) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(file, Arc::new(expected));
    }
}

/// A folder whose metadata is set when everything in it is there.
pub(crate) struct FolderMeta {
    pub path: RelPath,
    pub mode: Option<u32>,
    pub mtime: Option<FileTime>,
}

/// What became of one entry at once.
pub(crate) enum Admitted {
    Settled(Settled),
    Wanted(Want),
}

/// What decides.
pub(crate) struct Admit<'a> {
    /// `None` in a dry run whose destination is not there.
    pub root: Option<&'a Arc<Root>>,
    pub terms: Terms,
    pub staging: Option<&'a Staging>,
    pub expected: &'a Expectations,
    pub folders: &'a Mutex<Vec<FolderMeta>>,
    pub pool: &'a Pool,
    pub abort: &'a Abort,
    /// The folder looked into last.
    pub last: Option<(Option<RelPath>, Arc<Dir>)>,
    /// Temporary names of links.
    pub links: u64,
    /// The source tells times without fractions of a second, so fractions here say nothing.
    pub whole_seconds: bool,
}

impl Admit<'_> {
    /// Decides about one entry.
    pub fn admit(&mut self, file: u64, entry: &Entry) -> Admitted {
        let (decision, result) = match self.look(entry) {
            Ok(existing) => {
                let rules = Rules {
                    conflict: self.terms.conflict,
                    preserve: self.terms.preserve,
                    resume: self.terms.resume,
                };
                let decision = decide(entry, existing.as_ref(), &rules);
                if self.terms.dry_run {
                    return Admitted::Settled(dry(file, entry, decision));
                }
                let done = match (entry.kind, &existing) {
                    (EntryKind::Dir, Some(there)) => self.enter(entry, decision, there.mode),
                    _ => self.act(file, entry, decision),
                };
                (decision, done)
            }
            Err(error) => (Decision::Refuse(""), Err(error)),
        };
        let verdict = match result {
            Ok(Some(want)) => return Admitted::Wanted(want),
            Ok(None) => settled_at_once(entry, decision),
            Err(error) => {
                let error = if error.place.is_empty() {
                    error.at(entry.path.as_bytes())
                } else {
                    error
                };
                Verdict::Failed(error)
            }
        };
        let (action, reason) = decision.step();
        Admitted::Settled(Settled {
            file,
            action,
            reason,
            bytes: 0,
            verdict,
            name: Vec::new(),
        })
    }

    /// Returns what the destination has under the entry's name.
    fn look(&mut self, entry: &Entry) -> Result<Option<Existing>> {
        if entry.kind == EntryKind::Special || self.root.is_none() {
            return Ok(None);
        }
        let dir = match self.parent(&entry.path) {
            Ok(dir) => dir,
            // In a dry run the folder may be one that would be made.
            Err(error) if self.terms.dry_run && error.kind == ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let Some(stat) = dir.stat(entry.path.name())? else {
            return Ok(None);
        };
        let link = match stat.kind {
            EntryKind::Symlink => Some(dir.read_link(entry.path.name())?),
            _ => None,
        };
        let mut mtime = stat.mtime;
        if self.whole_seconds {
            mtime.nanos = 0;
        }
        Ok(Some(Existing {
            kind: stat.kind,
            size: stat.size,
            mtime,
            mode: stat.mode,
            link,
        }))
    }

    fn parent(&mut self, path: &RelPath) -> Result<Arc<Dir>> {
        let parent = path.parent();
        if let Some((known, dir)) = &self.last {
            if *known == parent {
                return Ok(dir.clone());
            }
        }
        let root = self
            .root
            .ok_or_else(|| Error::new(ErrorKind::NotFound, "look", "no folder"))?;
        let dir = root.dir(parent.as_ref())?;
        self.last = Some((parent, dir.clone()));
        Ok(dir)
    }

    /// Does what can be done at once; a file to fetch is returned as a want.
    fn act(&mut self, file: u64, entry: &Entry, decision: Decision) -> Result<Option<Want>> {
        match (decision, entry.kind) {
            (Decision::Refuse(why), _) => {
                Err(Error::new(ErrorKind::Exists, "put it in its place", why)
                    .hint("move what is there away, or choose another conflict rule"))
            }
            (Decision::Leave(_), _) => Ok(None),
            (Decision::Make(_), EntryKind::Dir) => {
                let dir = self.parent(&entry.path)?;
                // We have to write into it, whatever its final mode is; one that keeps no mode
                // gets what any program would give it.
                let mode = match self.terms.preserve.permissions {
                    true => (entry.mode & 0o777) | 0o700,
                    false => 0o777,
                };
                dir.make_dir(entry.path.name(), mode)?;
                self.note_folder(entry, None);
                Ok(None)
            }
            (Decision::Keep, _) => Ok(None),
            (Decision::Touch(_), EntryKind::File) => {
                let dir = self.parent(&entry.path)?;
                let (open, _) = dir.open_read(entry.path.name())?;
                set_file_meta(&open, Some(entry.mode), None)?;
                Ok(None)
            }
            (Decision::Make(_) | Decision::Replace(_) | Decision::Beside, EntryKind::Symlink) => {
                self.link(entry, decision)?;
                Ok(None)
            }
            (Decision::Make(_) | Decision::Replace(_) | Decision::Beside, EntryKind::File) => {
                self.want(file, entry, decision).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Goes on in a folder that is there with this mode. One that we may not enter or write into,
    /// as an earlier run may have left it, is opened up meanwhile.
    fn enter(&mut self, entry: &Entry, decision: Decision, mode: u32) -> Result<Option<Want>> {
        if let Decision::Refuse(_) | Decision::Leave(_) = decision {
            return self.act(0, entry, decision);
        }
        if mode & 0o700 != 0o700 {
            let root = self.root.map(|root| root.dir(Some(&entry.path)));
            // Where it is not ours, what follows tells.
            if let Some(Ok(dir)) = root {
                let _ = dir.set_own_meta(Some(mode | 0o700), None);
            }
            // It is held as it could be opened before.
            self.root.iter().for_each(|root| root.forget(&entry.path));
        }
        self.note_folder(entry, Some(mode));
        Ok(None)
    }

    /// Remembers what a folder is to have in the end; `there` is the mode of one that was there.
    fn note_folder(&self, entry: &Entry, there: Option<u32>) {
        let preserve = self.terms.preserve;
        let opened_up = there.filter(|mode| mode & 0o700 != 0o700);
        let mode = match preserve.permissions {
            true => Some(entry.mode & 0o777),
            false => opened_up.map(|mode| mode & 0o777),
        };
        let mtime = preserve.times.then_some(entry.mtime);
        // A new folder is noted also when nothing is set: it has to reach the disk.
        if there.is_none() || mode.is_some() || mtime.is_some() {
            let meta = FolderMeta {
                path: entry.path.clone(),
                mode,
                mtime,
            };
            self.folders
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(meta);
        }
    }

    /// Makes a link under a temporary name and moves it into place.
    fn link(&mut self, entry: &Entry, decision: Decision) -> Result<()> {
        let dir = self.parent(&entry.path)?;
        let staging = self
            .staging
            .ok_or_else(|| Error::new(ErrorKind::Bug, "make a link", "no staging"))?;
        let target = entry.link.as_deref().unwrap_or_default();
        self.links += 1;
        let name = format!("link-{}", self.links);
        let part = Part {
            dir: staging.small[0].clone(),
            name: name.into_bytes(),
        };
        part.discard();
        part.dir.make_link(target, &part.name)?;
        if self.terms.preserve.times {
            part.dir.set_times(&part.name, entry.mtime)?;
        }
        let done = place(&part, &dir, entry.path.name(), decision).map(|_| ());
        let Err(error) = done else { return Ok(()) };
        part.discard();
        // Another run at the same time may have made it.
        let there = dir.read_link(entry.path.name());
        match error.kind {
            ErrorKind::Exists if there.is_ok_and(|there| there == target) => Ok(()),
            _ => Err(error),
        }
    }

    fn want(&mut self, file: u64, entry: &Entry, decision: Decision) -> Result<Want> {
        let staging = self
            .staging
            .ok_or_else(|| Error::new(ErrorKind::Bug, "take a file", "no staging"))?;
        let mut part = None;
        let mut blocks = Vec::new();
        if entry.size >= RESUMABLE {
            let large = Part {
                dir: staging.large.clone(),
                name: part_name(entry),
            };
            if self.terms.conflict == Conflict::Resume && matches!(decision, Decision::Replace(_)) {
                self.seed(entry, &large)?;
            }
            if let Some(open) = large.open()? {
                blocks = self.have(&open, entry.size)?;
            }
            part = Some(large);
        }
        self.expected.add(
            file,
            Expected {
                path: entry.path.clone(),
                decision,
                size: entry.size,
                mtime: entry.mtime,
                mode: entry.mode,
                kept: !blocks.is_empty(),
                part,
                attempt: AtomicU8::new(0),
            },
        );
        Ok(Want {
            file,
            attempt: 0,
            blocks,
        })
    }

    /// Starts a part from the file that is in place, so that what agrees is not sent.
    fn seed(&mut self, entry: &Entry, part: &Part) -> Result<()> {
        if part.open()?.is_some() {
            return Ok(());
        }
        let dir = self.parent(&entry.path)?;
        let (mut from, _) = dir.open_read(entry.path.name())?;
        let mut to = part.dir.create_part(&part.name)?;
        std::io::copy(&mut from, &mut to)
            .map_err(|e| Error::io("copy what is there already", &e))?;
        Ok(())
    }

    /// Digests the whole blocks of a part.
    fn have(&self, part: &std::fs::File, size: u64) -> Result<Vec<[u8; 32]>> {
        let len = part
            .metadata()
            .map_err(|e| Error::io("look at a part", &e))?
            .len()
            .min(size);
        let block = block_size(size);
        let mut blocks = Vec::new();
        let Some(mut chunk) = self.pool.take(self.abort) else {
            return Ok(blocks);
        };
        let mut offset = 0;
        while offset < len && !self.abort.is_stopped() {
            let step = block.min(size - offset);
            if offset + step > len {
                break;
            }
            match block_digest(part, offset, step, &mut chunk)? {
                Some(digest) => blocks.push(digest),
                None => break,
            }
            offset += step;
        }
        Ok(blocks)
    }
}

/// Names the part of a large file by what it is to become: another version of the file has another
/// part, and old and new are never spliced.
fn part_name(entry: &Entry) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(entry.path.as_bytes());
    hasher.update(&[0]);
    hasher.update(&entry.size.to_le_bytes());
    hasher.update(&entry.mtime.secs.to_le_bytes());
    hasher.update(&entry.mtime.nanos.to_le_bytes());
    hasher.finalize().to_hex()[..32].as_bytes().to_vec()
}

/// Gives a part its final name; returns the name where it had to be another one.
pub(crate) fn place(part: &Part, dir: &Dir, name: &[u8], decision: Decision) -> Result<Vec<u8>> {
    let appeared = |e: Error| match e.kind {
        ErrorKind::Exists => Error::new(
            ErrorKind::Exists,
            "give the file its name",
            "a file of that name appeared meanwhile and is left alone",
        )
        .hint("look at both, then run this again"),
        _ => e,
    };
    match decision {
        Decision::Replace(_) => part
            .dir
            .rename_to(&part.name, dir, name, Replace::Yes)
            .map(|()| Vec::new()),
        Decision::Beside => {
            for number in 1..10_000 {
                let other = crate::pump::name::numbered(name, number);
                match part.dir.rename_to(&part.name, dir, &other, Replace::No) {
                    Ok(()) => return Ok(other),
                    Err(e) if e.kind == ErrorKind::Exists => {}
                    Err(e) => return Err(e),
                }
            }
            Err(Error::new(
                ErrorKind::Exists,
                "find a free name",
                "10 000 of them are taken",
            ))
        }
        _ => part
            .dir
            .rename_to(&part.name, dir, name, Replace::No)
            .map(|()| Vec::new())
            .map_err(appeared),
    }
}

fn dry(file: u64, entry: &Entry, decision: Decision) -> Settled {
    let (action, reason) = decision.step();
    let sends = entry.kind == EntryKind::File && matches!(action, Action::Create | Action::Update);
    let verdict = Verdict::Unverified(String::new());
    Settled {
        file,
        action,
        reason,
        bytes: if sends { entry.size } else { 0 },
        verdict,
        name: Vec::new(),
    }
}

fn settled_at_once(entry: &Entry, decision: Decision) -> Verdict {
    let why = match (decision, entry.kind) {
        (Decision::Keep, EntryKind::File) => "the same already",
        (Decision::Touch(_), EntryKind::File) => "the same already; permissions were set",
        (Decision::Leave(Reason::Special), _) => "a pipe, socket or device",
        (Decision::Leave(Reason::Excluded), _) => "links are left out",
        (Decision::Leave(_), _) => "the one there is kept",
        _ => "",
    };
    Verdict::Skipped(why.to_owned())
}
