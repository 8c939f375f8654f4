//! The top folder of one side of a transfer: everything is resolved beneath it by the kernel.
//!
//! A root is opened once; from then on the descriptor counts and not the path, so that a link or
//! a mount that takes the path's place later changes nothing. Directories beneath are opened with
//! `openat2` (beneath, no links, no magic links), or step by step where the kernel is older, and
//! are kept open for the files that follow.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

pub use crate::fs::dir::{Dir, Replace};
use crate::fs::dir::{Opened, working_dir};
use crate::fs::failed;
pub use crate::fs::meta::MetaKept;
pub use crate::fs::stat::Stat;
use crate::fs::tree;
use crate::model::entry::EntryKind;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::relpath::RelPath;

/// The most directories that a root keeps open; fewer where the process may open few files.
const MOST_HELD: usize = 512;

/// Whether the kernel has `openat2`; found out by the first call.
static HAS_OPENAT2: AtomicBool = AtomicBool::new(true);

/// A folder, and the only way to what is beneath it.
#[derive(Debug)]
pub struct Root {
    top: Arc<Dir>,
    path: PathBuf,
    identity: (u64, u64),
    held: Mutex<Held>,
}

/// The directories that are kept open.
#[derive(Debug)]
struct Held {
    dirs: HashMap<RelPath, Slot>,
    /// Counts look-ups; tells which directory was not used for longest.
    clock: u64,
    /// Counts `forget`, so that what was opened before it is not kept after it.
    forgotten: u64,
    most: usize,
}

#[derive(Debug)]
struct Slot {
    dir: Arc<Dir>,
    used: u64,
}

impl Root {
    /// Opens an existing folder. A path that ends in a symbolic link is followed if the link
    /// belongs to us or to root; anybody else's could be turned to point anywhere.
    ///
    /// # Errors
    /// `NotFound`, `Denied`, or `Io` when it is not a folder.
    pub fn open(path: &Path) -> Result<Self> {
        let opened = open_top(path).map_err(|e| e.at(path))?;
        let identity = opened.stat_self().map_err(|e| e.at(path))?.identity();
        Ok(Self {
            top: Arc::new(opened),
            path: path.to_owned(),
            identity,
            held: Mutex::new(Held {
                dirs: HashMap::new(),
                clock: 0,
                forgotten: 0,
                most: most_held(),
            }),
        })
    }

    /// Makes the folder, and the ones above it, where they are missing, and opens it.
    ///
    /// # Errors
    /// As [`Root::open`].
    pub fn create(path: &Path) -> Result<Self> {
        match Self::open(path) {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            opened => return opened,
        }
        let above: Vec<&Path> = path.ancestors().collect();
        for part in above.into_iter().rev() {
            if part.as_os_str().is_empty() {
                continue;
            }
            match rustix::fs::mkdirat(working_dir(), part, Mode::from_bits_truncate(0o777)) {
                // Others make folders too; whether it is one shows when it is opened. Answers
                // such as "read-only" come before "exists" on some file systems.
                Ok(()) | Err(Errno::EXIST | Errno::ISDIR) => {}
                Err(_) if is_dir(part) => {}
                Err(errno) => return Err(failed("create the folder", errno).at(part)),
            }
        }
        Self::open(path)
    }

    /// Returns the path it was opened by, for messages only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns device and inode, by which a later run knows whether it is the same folder.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Checks that the path still leads to this folder: after an unmount the same path is an
    /// empty folder of another file system.
    ///
    /// # Errors
    /// `Io` when another folder is there, or what keeps us from looking.
    pub fn check_in_place(&self) -> Result<()> {
        const DOING: &str = "go on in the folder";
        let raw = rustix::fs::statat(working_dir(), &self.path, AtFlags::empty())
            .map_err(|e| failed(DOING, e).at(&*self.path))?;
        if Stat::from(raw).identity() == self.identity {
            return Ok(());
        }
        let cause = "another folder is in its place, as after an unmount";
        Err(Error::new(ErrorKind::Io, DOING, cause)
            .at(&*self.path)
            .hint("mount it again, then resume"))
    }

    /// Returns the folder itself.
    pub fn top(&self) -> Arc<Dir> {
        Arc::clone(&self.top)
    }

    /// Opens a directory beneath, or the top for `None`; the one used last is still open.
    ///
    /// # Errors
    /// `NotFound`; `Denied` when a link is in the way; `Io` when it is not a folder.
    pub fn dir(&self, path: Option<&RelPath>) -> Result<Arc<Dir>> {
        let Some(path) = path else {
            return Ok(self.top());
        };
        let forgotten = {
            let mut held = self.held();
            held.clock += 1;
            let now = held.clock;
            if let Some(slot) = held.dirs.get_mut(path) {
                slot.used = now;
                return Ok(Arc::clone(&slot.dir));
            }
            held.forgotten
        };
        let dir = Arc::new(self.open_beneath(path)?);
        let mut held = self.held();
        if held.forgotten == forgotten {
            held.keep(path, &dir);
        }
        Ok(dir)
    }

