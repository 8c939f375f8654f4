//! Reads a `text/uri-list` (RFC 2483) as file managers really write it: a path for each item that
//! is a file of this computer, a refusal with its reason for each that is not.
//!
//! Pure: nothing here looks at the disk. Bytes stay bytes, so a name in any encoding survives.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use crate::model::drop::DroppedItem;
use crate::model::untrusted::Untrusted;

/// The longest list that is read, in bytes.
pub const MAX_BYTES: usize = 64 << 20;

/// The most items that are taken at once.
pub const MAX_ITEMS: usize = 1_000_000;

/// The longest scheme that a reason repeats, in bytes; nobody registered a longer one.
const MAX_SCHEME: usize = 32;

/// Returns the items of a list in its order; empty only when the list names nothing.
///
/// `hostname` is this computer's: `file://hostname/...` is a local file. A list beyond
/// [`MAX_BYTES`] or [`MAX_ITEMS`] is refused as a whole, since half a drop is worse than none.
pub fn parse(list: &[u8], hostname: &[u8]) -> Vec<DroppedItem> {
    if list.len() > MAX_BYTES {
        return vec![too_long()];
    }
    let mut items = Vec::new();
    for line in lines(list) {
        if items.len() == MAX_ITEMS {
            return vec![whole(&format!(
                "it lists more than {MAX_ITEMS} items; drop the folder that holds them"
            ))];
        }
        items.push(item(line, hostname));
    }
    items
}

/// Counts the items of a list without reading them.
pub fn count(list: &[u8]) -> usize {
    lines(list).count()
}

/// Returns the refusal of a list that is longer than [`MAX_BYTES`].
pub fn too_long() -> DroppedItem {
    whole(&format!(
        "its list is longer than {} MiB; drop the folder that holds the items",
        MAX_BYTES >> 20
    ))
}

/// Returns the refusal of a drop as a whole.
pub fn whole(why: &str) -> DroppedItem {
    refused(b"the whole drop", why.to_owned())
}

/// Yields the lines that name something. The standard asks for CR LF; some programs send LF alone
/// and some end the list with a NUL.
fn lines(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.strip_suffix(b"\0")
        .unwrap_or(list)
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !line.trim_ascii().is_empty() && !line.starts_with(b"#"))
}

fn item(line: &[u8], hostname: &[u8]) -> DroppedItem {
    // A bare path is no URI, yet some programs send one; its percent signs are part of the name.
    if line.starts_with(b"/") {
        return path(line.to_vec(), line);
    }
    let Some((scheme, rest)) = split_scheme(line) else {
        return refused(line, "it is neither a file address nor a path".to_owned());
    };
    if !scheme.eq_ignore_ascii_case("file") {
        let scheme = scheme.to_ascii_lowercase();
        return refused(
            line,
            format!("it is an address of the kind {scheme}:, not a file on this computer"),
        );
    }
    // RFC 8089: file:/path, file:///path and file://host/path.
    let encoded = match rest.strip_prefix(b"//") {
        None => rest,
        Some(rest) => {
            let start = rest.iter().position(|byte| *byte == b'/');
            let (host, encoded) = rest.split_at(start.unwrap_or(rest.len()));
            if !is_here(host, hostname) {
                let host = Untrusted::from(host);
                return refused(line, format!("it is on another computer, {host}"));
            }
            encoded
        }
    };
    match decode(encoded) {
        Some(bytes) if bytes.starts_with(b"/") => path(bytes, line),
        Some(_) => refused(line, "its path does not start with a slash".to_owned()),
        None => refused(line, "its address has a damaged % escape".to_owned()),
    }
}

/// Makes the item of an absolute path. Trailing slashes go: "link/" would mean what the link
/// points at, and the link itself was dropped.
fn path(mut bytes: Vec<u8>, line: &[u8]) -> DroppedItem {
    if bytes.contains(&0) {
        return refused(
            line,
            "it holds a NUL byte, which no file name can".to_owned(),
        );
    }
    while bytes.len() > 1 && bytes.ends_with(b"/") {
        bytes.pop();
    }
    DroppedItem::Path(PathBuf::from(OsString::from_vec(bytes)))
}

fn is_here(host: &[u8], hostname: &[u8]) -> bool {
    host.is_empty()
        || host.eq_ignore_ascii_case(b"localhost")
        || host == b"127.0.0.1"
        || host.eq_ignore_ascii_case(hostname)
}

/// Splits "scheme:rest"; `None` when there is no well-formed scheme.
fn split_scheme(line: &[u8]) -> Option<(&str, &[u8])> {
    let colon = line.iter().take(MAX_SCHEME + 1).position(|b| *b == b':')?;
    let (scheme, rest) = (&line[..colon], &line[colon + 1..]);
    let well_formed = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b));
    if !well_formed {
        return None;
    }
    Some((std::str::from_utf8(scheme).ok()?, rest))
}

