//! Lists a tree as a stream: parents before what is in them, sorted, nothing followed or opened.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::fs::failed;
use crate::fs::filter::Filter;
use crate::fs::root::Root;
use crate::fs::stat::Stat;
use crate::fs::tree::{self, MOST_OPEN, Names};
use crate::model::entry::{Entry, EntryKind};
use crate::model::error::{Error, ErrorKind};
use crate::model::relpath::RelPath;

/// What a walk comes across.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The root itself, under the prefix as its name: told first when there is a prefix and the
    /// walk starts at the root. It has no path below the root.
    Top {
        /// The folder; its path is the prefix.
        entry: Entry,
        /// The file system it is on.
        dev: u64,
        /// Its number there.
        ino: u64,
    },
    /// Something in the tree.
    Entry {
        /// What it is; its path begins with the prefix.
        entry: Entry,
        /// Where it is below the root, without the prefix; for opening it.
        real: RelPath,
        /// The file system it is on.
        dev: u64,
        /// Its number there; with `dev` it tells whether what is opened later is the same.
        ino: u64,
    },
    /// A rule leaves it out, with all that is in it.
    Excluded {
        /// Its path with the prefix.
        path: RelPath,
    },
    /// It could not be looked at or entered; the walk goes on. A folder that cannot be listed is
    /// told as an entry before.
    Failed {
        /// Its path with the prefix; more than a `RelPath` holds where that was the failure.
        path: Vec<u8>,
        /// Why; `NotFound` when it vanished meanwhile.
        error: Error,
    },
}

/// An iterator over a tree, depth first, each folder's names in the order of their bytes.
///
/// Memory follows the depth and the folders on the way down, not the tree. Other file systems
/// mounted below are entered, links never are. Dropping it ends the walk.
#[derive(Debug)]
pub struct Walk {
    root: Arc<Root>,
    filter: Filter,
    prefix: Vec<u8>,
    /// Where to begin; `None` once that is done.
    start: Option<Start>,
    /// The folders on the way from the start to here.
    levels: Vec<Level>,
    /// The path of the last level's folder below the root; empty for the root.
    here: Vec<u8>,
    /// What is told before going on.
    later: Option<Found>,
}

#[derive(Debug)]
enum Start {
    Top,
    At(RelPath),
}

#[derive(Debug)]
struct Level {
    /// `None` while too many are open.
    fd: Option<OwnedFd>,
    identity: (u64, u64),
    names: Names,
    next: usize,
    /// How much of `here` belongs to the folder above.
    above: usize,
}

/// What one look gave, and, for a folder to enter, what opening it gave.
struct Looked {
    found: Found,
    below: Option<rustix::io::Result<OwnedFd>>,
}

impl Walk {
    /// Starts at the root, or at one thing below it, which is then told first. Paths are told
    /// relative to the root, with the prefix before them; the filter is asked for those.
    pub fn new(
        root: Arc<Root>,
        start: Option<RelPath>,
        filter: Filter,
        prefix: Option<RelPath>,
    ) -> Self {
        Self {
            root,
            filter,
            prefix: prefix.map_or_else(Vec::new, |p| p.as_bytes().to_vec()),
            start: Some(start.map_or(Start::Top, Start::At)),
            levels: Vec::new(),
            here: Vec::new(),
            later: None,
        }
    }

    /// Returns the path to tell for one below the root.
    fn told(&self, real: &[u8]) -> Vec<u8> {
        let mut path = Vec::with_capacity(self.prefix.len() + 1 + real.len());
        path.extend_from_slice(&self.prefix);
        if !self.prefix.is_empty() && !real.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(real);
        path
    }

    fn failure(&self, real: &[u8], error: Error) -> Found {
        let path = self.told(real);
        let error = error.at(&path[..]);
        Found::Failed { path, error }
    }

    fn begin(&mut self, start: Start) -> Option<Found> {
        match start {
            Start::Top => match self.top() {
                Some(found @ Found::Top { .. }) => {
                    self.enter(self.root.open_to_list(None), Vec::new());
                    Some(found)
                }
                None => {
                    self.enter(self.root.open_to_list(None), Vec::new());
                    None
                }
                stopped => stopped,
            },
            Start::At(start) => {
                let looked = match self.root.dir(start.parent().as_ref()) {
                    Ok(parent) => self.look(parent.as_fd(), start.as_bytes(), start.name(), None),
                    Err(error) => return Some(self.failure(start.as_bytes(), error)),
                };
                Some(self.take(looked, start.as_bytes().to_vec()))
            }
        }
    }

    /// Tells of the root itself, if it has a name.
    fn top(&self) -> Option<Found> {
        if self.prefix.is_empty() {
            return None;
        }
        let path = match RelPath::new(&self.prefix[..]) {
            Ok(path) => path,
            Err(error) => return Some(self.failure(b"", error)),
        };
        if self.filter.excludes(&self.prefix, true) {
            return Some(Found::Excluded { path });
        }
        Some(match self.root.top().stat_self() {
            Err(error) => self.failure(b"", error),
            Ok(stat) => Found::Top {
                entry: entry_of(path, &stat, None),
                dev: stat.dev,
                ino: stat.ino,
            },
        })
    }

    /// Looks at one name in an open folder.
    fn look(
        &self,
        dir: BorrowedFd<'_>,
        real: &[u8],
        name: &[u8],
        listed: Option<EntryKind>,
    ) -> Looked {
        match self.try_look(dir, real, name, listed) {
            Ok(looked) => looked,
            Err(error) => Looked {
                found: self.failure(real, error),
                below: None,
            },
        }
    }

