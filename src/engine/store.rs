//! The `store` thread: the only writer of the ledger. It gathers rows into large transactions, so
//! that a job never waits for the disk an item at a time.
//!
//! Its queue has no bound of its own: messages of the control loop are few and must never block it,
//! and rows and steps are bounded in count by [`Room`]. Messages are worked off in order, so a
//! job's end is durable only after all its rows are.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender};

use crate::engine::RowFilter;
use crate::engine::ledger::{Ledger, Record};
use crate::engine::pages::Pages;
use crate::model::control::Cancel;
use crate::model::error::{Error, Result};
use crate::model::job::JobId;
use crate::model::plan::Step;
use crate::model::verdict::{Row, Verdict};

/// Rows and steps that may be on their way to the disk at once, about 20 MiB.
const ROOM: usize = 50_000;
/// Rows and steps that are written in one transaction at most.
const BATCH: usize = 20_000;
/// How long rows may wait for company.
const GATHER: Duration = Duration::from_millis(150);

/// One thing to write.
pub enum Write {
    /// A job as it is now; answered with its version.
    Job(Box<Record>, u64),
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
                writer.work(&orders);
                drop(alive);
            })
            .map_err(|e| Error::io("start the thread that writes the history", &e))?;
        Ok(Self { queue, room })
    }

    /// Hands over something small; never blocks.
    pub fn write(&self, write: Write) {
        // The thread outlives every handle; it is gone only after a panic, which it reports.
        let _ = self.queue.send(write);
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
}

impl Room {
    fn take(&self, count: usize, cancel: &Cancel) {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        while *used > 0 && *used + count > ROOM && !cancel.is_set() {
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
    next_row: Option<u64>,
    next_step: Option<u64>,
    /// Row numbers by path, only after a job began again.
    known: Option<Known>,
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
            if self.waiting >= BATCH {
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
            Write::Job(record, version) => {
                self.flush();
                let job = record.spec.id;
                let result = self.ledger.save_job(&record);
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
            if let Err(error) = result {
                (self.tell)(Told::Lost(*job, error));
            }
        }
    }

    /// Learns where the rows of earlier attempts are and forgets their steps.
    fn begin_again(&mut self, job: JobId) -> Result<()> {
        const PAGE: usize = 10_000;
        let pending = self.jobs.entry(job).or_default();
        self.ledger.clear_steps(job)?;
        pending.next_step = Some(0);
        let mut known = Known::default();
        let mut first = 0;
        loop {
            let all = RowFilter::default();
            let (rows, _) = self.ledger.rows(job, &all, first..first + PAGE)?;
            for (seq, row) in (first as u32..).zip(&rows) {
                known.insert(path_hash(&row.path), (seq, arrived(row)));
            }
            first += rows.len();
            if rows.len() < PAGE {
                break;
            }
        }
        pending.next_row = Some(first as u64);
        pending.known = Some(known);
        self.pages.changed(job);
        Ok(())
    }
}

impl Pending {
    fn write(&mut self, ledger: &mut dyn Ledger, job: JobId) -> Result<()> {
        let (rows, steps, log) = (
            std::mem::take(&mut self.rows),
            std::mem::take(&mut self.steps),
            std::mem::take(&mut self.log),
        );
        if self.next_row.is_none() || self.next_step.is_none() {
            let (rows, steps) = ledger.counts(job)?;
            self.next_row = Some(rows);
            self.next_step = Some(steps);
        }
        let rows = self.place(rows);
        for (first, rows) in rows {
            ledger.append_rows(job, first, &rows)?;
        }
        if let Some(next) = self.next_step.as_mut().filter(|_| !steps.is_empty()) {
            ledger.append_steps(job, *next, &steps)?;
            *next += steps.len() as u64;
        }
        if !log.is_empty() {
            ledger.append_log(job, &log)?;
        }
        Ok(())
    }

    /// Gives rows their numbers: those of a path that is there already take its place, unless they
    /// only say that a file that arrived earlier was now left alone.
    fn place(&mut self, rows: Vec<Row>) -> Vec<(u64, Vec<Row>)> {
        let mut next = self.next_row.unwrap_or_default();
        let mut groups = Vec::new();
        match &mut self.known {
            None => {
                if !rows.is_empty() {
                    let first = next;
                    next += rows.len() as u64;
                    groups.push((first, rows));
                }
            }
            Some(known) => {
                let mut new = Vec::new();
                let first = next;
                for row in rows {
                    let hash = path_hash(&row.path);
                    match known.get_mut(&hash) {
                        Some((_, true)) if matches!(row.verdict, Verdict::Skipped(_)) => {}
                        Some((seq, has_arrived)) => {
                            *has_arrived = arrived(&row);
                            let seq = u64::from(*seq);
                            // A path that came twice in this very batch is among the new ones.
                            match seq.checked_sub(first) {
                                Some(index) => new[index as usize] = row,
                                None => groups.push((seq, vec![row])),
                            }
                        }
                        None => {
                            known.insert(hash, (next as u32, arrived(&row)));
                            next += 1;
                            new.push(row);
                        }
                    }
                }
                if !new.is_empty() {
                    groups.push((first, new));
                }
            }
        }
        self.next_row = Some(next);
        groups
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
