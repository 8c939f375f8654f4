//! Reads what rsync prints on its standard output: a line for each item, progress, and remarks.
//!
//! A line about an item begins with a token that only this run knows, so that nothing the other side
//! makes rsync print can be taken for one. Everything that is not understood is passed over.

use crate::model::digest::{Algorithm, Digest};
use crate::model::entry::{Action, EntryKind, Reason};

/// One line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// About one item.
    Item(Item),
    /// How far it is.
    Progress {
        /// Bytes of files so far.
        bytes: u64,
        /// Of all that was listed, in percent.
        percent: u64,
        /// Items that are left and all of them, once the listing is complete.
        items: Option<(u64, u64)>,
    },
    /// It was left alone, and why.
    Skipped(Vec<u8>, &'static str),
    /// Something else.
    Other,
}

/// What rsync did, or would do, to one item.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Item {
    /// What it is.
    pub kind: EntryKind,
    /// What was done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Its length.
    pub len: u64,
    /// Bytes that went over the wire for it.
    pub wire: u64,
    /// The digest that both sides agreed on, where it was transferred.
    pub digest: Option<Digest>,
    /// Its name as rsync has it, decoded.
    pub name: Vec<u8>,
}

/// Reads one line.
pub(super) fn read(line: &[u8], token: &str, with_digest: bool) -> Told {
    if let Some(rest) = line.strip_prefix(token.as_bytes()) {
        return match item(rest, with_digest) {
            Some(item) => Told::Item(item),
            None => Told::Other,
        };
    }
    if let Some(rest) = line.strip_prefix(b"skipping non-regular file \"") {
        if let Some(name) = rest.strip_suffix(b"\"") {
            return Told::Skipped(decode(name), "a link, pipe, socket or device");
        }
    }
    for end in [&b" exists"[..], b" is newer"] {
        if let Some(name) = line.strip_suffix(end) {
            return Told::Skipped(decode(name), "the one there is kept");
        }
    }
    progress(line).unwrap_or(Told::Other)
}

/// Reads ` ITEMIZED LENGTH WIRE [DIGEST] NAME`.
fn item(rest: &[u8], with_digest: bool) -> Option<Item> {
    let rest = rest.strip_prefix(b" ")?;
    let (what, rest) = rest.split_at_checked(11)?;
    let (len, rest) = number(rest.strip_prefix(b" ")?)?;
    let (wire, rest) = number(rest.strip_prefix(b" ")?)?;
    let mut rest = rest.strip_prefix(b" ")?;
    let mut digest = None;
    if with_digest {
        let (hex, after) = rest.split_at_checked(32)?;
        digest = from_hex(hex);
        rest = after.strip_prefix(b" ")?;
    }
    let kind = match what[1] {
        b'f' => EntryKind::File,
        b'd' => EntryKind::Dir,
        b'L' => EntryKind::Symlink,
        _ => EntryKind::Special,
    };
    let (action, reason) = change(what, kind);
    Some(Item {
        kind,
        action,
        reason,
        len,
        wire,
        digest,
        name: decode(rest),
    })
}

/// Reads rsync's eleven letters.
fn change(what: &[u8], kind: EntryKind) -> (Action, Reason) {
    if what[2] == b'+' {
        return (Action::Create, Reason::Missing);
    }
    let moved = matches!(what[0], b'<' | b'>' | b'c');
    if moved {
        let reason = match (what[3], what[4]) {
            (b's', _) => Reason::Size,
            (_, b't' | b'T') if kind == EntryKind::File => Reason::Time,
            _ => Reason::Content,
        };
        return (Action::Update, reason);
    }
    if what[5] == b'p' {
        return (Action::Touch, Reason::Mode);
    }
    // A folder's time changes with what is put into it; that alone is no step.
    if matches!(what[4], b't' | b'T') && kind != EntryKind::Dir {
        return (Action::Touch, Reason::Time);
    }
    (Action::Keep, Reason::Same)
}

/// Reads `BYTES PERCENT% RATE TIME (xfr#N, to-chk=LEFT/ALL)`.
fn progress(line: &[u8]) -> Option<Told> {
    let text = std::str::from_utf8(line).ok()?;
    let mut words = text.split_ascii_whitespace();
    let digits = words.next()?;
    if !digits.bytes().all(|b| b.is_ascii_digit() || b == b',') {
        return None;
    }
    let bytes = digits.replace(',', "").parse().ok()?;
    let percent = words.next()?.strip_suffix('%')?.parse().ok()?;
    let items = text.split_once("to-chk=").and_then(|(_, rest)| {
        let (left, all) = rest.split_once('/')?;
        let all = all.trim_end().strip_suffix(')')?;
        Some((left.parse().ok()?, all.parse().ok()?))
    });
    Some(Told::Progress {
        bytes,
        percent,
        items,
    })
}

