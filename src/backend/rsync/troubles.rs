//! Reads what rsync prints on its error output, and what its exit status means.
//!
//! A file that rsync said it moved is only believed when rsync ended well, or when every complaint
//! names a file. So a complaint that cannot be tied to one is a doubt about all.

use crate::backend::rsync::USE;
use crate::backend::rsync::lines::decode;
use crate::model::error::{Error, ErrorKind};
use crate::model::location::Host;
use crate::model::untrusted::Untrusted;
use crate::remote::failure::login_failure;

/// How items are called: rsync's name of one, and the path that its row has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Naming {
    /// As rsync has it.
    AsTold,
    /// Below a folder that got this new name.
    Below(Vec<u8>),
    /// There is one item, and it gets this name.
    Only(Vec<u8>),
}

impl Naming {
    /// Returns the path of a row; `None` for the destination itself.
    pub fn row(&self, name: &[u8]) -> Option<Vec<u8>> {
        let name = name.strip_suffix(b"/").unwrap_or(name);
        match self {
            Self::Only(top) => Some(top.clone()),
            Self::AsTold if name == b"." => None,
            Self::AsTold => Some(name.to_vec()),
            Self::Below(top) if name == b"." => Some(top.clone()),
            Self::Below(top) => Some([top, &b"/"[..], name].concat()),
        }
    }
}

/// A place that rsync names in its complaints, and the row that belongs to it.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The full path of a source or of the destination.
    pub at: Vec<u8>,
    /// The path of its row; empty for the destination itself.
    pub row: Vec<u8>,
}

/// Returns the row of a full path.
fn row_at(places: &[Place], path: &[u8]) -> Option<Vec<u8>> {
    let inside = places.iter().filter_map(|place| {
        let at = place.at.strip_suffix(b"/").unwrap_or(&place.at);
        let rest = path.strip_prefix(at)?;
        match rest.strip_prefix(b"/") {
            Some(rest) => Some((at.len(), &place.row, rest)),
            None => rest.is_empty().then_some((at.len(), &place.row, rest)),
        }
    });
    let (_, row, rest) = inside.max_by_key(|(len, ..)| *len)?;
    let path = match (row.is_empty(), rest.is_empty()) {
        (true, _) => rest.to_vec(),
        (false, true) => row.clone(),
        (false, false) => [row, &b"/"[..], rest].concat(),
    };
    (!path.is_empty()).then_some(path)
}

/// One complaint.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// This item did not arrive.
    Failed(Vec<u8>, Error),
    /// This item went away before it was read.
    Vanished(Vec<u8>),
    /// It arrived, but not with its time or mode.
    NotKept(Error),
    /// It arrived changed and is sent once more.
    Again(Vec<u8>),
    /// Something that names no item.
    Unclear(Error),
}

/// Reads one line; `None` for one that says nothing new.
pub(super) fn read(line: &[u8], places: &[Place], naming: &Naming) -> Option<Trouble> {
    if let Some(rest) = line.strip_prefix(b"file has vanished: ") {
        let path = quoted(rest).and_then(|path| row_at(places, &path));
        return Some(path.map_or_else(|| unclear(line), Trouble::Vanished));
    }
    for (start, again) in [(&b"ERROR: "[..], false), (b"WARNING: ", true)] {
        let Some(rest) = line.strip_prefix(start) else {
            continue;
        };
        let end = b" failed verification -- update ";
        let at = rest.windows(end.len()).rposition(|part| part == end);
        let Some(row) = at.and_then(|at| naming.row(&decode(&rest[..at]))) else {
            return Some(unclear(line));
        };
        let error = Error::new(ErrorKind::Corrupt, "receive the file", "it arrived changed")
            .at(&row[..])
            .hint("memory or disk of one of the computers may be damaged");
        return Some(match again {
            true => Trouble::Again(row),
            false => Trouble::Failed(row, error),
        });
    }
    if let Some(rest) = line.strip_prefix(b"could not make way for ") {
        let name = rest.windows(2).position(|part| part == b": ");
        let Some(row) = name.and_then(|at| naming.row(&decode(&rest[at + 2..]))) else {
            return Some(unclear(line));
        };
        let cause = "something else of that name is in the way";
        let error = Error::new(ErrorKind::Exists, "put it in its place", cause)
            .at(&row[..])
            .hint("move what is there away, then run this again");
        return Some(Trouble::Failed(row, error));
    }
    let rest = match line.strip_prefix(b"rsync: ") {
        Some(rest) => rest,
        // Complaints without rsync's name before them.
        None if [&b"could not "[..], b"cannot ", b"failed "]
            .iter()
            .any(|start| line.starts_with(start)) =>
        {
            return Some(unclear(line));
        }
        None => return None,
    };
    let row = quoted(rest).and_then(|path| {
        let row = row_at(places, &path)?;
        Some(match contains(rest, b"mkstemp ") {
            true => without_temporary(row),
            false => row,
        })
    });
    let reading = contains(rest, b"[sender]") || contains(rest, b"[Sender]");
    let doing = match reading {
        true => "read the file",
        false => "write the file",
    };
    let error = match number_at_end(rest) {
        Some(number) => Error::io(doing, &std::io::Error::from_raw_os_error(number)),
        None => Error::new(ErrorKind::Tool, doing, decode(rest)),
    };
    Some(match row {
        None => Trouble::Unclear(Error::new(error.kind, doing, decode(rest))),
        Some(row) => {
            let error = error.at(&row[..]);
            match contains(rest, b"failed to set ") || contains(rest, b"chgrp ") {
                true => Trouble::NotKept(error),
                false => Trouble::Failed(row, error),
            }
        }
    })
}

