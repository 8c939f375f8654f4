//! Pages of rows and steps at hand, and the `store-read` thread that fetches the others: looking
//! never waits for the disk.
//!
//! A page that is not here is fetched and the waker called. One whose job has written more since is
//! shown as it is and fetched again, at a pace that leaves the disk to the job. Memory is bounded
//! by the number of rows that are kept; those not looked at for longest go first.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::Sender;

use crate::engine::ledger::Ledger;
use crate::engine::{RowFilter, RowPage};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobId;
use crate::model::plan::Step;
use crate::model::verdict::Row;

/// Pages begin at multiples of this ...
const STRIDE: usize = 256;
/// ... and hold this many, so that any range of up to a stride is within one page.
const PAGE: usize = 2 * STRIDE;
/// The most rows that one look returns.
const LONGEST: usize = 16 * 1024;
/// Rows and steps kept in memory, about 25 MiB.
const KEPT: usize = 64 * 1024;
/// Pages that wait to be fetched; of a fast scroll only the last ones matter.
const WAITING: usize = 16;
/// How long fetching a page again is put off at least.
const PACE: Duration = Duration::from_millis(100);

/// What a page is of.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum What {
    Rows(RowFilter),
    Steps,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    job: JobId,
    what: What,
    start: usize,
    len: usize,
}

#[derive(Clone)]
enum Content {
    Rows(Arc<Vec<Row>>),
    Steps(Arc<Vec<Step>>),
}

impl Content {
    fn len(&self) -> usize {
        match self {
            Self::Rows(rows) => rows.len(),
            Self::Steps(steps) => steps.len(),
        }
    }
}

#[derive(Default)]
struct Slot {
    content: Option<Content>,
    /// The job's version that the content is of.
    version: u64,
    /// It waits to be fetched.
    asked: bool,
    /// When it was last looked at.
    used: u64,
}

#[derive(Default)]
struct Cache {
    slots: HashMap<Key, Slot>,
    /// How often a job's rows or steps changed.
    versions: HashMap<JobId, u64>,
    /// The last known totals, for pages that are not here yet.
    totals: HashMap<(JobId, What), usize>,
    looks: u64,
    first_time: Vec<Fetch>,
    again: Vec<Fetch>,
    closed: bool,
}

struct Fetch {
    key: Key,
    reply: Option<Sender<Result<(Content, usize)>>>,
}

/// The pages of all jobs.
#[derive(Default)]
pub struct Pages {
    cache: Mutex<Cache>,
    work: Condvar,
}

