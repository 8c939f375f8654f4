//! Chores on threads of their own: looking at what was dropped, listing folders, saving lists.

use std::path::{Path, PathBuf};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::desktop::drag;
use crate::engine::{Engine, RowFilter};
use crate::model::error::{Error, Result};
use crate::model::job::JobId;
use crate::model::verdict::Verdict;
use crate::service::check_list::ListWriter;
use crate::ui::parts::browse::{FolderItem, sort};
use crate::ui::ports::{Chore, Chores, Done};
use crate::ui::real::Wake;

/// Rows fetched at a time for a list.
const BATCH: usize = 8192;

/// A thread a chore.
pub struct ThreadChores {
    engine: Engine,
    wake: Wake,
    tell: Sender<Done>,
    done: Receiver<Done>,
}

impl ThreadChores {
    /// Makes it; no thread runs before there is a chore.
    pub fn new(engine: Engine, wake: Wake) -> Self {
        // Without a bound: chores come from a person's hands, and each ends with one answer.
        let (tell, done) = unbounded();
        Self {
            engine,
            wake,
            tell,
            done,
        }
    }
}

impl Chores for ThreadChores {
    fn start(&mut self, chore: Chore) {
        let (engine, tell, wake) = (self.engine.clone(), self.tell.clone(), self.wake.clone());
        let thread = std::thread::Builder::new().name("chore".to_owned());
        // Without a thread the chore is not done, and the person sees that nothing happened; a
        // system without threads has other troubles.
        let _ = thread.spawn(move || {
            let done = match chore {
                Chore::Look(list, target) => Done::Looked(drag::take(&list), target),
                Chore::List(folder) => {
                    let items = list(&folder);
                    Done::Listed(folder, items)
                }
                Chore::SaveList(job, path) => Done::ListSaved(save_list(&engine, job, path)),
            };
            // The window is closing when nobody listens.
            let _ = tell.send(done);
            wake();
        });
    }

    fn done(&mut self) -> Option<Done> {
        self.done.try_recv().ok()
    }
}

fn list(folder: &Path) -> Result<Vec<FolderItem>> {
    let failed = |e: &std::io::Error| Error::io("list the folder", e).at(folder);
    let mut items = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(|e| failed(&e))? {
        let entry = entry.map_err(|e| failed(&e))?;
        // A link is what it points at here: the person looks for a folder to go into.
        let about = std::fs::metadata(entry.path()).or_else(|_| entry.metadata());
        items.push(FolderItem {
            name: entry.file_name(),
            is_folder: about.as_ref().is_ok_and(std::fs::Metadata::is_dir),
            size: about.map_or(0, |about| about.len()),
        });
    }
    sort(&mut items);
    Ok(items)
}

/// Saves the digests of verified files, as `md5sum -c` reads them.
fn save_list(engine: &Engine, job: JobId, path: PathBuf) -> Result<(u64, PathBuf)> {
    let filter = RowFilter {
        verdict: Some("verified"),
        text: String::new(),
    };
    let mut writer = ListWriter::create(&path)?;
    let mut lines = 0;
    loop {
        let start = lines as usize;
        let page = engine.fetch_rows(job, &filter, start..start + BATCH)?;
        for row in page.rows.iter() {
            if let Verdict::Verified { digest, .. } = &row.verdict {
                writer.add(digest, &row.path)?;
            }
            lines += 1;
        }
        if page.rows.is_empty() || lines as usize >= page.total {
            break;
        }
    }
    writer.finish()?;
    Ok((lines, path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_listed_with_links_as_what_they_point_at() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        std::fs::write(folder.path().join("a"), "12345").unwrap();
        std::os::unix::fs::symlink("sub", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", folder.path().join("dead")).unwrap();
        let items = list(folder.path()).unwrap();
        let got: Vec<_> = items
            .iter()
            .map(|i| (i.name.to_str().unwrap(), i.is_folder))
            .collect();
        assert_eq!(
            got,
            [("link", true), ("sub", true), ("a", false), ("dead", false)]
        );
        assert_eq!(items[2].size, 5);
        let error = list(Path::new("/no/such/folder")).unwrap_err();
        assert!(
            error.to_string().starts_with("Failed to list the folder"),
            "{error}"
        );
    }
}
