//! The packets of the file transfer protocol, version 3, as OpenSSH speaks it, without any input or
//! output: requests to bytes, bytes to replies.
//!
//! A packet is its length, a kind, a number that the reply repeats, and fields; numbers are big
//! endian, strings begin with their length. Everything that comes in is bounded by the packet, which
//! is bounded by [`LONGEST`], before anything is reserved for it.

use crate::model::entry::{EntryKind, FileTime};
use crate::model::error::{Error, ErrorKind, Result};

/// The longest packet that is taken; OpenSSH sends at most 256 KiB.
pub(super) const LONGEST: usize = 1 << 20;

pub(super) const HAS_SIZE: u32 = 1;
pub(super) const HAS_OWNER: u32 = 2;
pub(super) const HAS_MODE: u32 = 4;
pub(super) const HAS_TIMES: u32 = 8;
pub(super) const HAS_MORE: u32 = 1 << 31;

/// Attributes, as far as they are told or to be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Attrs {
    /// Length in bytes.
    pub size: Option<u64>,
    /// Permissions, and in what comes in also the kind.
    pub mode: Option<u32>,
    /// Last modification, in seconds since 1970.
    pub mtime: Option<u32>,
}

impl Attrs {
    /// Returns what it is; what the server does not tell is nothing to touch.
    pub fn kind(&self) -> EntryKind {
        match self.mode.unwrap_or_default() & 0o170_000 {
            0o100_000 => EntryKind::File,
            0o040_000 => EntryKind::Dir,
            0o120_000 => EntryKind::Symlink,
            _ => EntryKind::Special,
        }
    }

    /// Returns the time, which has no fractions of a second in this protocol.
    pub fn time(&self) -> FileTime {
        FileTime {
            secs: self.mtime.unwrap_or_default().into(),
            nanos: 0,
        }
    }

    /// Asks for permissions and a time to be set. A time that the protocol cannot hold is left out.
    pub fn to_set(mode: Option<u32>, mtime: Option<FileTime>) -> Self {
        Self {
            size: None,
            mode: mode.map(|mode| mode & 0o7777),
            mtime: mtime.and_then(|time| u32::try_from(time.secs).ok()),
        }
    }

    /// Says whether nothing is to be set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// How it went: the code and the server's words.
    Status(u32, Vec<u8>),
    /// An open file or folder.
    Handle(Vec<u8>),
    /// Bytes of a file.
    Data(Vec<u8>),
    /// Names with attributes.
    Names(Vec<(Vec<u8>, Attrs)>),
    /// Attributes.
    Attrs(Attrs),
    /// The answer to an extension.
    Extended(Vec<u8>),
}

impl Reply {
    /// Returns about how much memory it takes.
    pub fn weight(&self) -> usize {
        64 + match self {
            Self::Status(_, bytes)
            | Self::Handle(bytes)
            | Self::Data(bytes)
            | Self::Extended(bytes) => bytes.len(),
            Self::Names(names) => names.iter().map(|(name, _)| 80 + name.len()).sum(),
            Self::Attrs(_) => 0,
        }
    }
}

/// Reads a reply without its length: the number it answers, and what it says.
///
/// # Errors
/// `Protocol` when it is cut or of an unknown kind.
pub(super) fn read(packet: &[u8]) -> Result<(u32, Reply)> {
    let mut fields = Fields(packet);
    let kind = fields.byte()?;
    let id = fields.number()?;
    let reply = match kind {
        101 => {
            let code = fields.number()?;
            // Old servers send no words.
            let words = fields.string().unwrap_or_default();
            Reply::Status(code, words.to_vec())
        }
        102 => Reply::Handle(fields.string()?.to_vec()),
        103 => Reply::Data(fields.string()?.to_vec()),
        104 => {
            let count = fields.number()? as usize;
            // A name with its fields takes at least twelve bytes.
            if count > fields.0.len() / 12 {
                return Err(broken("it announces more names than it has"));
            }
            let mut names = Vec::with_capacity(count);
            for _ in 0..count {
                let name = fields.string()?.to_vec();
                fields.string()?;
                names.push((name, fields.attributes()?));
            }
            Reply::Names(names)
        }
        105 => Reply::Attrs(fields.attributes()?),
        201 => Reply::Extended(fields.0.to_vec()),
        _ => return Err(broken("it is of a kind that has no place here")),
    };
    Ok((id, reply))
}