    /// Closes what is held of a directory and of everything below it. To be called after one
    /// was renamed, removed or replaced.
    pub fn forget(&self, path: &RelPath) {
        let mut held = self.held();
        held.forgotten += 1;
        let gone = path.as_bytes();
        held.dirs.retain(|kept, _| {
            let rest = kept.as_bytes().strip_prefix(gone);
            !rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        });
    }

    /// Makes a directory beneath, and the ones above it, where they are missing, and opens it.
    ///
    /// # Errors
    /// `Exists` when something else, also a link, has one of the names.
    pub fn make_dirs(&self, path: &RelPath) -> Result<Arc<Dir>> {
        let mut missing = Vec::new();
        let mut at = Some(path.clone());
        let mut dir = loop {
            match self.dir(at.as_ref()) {
                Ok(dir) => break dir,
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
            let Some(path) = at else {
                return Err(failed("create the folder", Errno::NOENT).at(&*self.path));
            };
            at = path.parent();
            missing.push(path);
        };
        while let Some(path) = missing.pop() {
            dir.make_dir(path.name(), 0o777)
                .map_err(|e| e.at(path.as_bytes()))?;
            dir = self.dir(Some(&path))?;
        }
        Ok(dir)
    }

    /// Waits until everything on the file system of the top is on the disk.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn sync_fs(&self) -> Result<()> {
        match rustix::fs::syncfs(&*self.top) {
            Ok(()) => Ok(()),
            // A folder that we may not list is held as a place only.
            Err(Errno::BADF) => {
                rustix::fs::sync();
                Ok(())
            }
            Err(errno) => Err(failed("write to the disk", errno).at(&*self.path)),
        }
    }

    /// Returns the bytes that we may still write there; `u64::MAX` when nobody can tell.
    pub fn free_bytes(&self) -> u64 {
        rustix::fs::fstatvfs(&*self.top).map_or(u64::MAX, |v| v.f_bavail.saturating_mul(v.f_frsize))
    }

    /// Opens a directory beneath for listing, with a description of its own.
    pub(super) fn open_to_list(&self, path: Option<&RelPath>) -> rustix::io::Result<OwnedFd> {
        match path {
            None => tree::open_to_list(&*self.top, b"."),
            Some(path) => tree::open_to_list(&resolve(&self.top, path)?, b"."),
        }
    }

    fn open_beneath(&self, path: &RelPath) -> Result<Dir> {
        let opened = match resolve(&self.top, path) {
            Err(Errno::MFILE | Errno::NFILE) => {
                // What we hold is only for speed.
                self.held().dirs.clear();
                resolve(&self.top, path)
            }
            opened => opened,
        };
        opened.map_err(|e| failed("open the folder", e).at(path.as_bytes()))
    }

    /// Opens as on a kernel without `openat2`.
    #[cfg(test)]
    pub(super) fn dir_by_steps(&self, path: &RelPath) -> Opened {
        resolve_by_steps(&self.top, path)
    }

    /// Returns how many directories are kept open.
    #[cfg(test)]
    pub(super) fn count_held(&self) -> usize {
        self.held().dirs.len()
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        // A panic elsewhere leaves at worst a directory that is held or not.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn keep(&mut self, path: &RelPath, dir: &Arc<Dir>) {
        if self.dirs.len() >= self.most {
            // The older half goes at once, so that this costs little on average.
            let mut ages: Vec<u64> = self.dirs.values().map(|slot| slot.used).collect();
            let middle = ages.len() / 2;
            let (_, limit, _) = ages.select_nth_unstable(middle);
            let limit = *limit;
            self.dirs.retain(|_, slot| slot.used > limit);
        }
        let slot = Slot {
            dir: Arc::clone(dir),
            used: self.clock,
        };
        self.dirs.insert(path.clone(), slot);
    }
}

/// Returns how many directories a root may keep open: a job has two roots, there may be several
/// jobs, and sockets and files need descriptors too.
fn most_held() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let share = limit.map_or(MOST_HELD, |n| usize::try_from(n / 16).unwrap_or(MOST_HELD));
    share.clamp(8, MOST_HELD)
}

/// Opens a directory beneath another one.
fn resolve(top: &Dir, path: &RelPath) -> Opened {
    if HAS_OPENAT2.load(Ordering::Relaxed) {
        match resolve_at_once(top, path) {
            // Sandboxes of some years ago answer PERM to calls they do not know.
            Err(Errno::NOSYS | Errno::PERM) => HAS_OPENAT2.store(false, Ordering::Relaxed),
            Err(Errno::NAMETOOLONG) => {}
            opened => return opened,
        }
    }
    resolve_by_steps(top, path)
}

