//! A job's log and throughput curve.

use rusqlite::{OptionalExtension as _, params};

use super::History;
use super::jobs::number;
use crate::model::error::Result;
use crate::model::job::JobId;

impl History {
    /// Adds lines to a job's log, each with seconds since the start.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append_log(&mut self, id: JobId, lines: &[(f64, String)]) -> Result<()> {
        self.write("keep the log", |transaction| {
            let Some(job) = number(transaction, id)? else {
                return Ok(());
            };
            let mut insert = transaction.prepare_cached(
                "INSERT INTO log (job, seq, at, text) SELECT ?1,
                    (SELECT coalesce(max(seq) + 1, 0) FROM log WHERE job = ?1), ?2, ?3",
            )?;
            for (at, text) in lines {
                // SQLite turns what is no number into NULL.
                let at = if at.is_nan() { 0.0 } else { *at };
                insert.execute(params![job, at, text])?;
            }
            Ok(())
        })
    }

    /// Returns a job's log, oldest line first.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn log(&mut self, id: JobId) -> Result<Vec<(f64, String)>> {
        self.look("read the log of a job", |transaction| {
            let Some(job) = number(transaction, id)? else {
                return Ok(Vec::new());
            };
            transaction
                .prepare_cached("SELECT at, text FROM log WHERE job = ?1 ORDER BY seq")?
                .query_map([job], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
    }

    /// Keeps a job's throughput curve: seconds that each value stands for, and the values.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save_series(&mut self, id: JobId, step: f32, values: &[f32]) -> Result<()> {
        let samples: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let step = if step.is_nan() { 0.0 } else { f64::from(step) };
        self.write("keep the throughput curve", |transaction| {
            if let Some(job) = number(transaction, id)? {
                transaction
                    .prepare_cached(
                        "INSERT OR REPLACE INTO series (job, step, samples) VALUES (?1, ?2, ?3)",
                    )?
                    .execute(params![job, step, samples])?;
            }
            Ok(())
        })
    }

    /// Returns a job's throughput curve; empty when it has none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn series(&mut self, id: JobId) -> Result<(f32, Vec<f32>)> {
        self.look("read the throughput curve of a job", |transaction| {
            let Some(job) = number(transaction, id)? else {
                return Ok((0.0, Vec::new()));
            };
            let found: Option<(f64, Vec<u8>)> = transaction
                .prepare_cached("SELECT step, samples FROM series WHERE job = ?1")?
                .query_row([job], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()?;
            let (step, samples) = found.unwrap_or_default();
            let (values, _) = samples.as_chunks::<4>();
            Ok((
                step as f32,
                values
                    .iter()
                    .map(|bytes| f32::from_le_bytes(*bytes))
                    .collect(),
            ))
        })
    }
}
