//! What the kernel says of one directory entry.

use rustix::fs::FileType;

use crate::model::entry::{EntryKind, FileTime};

/// The attributes of an entry, links not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: EntryKind,
    /// Length in bytes as the file system has it.
    pub size: u64,
    /// Last modification; nanoseconds are always below a billion.
    pub mtime: FileTime,
    /// Permission bits, masked with 0o7777.
    pub mode: u32,
    /// The file system it is on.
    pub dev: u64,
    /// Its number there.
    pub ino: u64,
    /// Its owner.
    pub uid: u32,
    /// How many names it has.
    pub nlink: u64,
}

impl Stat {
    /// Returns device and inode, which tell two things apart whatever their names are.
    pub fn identity(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

impl From<rustix::fs::Stat> for Stat {
    // The fields have different widths on other processors.
    #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
    fn from(raw: rustix::fs::Stat) -> Self {
        Self {
            kind: kind_of(FileType::from_raw_mode(raw.st_mode)),
            size: u64::try_from(raw.st_size).unwrap_or(0),
            mtime: FileTime {
                secs: raw.st_mtime as i64,
                // A broken file system may say anything here.
                nanos: u32::try_from(raw.st_mtime_nsec).map_or(0, |n| n.min(999_999_999)),
            },
            mode: raw.st_mode as u32 & 0o7777,
            dev: raw.st_dev as u64,
            ino: raw.st_ino as u64,
            uid: raw.st_uid as u32,
            nlink: raw.st_nlink as u64,
        }
    }
}

/// Returns our kind for the kernel's.
pub(super) fn kind_of(file_type: FileType) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Dir,
        FileType::Symlink => EntryKind::Symlink,
        _ => EntryKind::Special,
    }
}

/// Returns the kind that a directory listing tells; `None` where the file system does not.
pub(super) fn listed_kind(file_type: FileType) -> Option<EntryKind> {
    match file_type {
        FileType::Unknown => None,
        known => Some(kind_of(known)),
    }
}

/// Returns words for a kind, for "... is there".
pub(super) fn words(kind: EntryKind) -> &'static str {
    match kind {
        EntryKind::File => "a file",
        EntryKind::Dir => "a folder",
        EntryKind::Symlink => "a symbolic link",
        EntryKind::Special => "a FIFO, socket or device",
    }
}
