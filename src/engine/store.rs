//! The `store` thread: the only writer of the ledger. It gathers rows into large transactions, so
//! that a job never waits for the disk an item at a time.
//!
//! Its queue has no bound of its own: messages of the control loop are few and must never block it,
//! and rows and steps are bounded in count by [`Room`]. Messages are worked off in order, so a
//! job's end is durable only after all its rows are.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::engine::RowFilter;
use crate::engine::ledger::Ledger;
use crate::engine::pages::Pages;
use crate::engine::recover;
use crate::model::control::Cancel;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobId;
use crate::model::plan::Step;
use crate::model::verdict::{Row, Verdict};
use crate::store::history::JobRecord;

/// Rows and steps that may be on their way to the disk at once, about 20 MiB.
const ROOM: usize = 50_000;
/// Rows and steps that are written in one transaction at most.
const BATCH: usize = 20_000;
/// So many are worth a transaction when nothing else waits.
const WORTHWHILE: usize = 1000;
/// How long fewer may wait for company.
const GATHER: Duration = Duration::from_millis(150);

/// One thing to write.
pub enum Write {
    /// A job as it is now; answered with its version. A claim is refused when another process that
    /// lives has the job.
    Job {
        /// What to keep.
        record: Box<JobRecord>,
        /// Comes back with the answer.
        version: u64,
        /// A run of the job begins with this.
        claim: bool,
    },
    /// A new attempt of a job begins: rows of the same path replace earlier ones, steps start anew.
    Again(JobId),
    /// What was done.
    Rows(JobId, Vec<Row>),
    /// What would be done.
    Steps(JobId, Vec<Step>),
    /// A line for people, with seconds since the start.
    Log(JobId, f64, String),
    /// The throughput curve, with seconds a value.
    Series(JobId, f32, Arc<Vec<f32>>),
}

/// What the store thread tells the control loop.
pub enum Told {
    /// A job was saved, or not.
    Saved(JobId, u64, Result<()>),
    /// Something else of a job could not be written.
    Lost(JobId, Error),
}

/// The way to the store thread; clones share it. The thread ends when the last one is dropped.
#[derive(Clone)]
pub struct Store {
    queue: Sender<Write>,
    room: Arc<Room>,
}

impl Store {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        ledger: Box<dyn Ledger>,
        pages: Arc<Pages>,
        tell: impl Fn(Told) + Send + 'static,
        alive: Sender<()>,
    ) -> Result<Self> {
        let (queue, orders) = crossbeam_channel::unbounded();
        let room = Arc::new(Room::default());
        let writer = Writer {
            ledger,
            pages,
            tell: Box::new(tell),
            room: Arc::clone(&room),
            jobs: HashMap::new(),
            waiting: 0,
        };
        std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || {
                // Also when it panics: nobody may wait for room then.
                let _closed = CloseRoom(Arc::clone(&writer.room));
                writer.work(&orders);
                drop(alive);
            })
            .map_err(|e| Error::io("start the thread that writes the history", &e))?;
        Ok(Self { queue, room })
    }

    /// Hands over something small; never blocks. Says whether there is a thread to take it: it
    /// outlives every handle unless it panicked.
    pub fn write(&self, write: Write) -> bool {
        self.queue.send(write).is_ok()
    }

    /// Hands over rows; waits while too many are on their way, but not for a job that has to end.
    pub fn rows(&self, job: JobId, rows: Vec<Row>, cancel: &Cancel) {
        self.room.take(rows.len(), cancel);
        self.write(Write::Rows(job, rows));
    }

    /// Hands over steps, as `rows` does.
    pub fn steps(&self, job: JobId, steps: Vec<Step>, cancel: &Cancel) {
        self.room.take(steps.len(), cancel);
        self.write(Write::Steps(job, steps));
    }
}

/// Counts rows and steps between jobs and the disk.
#[derive(Default)]
struct Room {
    used: Mutex<usize>,
    freed: Condvar,
    /// Nobody frees any more.
    closed: AtomicBool,
}

