//! Where a receiver puts things: into a folder, or under a new name.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::fs::root::Root;
use crate::model::error::{Error, ErrorKind, Result};
use crate::pump::name::staging;
use crate::pump::source::expand;

/// A destination, looked at but not yet made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The folder that everything lands in.
    pub folder: PathBuf,
    /// The name that the one source gets; `None` for its own.
    pub top: Option<Vec<u8>>,
}

/// Returns a path without the slashes at its end; those of the root stay.
pub fn without_slash(path: &[u8]) -> &[u8] {
    match path.iter().rposition(|b| *b != b'/') {
        Some(last) => &path[..=last],
        None => path,
    }
}

impl Destination {
    /// Decides as `cp` does: what ends in a slash or is a folder means *into*; otherwise, with one
    /// source, it is the new name; with several, or when only a folder's contents are sent, it is
    /// a folder to make.
    ///
    /// A run that goes on keeps to what its first attempt decided, though the new name is a folder
    /// by now: where that was so, the staging folder of `resumed` lies beside it.
    ///
    /// # Errors
    /// `Exists` when several sources should go into a file.
    pub fn find(
        written: &[u8],
        sources: u64,
        contents: bool,
        resumed: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let path = expand(written);
        // With its slash a file would not be found, and so not be told from nothing at all.
        let there = std::fs::metadata(expand(without_slash(written))).ok();
        let is_dir = there.as_ref().is_some_and(std::fs::Metadata::is_dir);
        let name = match path.components().next_back() {
            Some(std::path::Component::Normal(name)) => Some(name.as_bytes().to_vec()),
            _ => None,
        };
        let named = resumed
            .zip(path.parent())
            .is_some_and(|(job, parent)| parent.join(staging(job)).is_dir());
        let into = (is_dir && !named)
            || written.ends_with(b"/")
            || name.is_none()
            || contents
            || sources != 1;
        if into && there.is_some() && !is_dir {
            return Err(Error::new(
                ErrorKind::Exists,
                "use the destination",
                "it is not a folder",
            )
            .at(written)
            .hint("name a folder, or send a single file to replace this one"));
        }
        if into {
            return Ok(Self {
                folder: path,
                top: None,
            });
        }
        let folder = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
            _ => PathBuf::from("."),
        };
        Ok(Self { folder, top: name })
    }

    /// Opens the folder, making it first if need be; `None` in a dry run when it is not there yet.
    ///
    /// # Errors
    /// What keeps it from being opened, with the folder as the place.
    pub fn open(&self, dry_run: bool) -> Result<Option<Arc<Root>>> {
        let folder: &Path = &self.folder;
        if dry_run && !folder.exists() {
            return Ok(None);
        }
        let root = if dry_run {
            Root::open(folder)
        } else {
            Root::create(folder)
        };
        root.map(|root| Some(Arc::new(root)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_means_what_cp_would_make_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().to_str().unwrap().to_owned();
        std::fs::write(dir.path().join("file"), b"x").unwrap();
        let find = |tail: &str, n, contents| {
            let d = Destination::find(format!("{base}{tail}").as_bytes(), n, contents, None)?;
            Ok::<_, Error>((d.folder.to_str().unwrap()[base.len()..].to_owned(), d.top))
        };
        assert_eq!(find("", 1, false).unwrap(), (String::new(), None));
        assert_eq!(
            find("/new", 1, false).unwrap(),
            (String::new(), Some(b"new".to_vec()))
        );
        assert_eq!(find("/new/", 1, false).unwrap(), ("/new/".to_owned(), None));
        assert_eq!(find("/new", 2, false).unwrap(), ("/new".to_owned(), None));
        assert_eq!(find("/new", 1, true).unwrap(), ("/new".to_owned(), None));
        assert_eq!(
            find("/file", 1, false).unwrap(),
            (String::new(), Some(b"file".to_vec()))
        );
        for (tail, n, contents) in [
            ("/file", 2, false),
            ("/file/", 1, false),
            ("/file//", 1, false),
            ("/file", 1, true),
        ] {
            assert_eq!(
                find(tail, n, contents).unwrap_err().kind,
                ErrorKind::Exists,
                "{tail}"
            );
        }
    }

    #[test]
    fn a_run_that_goes_on_keeps_to_what_its_first_attempt_decided() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("new");
        let written = new.as_os_str().as_bytes();
        let first = Destination::find(written, 1, false, None).unwrap();
        std::fs::create_dir(&new).unwrap();
        std::fs::create_dir(dir.path().join(staging(&[7; 16]))).unwrap();
        assert_eq!(
            Destination::find(written, 1, false, Some(&[7; 16])).unwrap(),
            first
        );
        // Another job is not concerned.
        assert_eq!(
            Destination::find(written, 1, false, Some(&[8; 16]))
                .unwrap()
                .top,
            None
        );
        assert_eq!(
            Destination::find(written, 1, false, None).unwrap().top,
            None
        );
    }
}
