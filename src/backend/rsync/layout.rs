//! Decides, by the same rules as the other methods, what rsync is to copy where, and how its rows
//! are called.
//!
//! What ends in a slash or is a folder means *into*; otherwise, with one source, it is the new name.
//! A folder goes as itself, or with `contents` without its name.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path};
use std::sync::{Mutex, PoisonError};

use crate::backend::ends::Ends;
use crate::backend::rsync::args::{has_wildcard, letter_by_letter, on_host};
use crate::backend::rsync::far::{Far, Kind, given};
use crate::backend::rsync::troubles::{Naming, Place};
use crate::backend::rsync::{USE, rules};
use crate::fs::filter::Filter;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::{JobId, JobSpec};
use crate::pump::destination::{Destination, without_slash};
use crate::pump::source;

/// Jobs whose first attempt made a folder under a new name there: when one goes on, the folder is
/// there and still is the name and not what to copy into. rsync leaves no trace that would tell.
static NAMED: Mutex<BTreeSet<JobId>> = Mutex::new(BTreeSet::new());

/// What to copy where.
#[derive(Debug)]
pub(super) struct Layout {
    /// Sources and destination, as rsync takes them.
    pub names: Vec<OsString>,
    /// How rows are called.
    pub naming: Naming,
    /// What rsync names in its complaints.
    pub places: Vec<Place>,
    /// The folder here that everything lands in.
    pub landing: Option<Destination>,
    /// Sources that cannot be copied, and why.
    pub troubles: Vec<(Vec<u8>, Error)>,
}

/// Returns the paths there that have to be looked at before [`Layout::new`]: the home folder, then
/// the job's.
pub(super) fn to_look_at(ends: &Ends) -> Vec<Vec<u8>> {
    let mut paths = vec![Vec::new()];
    match ends {
        Ends::Push { destination, .. } => paths.push(without_slash(destination).to_vec()),
        Ends::Pull { sources, .. } => paths.extend(sources.iter().cloned()),
    }
    paths
}

/// One source, on whichever side.
struct From {
    /// Its path as rsync takes it, without a slash at the end.
    path: Vec<u8>,
    /// Its full path.
    full: Vec<u8>,
    folder: bool,
    /// The name that it has at the destination by itself; `None` where only its contents go.
    name: Option<Vec<u8>>,
}

impl Layout {
    /// Decides.
    ///
    /// # Errors
    /// `Exists` when something in the destination's place cannot be it, `Unsupported` for what rsync
    /// cannot be told.
    pub fn new(spec: &JobSpec, ends: &Ends, far: &Far) -> Result<Self> {
        match ends {
            Ends::Push {
                host,
                sources,
                destination,
            } => {
                let (from, troubles) = local_sources(sources, spec.settings.contents)?;
                let (home, there) = match &far.looked[..] {
                    [home, there, ..] => (home, there),
                    _ => return Err(Error::new(ErrorKind::Bug, USE, "nothing was looked at")),
                };
                let to = given(destination);
                let name = last_name(&to);
                let is_folder = there.kind == Kind::Folder;
                let into = (is_folder && !(spec.resume && was_named(&spec.id)))
                    || to.ends_with(b"/")
                    || name.is_none()
                    || spec.settings.contents
                    || sources.len() != 1;
                if there.kind == Kind::Other && (into || from.iter().any(|f| f.folder)) {
                    return Err(not_a_folder(destination));
                }
                if has_wildcard(&to) && there.kind == Kind::Nothing {
                    let cause = "rsync there would read a pattern in the destination's name";
                    return Err(Error::new(ErrorKind::Unsupported, USE, cause)
                        .at(&destination[..])
                        .hint("make the folder first, or choose another method"));
                }
                let top = name.filter(|_| !into);
                let full = match to.strip_prefix(b"./") {
                    _ if to.starts_with(b"/") => to.clone(),
                    Some(below) => [&home.real[..], b"/", below].concat(),
                    None => home.real.clone(),
                };
                let plain = letter_by_letter(&to, false)?;
                let mut layout = Self::of(spec, from, top.as_deref(), &full, troubles)?;
                layout.names.push(on_host(host, &layout.ended(&plain)));
                Ok(layout)
            }
            Ends::Pull {
                host,
                sources,
                destination,
            } => {
                let (from, troubles) = far_sources(sources, far, spec.settings.contents);
                let resumed = spec.resume.then_some(&spec.id.0);
                let found = Destination::find(
                    destination,
                    sources.len() as u64,
                    spec.settings.contents,
                    resumed,
                )?;
                let folder = absolute(&found.folder)?;
                let mut full = folder.as_os_str().as_bytes().to_vec();
                if let Some(top) = &found.top {
                    full = [&full[..], b"/", top].concat();
                }
                let mut layout = Self::of(spec, from, found.top.as_deref(), &full, troubles)?;
                for name in &mut layout.names {
                    *name = on_host(host, &letter_by_letter(name.as_bytes(), true)?);
                }
                let end = layout.ended(&full);
                layout.names.push(OsString::from_vec(end));
                layout.landing = Some(found);
                Ok(layout)
            }
        }
    }

    /// Notes that this run makes a folder under a new name there.
    pub fn remember(&self, job: &JobId) {
        if self.landing.is_none() && matches!(self.naming, Naming::Below(_)) {
            named().insert(*job);
        }
    }

    /// Forgets it when the job is done.
    pub fn forget(job: &JobId) {
        named().remove(job);
    }

    /// Says whether there is nothing to copy.
    pub fn is_empty(&self) -> bool {
        self.names.len() < 2
    }

