//! Lists the sources on the other side and decides about each entry as it comes.
//!
//! Names come from a server that may mean harm: each is one checked component, and everything is
//! resolved beneath the destination.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use crate::backend::sftp::ask::{Listing, Targets};
use crate::backend::sftp::far::{given, join, last_name};
use crate::backend::sftp::get::{Gets, There};
use crate::backend::sftp::packet::Attrs;
use crate::backend::sftp::pull::Pull;
use crate::backend::sftp::request::Request;
use crate::model::entry::{Entry, EntryKind};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::Phase;
use crate::model::relpath::RelPath;
use crate::pump::admit::{Admit, Admitted, Expectations};
use crate::pump::commit::Note;
use crate::pump::report::Observer as _;
use crate::wire::message::Want;

/// The listing side of a pull.
pub(super) struct Receiving<'a, 'b, 'c> {
    pub pull: &'a Pull<'b, 'c>,
    pub admit: Admit<'a>,
    pub gets: Gets<'a, 'c>,
    pub book: &'a Book,
    pub expected: &'a Expectations,
    /// The number of the next entry.
    pub next: u64,
}

/// A source, looked at.
struct Source {
    path: Vec<u8>,
    attrs: Attrs,
    /// The name that it gets; `None` where only its contents go.
    name: Option<RelPath>,
}

/// The numbers of files and where they are there.
pub(super) type Book = Mutex<HashMap<u64, There>>;

/// One folder on the way down.
struct Level {
    /// Its path there.
    there: Vec<u8>,
    /// Its path below the destination; `None` for the destination itself.
    here: Option<RelPath>,
    /// What the filter calls it.
    told: Option<RelPath>,
    /// What is left of its names, last first.
    names: Listing,
    /// Where its links point.
    links: Targets,
}

