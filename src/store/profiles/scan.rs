//! What lies in the folder of profiles: each file read once, and again only when it changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::profile::ProfileId;
use crate::store::file as disk;
use crate::store::profiles::{Damaged, Entry, file, slug};

/// Tells whether a file is still the one that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    mtime: (i64, i64),
    ctime: (i64, i64),
}

/// One file.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) file_name: String,
    pub(super) entry: Entry,
    stamp: Stamp,
}

impl Found {
    fn is_good(&self) -> bool {
        matches!(self.entry, Entry::Good(_))
    }
}

/// All files, by name.
#[derive(Debug, Default)]
pub(super) struct Scan {
    found: Vec<Found>,
}

impl Scan {
    /// Reads what is new or changed and forgets what is gone. A folder that is missing is empty.
    pub(super) fn refresh(&mut self, dir: &Path) -> Result<()> {
        let stamps = stamps(dir)?;
        let mut known: BTreeMap<_, _> = std::mem::take(&mut self.found)
            .into_iter()
            .map(|found| (found.file_name.clone(), found))
            .collect();
        for (file_name, stamp) in stamps {
            let found = match known.remove(&file_name) {
                Some(found) if found.stamp == stamp && found.is_good() => found,
                // Damaged ones are read again: the reason may lie outside the file.
                _ => Found {
                    entry: read(dir, &file_name),
                    file_name,
                    stamp,
                },
            };
            self.found.push(found);
        }
        self.mark_doubles(dir);
        Ok(())
    }

    /// Two files with one id cannot both be the profile: only the first by name is. That happens
    /// when a file was copied by hand.
    fn mark_doubles(&mut self, dir: &Path) {
        let mut seen: BTreeMap<ProfileId, String> = BTreeMap::new();
        for found in &mut self.found {
            let Some(id) = found.entry.id().cloned() else {
                continue;
            };
            if let Some(first) = seen.get(&id) {
                found.entry = Entry::Damaged(whole(
                    dir,
                    &found.file_name,
                    None,
                    format!(
                        "{first} has the same id; give this copy another one by changing the 8 \
                         digits at the end of its name"
                    ),
                ));
            } else {
                seen.insert(id, found.file_name.clone());
            }
        }
    }

    /// Says whether anything differs from what was read.
    pub(super) fn changed(&self, dir: &Path) -> bool {
        let Ok(stamps) = stamps(dir) else {
            return true;
        };
        let known = self
            .found
            .iter()
            .map(|found| (&found.file_name, &found.stamp));
        !known.eq(stamps.iter())
    }

    /// Returns all entries, by file name.
    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.found.iter().map(|found| &found.entry)
    }

    /// Returns the file with this id.
    pub(super) fn with_id(&self, id: &ProfileId) -> Option<&Found> {
        self.found.iter().find(|found| found.entry.id() == Some(id))
    }

    /// Returns the files that a user may mean: by id, else by name, else by file name.
    pub(super) fn find(&self, wanted: &str) -> Vec<&Found> {
        let by = |test: &dyn Fn(&Found) -> bool| -> Vec<&Found> {
            self.found.iter().filter(|found| test(found)).collect()
        };
        let by_id = by(&|found| found.entry.id().is_some_and(|id| id.0 == wanted));
        if !by_id.is_empty() {
            return by_id;
        }
        let by_name =
            by(&|found| matches!(&found.entry, Entry::Good(profile) if profile.name == wanted));
        if !by_name.is_empty() {
            return by_name;
        }
        by(&|found| {
            let stem = found.file_name.strip_suffix(".toml").unwrap_or_default();
            let slug = slug::split(&found.file_name).map(|(slug, _)| slug);
            found.file_name == wanted || stem == wanted || slug == Some(wanted)
        })
    }
}

/// Returns the profiles' files with their stamps, by name.
fn stamps(dir: &Path) -> Result<BTreeMap<String, Stamp>> {
    let failed = |e: &std::io::Error| Error::io("list the profiles", e).at(dir);
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(failed(&error)),
    };
    let mut stamps = BTreeMap::new();
    for entry in entries {
        let entry = entry.map_err(|e| failed(&e))?;
        // Names that are not UTF-8 are none of ours.
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') || !name.ends_with(".toml") {
            continue;
        }
        // Not followed: a link is looked at as a link, and refused when it is read.
        let meta = match entry.metadata() {
            Ok(meta) => meta,
            // Gone meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(failed(&error)),
        };
        let stamp = Stamp {
            inode: meta.ino(),
            size: meta.size(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            ctime: (meta.ctime(), meta.ctime_nsec()),
        };
        stamps.insert(name, stamp);
    }
    Ok(stamps)
}

fn read(dir: &Path, file_name: &str) -> Entry {
    let Some((_, id)) = slug::split(file_name) else {
        return Entry::Damaged(whole(
            dir,
            file_name,
            None,
            "the name of a profile's file ends in a hyphen and 8 digits (0-9, a-f) before .toml; \
             import the file instead, or rename it"
                .to_owned(),
        ));
    };
    let bytes = match disk::read_own(&dir.join(file_name)) {
        Ok(bytes) => bytes,
        Err(error) => {
            let why = match error.kind {
                ErrorKind::NotFound => "it has just been removed".to_owned(),
                _ => error.cause.to_string(),
            };
            return Entry::Damaged(whole(dir, file_name, Some(id), why));
        }
    };
    match file::read(&bytes, id.clone()) {
        Ok(loaded) => Entry::Good(loaded.profile),
        Err(fault) => Entry::Damaged(Damaged {
            id: Some(id),
            file: dir.join(file_name),
            line: fault.line,
            column: fault.column,
            reason: fault.reason,
        }),
    }
}

/// Returns damage that is about a file as a whole.
fn whole(dir: &Path, file_name: &str, id: Option<ProfileId>, reason: String) -> Damaged {
    Damaged {
        id,
        file: dir.join(file_name),
        line: 0,
        column: 0,
        reason,
    }
}