/// Reads the server's first packet without its length: the names of its extensions.
///
/// # Errors
/// `Protocol` when it is cut, `Version` when the server speaks an older version.
pub(super) fn read_version(packet: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut fields = Fields(packet);
    if fields.byte()? != 2 {
        return Err(broken("it is not the server's version"));
    }
    let version = fields.number()?;
    if version != 3 {
        let cause = format!("the server speaks version {version}; version 3 is needed");
        return Err(Error::new(ErrorKind::Unsupported, "use sftp", cause));
    }
    let mut extensions = Vec::new();
    while !fields.0.is_empty() {
        extensions.push(fields.string()?.to_vec());
        fields.string()?;
    }
    Ok(extensions)
}

/// Reads the answer to [`super::request::Request::Limits`]: the longest read and write; 0 for no limit.
///
/// # Errors
/// `Protocol` when it is cut.
pub(super) fn read_limits(body: &[u8]) -> Result<(u64, u64)> {
    let mut fields = Fields(body);
    fields.long()?;
    Ok((fields.long()?, fields.long()?))
}

/// Reads the answer to [`super::request::Request::Statvfs`]: bytes and files for which there is room.
///
/// # Errors
/// `Protocol` when it is cut.
pub(super) fn read_room(body: &[u8]) -> Result<(u64, u64)> {
    let mut fields = Fields(body);
    fields.long()?;
    let block = fields.long()?;
    fields.take(16)?;
    let bytes = fields.long()?.saturating_mul(block);
    let (all, _, left) = (fields.long()?, fields.long()?, fields.long()?);
    // Some file systems have no limit to their files, and say so with zeros.
    Ok((bytes, if all == 0 { u64::MAX } else { left }))
}

/// What is left of a packet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .0
            .split_at_checked(len)
            .ok_or_else(|| broken("it is cut"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u32> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().fold(0, |n, b| n << 8 | u32::from(*b)))
    }

    fn long(&mut self) -> Result<u64> {
        let bytes = self.take(8)?;
        Ok(bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b)))
    }

    fn string(&mut self) -> Result<&'a [u8]> {
        let len = self.number()? as usize;
        self.take(len)
    }

    fn attributes(&mut self) -> Result<Attrs> {
        let flags = self.number()?;
        let mut attrs = Attrs::default();
        if flags & HAS_SIZE != 0 {
            attrs.size = Some(self.long()?);
        }
        if flags & HAS_OWNER != 0 {
            self.take(8)?;
        }
        if flags & HAS_MODE != 0 {
            attrs.mode = Some(self.number()?);
        }
        if flags & HAS_TIMES != 0 {
            self.take(4)?;
            attrs.mtime = Some(self.number()?);
        }
        if flags & HAS_MORE != 0 {
            for _ in 0..self.number()? {
                self.string()?;
                self.string()?;
            }
        }
        Ok(attrs)
    }
}

