//! One thing in a tree: a file, folder, link, or something that is not copied.

use serde::{Deserialize, Serialize};

use crate::model::relpath::RelPath;

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link.
    Symlink,
    /// A FIFO, socket or device: listed, never opened or copied.
    Special,
}

/// A point in time as the file system has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileTime {
    /// Seconds since 1970, negative before.
    pub secs: i64,
    /// Nanoseconds past that second, 0..1_000_000_000.
    pub nanos: u32,
}

/// One item below a source or destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is, below the root of its side.
    pub path: RelPath,
    /// What it is.
    pub kind: EntryKind,
    /// Length in bytes; 0 for all but files.
    pub size: u64,
    /// Last modification.
    pub mtime: FileTime,
    /// Permission bits, masked with 0o7777.
    pub mode: u32,
    /// Where a symbolic link points, bytes as stored.
    pub link: Option<Vec<u8>>,
}

/// What would be, or was, done with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It is not there yet.
    Create,
    /// It is there and differs.
    Update,
    /// Only its metadata changes.
    Touch,
    /// It is extra and goes.
    Delete,
    /// Nothing has to be done.
    Keep,
    /// It is left out.
    Skip,
}

/// Why that action was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The destination has no such name.
    Missing,
    /// Sizes differ.
    Size,
    /// Modification times differ.
    Time,
    /// Digests differ.
    Digest,
    /// Kinds or link targets differ, or the rule says to overwrite.
    Content,
    /// Permission bits differ.
    Mode,
    /// Only the destination has it.
    Extra,
    /// Both sides are the same.
    Same,
    /// A rule leaves it out.
    Excluded,
    /// The conflict rule leaves the destination's alone.
    Conflict,
    /// It is a FIFO, socket or device.
    Special,
}
