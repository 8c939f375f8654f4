//! Makes jobs from what a person typed or dropped: absolute places, and the checks
//! that need no connection.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::backend;
use crate::fs::filter::Filter;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::location::Location;
use crate::model::profile::{MethodChoice, SshSettings};
use crate::model::rules::Rule;
use crate::remote::options;

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

/// Completes "Failed to ...".
const PREPARE: &str = "prepare the transfer";

/// Refuses what no method can do: nothing to move, both sides on other computers, or a kind of
/// server that this version cannot talk to.
///
/// # Errors
/// `Config` or `Unsupported`, with what to change.
pub fn check_sides(sources: &[Location], destination: &Location) -> Result<()> {
    let doing = PREPARE;
    if sources.is_empty() {
        return Err(
            Error::new(ErrorKind::Config, doing, "there is no source").hint("say what to move")
        );
    }
    sources
        .iter()
        .chain([destination])
        .try_for_each(check_place)?;
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

/// Refuses a place on a kind of server that no method reaches yet.
///
/// # Errors
/// `Unsupported`, with what to write instead.
pub fn check_place(place: &Location) -> Result<()> {
    let (what, instead) = match place {
        Location::Local(_) | Location::Ssh { .. } => return Ok(()),
        Location::Ftp { tls: false, .. } => ("ftp is", BY_SSH),
        Location::Ftp { tls: true, .. } => ("ftps is", BY_SSH),
        Location::Tftp { .. } => ("tftp is", BY_SSH),
        Location::RsyncDaemon { .. } => (
            "rsync's own server is",
            "with an ssh login there write host:path and choose --method rsync, or leave the \
             choice to auto",
        ),
        Location::Tcp { .. } => ("a plain TCP port is", BY_SSH),
    };
    let cause = format!("{what} not available in this version");
    Err(Error::new(ErrorKind::Unsupported, PREPARE, cause)
        .at(place.to_bytes())
        .hint(instead))
}

/// What to do where a server cannot be talked to.
const BY_SSH: &str = "with an ssh login there write host:path; the methods tcp, rsync and sftp \
                      reach it";

/// Refuses a job that its method, or with `auto` every method, would refuse by its places and
/// settings alone, before anything starts.
///
/// # Errors
/// `Config` or `Unsupported`, with what to change.
pub fn check_method(spec: &JobSpec) -> Result<()> {
    check_sides(&spec.sources, &spec.destination)?;
    if let MethodChoice::Named(name) = &spec.settings.method {
        // A method that is not there is told by whoever chooses.
        return backend::by_id(name).map_or(Ok(()), |method| method.supports(spec));
    }
    let mut refusals = backend::ALL
        .iter()
        .map(|method| method.supports(spec))
        .collect::<Vec<_>>();
    if refusals.iter().any(Result::is_ok) {
        return Ok(());
    }
    // The best one says what is in the way; `auto` was asked for, so no method is to blame.
    match refusals.swap_remove(0) {
        Ok(()) => Ok(()),
        Err(error) => Err(Error {
            doing: PREPARE.to_owned(),
            ..error
        }),
    }
}

/// Refuses filter rules that cannot be read.
///
/// # Errors
/// `Config`, naming the pattern and what is wrong with it.
pub fn check_rules(rules: &[Rule]) -> Result<()> {
    Filter::new(rules).map(drop)
}

/// Refuses ssh options that may not be given, or are not written as ssh reads them.
///
/// # Errors
/// `Config`, naming the option and what is wrong with it.
pub fn check_ssh_options(ssh: &SshSettings) -> Result<()> {
    options::check(&ssh.options).map(drop)
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
        let read = |text: &str| Location::parse(text.as_bytes()).unwrap();
        for (place, word) in [
            ("ftp://nas/a", "ftp is not available"),
            ("ftps://nas/a", "ftps is not available"),
            ("tftp://nas/a", "tftp is not available"),
            ("nas::module/a", "rsync's own server is not"),
            ("tcp://nas:9000", "TCP port is not"),
        ] {
            for error in [
                check_sides(&[local("/a")], &read(place)).unwrap_err(),
                check_sides(&[read(place)], &local("/a")).unwrap_err(),
            ] {
                assert_eq!(error.kind, ErrorKind::Unsupported);
                assert!(error.to_string().contains(word), "{error}");
                assert!(error.hint.unwrap().contains("host:path"));
            }
        }
        let both = check_sides(&[local("/a"), ssh("a")], &ssh("b")).unwrap_err();
        assert_eq!(both.kind, ErrorKind::Unsupported);
        assert!(both.hint.is_some());
        assert_eq!(
            check_sides(&[], &local("/b")).unwrap_err().kind,
            ErrorKind::Config
        );
    }
}
