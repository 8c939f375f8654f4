//! The private folder of parts: on the destination's own file system, one a job, found again by
//! its id when a run is resumed.

use std::fs::File;
use std::sync::Arc;

use crate::fs::root::{Dir, Root};
use crate::model::error::Result;
use crate::model::relpath::RelPath;
use crate::pump::name;

/// The folder of parts that are resumed.
pub(crate) const LARGE: &str = "large";

/// An open staging folder.
pub(crate) struct Staging {
    root: Arc<Root>,
    name: String,
    /// Parts of large files, kept for the next attempt when a run ends early.
    pub large: Arc<Dir>,
    /// Parts of small files, one folder a disk thread: two threads that make files in one folder
    /// wait for each other.
    pub small: Vec<Arc<Dir>>,
}

impl Staging {
    /// Opens the staging folder of a job, making it if need be; small parts of an earlier attempt
    /// go, large ones stay.
    ///
    /// # Errors
    /// What keeps it from being made.
    pub fn open(root: &Arc<Root>, job: &[u8; 16], threads: usize) -> Result<Self> {
        let name = name::staging(job);
        let top = RelPath::new(name.as_bytes())?;
        let at = |e: crate::model::error::Error| e.at(root.path().join(&name).as_path());
        root.top().make_dir(name.as_bytes(), 0o700).map_err(at)?;
        let dir = root.dir(Some(&top)).map_err(at)?;
        dir.make_dir(LARGE.as_bytes(), 0o700).map_err(at)?;
        let large = root.dir(Some(&top.join(LARGE.as_bytes())?)).map_err(at)?;
        let mut small = Vec::new();
        for n in 0..threads {
            let sub = format!("small-{n}");
            if !dir.make_dir(sub.as_bytes(), 0o700).map_err(at)? {
                root.forget(&top);
                dir.remove_tree(sub.as_bytes()).map_err(at)?;
                dir.make_dir(sub.as_bytes(), 0o700).map_err(at)?;
            }
            small.push(root.dir(Some(&top.join(sub.as_bytes())?)).map_err(at)?);
        }
        Ok(Self {
            root: root.clone(),
            name,
            large,
            small,
        })
    }

    /// Ends a run. One that did not come to its end leaves large parts for the next attempt, and
    /// where the one source got a new name, at least the folder, which tells that.
    pub fn close(self, ended: bool, named: bool) {
        let Ok(top) = RelPath::new(self.name.as_bytes()) else {
            return;
        };
        let kept = !ended && (named || self.large.list().is_ok_and(|parts| !parts.is_empty()));
        if let Ok(dir) = self.root.dir(Some(&top)) {
            for n in 0..self.small.len() {
                let _ = dir.remove_tree(format!("small-{n}").as_bytes());
            }
        }
        self.root.forget(&top);
        if !kept {
            let _ = self.root.top().remove_tree(self.name.as_bytes());
        }
    }
}

/// Where a part lies.
#[derive(Clone)]
pub(crate) struct Part {
    pub dir: Arc<Dir>,
    pub name: Vec<u8>,
}

impl Part {
    /// Opens it for reading and writing; `None` when it is not there.
    pub fn open(&self) -> Result<Option<File>> {
        self.dir.open_part(&self.name)
    }

    /// Removes it, as far as that is possible.
    pub fn discard(&self) {
        let _ = self.dir.remove_file(&self.name);
    }
}
