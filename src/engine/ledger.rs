//! Where jobs, rows and steps are kept, as the engine needs it: SQLite, or memory where no file can
//! be written.

use std::ops::Range;

use crate::engine::RowFilter;
use crate::model::error::Result;
use crate::model::job::JobId;
use crate::model::plan::Step;
use crate::model::verdict::Row;
use crate::store::history::{History, JobRecord, Owner};

/// A place where jobs are kept. Its calls block; only the store threads make them.
pub trait Ledger: Send {
    /// Opens the same place again, for reading beside the writing.
    ///
    /// # Errors
    /// When it cannot be opened.
    fn reader(&self) -> Result<Box<dyn Ledger>>;
    /// Takes what a person has to know of the place itself: that it was damaged and begun anew, that
    /// a job was left out.
    fn notes(&mut self) -> Vec<String>;
    /// Keeps a job as it is now; durable when this returns.
    ///
    /// # Errors
    /// When it could not be made durable.
    fn save_job(&mut self, record: &JobRecord) -> Result<()>;
    /// Returns the newest jobs, oldest first, at most `limit`.
    ///
    /// # Errors
    /// When it cannot be read.
    fn jobs(&mut self, limit: usize) -> Result<Vec<JobRecord>>;
    /// Returns one job; `None` when there is none of that id.
    ///
    /// # Errors
    /// When it cannot be read.
    fn job(&mut self, id: JobId) -> Result<Option<JobRecord>>;
    /// Marks jobs that are not over and whose owner is gone as left running; returns them.
    ///
    /// # Errors
    /// When it cannot be read or written.
    fn mark_left_running(&mut self, is_alive: &dyn Fn(Owner) -> bool) -> Result<Vec<JobId>>;
    /// Forgets the steps of a job that is planned anew.
    ///
    /// # Errors
    /// When it cannot be written.
    fn clear_steps(&mut self, job: JobId) -> Result<()>;
    /// Returns how many rows and steps a job has.
    ///
    /// # Errors
    /// When it cannot be read.
    fn counts(&mut self, job: JobId) -> Result<(u64, u64)>;
    /// Writes rows with their numbers, which leave no gap, in one transaction. A row that has such a
    /// number is replaced.
    ///
    /// # Errors
    /// When it cannot be written.
    fn put_rows(&mut self, job: JobId, rows: &[(u64, Row)]) -> Result<()>;
    /// Adds steps; the first gets number `first`.
    ///
    /// # Errors
    /// When it cannot be written.
    fn append_steps(&mut self, job: JobId, first: u64, steps: &[Step]) -> Result<()>;
    /// Returns the rows of that range among those that pass the filter, and how many pass.
    ///
    /// # Errors
    /// When it cannot be read.
    fn rows(
        &mut self,
        job: JobId,
        filter: &RowFilter,
        range: Range<usize>,
    ) -> Result<(Vec<Row>, usize)>;
    /// Returns the steps of that range, and how many there are.
    ///
    /// # Errors
    /// When it cannot be read.
    fn steps(&mut self, job: JobId, range: Range<usize>) -> Result<(Vec<Step>, usize)>;
    /// Adds lines to a job's log.
    ///
    /// # Errors
    /// When it cannot be written.
    fn append_log(&mut self, job: JobId, lines: &[(f64, String)]) -> Result<()>;
    /// Returns a job's log.
    ///
    /// # Errors
    /// When it cannot be read.
    fn log(&mut self, job: JobId) -> Result<Vec<(f64, String)>>;
    /// Keeps a job's throughput curve.
    ///
    /// # Errors
    /// When it cannot be written.
    fn save_series(&mut self, job: JobId, step: f32, values: &[f32]) -> Result<()>;
    /// Returns a job's throughput curve.
    ///
    /// # Errors
    /// When it cannot be read.
    fn series(&mut self, job: JobId) -> Result<(f32, Vec<f32>)>;
}

impl Ledger for History {
    fn reader(&self) -> Result<Box<dyn Ledger>> {
        Ok(Box::new(Self::reader(self)?))
    }

    fn notes(&mut self) -> Vec<String> {
        Self::notes(self)
    }

    fn save_job(&mut self, record: &JobRecord) -> Result<()> {
        Self::save_job(self, record)
    }

    fn jobs(&mut self, limit: usize) -> Result<Vec<JobRecord>> {
        Ok(Self::jobs(self, limit)?
            .into_iter()
            .map(|job| job.record)
            .collect())
    }

    fn job(&mut self, id: JobId) -> Result<Option<JobRecord>> {
        Ok(Self::job(self, id)?.map(|job| job.record))
    }

    fn mark_left_running(&mut self, is_alive: &dyn Fn(Owner) -> bool) -> Result<Vec<JobId>> {
        Self::mark_left_running(self, is_alive)
    }

    fn clear_steps(&mut self, job: JobId) -> Result<()> {
        Self::clear_steps(self, job)
    }

    fn counts(&mut self, job: JobId) -> Result<(u64, u64)> {
        Self::counts(self, job)
    }

    fn put_rows(&mut self, job: JobId, rows: &[(u64, Row)]) -> Result<()> {
        Self::put_rows(self, job, rows.iter().map(|(seq, row)| (*seq, row)))
    }

    fn append_steps(&mut self, job: JobId, first: u64, steps: &[Step]) -> Result<()> {
        Self::append_steps(self, job, first, steps)
    }

    fn rows(
        &mut self,
        job: JobId,
        filter: &RowFilter,
        range: Range<usize>,
    ) -> Result<(Vec<Row>, usize)> {
        Self::rows(self, job, filter.verdict, &filter.text, range)
    }

    fn steps(&mut self, job: JobId, range: Range<usize>) -> Result<(Vec<Step>, usize)> {
        Self::steps(self, job, range)
    }

    fn append_log(&mut self, job: JobId, lines: &[(f64, String)]) -> Result<()> {
        Self::append_log(self, job, lines)
    }

    fn log(&mut self, job: JobId) -> Result<Vec<(f64, String)>> {
        Self::log(self, job)
    }

    fn save_series(&mut self, job: JobId, step: f32, values: &[f32]) -> Result<()> {
        Self::save_series(self, job, step, values)
    }

    fn series(&mut self, job: JobId) -> Result<(f32, Vec<f32>)> {
        Self::series(self, job)
    }
}
