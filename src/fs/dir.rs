//! A directory held by its descriptor: every operation names one entry directly inside it.
//!
//! Names given to these methods are single checked components, as `RelPath` hands them out.
//! Errors come without a place: the caller knows the whole path and adds it with `.at(...)`.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use crate::fs::failed;
use crate::fs::meta::{MetaKept, soft, timestamps};
use crate::fs::stat::{Stat, words};
use crate::fs::tree;
use crate::model::entry::{EntryKind, FileTime};
use crate::model::error::{Error, ErrorKind, Result};

/// How long a file that a file server has lent out is waited for.
const LENT: Duration = Duration::from_secs(3);

/// What a rename does with something that has the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    /// It is replaced in one step.
    Yes,
    /// The rename fails with `Exists`.
    No,
}

/// An open directory.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    /// Directories that we may enter but not list can only be held as a place.
    listable: bool,
}

impl Dir {
    /// Opens a directory relative to another one, its last component not followed.
    pub(super) fn open_at(base: impl AsFd, path: impl rustix::path::Arg + Copy) -> Opened {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&base, path, flags | OFlags::RDONLY, Mode::empty()) {
            Err(Errno::ACCESS) => {
                let fd = rustix::fs::openat(&base, path, flags | OFlags::PATH, Mode::empty())?;
                Ok(Self::held(fd, false))
            }
            Err(errno) => Err(errno),
            Ok(fd) => Ok(Self::held(fd, true)),
        }
    }

    /// Wraps a descriptor that is known to be a directory.
    pub(super) fn held(fd: OwnedFd, listable: bool) -> Self {
        Self { fd, listable }
    }

    /// Opens a regular file for reading and returns it with its attributes. Never follows a
    /// link, and waits for nobody but a file server that has lent the file out, 3 s at most.
    ///
    /// # Errors
    /// `Denied` for a link, `Unsupported` for anything else that is not a regular file.
    pub fn open_read(&self, name: &[u8]) -> Result<(File, Stat)> {
        check(name);
        const DOING: &str = "open the file";
        let fd = open_soon(&self.fd, name, OFlags::RDONLY).map_err(|e| failed(DOING, e))?;
        let stat = Stat::from(rustix::fs::fstat(&fd).map_err(|e| failed(DOING, e))?);
        regular(DOING, &stat)?;
        Ok((File::from(fd), stat))
    }

    /// Returns the attributes of an entry, not following it; `None` when there is none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn stat(&self, name: &[u8]) -> Result<Option<Stat>> {
        check(name);
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(raw) => Ok(Some(raw.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(failed("look at the file", errno)),
        }
    }

    /// Returns the directory's own attributes.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn stat_self(&self) -> Result<Stat> {
        match rustix::fs::fstat(&self.fd) {
            Ok(raw) => Ok(raw.into()),
            Err(errno) => Err(failed("look at the folder", errno)),
        }
    }

    /// Returns where a symbolic link points, bytes as stored.
    ///
    /// # Errors
    /// `Io` when it is not a link.
    pub fn read_link(&self, name: &[u8]) -> Result<Vec<u8>> {
        check(name);
        match rustix::fs::readlinkat(&self.fd, name, Vec::new()) {
            Ok(target) => Ok(target.into_bytes()),
            Err(errno) => Err(failed("read the symbolic link", errno)),
        }
    }

    /// Makes a file that only we can open, and fails if anything has that name, also a link.
    ///
    /// # Errors
    /// `Exists`, or those of the file system.
    pub fn create_part(&self, name: &[u8]) -> Result<File> {
        check(name);
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.fd, name, flags, Mode::from_bits_truncate(0o600))
            .map(File::from)
            .map_err(|e| failed("create the file", e))
    }

    /// Opens a part that an earlier run left; `None` when there is none.
    ///
    /// # Errors
    /// `Denied` for a link or a file with a second name (writing would change that too),
    /// `Unsupported` for anything else that is not a regular file.
    pub fn open_part(&self, name: &[u8]) -> Result<Option<File>> {
        check(name);
        const DOING: &str = "open the unfinished file";
        let fd = match open_soon(&self.fd, name, OFlags::RDWR) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(failed(DOING, errno)),
        };
        let stat = Stat::from(rustix::fs::fstat(&fd).map_err(|e| failed(DOING, e))?);
        regular(DOING, &stat)?;
        if stat.nlink > 1 {
            let cause = "it has a second name elsewhere, whose contents would change too";
            return Err(Error::new(ErrorKind::Denied, DOING, cause));
        }
        Ok(Some(File::from(fd)))
    }

    /// Makes a folder with these permissions less the umask; returns `false` when a folder is
    /// there already.
    ///
    /// # Errors
    /// `Exists` when something else has the name, also a link to a folder.
    pub fn make_dir(&self, name: &[u8], mode: u32) -> Result<bool> {
        check(name);
        const DOING: &str = "create the folder";
        let mode = Mode::from_bits_truncate(mode & 0o777);
        match rustix::fs::mkdirat(&self.fd, name, mode) {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => match self.stat(name)? {
                Some(stat) if stat.kind == EntryKind::Dir => Ok(false),
                Some(stat) => {
                    let cause = format!("{} with that name is there", words(stat.kind));
                    Err(Error::new(ErrorKind::Exists, DOING, cause))
                }
                None => Err(failed(DOING, Errno::EXIST)),
            },
            Err(errno) => Err(failed(DOING, errno)),
        }
    }

    /// Makes a symbolic link; where it points is stored as given and never looked at.
    ///
    /// # Errors
    /// `Exists`, or those of the file system.
    pub fn make_link(&self, target: &[u8], name: &[u8]) -> Result<()> {
        check(name);
        rustix::fs::symlinkat(target, &self.fd, name)
            .map_err(|e| failed("create the symbolic link", e))
    }

    /// Gives an entry another name in this or another directory, in one step.
    ///
    /// # Errors
    /// `Exists` when something has the new name and may not be replaced.
    pub fn rename_to(
        &self,
        name: &[u8],
        to: &Self,
        new_name: &[u8],
        replace: Replace,
    ) -> Result<()> {
        check(name);
        check(new_name);
        let done = match replace {
            Replace::Yes => rustix::fs::renameat(&self.fd, name, &to.fd, new_name),
            Replace::No => {
                let flags = RenameFlags::NOREPLACE;
                match rustix::fs::renameat_with(&self.fd, name, &to.fd, new_name, flags) {
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                        self.rename_without_flag(name, to, new_name)
                    }
                    done => done,
                }
            }
        };
        done.map_err(|e| failed("give the file its name", e))
    }

    /// Renames without replacing where the file system has no such call: by a second name for
    /// the same file, or, where it has no second names either, after a look. In that last case
    /// a name that appears between look and rename is replaced; no call exists that would not.
    pub(super) fn rename_without_flag(
        &self,
        name: &[u8],
        to: &Self,
        new_name: &[u8],
    ) -> rustix::io::Result<()> {
        match rustix::fs::linkat(&self.fd, name, &to.fd, new_name, AtFlags::empty()) {
            Ok(()) => rustix::fs::unlinkat(&self.fd, name, AtFlags::empty()),
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK | Errno::INVAL) => {
                match rustix::fs::statat(&to.fd, new_name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST),
                    Err(Errno::NOENT) => rustix::fs::renameat(&self.fd, name, &to.fd, new_name),
                    Err(errno) => Err(errno),
                }
            }
            Err(errno) => Err(errno),
        }
    }

    /// Removes anything but a folder.
    ///
    /// # Errors
    /// `NotFound`, or those of the file system.
    pub fn remove_file(&self, name: &[u8]) -> Result<()> {
        check(name);
        rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())
            .map_err(|e| failed("remove the file", e))
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// `NotFound`, or those of the file system, also when it is not empty.
    pub fn remove_dir(&self, name: &[u8]) -> Result<()> {
        check(name);
        rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)
            .map_err(|e| failed("remove the folder", e))
    }

    /// Removes an entry with everything below it; links below it are removed, not followed.
    ///
    /// # Errors
    /// The first failure; what was removed until then stays removed.
    pub fn remove_tree(&self, name: &[u8]) -> Result<()> {
        check(name);
        tree::remove(self.fd.as_fd(), name).map_err(|e| failed("remove the folder", e))
    }

    /// Sets the modification time of an entry, of a link itself. Returns `false` where the file
    /// system does not keep it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn set_times(&self, name: &[u8], mtime: FileTime) -> Result<bool> {
        check(name);
        let times = timestamps(mtime);
        let done = rustix::fs::utimensat(&self.fd, name, &times, AtFlags::SYMLINK_NOFOLLOW);
        soft(done).map_err(|e| failed("set the modification time", e))
    }

    /// Waits until the names in this directory are on the disk.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn sync(&self) -> Result<()> {
        if !self.listable {
            // The descriptor is only a place; nothing smaller reaches this directory.
            rustix::fs::sync();
            return Ok(());
        }
        match rustix::fs::fsync(&self.fd) {
            // Some network and FUSE file systems have no such call for directories.
            Ok(()) | Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
            Err(errno) => Err(failed("write the folder to the disk", errno)),
        }
    }

    /// Sets the directory's own permissions and modification time. Bits above 0o777 that it
    /// has stay, since a shared folder's "set group" is inherited and belongs to the place.
    ///
    /// # Errors
    /// Those of the file system; one that does not keep them is told in the result instead.
    pub fn set_own_meta(&self, mode: Option<u32>, mtime: Option<FileTime>) -> Result<MetaKept> {
        let mut kept = MetaKept {
            times: true,
            mode: true,
        };
        if let Some(mtime) = mtime {
            let times = timestamps(mtime);
            let done = if self.listable {
                rustix::fs::futimens(&self.fd, &times)
            } else {
                rustix::fs::utimensat(CWD, self.by_descriptor(), &times, AtFlags::empty())
            };
            kept.times = soft(done).map_err(|e| failed("set the folder's time", e))?;
        }
        if let Some(mode) = mode {
            let special = self.stat_self()?.mode & 0o7000;
            let mode = Mode::from_bits_truncate(special | (mode & 0o777));
            let done = if self.listable {
                rustix::fs::fchmod(&self.fd, mode)
            } else {
                rustix::fs::chmodat(CWD, self.by_descriptor(), mode, AtFlags::empty())
            };
            kept.mode = soft(done).map_err(|e| failed("set the folder's permissions", e))?;
        }
        Ok(kept)
    }

    /// Returns a name of the directory itself, for calls that do not take a place. Its own `.`
    /// could be used only by those who may enter it.
    fn by_descriptor(&self) -> String {
        format!("/proc/self/fd/{}", self.fd.as_raw_fd())
    }

    /// Returns the names in this directory with their kinds where the file system tells them,
    /// in no order, without `.` and `..`.
    ///
    /// # Errors
    /// `Denied` when we may not list it.
    pub fn list(&self) -> Result<Vec<(Vec<u8>, Option<EntryKind>)>> {
        const DOING: &str = "list the folder";
        // A description of its own, since the place in a listing belongs to the description.
        let fd = tree::open_to_list(&self.fd, b".").map_err(|e| failed(DOING, e))?;
        let (names, error) = tree::names(&fd);
        match error {
            Some(errno) => Err(failed(DOING, errno)),
            None => Ok(names.iter().map(|(n, kind)| (n.to_vec(), kind)).collect()),
        }
    }
}