/// Undoes percent encoding; `None` when an escape is not two hexadecimal digits. Bytes that should
/// have been escaped are taken as they are: so are "?" and "#", which names may hold.
fn decode(encoded: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(encoded.len());
    let mut rest = encoded.iter();
    while let Some(byte) = rest.next() {
        if *byte == b'%' {
            let high = hex(*rest.next()?)?;
            let low = hex(*rest.next()?)?;
            bytes.push(high << 4 | low);
        } else {
            bytes.push(*byte);
        }
    }
    Some(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    // A hexadecimal digit is at most 15, so it fits.
    char::from(digit)
        .to_digit(16)
        .and_then(|d| u8::try_from(d).ok())
}

fn refused(text: &[u8], why: String) -> DroppedItem {
    DroppedItem::Refused {
        text: Untrusted::from(text),
        why,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    const HERE: &[u8] = b"desk";

    /// Writes a path as a file manager would put it in a list.
    fn encode(path: &Path) -> String {
        let mut uri = String::from("file://");
        for byte in path.as_os_str().as_bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~/".contains(byte) {
                uri.push(char::from(*byte));
            } else {
                uri.push_str(&format!("%{byte:02X}"));
            }
        }
        uri
    }

    fn paths(list: &[u8]) -> Vec<PathBuf> {
        parse(list, HERE)
            .into_iter()
            .map(|item| match item {
                DroppedItem::Path(path) => path,
                DroppedItem::Refused { text, why } => panic!("{text} refused: {why}"),
            })
            .collect()
    }

    fn reason(line: &[u8]) -> String {
        match parse(line, HERE).as_slice() {
            [DroppedItem::Refused { why, .. }] => why.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_list_as_a_file_manager_writes_it_gives_its_paths_in_order() {
        let list = b"# from the file manager\r\nfile:///tmp/b%20c\r\nfile:///tmp/a\r\n";
        assert_eq!(
            paths(list),
            [PathBuf::from("/tmp/b c"), PathBuf::from("/tmp/a")]
        );
        assert_eq!(count(list), 2);
    }

    #[test]
    fn sloppy_lists_are_read_too() {
        assert_eq!(
            paths(
                b"file:///a\nfile:/b\nFILE://LOCALHOST/c\r\n\r\n  \r\n/d %41#x\nfile://Desk/e?#f\0"
            ),
            ["/a", "/b", "/c", "/d %41#x", "/e?#f"].map(PathBuf::from)
        );
    }

    #[test]
    fn a_name_of_any_bytes_survives() {
        let name = paths(b"file:///tmp/%FF%0a%e2%80%ae\xfe\r\n");
        assert_eq!(
            name[0].as_os_str().as_bytes(),
            b"/tmp/\xff\n\xe2\x80\xae\xfe"
        );
    }

    #[test]
    fn a_trailing_slash_does_not_turn_a_link_into_what_it_points_at() {
        assert_eq!(
            paths(b"file:///tmp/link/\r\nfile:////\r\n"),
            [PathBuf::from("/tmp/link"), PathBuf::from("/")]
        );
    }

    #[test]
    fn what_is_no_local_file_is_refused_with_its_reason() {
        assert_eq!(
            reason(b"https://example.org/x"),
            "it is an address of the kind https:, not a file on this computer"
        );
        assert_eq!(
            reason(b"file://elsewhere/x"),
            "it is on another computer, elsewhere"
        );
        assert_eq!(
            reason(b"file://desk"),
            "its path does not start with a slash"
        );
        assert_eq!(reason(b"file:x"), "its path does not start with a slash");
        assert_eq!(
            reason(b"notes.txt"),
            "it is neither a file address nor a path"
        );
        assert_eq!(
            reason(b"file:///a%00b"),
            "it holds a NUL byte, which no file name can"
        );
        assert_eq!(
            reason(b"/a\0b"),
            "it holds a NUL byte, which no file name can"
        );
        for damaged in ["file:///a%", "file:///a%2", "file:///a%zz", "file:///a%+1"] {
            assert_eq!(
                reason(damaged.as_bytes()),
                "its address has a damaged % escape"
            );
        }
    }

    #[test]
    fn one_bad_item_does_not_cost_the_others() {
        let items = parse(b"file:///a\r\nsmb://nas/x\r\nfile:///b\r\n", HERE);
        assert_eq!(items[0], DroppedItem::Path("/a".into()));
        assert!(
            matches!(&items[1], DroppedItem::Refused { text, .. } if text.as_bytes() == b"smb://nas/x")
        );
        assert_eq!(items[2], DroppedItem::Path("/b".into()));
    }

    #[test]
    fn a_list_beyond_the_limits_is_refused_as_a_whole() {
        let mut many = b"/a\n".repeat(MAX_ITEMS);
        assert_eq!(parse(&many, HERE).len(), MAX_ITEMS);
        many.extend_from_slice(b"/a\n");
        assert!(reason(&many).starts_with("it lists more than 1000000 items"));
        assert!(reason(&vec![b'a'; MAX_BYTES + 1]).starts_with("its list is longer than 64 MiB"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(list in prop::collection::vec(any::<u8>(), 0..400)) {
            prop_assert_eq!(parse(&list, HERE).len(), count(&list));
        }

        #[test]
        fn nearly_right_lists_are_read_without_a_panic(
            list in "(file:|FILE:|%[0-9a-f]?|/{1,3}|desk|\r\n|\n|#|\0|é|:){0,40}"
        ) {
            prop_assert_eq!(parse(list.as_bytes(), HERE).len(), count(list.as_bytes()));
        }

        #[test]
        fn what_is_encoded_comes_back(
            names in prop::collection::vec(prop::collection::vec(1u8.., 1..40), 0..20)
        ) {
            let names: Vec<PathBuf> = names
                .into_iter()
                .map(|mut name| {
                    name.insert(0, b'/');
                    while name.len() > 1 && name.ends_with(b"/") {
                        name.pop();
                    }
                    PathBuf::from(OsString::from_vec(name))
                })
                .collect();
            let list: String = names.iter().map(|name| encode(name) + "\r\n").collect();
            prop_assert_eq!(paths(list.as_bytes()), names);
        }
    }
}
