//! This machine's files beneath a confined root: no path string touches the file system elsewhere.
//!
//! [`root::Root`] holds one directory; [`dir::Dir`] is a directory below it, held by descriptor,
//! and does everything by single names relative to that descriptor, so that nobody who swaps a
//! folder for a link while a transfer runs can lead it elsewhere. [`walk::Walk`] lists a tree,
//! [`filter::Filter`] says what it leaves out, [`meta`] is about one open file: its mode and
//! times, and when its bytes are safe on the disk.
//!
//! Links are never followed below a root; FIFOs, sockets and devices are never opened.

pub mod dir;
pub mod filter;
mod glob;
pub mod meta;
pub mod root;
pub mod stat;
mod tree;
pub mod walk;

#[cfg(test)]
mod tests;

use rustix::io::Errno;

use crate::model::error::{Error, ErrorKind};

/// Makes an error from what the kernel answered. `doing` completes "Failed to ...".
///
/// Links in the way are told as such: the kernel's "too many levels of symbolic links" would
/// send the reader looking for a loop.
fn failed(doing: &str, errno: Errno) -> Error {
    match errno {
        Errno::LOOP => Error::new(
            ErrorKind::Denied,
            doing,
            "a symbolic link is in the way, and links are not followed here",
        ),
        Errno::MFILE | Errno::NFILE => Error::io(doing, &errno.into())
            .hint("too many files are open at once; raise the limit (ulimit -n)"),
        _ => Error::io(doing, &errno.into()),
    }
}