/// Lets everybody pass when the thread that frees room ends.
struct CloseRoom(Arc<Room>);

impl Drop for CloseRoom {
    fn drop(&mut self) {
        self.0.closed.store(true, Relaxed);
        self.0.give(0);
    }
}

impl Room {
    fn take(&self, count: usize, cancel: &Cancel) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        while *used > 0 && *used + count > ROOM && !cancel.is_set() && !self.closed.load(Relaxed) {
            used = self
                .freed
                .wait_timeout(used, Duration::from_millis(100))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        *used += count;
    }

    fn give(&self, count: usize) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        *used = used.saturating_sub(count);
        drop(used);
        self.freed.notify_all();
    }
}

/// What waits to be written of one job, and where the next goes.
#[derive(Default)]
struct Pending {
    rows: Vec<Row>,
    steps: Vec<Step>,
    log: Vec<(f64, String)>,
    /// The numbers of the next row and step, once they were asked for.
    next: Option<(u64, u64)>,
    /// The job began again: rows take the places of earlier ones of the same path.
    again: bool,
    /// Row numbers by path, once they were learnt; only after the job began again.
    known: Known,
    /// The owner was told that something could not be written.
    told: bool,
}

/// Where each path's row is, and whether it says that the file arrived. 64 bits of hash stand for
/// a path: a million of them meet by chance once in 30 million runs, and then one row is lost.
type Known = HashMap<u64, (u32, bool), BuildHasherDefault<DefaultHasher>>;

struct Writer {
    ledger: Box<dyn Ledger>,
    pages: Arc<Pages>,
    tell: Box<dyn Fn(Told) + Send>,
    room: Arc<Room>,
    jobs: HashMap<JobId, Pending>,
    waiting: usize,
}

impl Writer {
    fn work(mut self, orders: &Receiver<Write>) {
        let mut flush_at = None::<Instant>;
        loop {
            let next = match flush_at {
                Some(at) => orders.recv_deadline(at),
                None => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match next {
                Ok(write) => self.take(write),
                Err(RecvTimeoutError::Timeout) => self.flush(),
                Err(RecvTimeoutError::Disconnected) => return self.flush(),
            }
            // While a job runs the disk keeps up with it, so that little is left to do at its end.
            if self.waiting >= BATCH || (self.waiting >= WORTHWHILE && orders.is_empty()) {
                self.flush();
            }
            flush_at = match (self.waiting, flush_at) {
                (0, _) => None,
                (_, None) => Some(Instant::now() + GATHER),
                (_, at) => at,
            };
        }
    }

    fn take(&mut self, write: Write) {
        match write {
            Write::Rows(job, rows) => {
                self.waiting += rows.len();
                self.jobs.entry(job).or_default().rows.extend(rows);
            }
            Write::Steps(job, steps) => {
                self.waiting += steps.len();
                self.jobs.entry(job).or_default().steps.extend(steps);
            }
            Write::Log(job, at, text) => {
                self.waiting += 1;
                self.jobs.entry(job).or_default().log.push((at, text));
            }
            Write::Job {
                record,
                version,
                claim,
            } => {
                self.flush();
                let job = record.spec.id;
                let claimed = if claim { self.claim(&record) } else { Ok(()) };
                let result = claimed.and_then(|()| self.ledger.save_job(&record));
                if record.end.is_some() {
                    self.jobs.remove(&job);
                }
                (self.tell)(Told::Saved(job, version, result));
            }
            Write::Again(job) => {
                self.flush();
                let begun = self.begin_again(job);
                self.check(job, begun);
            }
            Write::Series(job, step, values) => {
                self.flush();
                let saved = self.ledger.save_series(job, step, &values);
                self.check(job, saved);
            }
        }
    }

    /// Refuses a job that another process runs: two would write the same parts.
    fn claim(&mut self, record: &JobRecord) -> Result<()> {
        match self.ledger.job(record.spec.id)? {
            Some(old)
                if old.end.is_none()
                    && old.owner != record.owner
                    && recover::is_alive(old.owner) =>
            {
                let cause = format!("it runs in another Transload (process {})", old.owner.pid);
                Err(Error::new(ErrorKind::Exists, "start the job", cause)
                    .hint("look there, or wait until it is over"))
            }
            _ => Ok(()),
        }
    }

    fn check(&self, job: JobId, result: Result<()>) {
        if let Err(error) = result {
            (self.tell)(Told::Lost(job, error));
        }
    }

    /// Writes all that waits.
    fn flush(&mut self) {
        if self.waiting == 0 {
            return;
        }
        self.waiting = 0;
        for (job, pending) in &mut self.jobs {
            let items = pending.rows.len() + pending.steps.len();
            if items + pending.log.len() == 0 {
                continue;
            }
            let result = pending.write(self.ledger.as_mut(), *job);
            if items > 0 {
                self.room.give(items);
                self.pages.changed(*job);
            }
            let Err(error) = result else { continue };
            // What is in the ledger now has to be asked again.
            pending.next = None;
            // One disk that is full is told once a job, not with every batch.
            if !std::mem::replace(&mut pending.told, true) {
                (self.tell)(Told::Lost(*job, error));
            }
        }
    }
    /// Gets ready for rows that take the places of earlier ones, and forgets the steps.
    fn begin_again(&mut self, job: JobId) -> Result<()> {
        let pending = self.jobs.entry(job).or_default();
        pending.again = true;
        pending.next = None;
        self.pages.changed(job);
        self.ledger.clear_steps(job)
    }
}

impl Pending {
    fn write(&mut self, ledger: &mut dyn Ledger, job: JobId) -> Result<()> {
        let (rows, steps, log) = (
            std::mem::take(&mut self.rows),
            std::mem::take(&mut self.steps),
            std::mem::take(&mut self.log),
        );
        let (mut next_row, mut next_step) = match self.next {
            Some(next) => next,
            None => {
                if self.again {
                    self.learn(ledger, job)?;
                }
                ledger.counts(job)?
            }
        };
        let rows = self.place(rows, &mut next_row);
        if !rows.is_empty() {
            ledger.put_rows(job, &rows)?;
        }
        if !steps.is_empty() {
            ledger.append_steps(job, next_step, &steps)?;
            next_step += steps.len() as u64;
        }
        self.next = Some((next_row, next_step));
        if !log.is_empty() {
            ledger.append_log(job, &log)?;
        }
        Ok(())
    }

