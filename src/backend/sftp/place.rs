//! What follows a file's last byte: its name, and, where that is asked for, reading it back.
//!
//! What was there before is never lost: a server that can replace in one step does. For one that
//! cannot, the old file is moved into the folder of parts, and back again if the new one does not get
//! its name; nothing of ours ever removes it from there while the new one has no name.

use std::sync::atomic::Ordering::Relaxed;

use crate::backend::sftp::by_length;
use crate::backend::sftp::far::{OLD, join};
use crate::backend::sftp::put::{From, Put, Puts, What, changed, snapshot};
use crate::backend::sftp::readback::{Reading, read_back};
use crate::backend::sftp::request::Request;
use crate::backend::sftp::{IN_FLIGHT, WINDOW};
use crate::model::digest::Digest;
use crate::model::entry::{Entry, Reason};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::relpath::{MAX_COMPONENT, RelPath};
use crate::model::untrusted::shown;
use crate::model::verdict::{Verdict, When};
use crate::plan::compare::Decision;
use crate::pump::name::numbered;
use crate::verify::hash::Hasher;

/// How often a file is sent again, because it changed or arrived changed.
const AGAIN: u8 = 1;
/// Numbers that are tried where both files are kept.
const NUMBERS: u32 = 10_000;
/// Completes "Failed to ...".
const NAMING: &str = "give the file its name";

/// A file that has its name and is to be read back.
pub(super) struct Placed {
    entry: Entry,
    decision: Decision,
    from: From,
    /// What was sent.
    here: Digest,
    /// Its last component, where that is not the usual one.
    name: Vec<u8>,
    /// Where it is, with that name.
    place: RelPath,
    sent: u64,
    acked: u64,
    attempt: u8,
}

impl Puts<'_, '_> {
    /// The part is closed: gives it its name, or removes it.
    pub fn closed(&mut self, n: u64) -> Result<()> {
        let Some(put) = self.files.get_mut(&n) else {
            return Ok(());
        };
        if put.failed.is_none() {
            match snapshot(&put.file) {
                Ok(after) if after == put.before => {}
                Ok(_) => put.failed = Some(changed()),
                Err(error) => put.failed = Some(error),
            }
        }
        let path = put.entry.path.clone();
        if put.failed.is_none() {
            let above = self.folder_above(&path)?.err();
            if let Some(put) = self.files.get_mut(&n) {
                put.failed = above;
            }
        }
        let Some(put) = self.files.get_mut(&n) else {
            return Ok(());
        };
        put.pending += 1;
        let part = put.part.clone();
        if put.failed.is_some() {
            self.request(n, &Request::Remove(&part), What::Discard)?;
            return Ok(());
        }
        let decision = put.decision;
        let to = join(&self.folder, path.as_bytes());
        match self.rename(decision, &part, &to) {
            Some(rename) => self.request(n, &rename, What::Name).map(|_| ()),
            None => self.named(n, false),
        }
    }

