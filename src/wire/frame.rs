//! Data frames: header, payload, tag.
//!
//! ```text
//! kind u8 | attempt u8 | stream u16 | length u32 | sequence u64 | file u64 | offset u64 | size u64
//! payload (length bytes)
//! tag (32 bytes; only on TCP): keyed BLAKE3 over header and content
//! ```
//! The *content* that a tag covers is the payload; of a block it is the payload's BLAKE3 chaining
//! value as the subtree at `offset`, which the digest of the whole file can be made of too: two
//! passes over the data become one.
//!
//! All little-endian. *Sequence* counts the frames of a stream from 0. Kinds:
//! - [`Kind::Block`]: payload is the part of `file` at `offset`; `size` is the file's whole length as
//!   it was when opened. Blocks lie at multiples of [`BLOCK`] and have that length, except the
//!   last one. A block with offset 0 starts that attempt.
//! - [`Kind::Keep`]: no payload; the receiver keeps the next `KeepLength` bytes (first 8 bytes of
//!   the payload) of what it has at `offset`.
//! - [`Kind::Batch`]: whole small files: `table length u32`, table (LEB128: file, attempt, length;
//!   repeated), then their contents one after the other.
//! - [`Kind::End`]: nothing more comes on this stream.

use crate::model::error::Result;
use crate::wire::MAX_FRAME;
use crate::wire::codec::{Decoder, Encoder, broken};

/// Bytes of a header.
pub const HEADER: usize = 40;
/// Bytes of a tag.
pub const TAG: usize = 32;
/// Bytes of a block of a large file.
pub const BLOCK: usize = 1024 * 1024;
/// The most files in one batch.
pub const MAX_BATCH: usize = 4096;

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Part of a large file.
    Block = 1,
    /// The receiver's own bytes are right.
    Keep = 2,
    /// Whole small files.
    Batch = 3,
    /// The stream is over.
    End = 4,
}

/// The header of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it carries.
    pub kind: Kind,
    /// Which attempt at this file, from 0.
    pub attempt: u8,
    /// The stream it belongs to.
    pub stream: u16,
    /// Bytes of payload.
    pub len: u32,
    /// Frames before it on this stream.
    pub sequence: u64,
    /// The file; 0 for batches and ends.
    pub file: u64,
    /// Where in the file the payload begins.
    pub offset: u64,
    /// The file's whole length.
    pub size: u64,
}

impl Header {
    /// Returns the bytes.
    pub fn encode(&self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        out[0] = self.kind as u8;
        out[1] = self.attempt;
        out[2..4].copy_from_slice(&self.stream.to_le_bytes());
        out[4..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        out[16..24].copy_from_slice(&self.file.to_le_bytes());
        out[24..32].copy_from_slice(&self.offset.to_le_bytes());
        out[32..40].copy_from_slice(&self.size.to_le_bytes());
        out
    }

    /// Reads a header and checks it against the limits and what must come next on `stream`.
    ///
    /// # Errors
    /// `Protocol` for an unknown kind, a length beyond [`MAX_FRAME`], a block that is none of its
    /// file, the wrong stream or a gap in the sequence.
    pub fn decode(bytes: &[u8; HEADER], stream: u16, sequence: u64) -> Result<Self> {
        let mut d = Decoder::new(bytes);
        let kind = match d.u8()? {
            1 => Kind::Block,
            2 => Kind::Keep,
            3 => Kind::Batch,
            4 => Kind::End,
            _ => return Err(broken("a frame of unknown kind came")),
        };
        let header = Self {
            kind,
            attempt: d.u8()?,
            stream: u16::from_le_bytes(d.array()?),
            len: u32::from_le_bytes(d.array()?),
            sequence: u64::from_le_bytes(d.array()?),
            file: u64::from_le_bytes(d.array()?),
            offset: u64::from_le_bytes(d.array()?),
            size: u64::from_le_bytes(d.array()?),
        };
        if header.len as usize > MAX_FRAME {
            return Err(broken("a frame is beyond its limit"));
        }
        if header.stream != stream || header.sequence != sequence {
            return Err(broken("a frame came out of order"));
        }
        let right = match kind {
            Kind::Block => header.is_block(),
            Kind::Keep => header.len == 8 && header.offset % BLOCK as u64 == 0,
            Kind::Batch | Kind::End => true,
        };
        if !right {
            return Err(broken("a frame does not fit its file"));
        }
        Ok(header)
    }

    /// Says whether place and length are those of a block of its file.
    fn is_block(&self) -> bool {
        let (len, block) = (u64::from(self.len), BLOCK as u64);
        let Some(end) = self.offset.checked_add(len) else {
            return false;
        };
        self.offset % block == 0
            && len <= block
            && end <= self.size
            && (len == block || end == self.size)
    }
}

/// The key that a stream's frames are tagged with.
#[derive(Clone)]
pub struct FrameKey(pub [u8; 32]);

impl FrameKey {
    /// Returns the tag of a frame whose content may lie in several pieces.
    pub fn tag(&self, header: &[u8; HEADER], content: &[&[u8]]) -> [u8; TAG] {
        let mut hasher = blake3::Hasher::new_keyed(&self.0);
        hasher.update(header);
        for piece in content {
            hasher.update(piece);
        }
        *hasher.finalize().as_bytes()
    }

