//! What a server is asked, as bytes; [`packet`](super::packet) reads its replies.

use crate::backend::sftp::packet::{Attrs, HAS_MODE, HAS_SIZE, HAS_TIMES};

/// What a handle is opened for.
pub(super) const READ: u32 = 1;
/// Write, make, and fail if anything has the name.
pub(super) const WRITE_NEW: u32 = 0x02 | 0x08 | 0x20;

/// A request.
#[derive(Clone, Debug)]
pub(super) enum Request<'a> {
    /// Opens a file: path, what for, permissions of a new one.
    Open(&'a [u8], u32, Attrs),
    /// Closes a handle.
    Close(&'a [u8]),
    /// Reads: handle, where, how much.
    Read(&'a [u8], u64, u32),
    /// Writes: handle, where, what.
    Write(&'a [u8], u64, &'a [u8]),
    /// Looks at a path, not following a link.
    Lstat(&'a [u8]),
    /// Looks at a path.
    Stat(&'a [u8]),
    /// Looks at an open file.
    Fstat(&'a [u8]),
    /// Sets attributes of a path.
    Setstat(&'a [u8], Attrs),
    /// Sets attributes of an open file.
    Fsetstat(&'a [u8], Attrs),
    /// Opens a folder.
    Opendir(&'a [u8]),
    /// Reads on in a folder.
    Readdir(&'a [u8]),
    /// Removes a file.
    Remove(&'a [u8]),
    /// Makes a folder.
    Mkdir(&'a [u8], Attrs),
    /// Removes a folder.
    Rmdir(&'a [u8]),
    /// Asks for a full path without links.
    Realpath(&'a [u8]),
    /// Renames; fails if the new name is taken.
    Rename(&'a [u8], &'a [u8]),
    /// Asks where a link points.
    Readlink(&'a [u8]),
    /// Makes a link: where it points, its path. In OpenSSH's order, which is not the standard's but
    /// everybody's.
    Symlink(&'a [u8], &'a [u8]),
    /// `posix-rename@openssh.com`: renames over what has the name.
    PosixRename(&'a [u8], &'a [u8]),
    /// `fsync@openssh.com`: writes an open file to the disk.
    Fsync(&'a [u8]),
    /// `lsetstat@openssh.com`: sets attributes of a link itself.
    Lsetstat(&'a [u8], Attrs),
    /// `limits@openssh.com`: asks how much fits into a packet.
    Limits,
    /// `statvfs@openssh.com`: asks how full the disk is that a path is on.
    Statvfs(&'a [u8]),
}

/// Appends the first packet: the version we speak.
pub(super) fn init(out: &mut Vec<u8>) {
    out.extend_from_slice(&[0, 0, 0, 5, 1, 0, 0, 0, 3]);
}

impl Request<'_> {
    /// Appends the packet with this number.
    pub fn write(&self, id: u32, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        match *self {
            Self::Open(path, flags, attrs) => {
                head(3, id, out);
                string(path, out);
                out.extend_from_slice(&flags.to_be_bytes());
                attributes(&attrs, out);
            }
            Self::Close(handle) => one(4, id, handle, out),
            Self::Read(handle, offset, len) => {
                head(5, id, out);
                string(handle, out);
                out.extend_from_slice(&offset.to_be_bytes());
                out.extend_from_slice(&len.to_be_bytes());
            }
            Self::Write(handle, offset, data) => {
                head(6, id, out);
                string(handle, out);
                out.extend_from_slice(&offset.to_be_bytes());
                string(data, out);
            }
            Self::Lstat(path) => one(7, id, path, out),
            Self::Fstat(handle) => one(8, id, handle, out),
            Self::Setstat(path, attrs) => {
                head(9, id, out);
                string(path, out);
                attributes(&attrs, out);
            }
            Self::Fsetstat(handle, attrs) => {
                head(10, id, out);
                string(handle, out);
                attributes(&attrs, out);
            }
            Self::Opendir(path) => one(11, id, path, out),
            Self::Readdir(handle) => one(12, id, handle, out),
            Self::Remove(path) => one(13, id, path, out),
            Self::Mkdir(path, attrs) => {
                head(14, id, out);
                string(path, out);
                attributes(&attrs, out);
            }
            Self::Rmdir(path) => one(15, id, path, out),
            Self::Realpath(path) => one(16, id, path, out),
            Self::Stat(path) => one(17, id, path, out),
            Self::Rename(from, to) => {
                head(18, id, out);
                string(from, out);
                string(to, out);
            }
            Self::Readlink(path) => one(19, id, path, out),
            Self::Symlink(target, path) => {
                head(20, id, out);
                string(target, out);
                string(path, out);
            }
            Self::PosixRename(from, to) => {
                head(200, id, out);
                string(b"posix-rename@openssh.com", out);
                string(from, out);
                string(to, out);
            }
            Self::Fsync(handle) => {
                head(200, id, out);
                string(b"fsync@openssh.com", out);
                string(handle, out);
            }
            Self::Lsetstat(path, attrs) => {
                head(200, id, out);
                string(b"lsetstat@openssh.com", out);
                string(path, out);
                attributes(&attrs, out);
            }
            Self::Limits => {
                head(200, id, out);
                string(b"limits@openssh.com", out);
            }
            Self::Statvfs(path) => {
                head(200, id, out);
                string(b"statvfs@openssh.com", out);
                string(path, out);
            }
        }
        let len = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&len.to_be_bytes());
    }
}

fn head(kind: u8, id: u32, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&id.to_be_bytes());
}

fn one(kind: u8, id: u32, field: &[u8], out: &mut Vec<u8>) {
    head(kind, id, out);
    string(field, out);
}

fn string(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn attributes(attrs: &Attrs, out: &mut Vec<u8>) {
    let mut flags = 0;
    for (is, flag) in [
        (attrs.size.is_some(), HAS_SIZE),
        (attrs.mode.is_some(), HAS_MODE),
        (attrs.mtime.is_some(), HAS_TIMES),
    ] {
        flags |= if is { flag } else { 0 };
    }
    out.extend_from_slice(&flags.to_be_bytes());
    if let Some(size) = attrs.size {
        out.extend_from_slice(&size.to_be_bytes());
    }
    if let Some(mode) = attrs.mode {
        out.extend_from_slice(&mode.to_be_bytes());
    }
    if let Some(mtime) = attrs.mtime {
        // The protocol sets both or none.
        out.extend_from_slice(&mtime.to_be_bytes());
        out.extend_from_slice(&mtime.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::entry::FileTime;

    fn packet(request: &Request<'_>) -> Vec<u8> {
        let mut out = vec![9];
        request.write(7, &mut out);
        assert_eq!(out.remove(0), 9);
        let len = u32::from_be_bytes(out[..4].try_into().unwrap());
        assert_eq!(len as usize, out.len() - 4);
        out.drain(..4);
        out
    }

    #[test]
    fn requests_have_the_bytes_that_the_protocol_says() {
        assert_eq!(
            packet(&Request::Open(b"/f", READ, Attrs::default())),
            b"\x03\0\0\0\x07\0\0\0\x02/f\0\0\0\x01\0\0\0\0"
        );
        assert_eq!(
            packet(&Request::Write(b"h", 258, b"xy")),
            b"\x06\0\0\0\x07\0\0\0\x01h\0\0\0\0\0\0\x01\x02\0\0\0\x02xy"
        );
        let attrs = Attrs::to_set(Some(0o100_644), Some(FileTime { secs: 5, nanos: 9 }));
        assert_eq!(
            packet(&Request::Setstat(b"f", attrs)),
            b"\x09\0\0\0\x07\0\0\0\x01f\0\0\0\x0c\0\0\x01\xa4\0\0\0\x05\0\0\0\x05"
        );
        assert_eq!(packet(&Request::Limits)[..9], *b"\xc8\0\0\0\x07\0\0\0\x12");
    }

    #[test]
    fn times_that_the_protocol_cannot_hold_are_left_out() {
        for secs in [-1, i64::from(u32::MAX) + 1, i64::MIN] {
            assert!(Attrs::to_set(None, Some(FileTime { secs, nanos: 0 })).is_empty());
        }
    }
}