impl Receiving<'_, '_, '_> {
    /// Takes up every source, and waits until its files are handed on.
    ///
    /// # Errors
    /// What ended the run; single items that failed are rows instead.
    pub fn run(&mut self) -> Result<()> {
        let mut tops = HashSet::new();
        for written in self.pull.sources {
            let opened = self.open(written)?;
            let opened = opened.and_then(|source| match &source.name {
                Some(name) if !tops.insert(name.clone()) => Err(Error::new(
                    ErrorKind::Exists,
                    "send the source",
                    format!("another source has the same name, {name}"),
                )
                .at(&written[..])
                .hint("send them one after the other to different folders")),
                _ => Ok(source),
            });
            match opened {
                Ok(source) => self.source(source)?,
                Err(error) => self.pull.collector.trouble(written, &error),
            }
        }
        self.gets.finish()
    }

    /// Looks at what the user wrote. A folder comes as itself, or with `contents` without its name; a
    /// link as a link, unless the path ends in a slash.
    fn open(&mut self, written: &[u8]) -> Result<Result<Source>> {
        const DOING: &str = "open the source";
        let at = |e: Error| e.at(written);
        let channel = &mut *self.gets.channel;
        let path = given(written);
        let own = last_name(path);
        let follow = path.ends_with(b"/") || own.is_none();
        let request = match follow {
            true => Request::Stat(path),
            false => Request::Lstat(path),
        };
        let attrs = match channel.look(&request)? {
            Ok(Some(attrs)) => attrs,
            Ok(None) => {
                let error = Error::new(ErrorKind::NotFound, DOING, "there is no such file");
                return Ok(Err(at(error)));
            }
            Err(error) => return Ok(Err(at(error))),
        };
        let mut name = own;
        if follow {
            // A name such as `dir/..` or `.` or `link/` stands for the folder behind it.
            match channel.name(&Request::Realpath(path), DOING)? {
                Ok(real) => name = last_name(&real),
                Err(error) => return Ok(Err(at(error))),
            }
        }
        let folder = attrs.kind() == EntryKind::Dir;
        let name = name.filter(|_| !(self.pull.contents && folder));
        if name.is_none() && !folder {
            return Ok(Err(at(Error::new(
                ErrorKind::Unsupported,
                DOING,
                "it has no name",
            ))));
        }
        Ok(name
            .map(RelPath::new)
            .transpose()
            .map_err(at)
            .map(|name| Source {
                path: path.to_vec(),
                attrs,
                name,
            }))
    }

    fn source(&mut self, source: Source) -> Result<()> {
        let Source { path, attrs, name } = source;
        let mut levels = Vec::new();
        let here = match &self.pull.top {
            Some(top) => Some(RelPath::new(top.clone())?),
            None => name.clone(),
        };
        match here {
            Some(here) => {
                let told = name.unwrap_or_else(|| here.clone());
                let link = self.link(&path, attrs)?;
                levels.extend(self.item(path, here, told, attrs, link)?);
            }
            None => levels.extend(self.level(path, None, None)?),
        }
        while let Some(level) = levels.last_mut() {
            self.pull.cx.cancel.check()?;
            let Some((name, attrs)) = level.names.pop() else {
                levels.pop();
                continue;
            };
            let below = |path: &Option<RelPath>| match path {
                _ if name.contains(&b'/') => {
                    let cause = "the server gives a path for a name";
                    Err(Error::new(ErrorKind::Protocol, "accept a file name", cause))
                }
                Some(path) => path.join(&name),
                None => RelPath::new(name.clone()),
            };
            let (here, told) = match (below(&level.here), below(&level.told)) {
                (Ok(here), Ok(told)) => (here, told),
                // A server that means harm, or a name that cannot be stored.
                (Err(error), _) | (_, Err(error)) => {
                    let path = join(&level.there, &name);
                    self.pull.collector.failed(&path, error);
                    continue;
                }
            };
            let there = join(&level.there, &name);
            let link = level.links.remove(&name);
            levels.extend(self.item(there, here, told, attrs, link)?);
        }
        Ok(())
    }

    /// Asks where a link points that the user named.
    fn link(&mut self, path: &[u8], attrs: Attrs) -> Result<Option<Result<Vec<u8>>>> {
        if attrs.kind() != EntryKind::Symlink {
            return Ok(None);
        }
        let ask = Request::Readlink(path);
        let target = self.gets.channel.name(&ask, "read the symbolic link")?;
        Ok(Some(target))
    }

    /// Lists a folder.
    fn level(
        &mut self,
        there: Vec<u8>,
        here: Option<RelPath>,
        told: Option<RelPath>,
    ) -> Result<Option<Level>> {
        let counters = self.pull.cx.counters;
        match self.gets.channel.list(&there, counters)? {
            Ok(mut names) => {
                let links = match self.pull.terms.preserve.links {
                    true => self.gets.channel.targets(&there, &names, counters)?,
                    false => Targets::new(),
                };
                names.sort_unstable_by(|a, b| b.0.cmp(&a.0));
                Ok(Some(Level {
                    there,
                    here,
                    told,
                    names,
                    links,
                }))
            }
            Err(error) => {
                let path = here.as_ref().map_or(&there[..], RelPath::as_bytes);
                self.pull.collector.failed(path, error.at(&there[..]));
                Ok(None)
            }
        }
    }

    /// Takes one item up; a folder is returned with its names.
    fn item(
        &mut self,
        there: Vec<u8>,
        here: RelPath,
        told: RelPath,
        attrs: Attrs,
        link: Option<Result<Vec<u8>>>,
    ) -> Result<Option<Level>> {
        let kind = attrs.kind();
        if self
            .pull
            .filter
            .excludes(told.as_bytes(), kind == EntryKind::Dir)
        {
            return Ok(None);
        }
        let counters = self.pull.cx.counters;
        counters.items_total.fetch_add(1, Relaxed);
        let mut entry = Entry {
            path: here,
            kind,
            size: match kind {
                EntryKind::File => attrs.size.unwrap_or_default(),
                _ => 0,
            },
            mtime: attrs.time(),
            mode: attrs.mode.unwrap_or(0o644) & 0o7777,
            link: None,
        };
        match link {
            Some(Ok(target)) => entry.link = Some(target),
            Some(Err(error)) => {
                counters.items_done.fetch_add(1, Relaxed);
                let path = entry.path.as_bytes();
                self.pull.collector.failed(path, error.at(path));
                return Ok(None);
            }
            None => {}
        }
        let number = self.next;
        self.next += 1;
        match self.admit.admit(number, &entry) {
            Admitted::Settled(settled) => {
                counters.items_done.fetch_add(1, Relaxed);
                let path = entry.path.as_bytes();
                self.pull.collector.settled(path, kind, &settled);
            }
            Admitted::Wanted(want) => {
                counters.bytes_total.fetch_add(entry.size, Relaxed);
                counters.set_phase(Phase::Transferring);
                counters.set_current(entry.path.as_bytes());
                let place = There {
                    path: there,
                    size: entry.size,
                    mtime: entry.mtime,
                };
                self.book
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .insert(number, place);
                self.pull.abort.send(&self.gets.notes, Note::Wanted(1));
                return self.want(&want).map(|()| None);
            }
        }
        match kind {
            EntryKind::Dir => self.level(there, Some(entry.path), Some(told)),
            _ => Ok(None),
        }
    }

    /// Fetches one file, now or once more.
    ///
    /// # Errors
    /// As [`Receiving::run`].
    pub fn want(&mut self, want: &Want) -> Result<()> {
        let place = self
            .book
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&want.file)
            .cloned();
        match (place, self.expected.get(want.file)) {
            (Some(place), Some(expected)) => self.gets.add(want, place, expected),
            _ => Ok(()),
        }
    }
}