fn resolve_at_once(top: &Dir, path: &RelPath) -> Opened {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // Without NOFOLLOW, which would hide a link at the end behind "not a directory".
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |access| {
        let mut opened = Err(Errno::AGAIN);
        // The kernel gives up with AGAIN when directories are renamed under its feet.
        for _ in 0..16 {
            let path = path.as_bytes();
            opened = rustix::fs::openat2(top, path, flags | access, Mode::empty(), how);
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        opened
    };
    match open(OFlags::RDONLY) {
        Err(Errno::ACCESS) => Ok(Dir::held(open(OFlags::PATH)?, false)),
        Err(errno) => Err(errno),
        Ok(fd) => Ok(Dir::held(fd, true)),
    }
}

/// Does by single steps, none of which follows a link, what `openat2` does at once.
fn resolve_by_steps(top: &Dir, path: &RelPath) -> Opened {
    let mut above: Option<OwnedFd> = None;
    let mut parts = path.components().peekable();
    while let Some(part) = parts.next() {
        let base = above.as_ref().map_or(top.as_fd(), OwnedFd::as_fd);
        if parts.peek().is_none() {
            return Dir::open_at(base, part).map_err(|e| link_or(e, base, part));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let next = rustix::fs::openat(base, part, flags, Mode::empty())
            .map_err(|e| link_or(e, base, part))?;
        above = Some(next);
    }
    // A RelPath has at least one component.
    Err(Errno::NOENT)
}

/// Says LOOP for a link, as `openat2` does, where the kernel says "not a directory".
fn link_or(errno: Errno, base: impl AsFd, name: &[u8]) -> Errno {
    let found = rustix::fs::statat(base, name, AtFlags::SYMLINK_NOFOLLOW).map(Stat::from);
    match (errno, found) {
        (Errno::NOTDIR, Ok(stat)) if stat.kind == EntryKind::Symlink => Errno::LOOP,
        _ => errno,
    }
}

fn is_dir(path: &Path) -> bool {
    rustix::fs::statat(working_dir(), path, AtFlags::empty())
        .is_ok_and(|raw| Stat::from(raw).kind == EntryKind::Dir)
}

const OPEN_TOP: &str = "open the folder";

/// Opens the folder that a person named.
fn open_top(path: &Path) -> Result<Dir> {
    // A slash or dot at the end would have the kernel follow a link before we see it.
    let path: PathBuf = path.components().collect();
    if path.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::Config, OPEN_TOP, "the path is empty"));
    }
    match Dir::open_at(working_dir(), &*path) {
        Err(Errno::LOOP | Errno::NOTDIR) => follow(path),
        opened => opened.map_err(|e| failed(OPEN_TOP, e)),
    }
}

/// Follows a path whose last component may be a link, checking who owns each such link.
fn follow(mut path: PathBuf) -> Result<Dir> {
    let doing = |e| failed(OPEN_TOP, e);
    let place = OFlags::PATH | OFlags::CLOEXEC;
    let mut base: Option<OwnedFd> = None;
    // As many as the kernel follows.
    for _ in 0..40 {
        let start = base.as_ref().map_or(working_dir(), OwnedFd::as_fd);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Dir::open_at(start, &*path).map_err(doing);
        };
        let parent = match parent.as_os_str().is_empty() {
            true => Path::new("."),
            false => parent,
        };
        let parent = rustix::fs::openat(start, parent, place | OFlags::DIRECTORY, Mode::empty())
            .map_err(doing)?;
        let item = rustix::fs::openat(&parent, name, place | OFlags::NOFOLLOW, Mode::empty())
            .map_err(doing)?;
        let stat = Stat::from(rustix::fs::fstat(&item).map_err(doing)?);
        match stat.kind {
            EntryKind::Dir => return Dir::open_at(&parent, name).map_err(doing),
            EntryKind::Symlink => {}
            EntryKind::File | EntryKind::Special => return Err(doing(Errno::NOTDIR)),
        }
        if stat.uid != 0 && stat.uid != rustix::process::geteuid().as_raw() {
            let cause = format!(
                "it is a symbolic link that belongs to another user (number {}), who could turn \
                 it elsewhere",
                stat.uid
            );
            return Err(Error::new(ErrorKind::Denied, OPEN_TOP, cause)
                .hint("name the folder that the link points to"));
        }
        let target = rustix::fs::readlinkat(&item, "", Vec::new()).map_err(doing)?;
        let target = Path::new(OsStr::from_bytes(target.as_bytes()));
        path = target.components().collect();
        base = Some(parent);
    }
    let cause = "symbolic links point at each other in a circle";
    Err(Error::new(ErrorKind::Io, OPEN_TOP, cause))
}