impl Pages {
    /// Starts the thread that fetches.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        self: &Arc<Self>,
        ledger: Box<dyn Ledger>,
        wake: Arc<dyn Fn() + Send + Sync>,
        alive: Sender<()>,
    ) -> Result<()> {
        let pages = Arc::clone(self);
        std::thread::Builder::new()
            .name("store-read".to_owned())
            .spawn(move || {
                pages.serve(ledger, &*wake);
                drop(alive);
            })
            .map_err(|e| Error::io("start the thread that reads the history", &e))?;
        Ok(())
    }

    /// Ends the thread.
    pub fn close(&self) {
        let mut cache = self.lock();
        cache.closed = true;
        cache.first_time.clear();
        cache.again.clear();
        drop(cache);
        self.work.notify_all();
    }

    /// Says that a job has more rows or steps now.
    pub fn changed(&self, job: JobId) {
        *self.lock().versions.entry(job).or_default() += 1;
    }

    /// Forgets the pages of a job.
    pub fn forget(&self, job: JobId) {
        let mut cache = self.lock();
        cache.slots.retain(|key, _| key.job != job);
        cache.totals.retain(|(of, _), _| *of != job);
    }

    /// Returns rows at hand.
    pub fn rows(&self, job: JobId, filter: &RowFilter, range: Range<usize>) -> RowPage {
        let key = key(job, What::Rows(filter.clone()), &range);
        let start = key.start;
        let (content, total) = self.look(key);
        match content {
            Some(Content::Rows(rows)) => RowPage { start, rows, total },
            _ => RowPage {
                start: range.start,
                rows: Arc::default(),
                total,
            },
        }
    }

    /// Returns steps at hand, the index of the first, and their total.
    pub fn steps(&self, job: JobId, range: Range<usize>) -> (usize, Arc<Vec<Step>>, usize) {
        let key = key(job, What::Steps, &range);
        let start = key.start;
        match self.look(key) {
            (Some(Content::Steps(steps)), total) => (start, steps, total),
            (_, total) => (range.start, Arc::default(), total),
        }
    }

    /// Fetches rows and waits for them.
    pub fn fetch_rows(
        &self,
        job: JobId,
        filter: &RowFilter,
        range: Range<usize>,
        wait: Duration,
    ) -> Result<RowPage> {
        let (start, what) = (range.start, What::Rows(filter.clone()));
        match self.fetch(job, what, range, wait)? {
            (Content::Rows(rows), total) => Ok(RowPage { start, rows, total }),
            (Content::Steps(_), _) => Ok(RowPage::default()),
        }
    }

    /// Fetches steps and waits for them.
    pub fn fetch_steps(
        &self,
        job: JobId,
        range: Range<usize>,
        wait: Duration,
    ) -> Result<(Arc<Vec<Step>>, usize)> {
        match self.fetch(job, What::Steps, range, wait)? {
            (Content::Steps(steps), total) => Ok((steps, total)),
            (Content::Rows(_), total) => Ok((Arc::default(), total)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self, key: Key) -> (Option<Content>, usize) {
        let mut guard = self.lock();
        let cache = &mut *guard;
        cache.looks += 1;
        let version = cache.versions.get(&key.job).copied().unwrap_or_default();
        let total = cache.totals.get(&(key.job, key.what.clone())).copied();
        let slot = cache.slots.entry(key.clone()).or_default();
        slot.used = cache.looks;
        let content = slot.content.clone();
        let wanted = !slot.asked && (content.is_none() || slot.version != version);
        if wanted && !cache.closed {
            slot.asked = true;
            let fetch = Fetch { key, reply: None };
            match content {
                None => cache.first_time.push(fetch),
                Some(_) => cache.again.push(fetch),
            }
            cache.shed();
            drop(guard);
            self.work.notify_all();
        }
        (content, total.unwrap_or_default())
    }

    fn fetch(
        &self,
        job: JobId,
        what: What,
        range: Range<usize>,
        wait: Duration,
    ) -> Result<(Content, usize)> {
        let (reply, answer) = crossbeam_channel::bounded(1);
        let mut cache = self.lock();
        if !cache.closed {
            cache.first_time.push(Fetch {
                key: Key {
                    job,
                    what,
                    start: range.start,
                    len: range.len().min(LONGEST),
                },
                reply: Some(reply),
            });
        }
        drop(cache);
        self.work.notify_all();
        answer.recv_timeout(wait).unwrap_or_else(|_| {
            Err(Error::new(
                ErrorKind::Timeout,
                "read the history",
                "the database did not answer in time",
            ))
        })
    }

    fn serve(&self, mut ledger: Box<dyn Ledger>, wake: &(dyn Fn() + Send + Sync)) {
        let mut again_from = Instant::now();
        while let Some((fetch, version)) = self.next(again_from) {
            let began = Instant::now();
            let Key {
                job,
                what,
                start,
                len,
            } = &fetch.key;
            let range = *start..start + len;
            let result = match what {
                What::Rows(filter) => ledger
                    .rows(*job, filter, range)
                    .map(|(rows, total)| (Content::Rows(Arc::new(rows)), total)),
                What::Steps => ledger
                    .steps(*job, range)
                    .map(|(steps, total)| (Content::Steps(Arc::new(steps)), total)),
            };
            // Long reads are repeated less often, so that reading takes at most a third of the time.
            again_from = Instant::now() + PACE.max(2 * began.elapsed());
            match fetch.reply {
                // Whoever asked may have stopped waiting.
                Some(reply) => drop(reply.send(result)),
                None => {
                    self.keep(fetch.key, result, version);
                    wake();
                }
            }
        }
    }

    /// Waits for the next page to fetch; `None` when the engine stops.
    fn next(&self, again_from: Instant) -> Option<(Fetch, u64)> {
        let mut cache = self.lock();
        loop {
            if cache.closed {
                return None;
            }
            let now = Instant::now();
            let fetch = match cache.first_time.pop() {
                None if now >= again_from && !cache.again.is_empty() => Some(cache.again.remove(0)),
                first_time => first_time,
            };
            if let Some(fetch) = fetch {
                let version = cache.versions.get(&fetch.key.job).copied();
                return Some((fetch, version.unwrap_or_default()));
            }
            cache = if cache.again.is_empty() {
                self.work
                    .wait(cache)
                    .unwrap_or_else(PoisonError::into_inner)
            } else {
                let pause = again_from.saturating_duration_since(now);
                self.work
                    .wait_timeout(cache, pause)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            };
        }
    }

    fn keep(&self, key: Key, result: Result<(Content, usize)>, version: u64) {
        let mut cache = self.lock();
        let Ok((content, total)) = result else {
            // It is tried again when somebody looks the next time.
            cache.slots.remove(&key);
            return;
        };
        cache.totals.insert((key.job, key.what.clone()), total);
        if let Some(slot) = cache.slots.get_mut(&key) {
            slot.content = Some(content);
            slot.version = version;
            slot.asked = false;
        }
        cache.trim();
    }
}

impl Cache {
    /// Gives up the oldest pages that wait, but none that somebody blocks on.
    fn shed(&mut self) {
        while self.first_time.len() > WAITING {
            let Some(old) = self.first_time.iter().position(|f| f.reply.is_none()) else {
                return;
            };
            let fetch = self.first_time.remove(old);
            self.slots.remove(&fetch.key);
        }
        while self.again.len() > WAITING {
            let fetch = self.again.remove(0);
            if let Some(slot) = self.slots.get_mut(&fetch.key) {
                slot.asked = false;
            }
        }
    }

    /// Drops the pages that were not looked at for longest.
    fn trim(&mut self) {
        let size = |slot: &Slot| slot.content.as_ref().map_or(0, Content::len) + 16;
        let mut kept: usize = self.slots.values().map(size).sum();
        while kept > KEPT {
            let oldest = self
                .slots
                .iter()
                .filter(|(_, slot)| !slot.asked)
                .min_by_key(|(_, slot)| slot.used)
                .map(|(key, _)| key.clone());
            let Some(slot) = oldest.and_then(|key| self.slots.remove(&key)) else {
                return;
            };
            kept -= size(&slot);
        }
        if self.totals.len() > 1000 {
            let slots = &self.slots;
            self.totals
                .retain(|(job, what), _| slots.keys().any(|k| k.job == *job && k.what == *what));
        }
    }
}

/// Returns the page that holds a range.
fn key(job: JobId, what: What, range: &Range<usize>) -> Key {
    let (start, len) = if range.len() <= STRIDE {
        (range.start / STRIDE * STRIDE, PAGE)
    } else {
        (range.start, range.len().min(LONGEST))
    };
    Key {
        job,
        what,
        start,
        len,
    }
}
