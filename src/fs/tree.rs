//! Reading one directory into memory, and removing a whole one without following anything.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use crate::fs::stat::{Stat, listed_kind};
use crate::model::entry::EntryKind;

/// How many directories of one path are held open at a time.
pub(super) const MOST_OPEN: usize = 64;

/// Room for one answer of the kernel with names; some hundreds of entries.
const BATCH: usize = 32 * 1024;

/// The names in one directory, packed: a directory of a million files costs some 30 MB.
#[derive(Debug, Default)]
pub(super) struct Names {
    bytes: Vec<u8>,
    index: Vec<Slot>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    start: u32,
    len: u16,
    kind: Option<EntryKind>,
}

impl Names {
    /// Returns how many there are.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns one; `None` past the end.
    pub(super) fn get(&self, at: usize) -> Option<(&[u8], Option<EntryKind>)> {
        let slot = self.index.get(at)?;
        Some((self.name(*slot), slot.kind))
    }

    /// Goes through all.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u8], Option<EntryKind>)> {
        self.index.iter().map(|slot| (self.name(*slot), slot.kind))
    }

    /// Sorts by bytes.
    pub(super) fn sort(&mut self) {
        let bytes = &self.bytes;
        self.index
            .sort_unstable_by(|a, b| slice(bytes, *a).cmp(slice(bytes, *b)));
    }

    /// Returns the bytes of memory that they take.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.bytes.capacity() + self.index.capacity() * size_of::<Slot>()
    }

    fn name(&self, slot: Slot) -> &[u8] {
        slice(&self.bytes, slot)
    }

    fn push(&mut self, name: &[u8], kind: Option<EntryKind>) -> Result<(), Errno> {
        let start = u32::try_from(self.bytes.len()).map_err(|_| Errno::OVERFLOW)?;
        let len = u16::try_from(name.len()).map_err(|_| Errno::NAMETOOLONG)?;
        self.bytes.extend_from_slice(name);
        self.index.push(Slot { start, len, kind });
        Ok(())
    }
}

fn slice(bytes: &[u8], slot: Slot) -> &[u8] {
    &bytes[slot.start as usize..][..usize::from(slot.len)]
}

/// Opens a directory inside another one for listing, never following a link.
pub(super) fn open_to_list(base: impl AsFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(base, name, flags, Mode::empty())
}

/// Reads the names of a directory that was just opened; after an error part of them.
pub(super) fn names(fd: &OwnedFd) -> (Names, Option<Errno>) {
    let mut names = Names::default();
    let mut buffer = Vec::with_capacity(BATCH);
    let mut entries = RawDir::new(fd, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(errno) => return (names, Some(errno)),
        };
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        // A user-space file system may answer anything; a slash would lead elsewhere.
        if name.is_empty() || name.contains(&b'/') {
            return (names, Some(Errno::IO));
        }
        if let Err(errno) = names.push(name, listed_kind(entry.file_type())) {
            return (names, Some(errno));
        }
    }
    (names, None)
}

/// One directory on the way down.
struct Level {
    fd: Option<OwnedFd>,
    identity: (u64, u64),
    name: Vec<u8>,
    names: Names,
    next: usize,
}

/// Removes `name` and what is below it.
///
/// Goes down by descriptors, [`MOST_OPEN`] at most; the way back up over a closed one is `..`,
/// and only when it is the directory that we came from.
pub(super) fn remove(base: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    if !is_dir(base, name, None)? {
        return rustix::fs::unlinkat(base, name, AtFlags::empty());
    }
    let mut levels = vec![enter(base, name)?];
    while let Some(level) = levels.last_mut() {
        let fd = level.fd.as_ref().ok_or(Errno::BADF)?;
        if let Some((name, kind)) = level.names.get(level.next) {
            level.next += 1;
            if is_dir(fd.as_fd(), name, kind)? {
                let below = enter(fd.as_fd(), name)?;
                levels.push(below);
                if levels.len() > MOST_OPEN {
                    let far = levels.len() - MOST_OPEN - 1;
                    levels[far].fd = None;
                }
            } else {
                unlink(fd, name, AtFlags::empty())?;
            }
            continue;
        }
        let Some(done) = levels.pop() else { break };
        match levels.last_mut() {
            None => rustix::fs::unlinkat(base, &done.name[..], AtFlags::REMOVEDIR)?,
            Some(above) => {
                if above.fd.is_none() {
                    let below = done.fd.as_ref().ok_or(Errno::BADF)?;
                    let up = open_to_list(below, b"..")?;
                    if Stat::from(rustix::fs::fstat(&up)?).identity() != above.identity {
                        // Somebody moved it while we were inside.
                        return Err(Errno::STALE);
                    }
                    above.fd = Some(up);
                }
                let fd = above.fd.as_ref().ok_or(Errno::BADF)?;
                unlink(fd, &done.name, AtFlags::REMOVEDIR)?;
            }
        }
    }
    Ok(())
}

fn is_dir(base: BorrowedFd<'_>, name: &[u8], kind: Option<EntryKind>) -> Result<bool, Errno> {
    if let Some(kind) = kind {
        return Ok(kind == EntryKind::Dir);
    }
    let raw = rustix::fs::statat(base, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(raw.st_mode) == FileType::Directory)
}

fn enter(base: BorrowedFd<'_>, name: &[u8]) -> Result<Level, Errno> {
    let fd = open_to_list(base, name)?;
    let identity = Stat::from(rustix::fs::fstat(&fd)?).identity();
    let (names, error) = names(&fd);
    match error {
        Some(errno) => Err(errno),
        None => Ok(Level {
            fd: Some(fd),
            identity,
            name: name.to_vec(),
            names,
            next: 0,
        }),
    }
}

/// Removes one entry; a folder of ours that forbids it is made to allow it, as `rm` asks and
/// rsync does. What is gone already is fine.
fn unlink(dir: &OwnedFd, name: &[u8], flags: AtFlags) -> Result<(), Errno> {
    match rustix::fs::unlinkat(dir, name, flags) {
        Err(Errno::ACCESS) => {
            let mode = Mode::from_raw_mode(rustix::fs::fstat(dir)?.st_mode) | Mode::RWXU;
            rustix::fs::fchmod(dir, mode).map_err(|_| Errno::ACCESS)?;
            rustix::fs::unlinkat(dir, name, flags)
        }
        Err(Errno::NOENT) => Ok(()),
        done => done,
    }
}