    /// Learns where the rows of earlier attempts are.
    fn learn(&mut self, ledger: &mut dyn Ledger, job: JobId) -> Result<()> {
        const PAGE: usize = 10_000;
        self.known.clear();
        let mut first = 0;
        loop {
            let all = RowFilter::default();
            let (rows, _) = ledger.rows(job, &all, first..first + PAGE)?;
            for (seq, row) in (first as u32..).zip(&rows) {
                self.known.insert(path_hash(&row.path), (seq, arrived(row)));
            }
            if rows.len() < PAGE {
                return Ok(());
            }
            first += PAGE;
        }
    }

    /// Gives rows their numbers: those of a path that is there already take its place, unless they
    /// only say that a file that arrived earlier was now left alone.
    fn place(&mut self, rows: Vec<Row>, next: &mut u64) -> Vec<(u64, Row)> {
        let mut placed = Vec::with_capacity(rows.len());
        for row in rows {
            let mut seq = *next;
            if self.again {
                let new = (seq as u32, arrived(&row));
                let (at, had_arrived) = self.known.entry(path_hash(&row.path)).or_insert(new);
                if u64::from(*at) < *next {
                    if *had_arrived && matches!(row.verdict, Verdict::Skipped(_)) {
                        continue;
                    }
                    seq = u64::from(*at);
                    *had_arrived = new.1;
                }
            }
            if seq == *next {
                *next += 1;
            }
            placed.push((seq, row));
        }
        placed
    }
}

fn path_hash(path: &[u8]) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(path)
}

fn arrived(row: &Row) -> bool {
    matches!(
        row.verdict,
        Verdict::Verified { .. } | Verdict::SizeOnly | Verdict::Unverified(_)
    )
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