/// Makes the error of a packet that breaks the rules.
pub(super) fn broken(cause: &str) -> Error {
    Error::new(
        ErrorKind::Protocol,
        "read a packet of the sftp server",
        cause,
    )
    .hint("the server may be faulty; choose another method")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::option;
    use proptest::prelude::*;

    #[test]
    fn replies_are_read_and_cut_ones_refused_at_every_length() {
        let name = b"\x68\0\0\0\x07\0\0\0\x01\0\0\0\x01f\0\0\0\0\
            \0\0\0\x0f\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\x81\xa4\0\0\0\0\0\0\0\x09";
        let (id, reply) = read(name).unwrap();
        let Reply::Names(names) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!((id, names[0].0.as_slice()), (7, &b"f"[..]));
        let attrs = names[0].1;
        assert_eq!(
            (attrs.size, attrs.kind(), attrs.mtime),
            (Some(5), EntryKind::File, Some(9))
        );
        for cut in 0..name.len() {
            assert!(read(&name[..cut]).is_err(), "{cut}");
        }
        assert_eq!(
            read(b"\x65\0\0\0\x01\0\0\0\x02").unwrap(),
            (1, Reply::Status(2, Vec::new()))
        );
        assert!(read(b"\x63\0\0\0\x01").is_err());
    }

    #[test]
    fn lengths_that_lie_reserve_nothing() {
        for packet in [
            &b"\x68\0\0\0\x01\xff\xff\xff\xff"[..],
            b"\x67\0\0\0\x01\xff\xff\xff\xffx",
            b"\x69\0\0\0\x01\x80\0\0\0\xff\xff\xff\xff",
        ] {
            assert_eq!(read(packet).unwrap_err().kind, ErrorKind::Protocol);
        }
    }

    #[test]
    fn a_version_names_its_extensions() {
        let packet = b"\x02\0\0\0\x03\0\0\0\x01a\0\0\0\x011\0\0\0\x01b\0\0\0\0";
        assert_eq!(read_version(packet).unwrap(), [b"a", b"b"]);
        assert!(read_version(b"\x02\0\0\0\x02").is_err());
        assert!(read_version(b"\x02\0\0\0\x03\0").is_err());
    }

    fn string(bytes: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        out.extend_from_slice(bytes);
    }

    fn attributes(attrs: &Attrs, out: &mut Vec<u8>) {
        let Attrs { size, mode, mtime } = attrs;
        // An owner and an extension, which are skipped.
        let flags = HAS_OWNER
            | HAS_MORE
            | size.map_or(0, |_| HAS_SIZE)
            | mode.map_or(0, |_| HAS_MODE)
            | mtime.map_or(0, |_| HAS_TIMES);
        out.extend_from_slice(&flags.to_be_bytes());
        out.extend(size.iter().flat_map(|size| size.to_be_bytes()));
        out.extend_from_slice(&[1; 8]);
        out.extend(mode.iter().flat_map(|mode| mode.to_be_bytes()));
        for _ in 0..2 {
            out.extend(mtime.iter().flat_map(|mtime| mtime.to_be_bytes()));
        }
        out.extend_from_slice(&1u32.to_be_bytes());
        string(b"x@y", out);
        string(b"", out);
    }

    fn written(id: u32, reply: &Reply) -> Vec<u8> {
        let kind = match reply {
            Reply::Status(..) => 101,
            Reply::Handle(_) => 102,
            Reply::Data(_) => 103,
            Reply::Names(_) => 104,
            Reply::Attrs(_) => 105,
            Reply::Extended(_) => 201,
        };
        let mut out = vec![kind];
        out.extend_from_slice(&id.to_be_bytes());
        match reply {
            Reply::Status(code, words) => {
                out.extend_from_slice(&code.to_be_bytes());
                string(words, &mut out);
                string(b"en", &mut out);
            }
            Reply::Handle(bytes) | Reply::Data(bytes) => string(bytes, &mut out),
            Reply::Names(names) => {
                out.extend_from_slice(&(names.len() as u32).to_be_bytes());
                for (name, attrs) in names {
                    string(name, &mut out);
                    string(b"-rw-r--r-- 1 a b", &mut out);
                    attributes(attrs, &mut out);
                }
            }
            Reply::Attrs(attrs) => attributes(attrs, &mut out),
            Reply::Extended(body) => out.extend_from_slice(body),
        }
        out
    }

    fn attrs() -> impl Strategy<Value = Attrs> {
        (
            option::of(any::<u64>()),
            option::of(any::<u32>()),
            option::of(any::<u32>()),
        )
            .prop_map(|(size, mode, mtime)| Attrs { size, mode, mtime })
    }

    fn reply() -> impl Strategy<Value = Reply> {
        let bytes = || vec(any::<u8>(), 0..40);
        prop_oneof![
            (any::<u32>(), bytes()).prop_map(|(code, words)| Reply::Status(code, words)),
            bytes().prop_map(Reply::Handle),
            bytes().prop_map(Reply::Data),
            vec((bytes(), attrs()), 0..5).prop_map(Reply::Names),
            attrs().prop_map(Reply::Attrs),
            bytes().prop_map(Reply::Extended),
        ]
    }

    proptest! {
        #[test]
        fn every_reply_is_read_as_it_was_written(id: u32, reply in reply()) {
            prop_assert_eq!(read(&written(id, &reply)).unwrap(), (id, reply));
        }

        #[test]
        fn no_bytes_make_a_reader_panic(bytes in vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let _ = read_version(&bytes);
            let _ = read_limits(&bytes);
            let _ = read_room(&bytes);
        }

        #[test]
        fn a_reply_with_a_changed_byte_is_another_one_or_refused(
            id: u32, reply in reply(), at: prop::sample::Index, by in 1u8..
        ) {
            let mut packet = written(id, &reply);
            let at = at.index(packet.len());
            packet[at] ^= by;
            if let Ok((_, reply)) = read(&packet) {
                prop_assert!(reply.weight() <= 64 + 7 * packet.len());
            }
        }
    }
}
