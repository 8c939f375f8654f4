//! Sends: lists the sources here, decides about each entry with the other side's listings, and hands
//! folders, links and files to [`put`](super::put).

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::backend::collect::Collector;
use crate::backend::cx::Cx;
use crate::backend::sftp::ask::{Targets, done};
use crate::backend::sftp::channel::Channel;
use crate::backend::sftp::far::{Landing, empty, join, make_staging};
use crate::backend::sftp::packet::Attrs;
use crate::backend::sftp::put::{From, Puts};
use crate::backend::sftp::request::Request;
use crate::fs::filter::Filter;
use crate::fs::root::Root;
use crate::fs::walk::{Found, Walk};
use crate::model::entry::{Entry, EntryKind, Reason};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::Phase;
use crate::model::relpath::RelPath;
use crate::model::verdict::Verdict;
use crate::plan::compare::{Decision, Existing, Rules, decide};
use crate::pump::abort::Abort;
use crate::pump::limit::Throttle;
use crate::pump::name::staging;
use crate::pump::report::Observer as _;
use crate::pump::source::Source;
use crate::wire::message::Terms;

/// Requests about folders that are on the way at a time.
const FOLDERS_AHEAD: usize = 64;

/// What a push is given.
pub(super) struct Push<'a, 'c> {
    pub cx: &'a Cx<'c>,
    pub collector: &'a Collector<'c>,
    pub abort: &'a Abort,
    /// Told to the watch: the server waits for its disk.
    pub busy: &'a AtomicBool,
    pub terms: Terms,
    pub job: [u8; 16],
    pub sources: &'a [Source],
    pub filter: &'a Filter,
    pub landing: Landing,
}

/// A folder there, and what it has.
struct Level {
    path: Option<RelPath>,
    /// Why nothing can be put into it, or its names.
    names: Result<Names>,
}

/// What is in a folder there.
#[derive(Default)]
struct Names {
    all: HashMap<Vec<u8>, Attrs>,
    /// Where its links point.
    links: Targets,
}

impl Push<'_, '_> {
    /// Sends everything.
    ///
    /// # Errors
    /// What ended the run; single items that failed are rows instead.
    pub fn run(self, channel: &mut Channel) -> Result<()> {
        let dry_run = self.terms.dry_run;
        let parts = join(&self.landing.folder, staging(&self.job).as_bytes());
        if !dry_run {
            self.landing.make(channel)?;
            make_staging(channel, &parts, self.cx.counters)?;
        }
        let throttle = Throttle::new(self.cx.limit.clone(), self.cx.paused.clone());
        let puts = Puts::new(
            channel,
            self.cx,
            self.collector,
            self.abort,
            self.busy,
            self.terms,
            &throttle,
            (self.landing.folder.clone(), parts.clone()),
        );
        let mut sending = Sending {
            push: &self,
            puts,
            levels: Vec::new(),
            folders: Vec::new(),
        };
        let result = sending.run();
        if dry_run {
            return result;
        }
        let cut_off = match &result {
            Ok(()) => Ok(()),
            // A connection that broke can be told nothing more.
            Err(error) if over(error) => return result,
            Err(_) => sending.puts.cut_off(),
        };
        if result.is_ok() {
            let removed = channel.order(&Request::Rmdir(&parts), "remove the folder of parts")?;
            if let Err(error) = removed {
                let hint = "look what is in it: a file that was to be replaced may be";
                self.cx.people.warn(error.at(&parts[..]).hint(hint));
            }
            return Ok(());
        }
        // What ended the run is what counts; this is as good as it gets. The folder itself tells a
        // run that goes on that the source has a new name.
        let emptied = cut_off.and_then(|()| empty(channel, &parts, self.cx.counters));
        if emptied.is_ok() && self.landing.top.is_none() {
            let _ = channel.call(&Request::Rmdir(&parts));
        }
        result
    }

    /// Puts the new name in the place of the first component.
    fn renamed(&self, path: RelPath) -> Result<RelPath> {
        let Some(top) = &self.landing.top else {
            return Ok(path);
        };
        let mut bytes = top.clone();
        if let Some(slash) = path.as_bytes().iter().position(|b| *b == b'/') {
            bytes.extend_from_slice(&path.as_bytes()[slash..]);
        }
        RelPath::new(bytes)
    }
}

struct Sending<'a, 'b, 'c> {
    push: &'a Push<'b, 'c>,
    puts: Puts<'a, 'c>,
    /// The folders on the way down to where the walk is.
    levels: Vec<Level>,
    /// Folders whose own attributes are set at the end.
    folders: Vec<(RelPath, Attrs)>,
}