/// What opening gives, before it has a sentence.
pub(super) type Opened = rustix::io::Result<Dir>;

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens the working directory of this process, for paths that a person typed.
pub(super) fn working_dir() -> BorrowedFd<'static> {
    CWD
}

/// Opens an existing file without following a link and without waiting for the other end of a
/// FIFO that took the file's place since it was listed.
///
/// That way of opening fails at once also while a file server (Samba, NFS) has lent the file to
/// one of its clients; the attempt itself makes it ask for it back, so some more follow.
fn open_soon(dir: &OwnedFd, name: &[u8], access: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let start = Instant::now();
    loop {
        match rustix::fs::openat(dir, name, flags, Mode::empty()) {
            Err(Errno::AGAIN) if start.elapsed() < LENT => {
                std::thread::sleep(Duration::from_millis(10));
            }
            opened => return opened,
        }
    }
}

/// Catches a path given as a name while developing; `RelPath` hands out no such names.
fn check(name: &[u8]) {
    debug_assert!(
        !name.is_empty() && !name.contains(&b'/') && name != b"." && name != b"..",
        "not one name: {name:?}"
    );
}

/// Refuses what is not a regular file.
fn regular(doing: &str, stat: &Stat) -> Result<()> {
    if stat.kind == EntryKind::File {
        return Ok(());
    }
    let cause = format!("it is {}, not a regular file", words(stat.kind));
    Err(Error::new(ErrorKind::Unsupported, doing, cause))
}