    fn try_look(
        &self,
        dir: BorrowedFd<'_>,
        real: &[u8],
        name: &[u8],
        listed: Option<EntryKind>,
    ) -> Result<Looked, Error> {
        const DOING: &str = "look at the file";
        let too_long = |e: Error| Error::new(ErrorKind::Unsupported, DOING, e.cause);
        let path = RelPath::new(self.told(real)).map_err(too_long)?;
        let real = RelPath::new(real).map_err(too_long)?;
        let excluded = |kind| {
            self.filter
                .excludes(path.as_bytes(), kind == EntryKind::Dir)
        };
        if listed.is_some_and(excluded) {
            return Ok(Looked::only(Found::Excluded { path }));
        }
        let raw = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let stat = Stat::from(raw.map_err(|e| failed(DOING, e))?);
        if listed != Some(stat.kind) && excluded(stat.kind) {
            return Ok(Looked::only(Found::Excluded { path }));
        }
        let mut link = None;
        if stat.kind == EntryKind::Symlink {
            let target = rustix::fs::readlinkat(dir, name, Vec::new())
                .map_err(|e| failed("read the symbolic link", e))?;
            link = Some(target.into_bytes());
        }
        let below = (stat.kind == EntryKind::Dir).then(|| tree::open_to_list(dir, name));
        let found = Found::Entry {
            entry: entry_of(path, &stat, link),
            real,
            dev: stat.dev,
            ino: stat.ino,
        };
        Ok(Looked { found, below })
    }

    /// Enters the folder that was found, if it is one, and returns what was found.
    fn take(&mut self, looked: Looked, real: Vec<u8>) -> Found {
        if let Some(opened) = looked.below {
            self.enter(opened, real);
        }
        looked.found
    }

    /// Reads the names of a folder and goes on in it; a failure is told next.
    fn enter(&mut self, opened: rustix::io::Result<OwnedFd>, real: Vec<u8>) {
        let fd = match opened {
            Ok(fd) => fd,
            Err(errno) => return self.fail_later(&real, errno),
        };
        let identity = match rustix::fs::fstat(&fd) {
            Ok(raw) => Stat::from(raw).identity(),
            Err(errno) => return self.fail_later(&real, errno),
        };
        if self.levels.iter().any(|level| level.identity == identity) {
            // A folder mounted inside itself.
            return self.fail_later(&real, Errno::LOOP);
        }
        let (mut names, error) = tree::names(&fd);
        if let Some(errno) = error {
            self.fail_later(&real, errno);
        }
        names.sort();
        self.levels.push(Level {
            fd: Some(fd),
            identity,
            names,
            next: 0,
            above: self.here.len(),
        });
        self.here = real;
        if self.levels.len() > MOST_OPEN {
            let far = self.levels.len() - MOST_OPEN - 1;
            self.levels[far].fd = None;
        }
    }

    fn fail_later(&mut self, real: &[u8], errno: Errno) {
        const DOING: &str = "list the folder";
        let error = match errno {
            Errno::LOOP => Error::new(ErrorKind::Io, DOING, "it is mounted inside itself"),
            errno => failed(DOING, errno),
        };
        self.later = Some(self.failure(real, error));
    }

    /// Opens the folder of the last level again after it was closed for others.
    fn reopen(&mut self) -> Result<(), Error> {
        const DOING: &str = "go on in the folder";
        let Some(level) = self.levels.last_mut() else {
            return Ok(());
        };
        if level.fd.is_some() {
            return Ok(());
        }
        let path = match self.here.is_empty() {
            true => None,
            false => Some(RelPath::new(&self.here[..])?),
        };
        let fd = self
            .root
            .open_to_list(path.as_ref())
            .map_err(|e| failed(DOING, e))?;
        let stat = Stat::from(rustix::fs::fstat(&fd).map_err(|e| failed(DOING, e))?);
        if stat.identity() != level.identity {
            let cause = "another folder took its place while it was read";
            return Err(Error::new(ErrorKind::SourceChanged, DOING, cause));
        }
        level.fd = Some(fd);
        Ok(())
    }

    /// Leaves the last level.
    fn leave(&mut self) {
        if let Some(level) = self.levels.pop() {
            self.here.truncate(level.above);
        }
    }
}

impl Iterator for Walk {
    type Item = Found;

    fn next(&mut self) -> Option<Found> {
        if let Some(start) = self.start.take() {
            let found = self.begin(start);
            if found.is_some() {
                return found;
            }
        }
        loop {
            if let Some(found) = self.later.take() {
                return Some(found);
            }
            let level = self.levels.last()?;
            if level.next == level.names.len() {
                self.leave();
                continue;
            }
            if let Err(error) = self.reopen() {
                let found = self.failure(&self.here, error);
                self.leave();
                return Some(found);
            }
            let level = self.levels.last()?;
            let (name, kind) = level.names.get(level.next)?;
            let fd = level.fd.as_ref()?;
            let mut real = Vec::with_capacity(self.here.len() + 1 + name.len());
            if !self.here.is_empty() {
                real.extend_from_slice(&self.here);
                real.push(b'/');
            }
            real.extend_from_slice(name);
            let looked = self.look(fd.as_fd(), &real, name, kind);
            self.levels.last_mut()?.next += 1;
            return Some(self.take(looked, real));
        }
    }
}

impl Looked {
    fn only(found: Found) -> Self {
        Self { found, below: None }
    }
}

/// Makes the entry that is told for what the kernel said.
fn entry_of(path: RelPath, stat: &Stat, link: Option<Vec<u8>>) -> Entry {
    Entry {
        path,
        kind: stat.kind,
        size: if stat.kind == EntryKind::File {
            stat.size
        } else {
            0
        },
        mtime: stat.mtime,
        mode: stat.mode,
        link,
    }
}