fn unclear(line: &[u8]) -> Trouble {
    Trouble::Unclear(Error::new(ErrorKind::Tool, "copy everything", decode(line)))
}

/// Returns what stands between the first quotation mark and the next that can end a path.
fn quoted(text: &[u8]) -> Option<Vec<u8>> {
    let start = text.iter().position(|b| *b == b'"')? + 1;
    let rest = &text[start..];
    // A name may hold quotation marks; what follows a path is a colon, a blank or nothing.
    let end = rest.iter().enumerate().find_map(|(at, b)| {
        let after = &rest[at + 1..];
        let ends = after.is_empty()
            || [&b" failed"[..], b": ", b" -> ", b" ("]
                .iter()
                .any(|end| after.starts_with(end));
        (*b == b'"' && ends).then_some(at)
    })?;
    Some(decode(&rest[..end]))
}

/// Turns the name of a file in the making, `folder/.name.` and six letters, into `folder/name`.
fn without_temporary(row: Vec<u8>) -> Vec<u8> {
    let at = row.iter().rposition(|b| *b == b'/').map_or(0, |at| at + 1);
    let name = &row[at..];
    if name.len() > 8 && name[0] == b'.' && name[name.len() - 7] == b'.' {
        return [&row[..at], &name[1..name.len() - 7]].concat();
    }
    row
}

