//! Lists the sources and keeps the book of entries that are announced and not yet settled.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::fs::filter::Filter;
use crate::fs::root::Root;
use crate::fs::walk::{Found, Walk};
use crate::model::entry::{Entry, EntryKind};
use crate::model::error::Result;
use crate::model::progress::Counters;
use crate::model::relpath::RelPath;
use crate::pump::abort::Abort;
use crate::pump::report::Observer;
use crate::pump::source::Source;
use crate::wire::WINDOW;

/// Entries of one page, and how long a page waits to be full.
const PAGE: usize = 512;
const PAGE_TIME: Duration = Duration::from_millis(20);

/// One announced entry.
#[derive(Clone)]
pub(super) struct Item {
    pub root: Arc<Root>,
    /// Where it is below the root.
    pub real: RelPath,
    /// The path that the receiver knows.
    pub path: RelPath,
    pub kind: EntryKind,
    pub size: u64,
}

/// The entries that are announced and not yet settled.
#[derive(Default)]
pub(super) struct Book {
    items: Mutex<HashMap<u64, Item>>,
    room: Condvar,
}

impl Book {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Item>> {
        self.items.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a page of entries, waiting until there is room; `false` when the run is ended.
    fn add(&self, page: impl Iterator<Item = (u64, Item)>, abort: &Abort) -> bool {
        let mut items = self.lock();
        while items.len() >= WINDOW {
            if abort.is_stopped() {
                return false;
            }
            items = self
                .room
                .wait_timeout(items, Duration::from_millis(100))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        items.extend(page);
        true
    }

    /// Looks an entry up.
    pub fn get(&self, file: u64) -> Option<Item> {
        self.lock().get(&file).cloned()
    }

    /// Strikes an entry that is settled.
    pub fn take(&self, file: u64) -> Option<Item> {
        let mut items = self.lock();
        let item = items.remove(&file);
        if items.len() == WINDOW * 3 / 4 {
            self.room.notify_one();
        }
        item
    }
}

/// What the scan thread needs.
pub(super) struct Scan<'a> {
    pub sources: &'a [Source],
    pub filter: &'a Filter,
    /// The name that the one source gets; `None` for its own.
    pub top: Option<&'a [u8]>,
    pub book: &'a Book,
    /// Takes each page: the first entry's number, and the entries.
    pub announce: &'a mut dyn FnMut(u64, Vec<Entry>) -> Result<()>,
    pub counters: &'a Counters,
    pub observer: &'a dyn Observer,
    pub abort: &'a Abort,
}

impl Scan<'_> {
    /// Announces everything; returns how many entries there are.
    pub fn run(mut self) -> Result<u64> {
        let sources = self.sources;
        let mut pages = Pages {
            scan: &mut self,
            next: 0,
            items: Vec::new(),
            entries: Vec::new(),
            since: Instant::now(),
        };
        for source in sources {
            let walk = Walk::new(
                source.root.clone(),
                source.start.clone(),
                pages.scan.filter.clone(),
                source.prefix.clone(),
            );
            for found in walk {
                if pages.scan.abort.is_stopped() {
                    return Ok(pages.next);
                }
                match found {
                    Found::Entry { entry, real, .. } => {
                        pages.add(entry, source.root.clone(), real)?
                    }
                    // The root itself is never opened by name: its own name stands for the path.
                    Found::Top { entry, .. } => {
                        let real = entry.path.clone();
                        pages.add(entry, source.root.clone(), real)?;
                    }
                    Found::Excluded { .. } => {}
                    Found::Failed { path, error } => {
                        pages.scan.observer.trouble(&path, &error);
                    }
                }
            }
        }
        pages.flush()?;
        let count = pages.next;
        self.counters.set_listed();
        Ok(count)
    }

    /// Puts the new name in the place of the first component.
    fn renamed(&self, path: RelPath) -> Result<RelPath> {
        let Some(top) = self.top else { return Ok(path) };
        let mut bytes = top.to_vec();
        if let Some(slash) = path.as_bytes().iter().position(|b| *b == b'/') {
            bytes.extend_from_slice(&path.as_bytes()[slash..]);
        }
        RelPath::new(bytes)
    }
}

/// Entries that wait to be announced together.
struct Pages<'a, 'b> {
    scan: &'a mut Scan<'b>,
    next: u64,
    items: Vec<Item>,
    entries: Vec<Entry>,
    since: Instant,
}

impl Pages<'_, '_> {
    fn add(&mut self, mut entry: Entry, root: Arc<Root>, real: RelPath) -> Result<()> {
        entry.path = self.scan.renamed(entry.path)?;
        self.items.push(Item {
            root,
            real,
            path: entry.path.clone(),
            kind: entry.kind,
            size: entry.size,
        });
        self.entries.push(entry);
        if self.entries.len() >= PAGE || self.since.elapsed() >= PAGE_TIME {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        self.since = Instant::now();
        if self.entries.is_empty() {
            return Ok(());
        }
        let (first, count) = (self.next, self.entries.len() as u64);
        self.next += count;
        self.scan.counters.items_total.fetch_add(count, Relaxed);
        let numbered = (first..).zip(self.items.drain(..));
        if !self.scan.book.add(numbered, self.scan.abort) {
            return Ok(());
        }
        let entries = std::mem::take(&mut self.entries);
        (self.scan.announce)(first, entries)
    }
}