    /// Returns the one request that gives a part its name, where one is enough.
    pub fn rename<'r>(
        &self,
        decision: Decision,
        part: &'r [u8],
        to: &'r [u8],
    ) -> Option<Request<'r>> {
        match decision {
            Decision::Make(_) => Some(Request::Rename(part, to)),
            Decision::Replace(_) if self.channel.offers("posix-rename@openssh.com") => {
                Some(Request::PosixRename(part, to))
            }
            _ => None,
        }
    }

    /// A file has its name, or has to be helped to it one step after the other.
    pub fn named(&mut self, n: u64, named: bool) -> Result<()> {
        let Some(put) = self.files.remove(&n) else {
            return Ok(());
        };
        let placed = match named {
            true => Ok(Vec::new()),
            false => self.place_now(&put.part, &put.entry.path, put.decision)?,
        };
        match placed {
            Ok(name) => self.has_name(put, name),
            Err(error) => {
                // The run's end removes the whole folder, too.
                self.channel.tell(&Request::Remove(&put.part))?;
                self.take_back(put.acked);
                let verdict = Verdict::Failed(error.at(put.entry.path.as_bytes()));
                self.settle(&put.entry, put.decision, put.sent, Vec::new(), verdict);
                Ok(())
            }
        }
    }

    /// Gives a part its name, by the decision about what has it; returns the name where it had to be
    /// another one. The inner error is about this one alone.
    pub fn place_now(
        &mut self,
        part: &[u8],
        path: &RelPath,
        decision: Decision,
    ) -> Result<Result<Vec<u8>>> {
        let to = join(&self.folder, path.as_bytes());
        if let Decision::Replace(_) = decision {
            let replaced = match self.rename(decision, part, &to) {
                Some(rename) => self.channel.order(&rename, NAMING)?,
                None => self.swap(part, path, &to)?,
            };
            return Ok(replaced.map(|()| Vec::new()));
        }
        let mut name = match decision {
            Decision::Beside => numbered(path.name(), 1),
            _ => Vec::new(),
        };
        for number in 2.. {
            let to = match name.as_slice() {
                b"" => to.clone(),
                name => join(&self.folder, path.with_name(name)?.as_bytes()),
            };
            let Err(error) = self.channel.order(&Request::Rename(part, &to), NAMING)? else {
                return Ok(Ok(name));
            };
            let taken = self.channel.look(&Request::Lstat(&to))?;
            if !taken.is_ok_and(|there| there.is_some()) {
                return Ok(Err(error));
            }
            if name.is_empty() {
                let cause = "a file of that name appeared meanwhile and is left alone";
                return Ok(Err(Error::new(ErrorKind::Exists, NAMING, cause)
                    .hint("look at both, then run this again")));
            }
            if number > NUMBERS {
                break;
            }
            name = numbered(path.name(), number);
        }
        let cause = "10 000 of them are taken";
        Ok(Err(Error::new(
            ErrorKind::Exists,
            "find a free name",
            cause,
        )))
    }

    /// Replaces a file where the server cannot do it in one step.
    fn swap(&mut self, part: &[u8], path: &RelPath, to: &[u8]) -> Result<Result<()>> {
        // Some servers replace by the plain request.
        if self
            .channel
            .order(&Request::Rename(part, to), NAMING)?
            .is_ok()
        {
            return Ok(Ok(()));
        }
        let mut aside = format!("{OLD}{}-", self.number()).into_bytes();
        aside.extend_from_slice(path.name());
        aside.truncate(MAX_COMPONENT);
        let aside = join(&self.parts, &aside);
        let away = Request::Rename(to, &aside);
        if let Err(error) = self.channel.order(&away, "move the old file aside")? {
            return Ok(Err(error));
        }
        let Err(error) = self.channel.order(&Request::Rename(part, to), NAMING)? else {
            let removed = Request::Remove(&aside);
            if let Err(error) = self.channel.order(&removed, "remove the old file")? {
                self.cx.people.warn(error.at(&aside[..]));
            }
            return Ok(Ok(()));
        };
        let back = Request::Rename(&aside, to);
        if self.channel.order(&back, NAMING)?.is_ok() {
            return Ok(Err(error));
        }
        let hint = format!("the old file is there as {}", shown(&aside));
        Ok(Err(error.hint(hint)))
    }

    /// The file has its name: it is done, or noted to be read back.
    fn has_name(&mut self, put: Put, name: Vec<u8>) -> Result<()> {
        let Put {
            entry,
            decision,
            from,
            hasher,
            sent,
            acked,
            attempt,
            ..
        } = put;
        let Some(here) = hasher.and_then(Hasher::finish) else {
            self.settle(&entry, decision, sent, name, by_length(self.terms.verify));
            return Ok(());
        };
        let place = match name.as_slice() {
            b"" => entry.path.clone(),
            name => entry.path.with_name(name)?,
        };
        self.placed.push(Placed {
            entry,
            decision,
            from,
            here,
            name,
            place,
            sent,
            acked,
            attempt,
        });
        // Together they need hardly more time than one.
        let bytes: u64 = self.placed.iter().map(|placed| placed.sent).sum();
        match self.placed.len() >= IN_FLIGHT || bytes >= WINDOW {
            true => self.check(),
            false => Ok(()),
        }
    }

    /// Reads files back that have their names, and sends those once more that arrived changed.
    pub fn check(&mut self) -> Result<()> {
        let placed = std::mem::take(&mut self.placed);
        let readings = placed
            .iter()
            .map(|file| {
                let path = join(&self.folder, file.place.as_bytes());
                Reading::new(path, file.sent, Hasher::new(self.terms.verify))
            })
            .collect();
        let found = read_back(self.channel, readings, self.throttle, self.abort, self.cx)?;
        for (file, found) in placed.into_iter().zip(found) {
            self.checked(file, found)?;
        }
        Ok(())
    }

    fn checked(&mut self, file: Placed, found: Result<Option<Digest>>) -> Result<()> {
        let verdict = match found {
            Ok(Some(there)) if there == file.here => Verdict::Verified {
                digest: there,
                when: When::ReadBack,
            },
            Ok(Some(_)) if file.attempt < AGAIN => {
                self.take_back(file.acked);
                // It is ours already, under whatever name it got.
                let mut entry = file.entry;
                entry.path = file.place;
                let reason = match file.decision {
                    Decision::Replace(reason) | Decision::Make(reason) => reason,
                    _ => Reason::Conflict,
                };
                let replace = Decision::Replace(reason);
                return self.begin(entry, replace, file.from, file.attempt + 1);
            }
            Ok(Some(there)) => Verdict::Differs {
                here: file.here,
                there,
            },
            Ok(None) => Verdict::Unverified("the other side's digest is missing".to_owned()),
            Err(error) => Verdict::Failed(error.at(file.entry.path.as_bytes())),
        };
        self.settle(&file.entry, file.decision, file.sent, file.name, verdict);
        Ok(())
    }

    /// A file could not even be opened there.
    pub fn not_opened(&mut self, n: u64, error: Error) -> Result<()> {
        if let Some(put) = self.files.remove(&n) {
            let verdict = Verdict::Failed(error.at(put.entry.path.as_bytes()));
            self.settle(&put.entry, put.decision, put.before.0, Vec::new(), verdict);
        }
        Ok(())
    }

    /// The part of a file that failed is gone: once more, or never.
    pub fn discarded(&mut self, n: u64) -> Result<()> {
        let Some(put) = self.files.remove(&n) else {
            return Ok(());
        };
        self.take_back(put.acked);
        let error = put.failed.unwrap_or_else(changed);
        if error.kind == ErrorKind::SourceChanged && put.attempt < AGAIN {
            return self.begin(put.entry, put.decision, put.from, put.attempt + 1);
        }
        let verdict = match error.kind {
            ErrorKind::SourceChanged => Verdict::SourceChanged,
            _ if error.place.is_empty() => Verdict::Failed(error.at(put.entry.path.as_bytes())),
            _ => Verdict::Failed(error),
        };
        self.settle(&put.entry, put.decision, put.sent, Vec::new(), verdict);
        Ok(())
    }

    /// Bytes that have to go once more, or came to nothing, are not done.
    fn take_back(&self, bytes: u64) {
        self.cx.counters.bytes_done.fetch_sub(bytes, Relaxed);
    }
}