/// Returns the system's error number, which rsync puts in brackets at the end.
fn number_at_end(text: &[u8]) -> Option<i32> {
    let text = text.trim_ascii_end().strip_suffix(b")")?;
    let at = text.iter().rposition(|b| *b == b'(')?;
    std::str::from_utf8(&text[at + 1..]).ok()?.parse().ok()
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Returns the error of a run that rsync did not bring to its end.
pub(super) fn ended(code: Option<i32>, host: &Host, stderr: &[u8], last: Option<Error>) -> Error {
    const DOING: &str = "run rsync";
    let there = host.name.as_str();
    let lines = || {
        stderr
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
    };
    let own = lines().find(|line| line.starts_with(b"rsync"));
    let cause: Untrusted = match own.or_else(|| lines().next_back()) {
        Some(line) => decode(line).into(),
        None => "it gave no reason".into(),
    };
    match code {
        Some(255 | 10 | 12 | 30 | 35) => {
            let words: Vec<&[u8]> = lines().filter(|line| !line.starts_with(b"rsync")).collect();
            let told = login_failure("go on with the transfer", host, &words.join(&b'\n'));
            match told.kind {
                ErrorKind::Disconnected => {
                    Error::new(ErrorKind::Disconnected, "go on with the transfer", cause)
                        .at(there)
                        .hint("try again, or resume; what arrived is kept")
                }
                _ => told,
            }
        }
        Some(126 | 127) => Error::new(
            ErrorKind::Tool,
            USE,
            format!("rsync is not installed on {there}"),
        )
        .at(there)
        .hint("install rsync there, or choose sftp"),
        Some(2 | 4) => Error::new(ErrorKind::Unsupported, DOING, cause)
            .at(there)
            .hint("install a newer rsync there, or choose another method"),
        Some(3 | 11) => last.unwrap_or_else(|| Error::new(ErrorKind::Io, DOING, cause).at(there)),
        None => Error::new(ErrorKind::Tool, DOING, "it was ended by a signal").at(there),
        _ => Error::new(ErrorKind::Tool, DOING, cause).at(there),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Vec<Place> {
        let place = |at: &str, row: &str| Place {
            at: at.into(),
            row: row.into(),
        };
        vec![place("/home/me/src", "src"), place("/dst/", "")]
    }

    fn read_line(line: &str) -> Option<Trouble> {
        read(line.as_bytes(), &places(), &Naming::AsTold)
    }

    #[test]
    fn complaints_find_their_row() {
        for (line, row, kind) in [
            (
                r#"rsync: [sender] send_files failed to open "/home/me/src/a\#012b": Permission denied (13)"#,
                "src/a\nb",
                ErrorKind::Denied,
            ),
            (
                r#"rsync: [receiver] mkstemp "/dst/un/.ok.dpVEed" failed: Permission denied (13)"#,
                "un/ok",
                ErrorKind::Denied,
            ),
            (
                r#"rsync: [receiver] write failed on "/dst/big": No space left on device (28)"#,
                "big",
                ErrorKind::NoSpace,
            ),
            (
                r#"rsync: [sender] opendir "/home/me/src" failed: Permission denied (13)"#,
                "src",
                ErrorKind::Denied,
            ),
            (
                "ERROR: src/x failed verification -- update discarded.",
                "src/x",
                ErrorKind::Corrupt,
            ),
            (
                "could not make way for new regular file: src/x",
                "src/x",
                ErrorKind::Exists,
            ),
        ] {
            match read_line(line) {
                Some(Trouble::Failed(path, error)) => {
                    assert_eq!((path.as_slice(), error.kind), (row.as_bytes(), kind));
                }
                other => panic!("{line}: {other:?}"),
            }
        }
        assert_eq!(
            read_line(r#"file has vanished: "/home/me/src/x""#),
            Some(Trouble::Vanished(b"src/x".to_vec()))
        );
        assert_eq!(
            read_line("WARNING: src/x failed verification -- update discarded (will try again)."),
            Some(Trouble::Again(b"src/x".to_vec()))
        );
        assert!(matches!(
            read_line(
                r#"rsync: [generator] failed to set times on "/dst/x": Operation not permitted (1)"#
            ),
            Some(Trouble::NotKept(_))
        ));
    }

    #[test]
    fn a_complaint_that_names_no_row_is_a_doubt_and_chatter_is_none() {
        for line in [
            r#"rsync: [receiver] mkstemp "/elsewhere/x" failed: Permission denied (13)"#,
            "could not make way for x",
            "rsync: something new",
        ] {
            assert!(
                matches!(read_line(line), Some(Trouble::Unclear(_))),
                "{line}"
            );
        }
        for line in [
            "Warning: Permanently added 'nas' to the list of known hosts.",
            "rsync error: some files/attrs were not transferred (code 23) at main.c(1) [sender=3.2.7]",
            "*** Skipping any contents from this failed directory ***",
            "",
        ] {
            assert_eq!(read_line(line), None, "{line}");
        }
    }

    #[test]
    fn an_exit_status_tells_its_kind() {
        let host = Host {
            name: "nas".into(),
            ..Host::default()
        };
        let kind = |code, text: &str| ended(code, &host, text.as_bytes(), None).kind;
        assert_eq!(
            kind(Some(12), "rsync: connection unexpectedly closed"),
            ErrorKind::Disconnected
        );
        assert_eq!(
            kind(Some(255), "me@nas: Permission denied (publickey)."),
            ErrorKind::Login
        );
        assert_eq!(kind(Some(127), "sh: rsync: not found"), ErrorKind::Tool);
        assert_eq!(
            kind(Some(2), "protocol version mismatch"),
            ErrorKind::Unsupported
        );
        assert_eq!(kind(None, ""), ErrorKind::Tool);
    }

    #[test]
    fn rows_are_called_by_what_they_become() {
        let below = Naming::Below(b"new".to_vec());
        assert_eq!(below.row(b"./").unwrap(), b"new");
        assert_eq!(below.row(b"a/b/").unwrap(), b"new/a/b");
        assert_eq!(Naming::Only(b"n".to_vec()).row(b"f").unwrap(), b"n");
        assert_eq!(Naming::AsTold.row(b"./"), None);
    }
}