    fn of(
        spec: &JobSpec,
        from: Vec<From>,
        top: Option<&[u8]>,
        destination: &[u8],
        troubles: Vec<(Vec<u8>, Error)>,
    ) -> Result<Self> {
        let mut naming = Naming::AsTold;
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for From {
            path,
            full,
            folder,
            name,
        } in from
        {
            let row = match (top, &name) {
                (Some(top), Some(name)) if folder => {
                    tops_stay(spec, name)?;
                    naming = Naming::Below(top.to_vec());
                    top
                }
                (Some(top), _) => {
                    naming = Naming::Only(top.to_vec());
                    top
                }
                (None, Some(name)) => name,
                (None, None) => b"",
            };
            places.push(Place {
                at: full,
                row: row.to_vec(),
            });
            let contents = folder && (top.is_some() || name.is_none());
            names.push(OsString::from_vec(match contents {
                true => [&path[..], b"/"].concat(),
                false => path,
            }));
        }
        places.push(Place {
            at: destination.to_vec(),
            row: top.unwrap_or_default().to_vec(),
        });
        Ok(Self {
            names,
            naming,
            places,
            landing: None,
            troubles,
        })
    }

    /// Returns the destination with a slash unless it is one file's name.
    fn ended(&self, path: &[u8]) -> Vec<u8> {
        match self.naming {
            Naming::Only(_) => path.to_vec(),
            _ if path.ends_with(b"/") => path.to_vec(),
            _ => [path, b"/"].concat(),
        }
    }
}

fn named() -> std::sync::MutexGuard<'static, BTreeSet<JobId>> {
    NAMED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn was_named(job: &JobId) -> bool {
    named().contains(job)
}

/// Refuses rules that would mean something else, because rsync sees a folder that gets a new name
/// only from within.
fn tops_stay(spec: &JobSpec, name: &[u8]) -> Result<()> {
    let rules = &spec.settings.rules;
    if !rules.iter().any(rules::looks_at_place) && !Filter::new(rules)?.excludes(name, true) {
        return Ok(());
    }
    let cause = "these filters look at the folder's own name, which rsync does not see when the \
                 folder gets a new one";
    Err(Error::new(ErrorKind::Unsupported, USE, cause)
        .hint("end the destination with a slash to keep the name, or choose another method"))
}

fn local_sources(written: &[Vec<u8>], contents: bool) -> Result<(Vec<From>, Vec<Missing>)> {
    let (opened, troubles) = source::open_all(written, contents);
    let from = opened.iter().map(|source| {
        let mut path = absolute(source.root.path())?;
        if let Some(start) = &source.start {
            path.push(start.as_path());
        }
        let path = path.into_os_string().into_vec();
        Ok(From {
            full: path.clone(),
            path,
            folder: source.start.is_none(),
            name: source.top().map(|top| top.as_bytes().to_vec()),
        })
    });
    Ok((from.collect::<Result<_>>()?, troubles))
}

fn far_sources(
    written: &[Vec<u8>],
    far: &Far,
    contents: bool,
) -> (Vec<From>, Vec<(Vec<u8>, Error)>) {
    let (mut from, mut troubles) = (Vec::new(), Vec::new());
    let mut taken = BTreeSet::new();
    let home = far
        .looked
        .first()
        .map(|home| &home.real[..])
        .unwrap_or_default();
    for (written, looked) in written.iter().zip(far.looked.iter().skip(1)) {
        let path = given(written);
        let own = last_name(&path);
        // A name such as `dir/..` or `.` or `link/` stands for the folder behind it.
        let follow = path.ends_with(b"/") || own.is_none();
        let link = looked.link && !follow;
        if looked.kind == Kind::Nothing && !link {
            let error = Error::new(
                ErrorKind::NotFound,
                "open the source",
                "there is no such file",
            )
            .at(&written[..]);
            troubles.push((written.clone(), error));
            continue;
        }
        let folder = looked.kind == Kind::Folder && !link;
        let (path, name) = match follow {
            true => (looked.real.clone(), last_name(&looked.real)),
            false => (path, own),
        };
        let name = name.filter(|_| !(contents && folder));
        if let Some(name) = &name {
            if !taken.insert(name.clone()) {
                let error = Error::new(
                    ErrorKind::Exists,
                    "send the source",
                    "another source has the same name",
                )
                .at(&written[..])
                .hint("send them one after the other to different folders");
                troubles.push((written.clone(), error));
                continue;
            }
        }
        let full = match path.strip_prefix(b"./") {
            Some(below) => [home, b"/", below].concat(),
            None => path.clone(),
        };
        from.push(From {
            path,
            full,
            folder,
            name,
        });
    }
    (from, troubles)
}

/// A source that is not there, as the user wrote it, and why.
type Missing = (Vec<u8>, Error);

/// Returns the last component of a path, if it is a name.
fn last_name(path: &[u8]) -> Option<Vec<u8>> {
    match Path::new(OsStr::from_bytes(path)).components().next_back() {
        // `Components` leaves a dot at the end out.
        Some(Component::Normal(name)) if !path.ends_with(b"/.") => Some(name.as_bytes().to_vec()),
        _ => None,
    }
}

fn absolute(path: &Path) -> Result<std::path::PathBuf> {
    std::path::absolute(path).map_err(|e| Error::io("find the folder", &e).at(path))
}

fn not_a_folder(path: &[u8]) -> Error {
    Error::new(
        ErrorKind::Exists,
        "use the destination",
        "it is not a folder",
    )
    .at(path)
    .hint("name a folder, or send a single file to replace this one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_name_at_the_end_is_one() {
        for (path, want) in [
            ("/a/b", Some("b")),
            ("./b/", Some("b")),
            ("/", None),
            (".", None),
            ("./a/..", None),
            ("/a/.", None),
        ] {
            assert_eq!(
                last_name(path.as_bytes()),
                want.map(|w| w.as_bytes().to_vec()),
                "{path}"
            );
        }
    }
}