    /// Says whether a tag is right, in constant time.
    pub fn check(&self, header: &[u8; HEADER], content: &[u8], tag: &[u8; TAG]) -> bool {
        blake3::Hash::from_bytes(self.tag(header, &[content])) == blake3::Hash::from_bytes(*tag)
    }
}

/// One whole file of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The file.
    pub file: u64,
    /// Which attempt at it.
    pub attempt: u8,
    /// Its length.
    pub len: u32,
}

/// Writes the table of a batch, its length first.
pub fn encode_table(items: &[Item], out: &mut Vec<u8>) {
    out.clear();
    let mut e = Encoder {
        bytes: std::mem::take(out),
    };
    e.raw(&[0; 4]);
    for item in items {
        e.num(item.file);
        e.u8(item.attempt);
        e.num(u64::from(item.len));
    }
    *out = e.bytes;
    let len = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&len.to_le_bytes());
}

/// Takes a batch apart: calls `each` with every item and its bytes.
///
/// # Errors
/// `Protocol` when table and contents do not fit each other, or what `each` returns.
pub fn read_batch<'a>(
    payload: &'a [u8],
    mut each: impl FnMut(Item, &'a [u8]) -> Result<()>,
) -> Result<()> {
    let mut d = Decoder::new(payload);
    let len = u32::from_le_bytes(d.array()?) as usize;
    let mut table = Decoder::new(d.raw(len)?);
    let mut count = 0;
    while table.end().is_err() {
        count += 1;
        if count > MAX_BATCH {
            return Err(broken("a batch holds too many files"));
        }
        let item = Item {
            file: table.num()?,
            attempt: table.u8()?,
            len: table.capped(MAX_FRAME as u64)? as u32,
        };
        each(item, d.raw(item.len as usize)?)?;
    }
    d.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn header() -> Header {
        Header {
            kind: Kind::Block,
            attempt: 1,
            stream: 2,
            len: 3,
            sequence: 4,
            file: 5,
            offset: 6 * BLOCK as u64,
            size: 6 * BLOCK as u64 + 3,
        }
    }

    #[test]
    fn the_bytes_of_a_header_never_change() {
        let want =
            "01010200030000000400000000000000050000000000000000006000000000000300600000000000";
        let got: String = header()
            .encode()
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        assert_eq!(got, want);
        assert_eq!(Header::decode(&header().encode(), 2, 4).unwrap(), header());
    }

    #[test]
    fn what_lies_outside_order_or_file_is_refused() {
        let good = header();
        assert!(Header::decode(&good.encode(), 1, 4).is_err());
        assert!(Header::decode(&good.encode(), 2, 5).is_err());
        for bad in [
            Header {
                size: good.size - 1,
                ..good
            },
            Header {
                size: good.size + 1,
                ..good
            },
            Header {
                offset: good.offset - 1,
                ..good
            },
            Header {
                len: BLOCK as u32 + 1,
                size: 8 * BLOCK as u64,
                ..good
            },
            Header {
                offset: u64::MAX,
                ..good
            },
            Header {
                len: u32::MAX,
                ..good
            },
            Header {
                kind: Kind::Keep,
                ..good
            },
        ] {
            assert!(Header::decode(&bad.encode(), 2, 4).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn any_flipped_bit_changes_the_tag() {
        let key = FrameKey([7; 32]);
        let head = header().encode();
        let tag = key.tag(&head, &[b"abc"]);
        assert!(key.check(&head, b"abc", &tag));
        assert_eq!(tag, key.tag(&head, &[b"a", b"bc"]));
        for bit in 0..24 {
            let mut payload = *b"abc";
            payload[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.check(&head, &payload, &tag));
        }
        for bit in 0..HEADER * 8 {
            let mut other = head;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.check(&other, b"abc", &tag));
        }
    }

    proptest! {
        #[test]
        fn batches_come_apart_as_they_were_put_together(files in proptest::collection::vec((any::<u64>(), any::<u8>(), proptest::collection::vec(any::<u8>(), 0..20)), 0..30)) {
            let items: Vec<_> = files.iter().map(|(file, attempt, b)| Item { file: *file, attempt: *attempt, len: b.len() as u32 }).collect();
            let mut payload = Vec::new();
            encode_table(&items, &mut payload);
            for (_, _, b) in &files { payload.extend_from_slice(b); }
            let mut got = Vec::new();
            read_batch(&payload, |item, bytes| { got.push((item.file, item.attempt, bytes.to_vec())); Ok(()) }).unwrap();
            prop_assert_eq!(got, files);
        }

        #[test]
        fn no_payload_makes_it_panic(payload in proptest::collection::vec(any::<u8>(), 0..60), head in any::<[u8; HEADER]>()) {
            let _ = read_batch(&payload, |_, _| Ok(()));
            let _ = Header::decode(&head, 0, 0);
        }
    }
}
