//! Makes jobs from what a person typed or dropped: absolute places, and the checks
//! that need no connection.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Location;

/// Reads a place and makes a local one absolute, so that it means the same after a restart in
/// another folder. Links are kept as they are; only a source that ends in `.` or `..` is resolved,
/// since it has no name of its own.
///
/// # Errors
/// `Config` when the place cannot be read as one.
pub fn place(text: &OsStr) -> Result<Location> {
    absolute_place(Location::parse(text.as_bytes())?)
}

/// Makes a local place absolute, as [`place`] does.
///
/// # Errors
/// When the current folder, or the one that `.` or `..` means, cannot be found.
pub fn absolute_place(place: Location) -> Result<Location> {
    match place {
        Location::Local(path) => Ok(Location::Local(absolute(path)?)),
        remote => Ok(remote),
    }
}

fn absolute(path: Vec<u8>) -> Result<Vec<u8>> {
    if path.starts_with(b"~/") || path == b"~" || path.is_empty() {
        return Ok(path);
    }
    let last = path.split(|b| *b == b'/').rfind(|part| !part.is_empty());
    if matches!(last, Some(b"." | b"..")) {
        let real = std::fs::canonicalize(Path::new(OsStr::from_bytes(&path)))
            .map_err(|e| Error::io("find the folder", &e).at(&path[..]))?;
        let mut real = real.into_os_string().into_vec();
        if path.ends_with(b"/") && !real.ends_with(b"/") {
            real.push(b'/');
        }
        return Ok(real);
    }
    if path.starts_with(b"/") {
        return Ok(path);
    }
    let here = std::env::current_dir().map_err(|e| Error::io("find the current folder", &e))?;
    let mut full = here.into_os_string().into_vec();
    if !full.ends_with(b"/") {
        full.push(b'/');
    }
    let mut rest = &path[..];
    while let Some(shorter) = rest.strip_prefix(b"./") {
        rest = shorter;
        while let Some(shorter) = rest.strip_prefix(b"/") {
            rest = shorter;
        }
    }
    full.extend_from_slice(rest);
    Ok(full)
}

/// Returns the path of a local place, with `~/` replaced by the home folder.
pub fn local_path(place: &Location) -> Option<PathBuf> {
    let Location::Local(path) = place else {
        return None;
    };
    let home_rest = path.strip_prefix(b"~/").or((path == b"~").then_some(b""));
    match (home_rest, std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => Some(PathBuf::from(home).join(OsStr::from_bytes(rest))),
        _ => Some(PathBuf::from(OsStr::from_bytes(path))),
    }
}

/// Refuses what no method can do: nothing to move, or both sides on other computers.
///
/// # Errors
/// `Config` or `Unsupported`, with what to change.
pub fn check_sides(sources: &[Location], destination: &Location) -> Result<()> {
    let doing = "prepare the transfer";
    if sources.is_empty() {
        return Err(
            Error::new(ErrorKind::Config, doing, "there is no source").hint("say what to move")
        );
    }
    if destination.is_local() {
        return Ok(());
    }
    match sources.iter().find(|source| !source.is_local()) {
        None => Ok(()),
        Some(source) => Err(Error::new(
            ErrorKind::Unsupported,
            doing,
            "both sides are on other computers",
        )
        .at(source.to_bytes())
        .hint("copy to a folder here first, or log in to one of them and start the copy there")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::location::Host;

    fn local(path: &str) -> Location {
        Location::Local(path.as_bytes().to_vec())
    }

    fn ssh(path: &str) -> Location {
        let host = Host {
            name: "nas".to_owned(),
            ..Host::default()
        };
        Location::Ssh {
            host,
            path: path.as_bytes().to_vec(),
        }
    }

    #[test]
    fn relative_places_become_absolute_and_keep_their_ending() {
        let here = std::env::current_dir().unwrap().into_os_string().into_vec();
        let below = |rest: &str| [&here[..], b"/", rest.as_bytes()].concat();
        assert_eq!(absolute(b"a/".to_vec()).unwrap(), below("a/"));
        assert_eq!(absolute(b"././/a:b".to_vec()).unwrap(), below("a:b"));
        assert_eq!(
            absolute(b".".to_vec()).unwrap(),
            std::fs::canonicalize(".")
                .unwrap()
                .into_os_string()
                .into_vec()
        );
        for same in ["/x/y/", "~/x", "~"] {
            assert_eq!(absolute(same.as_bytes().to_vec()).unwrap(), same.as_bytes());
        }
    }

    #[test]
    fn two_far_sides_and_no_source_are_refused_with_what_to_do() {
        assert!(check_sides(&[local("/a")], &ssh("b")).is_ok());
        assert!(check_sides(&[ssh("a")], &local("/b")).is_ok());
        let both = check_sides(&[local("/a"), ssh("a")], &ssh("b")).unwrap_err();
        assert_eq!(both.kind, ErrorKind::Unsupported);
        assert!(both.hint.is_some());
        assert_eq!(
            check_sides(&[], &local("/b")).unwrap_err().kind,
            ErrorKind::Config
        );
    }
}
