//! A ledger in memory, for those whose home cannot be written: it forgets everything when the
//! program ends, and it keeps only so many rows.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::RowFilter;
use crate::engine::ledger::Ledger;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobId;
use crate::model::outcome::{Abort, Outcome, Report};
use crate::model::plan::Step;
use crate::model::progress::RunState;
use crate::model::verdict::Row;
use crate::store::history::{JobRecord, Owner};

/// Rows, and steps, that are kept of a job: about 60 MiB.
const KEPT: usize = 200_000;

/// What is kept of one job.
#[derive(Default)]
struct Kept {
    rows: Vec<Row>,
    steps: Vec<Step>,
    log: Vec<(f64, String)>,
    series: (f32, Vec<f32>),
}

#[derive(Default)]
struct Book {
    records: Vec<JobRecord>,
    kept: HashMap<JobId, Kept>,
}

/// A ledger in memory; clones share it.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Book>>);

impl Memory {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, job: JobId, act: impl FnOnce(&mut Kept) -> T) -> Result<T> {
        Ok(act(self.book().kept.entry(job).or_default()))
    }
}

fn full() -> Error {
    Error::new(
        ErrorKind::NoSpace,
        "keep the whole list",
        format!("without a history file only {KEPT} lines are kept"),
    )
    .hint("make the folder of the history writable")
}

fn page<T: Clone>(items: impl Iterator<Item = T>, range: Range<usize>) -> Vec<T> {
    items.skip(range.start).take(range.len()).collect()
}

impl Ledger for Memory {
    fn reader(&self) -> Result<Box<dyn Ledger>> {
        Ok(Box::new(self.clone()))
    }

    fn notes(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn save_job(&mut self, record: &JobRecord) -> Result<()> {
        let mut book = self.book();
        let id = record.spec.id;
        match book.records.iter_mut().find(|old| old.spec.id == id) {
            Some(old) => *old = record.clone(),
            None => book.records.push(record.clone()),
        }
        Ok(())
    }

    fn jobs(&mut self, limit: usize) -> Result<Vec<JobRecord>> {
        let book = self.book();
        let first = book.records.len().saturating_sub(limit);
        Ok(book.records[first..].to_vec())
    }

    fn job(&mut self, id: JobId) -> Result<Option<JobRecord>> {
        let book = self.book();
        Ok(book.records.iter().find(|r| r.spec.id == id).cloned())
    }

    fn mark_left_running(&mut self, is_alive: &dyn Fn(Owner) -> bool) -> Result<Vec<JobId>> {
        let mut marked = Vec::new();
        for record in &mut self.book().records {
            if record.end.is_none() && !is_alive(record.owner) {
                record.state = RunState::Finished;
                record.end = Some((Outcome::Aborted(Abort::LeftRunning), Report::default()));
                marked.push(record.spec.id);
            }
        }
        Ok(marked)
    }

    fn clear_steps(&mut self, job: JobId) -> Result<()> {
        self.with(job, |kept| kept.steps.clear())
    }

    fn counts(&mut self, job: JobId) -> Result<(u64, u64)> {
        self.with(job, |kept| {
            (kept.rows.len() as u64, kept.steps.len() as u64)
        })
    }

    fn put_rows(&mut self, job: JobId, rows: &[(u64, Row)]) -> Result<()> {
        self.with(job, |kept| {
            for (seq, row) in rows {
                let seq = *seq as usize;
                if seq < kept.rows.len() {
                    kept.rows[seq].clone_from(row);
                } else if kept.rows.len() < KEPT {
                    kept.rows.push(row.clone());
                } else {
                    return Err(full());
                }
            }
            Ok(())
        })?
    }

    fn append_steps(&mut self, job: JobId, first: u64, steps: &[Step]) -> Result<()> {
        self.with(job, |kept| {
            kept.steps.truncate(first as usize);
            let room = KEPT.saturating_sub(kept.steps.len()).min(steps.len());
            kept.steps.extend_from_slice(&steps[..room]);
            if room < steps.len() {
                Err(full())
            } else {
                Ok(())
            }
        })?
    }

    fn rows(
        &mut self,
        job: JobId,
        filter: &RowFilter,
        range: Range<usize>,
    ) -> Result<(Vec<Row>, usize)> {
        self.with(job, |kept| {
            if *filter == RowFilter::default() {
                return (page(kept.rows.iter().cloned(), range), kept.rows.len());
            }
            let text = filter.text.as_bytes();
            let passes = |row: &&Row| {
                filter.verdict.is_none_or(|name| row.verdict.name() == name)
                    && (text.is_empty() || row.path.windows(text.len()).any(|w| w == text))
            };
            let total = kept.rows.iter().filter(passes).count();
            (page(kept.rows.iter().filter(passes).cloned(), range), total)
        })
    }

    fn steps(&mut self, job: JobId, range: Range<usize>) -> Result<(Vec<Step>, usize)> {
        self.with(job, |kept| {
            (page(kept.steps.iter().cloned(), range), kept.steps.len())
        })
    }

    fn append_log(&mut self, job: JobId, lines: &[(f64, String)]) -> Result<()> {
        self.with(job, |kept| kept.log.extend_from_slice(lines))
    }

    fn log(&mut self, job: JobId) -> Result<Vec<(f64, String)>> {
        self.with(job, |kept| kept.log.clone())
    }

    fn save_series(&mut self, job: JobId, step: f32, values: &[f32]) -> Result<()> {
        self.with(job, |kept| kept.series = (step, values.to_vec()))
    }

    fn series(&mut self, job: JobId) -> Result<(f32, Vec<f32>)> {
        self.with(job, |kept| kept.series.clone())
    }
}
