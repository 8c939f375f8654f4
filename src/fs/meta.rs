//! One open file: its mode and times, its room on the disk, and when its bytes are safe.

use std::fs::File;

use rustix::fs::{Advice, FallocateFlags, Mode, Timespec, Timestamps, UTIME_OMIT};
use rustix::io::Errno;

use crate::fs::failed;
use crate::model::entry::FileTime;
use crate::model::error::Result;

/// Which attributes the file system took. FAT, exFAT and some network shares keep no modes or
/// refuse times; the contents are whole all the same, so that is a note and not a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaKept {
    /// The modification time was set, or none was asked for.
    pub times: bool,
    /// The permission bits were set, or none were asked for.
    pub mode: bool,
}

impl MetaKept {
    /// Says whether everything that was asked for was set.
    pub fn all(self) -> bool {
        self.times && self.mode
    }
}

/// Sets permission bits (only 0o777 of them) and modification time of an open file.
///
/// # Errors
/// Those of the disk; a file system that does not keep them is told in the result instead.
pub fn set_file_meta(file: &File, mode: Option<u32>, mtime: Option<FileTime>) -> Result<MetaKept> {
    let mut kept = MetaKept {
        times: true,
        mode: true,
    };
    if let Some(mtime) = mtime {
        let done = rustix::fs::futimens(file, &timestamps(mtime));
        kept.times = soft(done).map_err(|e| failed("set the modification time", e))?;
    }
    if let Some(mode) = mode {
        let done = rustix::fs::fchmod(file, Mode::from_bits_truncate(mode & 0o777));
        kept.mode = soft(done).map_err(|e| failed("set the permissions", e))?;
    }
    Ok(kept)
}

/// Turns "this file system does not do that" into `false`.
pub(super) fn soft(done: rustix::io::Result<()>) -> rustix::io::Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(false),
        Err(errno) => Err(errno),
    }
}

/// Returns the pair for the kernel: this modification time, access time left as it is.
///
/// Seconds beyond what a file system holds are clamped by the kernel. Nanoseconds are clamped
/// here: some values above a billion are orders ("now", "leave it") and not times.
pub(super) fn timestamps(mtime: FileTime) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime.secs,
            tv_nsec: mtime.nanos.min(999_999_999).into(),
        },
    }
}

/// Waits until the bytes of a file are on the disk, as far as the disk tells the truth.
///
/// After a failure the file has to be written again from the start: a second call returns
/// success without having written what the first one lost.
///
/// # Errors
/// Those of the disk, also ones of earlier writes.
pub fn sync_data(file: &File) -> Result<()> {
    rustix::fs::fdatasync(file).map_err(|e| failed("write the file to the disk", e))
}

/// Drops a file's bytes from memory, so that the next read comes from the disk. Bytes that are
/// not yet on the disk stay: call [`sync_data`] before. Best effort.
pub fn drop_cache(file: &File) {
    // Refused only by files without pages, where there is nothing to drop.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

/// Tells the kernel that a file is read from start to end. Best effort.
pub fn advise_sequential(file: &File) {
    // A hint; reading works without it.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Sequential);
}

/// The type of a file system in memory (`statfs(2)`).
const TMPFS: rustix::fs::FsWord = 0x0102_1994;

/// Gives a file its length and its room on the disk at once, which keeps large files in few
/// pieces. Returns whether that was done: not for a length above the free space (a peer may
/// claim any length), not where the file system cannot, and not in memory, where there are no
/// pieces and every page would be cleared before it is written.
pub fn preallocate(file: &File, len: u64) -> bool {
    if len == 0 || i64::try_from(len).is_err() {
        return false;
    }
    let (Ok(volume), Ok(system)) = (rustix::fs::fstatvfs(file), rustix::fs::fstatfs(file)) else {
        return false;
    };
    if system.f_type == TMPFS || volume.f_bavail.saturating_mul(volume.f_frsize) < len {
        return false;
    }
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, len).is_ok()
}
