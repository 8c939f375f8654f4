//! Where a sender begins: what the user wrote, opened once.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fs::filter::Filter;
use crate::fs::root::Root;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::relpath::RelPath;
use crate::model::rules::{Rule, RuleVerb};
use crate::pump::destination::without_slash;
use crate::pump::name::STAGING_GLOB;

/// One source: a root that stays open, and what of it is sent.
#[derive(Clone, Debug)]
pub struct Source {
    /// The folder that everything is opened beneath.
    pub root: Arc<Root>,
    /// One thing in it; `None` for all of it.
    pub start: Option<RelPath>,
    /// The name that the folder gets; `None` where only its contents are sent.
    pub prefix: Option<RelPath>,
}

impl Source {
    /// Opens what the user wrote. A folder is sent as itself, or with `contents` without its name;
    /// a link as a link, unless the path ends in a slash.
    ///
    /// # Errors
    /// `NotFound` and the like, with the path as the place.
    pub fn open(written: &[u8], contents: bool) -> Result<Self> {
        let at = |e: Error| e.at(written);
        let failed = |e: std::io::Error| {
            let slash = written.ends_with(b"/")
                && std::fs::symlink_metadata(expand(without_slash(written))).is_ok()
                && e.kind() == std::io::ErrorKind::NotADirectory;
            let mut error = at(Error::io("open the source", &e));
            if slash {
                error.hint = Some("it is a file: leave out the slash at its end".to_owned());
            }
            error
        };
        let path = expand(written);
        let meta = std::fs::symlink_metadata(&path).map_err(failed)?;
        let plain = matches!(
            path.components().next_back(),
            Some(std::path::Component::Normal(_))
        );
        let follow = !plain || written.ends_with(b"/");
        // A name such as `dir/..` or `.` or `link/` stands for the folder behind it.
        let path = if follow {
            std::fs::canonicalize(&path).map_err(failed)?
        } else {
            path
        };
        let is_dir = if follow { path.is_dir() } else { meta.is_dir() };
        let name = path
            .file_name()
            .map(|n| RelPath::new(n.as_bytes()))
            .transpose()
            .map_err(at)?;
        if is_dir {
            let root = Arc::new(Root::open(&path)?);
            let prefix = if contents { None } else { name };
            return Ok(Self {
                root,
                start: None,
                prefix,
            });
        }
        let Some(name) = name else {
            return Err(at(Error::new(
                ErrorKind::Unsupported,
                "open the source",
                "it has no name",
            )));
        };
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        Ok(Self {
            root: Arc::new(Root::open(parent)?),
            start: Some(name),
            prefix: None,
        })
    }

    /// Returns the first component of every path that this source gives; `None` where there are
    /// many.
    pub fn top(&self) -> Option<&RelPath> {
        self.prefix.as_ref().or(self.start.as_ref())
    }
}

/// Opens all sources. Those that cannot be opened, or whose name another one has, are returned
/// beside with the reason.
pub fn open_all(written: &[Vec<u8>], contents: bool) -> (Vec<Source>, Vec<(Vec<u8>, Error)>) {
    let (mut sources, mut troubles): (Vec<Source>, _) = (Vec::new(), Vec::new());
    let mut tops = std::collections::HashSet::new();
    for path in written {
        let opened = Source::open(path, contents).and_then(|source| match source.top() {
            Some(top) if !tops.insert(top.clone()) => Err(Error::new(
                ErrorKind::Exists,
                "send the source",
                format!("another source has the same name, {top}"),
            )
            .at(&path[..])
            .hint("send them one after the other to different folders")),
            _ => Ok(source),
        });
        match opened {
            Ok(source) => sources.push(source),
            Err(error) => troubles.push((path.clone(), error)),
        }
    }
    (sources, troubles)
}

/// Returns the filter of a run: the user's rules, and never a staging folder.
///
/// # Errors
/// `Config` for a pattern that makes no sense.
pub fn filter(rules: &[Rule]) -> Result<Filter> {
    let ours = Rule {
        verb: RuleVerb::Exclude,
        pattern: STAGING_GLOB.to_owned(),
    };
    let all: Vec<Rule> = std::iter::once(ours).chain(rules.iter().cloned()).collect();
    Filter::new(&all)
}

/// Replaces a leading `~` by the home folder.
pub fn expand(written: &[u8]) -> PathBuf {
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    let rest = match written {
        b"" | b"~" => return home().unwrap_or_else(|| PathBuf::from(".")),
        [b'~', b'/', rest @ ..] => rest,
        _ => return PathBuf::from(OsStr::from_bytes(written)),
    };
    let start = rest.iter().position(|b| *b != b'/').unwrap_or(rest.len());
    home()
        .unwrap_or_default()
        .join(OsStr::from_bytes(&rest[start..]))
}