impl Sending<'_, '_, '_> {
    fn run(&mut self) -> Result<()> {
        let push = self.push;
        let counters = push.cx.counters;
        let names = match push.landing.there {
            true => self.list(None)?,
            false => Ok(Names::default()),
        };
        self.levels.push(Level { path: None, names });
        for source in push.sources {
            let walk = Walk::new(
                source.root.clone(),
                source.start.clone(),
                push.filter.clone(),
                source.prefix.clone(),
            );
            for found in walk {
                push.cx.cancel.check()?;
                match found {
                    Found::Entry { entry, real, .. } => {
                        self.entry(entry, Some((source.root.clone(), real)))?;
                    }
                    Found::Top { entry, .. } => self.entry(entry, None)?,
                    Found::Excluded { .. } => {}
                    Found::Failed { path, error } => {
                        push.collector.trouble(&path, &error);
                    }
                }
            }
        }
        counters.set_listed();
        self.puts.finish()?;
        if !push.terms.dry_run {
            counters.set_phase(Phase::Verifying);
            self.finish_folders()?;
        }
        Ok(())
    }

    fn list(&mut self, path: Option<&RelPath>) -> Result<Result<Names>> {
        let folder = match path {
            Some(path) => join(&self.push.landing.folder, path.as_bytes()),
            None => self.push.landing.folder.clone(),
        };
        let (channel, counters) = (&mut *self.puts.channel, self.push.cx.counters);
        let listing = match channel.list(&folder, counters)? {
            Ok(listing) => listing,
            Err(error) => return Ok(Err(error.at(&folder[..]))),
        };
        let links = match self.push.terms.preserve.links {
            true => channel.targets(&folder, &listing, counters)?,
            false => Targets::new(),
        };
        Ok(Ok(Names {
            all: listing.into_iter().collect(),
            links,
        }))
    }

    /// Decides about one entry and does what can be done at once.
    fn entry(&mut self, mut entry: Entry, from: Option<(Arc<Root>, RelPath)>) -> Result<()> {
        entry.path = self.push.renamed(entry.path)?;
        self.push.cx.counters.items_total.fetch_add(1, Relaxed);
        let (decision, result) = match self.look(&entry)? {
            Ok(existing) => {
                let terms = self.push.terms;
                let rules = Rules {
                    conflict: terms.conflict,
                    preserve: terms.preserve,
                    resume: terms.resume,
                };
                let decision = decide(&entry, existing.as_ref(), &rules);
                if terms.dry_run {
                    if entry.kind == EntryKind::Dir {
                        self.enter(&entry.path, decision)?;
                    }
                    self.dry(&entry, decision);
                    return Ok(());
                }
                (
                    decision,
                    self.act(&entry, decision, existing.as_ref(), from)?,
                )
            }
            Err(error) => (Decision::Refuse(""), Err(error)),
        };
        match result {
            Ok(true) => return Ok(()),
            Ok(false) => {
                let verdict = left_alone(&entry, decision);
                self.puts.settle(&entry, decision, 0, Vec::new(), verdict);
            }
            Err(error) => {
                if entry.kind == EntryKind::Dir {
                    self.levels.push(Level {
                        path: Some(entry.path.clone()),
                        names: Err(error.clone()),
                    });
                }
                let error = match error.place.is_empty() {
                    true => error.at(entry.path.as_bytes()),
                    false => error,
                };
                let verdict = Verdict::Failed(error);
                self.puts.settle(&entry, decision, 0, Vec::new(), verdict);
            }
        }
        Ok(())
    }

    /// Returns what is there under the entry's name; the inner error is why nothing can be put there.
    fn look(&mut self, entry: &Entry) -> Result<Result<Option<Existing>>> {
        let parent = entry.path.parent();
        // The walk goes down and up again, so the folder is one of those on the way.
        while self.levels.len() > 1 && self.levels.last().is_some_and(|l| l.path != parent) {
            self.levels.pop();
        }
        let names = match self.levels.last() {
            Some(Level { path, names }) if *path == parent => names,
            _ => {
                return Ok(Err(Error::new(
                    ErrorKind::Bug,
                    "find the folder",
                    "no listing",
                )));
            }
        };
        let names = match names {
            Ok(names) => names,
            Err(error) => return Ok(Err(error.clone())),
        };
        if let Some(error) = parent.and_then(|parent| self.puts.unmade.get(&parent)) {
            return Ok(Err(error.clone()));
        }
        let Some(attrs) = names.all.get(entry.path.name()) else {
            return Ok(Ok(None));
        };
        let kind = attrs.kind();
        let link = match (kind, names.links.get(entry.path.name())) {
            (EntryKind::Symlink, Some(Err(error))) => return Ok(Err(error.clone())),
            (EntryKind::Symlink, Some(Ok(target))) => Some(target.clone()),
            _ => None,
        };
        Ok(Ok(Some(Existing {
            kind,
            size: attrs.size.unwrap_or_default(),
            mtime: attrs.time(),
            mode: attrs.mode.unwrap_or_default() & 0o7777,
            link,
        })))
    }

    /// Does what is to be done, or hands the entry on, in which case it is `true`. The inner error is
    /// about this entry alone.
    fn act(
        &mut self,
        entry: &Entry,
        decision: Decision,
        existing: Option<&Existing>,
        from: Option<(Arc<Root>, RelPath)>,
    ) -> Result<Result<bool>> {
        match (decision, entry.kind) {
            (Decision::Refuse(why), _) => Ok(Err(Error::new(
                ErrorKind::Exists,
                "put it in its place",
                why,
            )
            .hint("move what is there away, or choose another conflict rule"))),
            (Decision::Leave(_), _) => Ok(Ok(false)),
            (Decision::Keep | Decision::Touch(_) | Decision::Make(_), EntryKind::Dir) => {
                self.folder(entry, decision, existing)
            }
            (Decision::Keep, _) => Ok(Ok(false)),
            (Decision::Touch(_), _) => {
                let path = join(&self.push.landing.folder, entry.path.as_bytes());
                let attrs = Attrs::to_set(Some(entry.mode & 0o777), None);
                let set = Request::Setstat(&path, attrs);
                let set = self.puts.channel.order(&set, "set the permissions")?;
                Ok(set.map(|()| false))
            }
            (_, EntryKind::Symlink) => {
                self.puts.make_link(entry, decision)?;
                Ok(Ok(true))
            }
            (_, _) => match from {
                Some((root, real)) => {
                    self.puts
                        .add(entry.clone(), decision, From { root, real })?;
                    Ok(Ok(true))
                }
                None => Ok(Ok(false)),
            },
        }
    }

    fn folder(
        &mut self,
        entry: &Entry,
        decision: Decision,
        existing: Option<&Existing>,
    ) -> Result<Result<bool>> {
        let preserve = self.push.terms.preserve;
        let new = matches!(decision, Decision::Make(_));
        if new {
            if let Err(error) = self.puts.make_folder(entry, decision)? {
                return Ok(Err(error));
            }
        }
        self.enter(&entry.path, decision)?;
        // What a shared folder hands down to what is made in it belongs to the place.
        let special = existing.map_or(0, |there| there.mode & 0o7000);
        let mode = preserve
            .permissions
            .then_some(special | (entry.mode & 0o777));
        let attrs = Attrs::to_set(mode, preserve.times.then_some(entry.mtime));
        if !attrs.is_empty() {
            self.folders.push((entry.path.clone(), attrs));
        }
        Ok(Ok(new))
    }

    /// Takes up a folder that the walk goes into.
    fn enter(&mut self, path: &RelPath, decision: Decision) -> Result<()> {
        let names = match decision {
            Decision::Make(_) => Ok(Names::default()),
            Decision::Refuse(why) => Err(Error::new(ErrorKind::Exists, "open the folder", why)),
            _ => self.list(Some(path))?,
        };
        self.levels.push(Level {
            path: Some(path.clone()),
            names,
        });
        Ok(())
    }

    /// Tells what would be done.
    fn dry(&self, entry: &Entry, decision: Decision) {
        let sends = entry.kind == EntryKind::File
            && matches!(
                decision,
                Decision::Make(_) | Decision::Replace(_) | Decision::Beside
            );
        let bytes = if sends { entry.size } else { 0 };
        let verdict = Verdict::Unverified(String::new());
        self.puts
            .settle(entry, decision, bytes, Vec::new(), verdict);
    }

    /// Sets the folders' own attributes, deepest first, now that nothing is written into them.
    fn finish_folders(&mut self) -> Result<()> {
        let mut folders = std::mem::take(&mut self.folders);
        folders.retain(|(path, _)| !self.puts.unmade.contains_key(path));
        folders.reverse();
        for some in folders.chunks(FOLDERS_AHEAD) {
            self.push.cx.cancel.check()?;
            let mut asked = Vec::with_capacity(some.len());
            for (path, attrs) in some {
                let there = join(&self.push.landing.folder, path.as_bytes());
                asked.push(self.puts.channel.send(&Request::Setstat(&there, *attrs))?);
            }
            for (id, (path, _)) in asked.into_iter().zip(some) {
                let reply = self.puts.channel.reply_to(id)?;
                if let Err(error) = done(&reply, "set the folder's time and permissions") {
                    self.push.cx.people.warn(error.at(path.as_bytes()));
                }
            }
            self.puts.channel.count(self.push.cx.counters);
        }
        Ok(())
    }
}

/// Says whether the conversation itself has ended.
fn over(error: &Error) -> bool {
    matches!(error.kind, ErrorKind::Disconnected | ErrorKind::Protocol)
}

/// Returns the verdict of what is not sent.
fn left_alone(entry: &Entry, decision: Decision) -> Verdict {
    let why = match (decision, entry.kind) {
        (Decision::Keep, EntryKind::File) => "the same already",
        (Decision::Touch(_), EntryKind::File) => "the same already; permissions were set",
        (Decision::Leave(Reason::Special), _) => "a pipe, socket or device",
        (Decision::Leave(Reason::Excluded), _) => "links are left out",
        (Decision::Leave(_), _) => "the one there is kept",
        _ => "",
    };
    Verdict::Skipped(why.to_owned())
}
