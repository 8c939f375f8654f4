//! Folders and links on their way to the other side: as with files, none waits for another, but what
//! goes into a folder waits until that is made.

use crate::backend::sftp::IN_FLIGHT;
use crate::backend::sftp::ask::done;
use crate::backend::sftp::far::join;
use crate::backend::sftp::packet::{Attrs, Reply, broken};
use crate::backend::sftp::put::{Puts, What};
use crate::backend::sftp::request::Request;
use crate::model::entry::{Entry, EntryKind};
use crate::model::error::{Error, Result};
use crate::model::relpath::RelPath;
use crate::model::verdict::Verdict;
use crate::plan::compare::Decision;

/// A folder or link on the way.
pub(super) struct Small {
    entry: Entry,
    decision: Decision,
    /// Where a link is until it has its name.
    part: Vec<u8>,
}

impl Puts<'_, '_> {
    /// Makes a folder.
    ///
    /// # Errors
    /// What ends the run; the inner error is why nothing can be made there.
    pub fn make_folder(&mut self, entry: &Entry, decision: Decision) -> Result<Result<()>> {
        self.room_for_small()?;
        if let Err(error) = self.folder_above(&entry.path)? {
            return Ok(Err(error));
        }
        let n = self.number();
        let path = join(&self.folder, entry.path.as_bytes());
        // We have to write into it, whatever its final mode is.
        let permissions = self.terms.preserve.permissions;
        let mode = permissions.then_some((entry.mode & 0o777) | 0o700);
        let make = Request::Mkdir(&path, Attrs::to_set(mode, None));
        let id = self.request(n, &make, What::Folder)?;
        self.making.insert(entry.path.clone(), id);
        self.keep(n, entry, decision, Vec::new());
        Ok(Ok(()))
    }

    /// Makes a link under another name, to be moved into place.
    ///
    /// # Errors
    /// What ends the run.
    pub fn make_link(&mut self, entry: &Entry, decision: Decision) -> Result<()> {
        self.room_for_small()?;
        let n = self.number();
        let part = join(&self.parts, format!("link-{n:x}").as_bytes());
        let target = entry.link.as_deref().unwrap_or_default();
        self.request(n, &Request::Symlink(target, &part), What::Link)?;
        if self.terms.preserve.times && self.channel.offers("lsetstat@openssh.com") {
            let attrs = Attrs::to_set(None, Some(entry.mtime));
            if !attrs.is_empty() {
                // A link without its time is still the link.
                self.channel.tell(&Request::Lsetstat(&part, attrs))?;
            }
        }
        self.keep(n, entry, decision, part);
        Ok(())
    }

    fn room_for_small(&mut self) -> Result<()> {
        while self.small.len() >= IN_FLIGHT {
            self.step()?;
        }
        Ok(())
    }

    fn keep(&mut self, n: u64, entry: &Entry, decision: Decision, part: Vec<u8>) {
        let small = Small {
            entry: entry.clone(),
            decision,
            part,
        };
        self.small.insert(n, small);
    }

    /// Waits until the folder that something goes into is made, if it is one that we make.
    ///
    /// # Errors
    /// What ends the run; the inner error is why the folder is not there.
    pub fn folder_above(&mut self, path: &RelPath) -> Result<Result<()>> {
        let Some(parent) = path.parent() else {
            return Ok(Ok(()));
        };
        if let Some(id) = self.making.get(&parent).copied() {
            let reply = self.channel.reply_to(id)?;
            self.take(id, &reply)?;
        }
        Ok(match self.unmade.get(&parent) {
            Some(error) => Err(error.clone()),
            None => Ok(()),
        })
    }

    /// Takes a reply about a folder or link.
    pub fn take_small(&mut self, n: u64, what: What, reply: &Reply) -> Result<()> {
        let Some(small) = self.small.get(&n) else {
            return Err(broken("it is about something that is done"));
        };
        match what {
            What::Folder => {
                let path = small.entry.path.clone();
                self.making.remove(&path);
                let made = match done(reply, "create the folder") {
                    Ok(()) => Ok(()),
                    Err(error) => self.others_made(&path, error)?,
                };
                if let Err(error) = &made {
                    self.unmade.insert(path, error.clone());
                }
                self.done_small(n, made);
            }
            What::Link => {
                if let Err(error) = done(reply, "create the symbolic link") {
                    let error = self.or_full(error)?;
                    self.done_small(n, Err(error));
                    return Ok(());
                }
                let (path, part, decision) =
                    (small.entry.path.clone(), small.part.clone(), small.decision);
                if let Err(error) = self.folder_above(&path)? {
                    self.done_small(n, Err(error));
                    return Ok(());
                }
                let to = join(&self.folder, path.as_bytes());
                match self.rename(decision, &part, &to) {
                    Some(rename) => {
                        self.request(n, &rename, What::LinkName)?;
                    }
                    None => self.help(n)?,
                }
            }
            _ if done(reply, "").is_ok() => self.done_small(n, Ok(())),
            _ => self.help(n)?,
        }
        Ok(())
    }

    /// Others make folders too: then it is there.
    fn others_made(&mut self, path: &RelPath, error: Error) -> Result<Result<()>> {
        let there = join(&self.folder, path.as_bytes());
        let found = self.channel.look(&Request::Lstat(&there))?;
        if found.is_ok_and(|a| a.is_some_and(|a| a.kind() == EntryKind::Dir)) {
            return Ok(Ok(()));
        }
        let error = self.or_full(error)?;
        Ok(Err(error.at(path.as_bytes())))
    }

    /// Gives a link its name one step after the other.
    fn help(&mut self, n: u64) -> Result<()> {
        let Some(small) = self.small.get(&n) else {
            return Ok(());
        };
        let (part, path, decision) = (small.part.clone(), small.entry.path.clone(), small.decision);
        let placed = self.place_now(&part, &path, decision)?;
        if placed.is_err() {
            self.channel.tell(&Request::Remove(&part))?;
        }
        self.done_small(n, placed.map(|_| ()));
        Ok(())
    }

    fn done_small(&mut self, n: u64, result: Result<()>) {
        let Some(small) = self.small.remove(&n) else {
            return;
        };
        let verdict = match result {
            Ok(()) => Verdict::Skipped(String::new()),
            Err(error) if error.place.is_empty() => {
                Verdict::Failed(error.at(small.entry.path.as_bytes()))
            }
            Err(error) => Verdict::Failed(error),
        };
        self.settle(&small.entry, small.decision, 0, Vec::new(), verdict);
    }
}