fn number(text: &[u8]) -> Option<(u64, &[u8])> {
    let end = text
        .iter()
        .position(|b| !b.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((std::str::from_utf8(digits).ok()?.parse().ok()?, rest))
}

fn from_hex(hex: &[u8]) -> Option<Digest> {
    let text = std::str::from_utf8(hex).ok()?;
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Digest::new(Algorithm::Md5, &bytes)
}

/// Turns rsync's `\#ooo` into the byte it stands for, once.
pub(super) fn decode(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..4).filter(|part| {
            part[0] == b'#'
                && matches!(part[1], b'0'..=b'3')
                && part[2..].iter().all(|d| matches!(d, b'0'..=b'7'))
        });
        match octal {
            Some(part) if byte == b'\\' => {
                out.push((part[1] - b'0') << 6 | (part[2] - b'0') << 3 | (part[3] - b'0'));
                rest = &after[4..];
            }
            _ => {
                out.push(byte);
                rest = after;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(line: &str) -> Item {
        match read(line.as_bytes(), "T", true) {
            Told::Item(item) => item,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn lines_about_items_are_read_with_their_digest_and_name() {
        let got = item("T <f+++++++++ 3 46 900150983cd24fb0d6963f7d28e17f72 src/a b");
        assert_eq!((got.action, got.reason), (Action::Create, Reason::Missing));
        assert_eq!((got.len, got.wire), (3, 46));
        assert_eq!(
            got.digest.unwrap().to_string(),
            "900150983cd24fb0d6963f7d28e17f72"
        );
        assert_eq!(got.name, b"src/a b");
        let blank = " ".repeat(32);
        for (what, kind, action, reason) in [
            (".f         ", EntryKind::File, Action::Keep, Reason::Same),
            (">f.st......", EntryKind::File, Action::Update, Reason::Size),
            (">f..t......", EntryKind::File, Action::Update, Reason::Time),
            (">f..T......", EntryKind::File, Action::Update, Reason::Time),
            (
                ">f.........",
                EntryKind::File,
                Action::Update,
                Reason::Content,
            ),
            (".f...p.....", EntryKind::File, Action::Touch, Reason::Mode),
            (".d..t......", EntryKind::Dir, Action::Keep, Reason::Same),
            (
                "cLc.t......",
                EntryKind::Symlink,
                Action::Update,
                Reason::Content,
            ),
            (
                "cd+++++++++",
                EntryKind::Dir,
                Action::Create,
                Reason::Missing,
            ),
        ] {
            let got = item(&format!("T {what} 4096 0 {blank} x/"));
            assert_eq!(
                (got.kind, got.action, got.reason),
                (kind, action, reason),
                "{what}"
            );
            assert_eq!(got.digest, None);
        }
    }

    #[test]
    fn progress_and_remarks_are_read_and_the_rest_never_breaks_it() {
        let read = |line: &str| read(line.as_bytes(), "T", true);
        assert_eq!(
            read("      3,000,009  99%   45.41MB/s    0:00:00 (xfr#10, to-chk=4/14)"),
            Told::Progress {
                bytes: 3_000_009,
                percent: 99,
                items: Some((4, 14))
            }
        );
        assert!(matches!(
            read("  1   0%    0.00kB/s    0:00:00 (xfr#1, ir-chk=12/14)"),
            Told::Progress { items: None, .. }
        ));
        assert_eq!(
            read("skipping non-regular file \"a\\#012b\""),
            Told::Skipped(b"a\nb".to_vec(), "a link, pipe, socket or device")
        );
        assert!(matches!(read("a exists"), Told::Skipped(..)));
        for odd in [
            "",
            "created 3 directories for /x",
            "T",
            "T <f",
            "T <f+++++++++ x 3",
            "T <f+++++++++ 3 4 90",
            "99999999999999999999999 1%",
            "\u{fffd}%",
        ] {
            assert_eq!(read(odd), Told::Other, "{odd:?}");
        }
    }

    #[test]
    fn names_are_decoded_once() {
        assert_eq!(decode(br"b\#134#012c"), br"b\#012c");
        assert_eq!(decode(br"n\#012l\#377"), b"n\nl\xff");
        assert_eq!(decode(br"\#99\#4\"), br"\#99\#4\");
    }
}
