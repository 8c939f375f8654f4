//! What happened to each file, and what a dry run says would happen: written in large
//! transactions, fetched by range.
//!
//! A job's rows are numbered 0, 1, 2, … without gaps, so that a range of all of them is a range of
//! the primary key however long the list is. For a filtered list the numbers of the rows that pass
//! are remembered from look to look and only rows that came since are searched.

use std::ops::Range;

use rusqlite::types::Type;
use rusqlite::{Row as SqlRow, ToSql, Transaction, params};

use super::jobs::number;
use super::{Fail, History, NEVER_SAVED, codes};
use crate::model::digest::Digest;
use crate::model::error::Result;
use crate::model::job::JobId;
use crate::model::plan::Step;
use crate::model::verdict::{Row, Verdict};
use crate::store::spec;

const COLUMNS: &str =
    "path, action, bytes, verdict, algorithm, digest, other, taken, why, error, seq";

/// What a filtered look found, kept for the next one.
#[derive(Debug)]
pub(super) struct Filtered {
    job: i64,
    verdict: Option<i64>,
    text: Vec<u8>,
    /// Earlier rows were changed so often when this was found.
    rewrites: i64,
    /// Rows up to here were searched.
    searched: i64,
    /// The numbers of those that pass.
    found: Vec<i64>,
}

impl History {
    /// Returns how many rows and steps a job has.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn counts(&mut self, id: JobId) -> Result<(u64, u64)> {
        self.look("read the history", |transaction| {
            let Some(job) = number(transaction, id)? else {
                return Ok((0, 0));
            };
            let rows = next(transaction, "rows", job)?;
            Ok((
                rows.cast_unsigned(),
                next(transaction, "steps", job)?.cast_unsigned(),
            ))
        })
    }

    /// Writes rows in one transaction; the first gets number `first`. A row that has a number
    /// already is replaced.
    ///
    /// # Errors
    /// `Bug` when that would leave a gap or the job was never saved; those of the system.
    pub fn append_rows(&mut self, id: JobId, first: u64, rows: &[Row]) -> Result<()> {
        self.put_rows(id, (first..).zip(rows))
    }

    /// Writes rows with their numbers in one transaction, as [`History::append_rows`] does; for
    /// many that are not in a row, so that each does not cost a transaction.
    ///
    /// # Errors
    /// As [`History::append_rows`].
    pub fn put_rows<'a>(
        &mut self,
        id: JobId,
        rows: impl IntoIterator<Item = (u64, &'a Row)>,
    ) -> Result<()> {
        self.write("keep what was done", |transaction| {
            let job = number(transaction, id)?.ok_or(NEVER_SAVED)?;
            let mut end = next(transaction, "rows", job)?;
            let old_end = end;
            let mut is_rewrite = false;
            let mut insert = transaction.prepare_cached(
                "INSERT OR REPLACE INTO rows (job, seq, path, action, bytes, verdict, algorithm,
                    digest, other, taken, why, error)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?;
            for (seq, row) in rows {
                let seq = seq.cast_signed();
                if !(0..=end).contains(&seq) {
                    return Err(Fail::Rule("the rows have a gap"));
                }
                end = end.max(seq + 1);
                is_rewrite |= seq < old_end;
                let Parts {
                    algorithm,
                    digest,
                    other,
                    taken,
                    why,
                    error,
                } = parts(&row.verdict);
                insert.execute(params![
                    job,
                    seq,
                    row.path,
                    codes::code(&codes::ACTIONS, &row.action),
                    row.bytes.cast_signed(),
                    codes::code(&codes::VERDICTS, &row.verdict.name()),
                    algorithm,
                    digest,
                    other,
                    taken,
                    why,
                    error
                ])?;
            }
            if is_rewrite {
                transaction
                    .prepare_cached("UPDATE jobs SET rewrites = rewrites + 1 WHERE num = ?1")?
                    .execute([job])?;
            }
            Ok(())
        })
    }

    /// Returns the rows of that range among those that pass, and how many pass: those of one
    /// verdict (by name), whose path holds the bytes of the text.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn rows(
        &mut self,
        id: JobId,
        verdict: Option<&str>,
        text: &str,
        range: Range<usize>,
    ) -> Result<(Vec<Row>, usize)> {
        let verdict = verdict.map(|name| codes::code(&codes::VERDICTS, &name));
        let mut filter = self.filter.take();
        let result = self.look("read the rows of a job", |transaction| {
            let Some(job) = number(transaction, id)? else {
                return Ok((Vec::new(), 0));
            };
            if verdict.is_none() && text.is_empty() {
                let total = next(transaction, "rows", job)?;
                let sql = format!(
                    "SELECT {COLUMNS} FROM rows WHERE job = ?1 AND seq >= ?2 AND seq < ?3
                     ORDER BY seq"
                );
                let mut statement = transaction.prepare_cached(&sql)?;
                let (start, end) = (signed(range.start), signed(range.end));
                let rows = statement.query_map([job, start, end], row)?;
                return Ok((rows.collect::<rusqlite::Result<_>>()?, unsigned(total)));
            }
            let found = filtered(transaction, filter.take(), job, verdict, text.as_bytes())?;
            let total = found.found.len();
            let page = range.start.min(total)..range.end.min(total).max(range.start.min(total));
            let sql = format!("SELECT {COLUMNS} FROM rows WHERE job = ?1 AND seq = ?2");
            let mut statement = transaction.prepare_cached(&sql)?;
            let rows = found.found[page]
                .iter()
                .map(|seq| statement.query_row([job, *seq], row))
                .collect::<rusqlite::Result<_>>()?;
            filter = Some(found);
            Ok((rows, total))
        });
        self.filter = filter;
        result
    }

    /// Returns the paths of all verified rows, in the order of their numbers; a resumed job need
    /// not send them again. Read in pages, so that memory stays small.
    pub fn verified_paths(&mut self, id: JobId) -> VerifiedPaths<'_> {
        VerifiedPaths {
            history: self,
            id,
            after: -1,
            page: Vec::new().into_iter(),
            is_over: false,
        }
    }

    /// Forgets the steps of a job that is planned anew.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn clear_steps(&mut self, id: JobId) -> Result<()> {
        self.write("forget a plan", |transaction| {
            if let Some(job) = number(transaction, id)? {
                transaction
                    .prepare_cached("DELETE FROM steps WHERE job = ?1")?
                    .execute([job])?;
            }
            Ok(())
        })
    }

    /// Writes steps in one transaction; the first gets number `first`. A step that has a number
    /// already is replaced.
    ///
    /// # Errors
    /// `Bug` when that would leave a gap or the job was never saved; those of the system.
    pub fn append_steps(&mut self, id: JobId, first: u64, steps: &[Step]) -> Result<()> {
        self.write("keep a plan", |transaction| {
            let job = number(transaction, id)?.ok_or(NEVER_SAVED)?;
            let first = first.cast_signed();
            if !(0..=next(transaction, "steps", job)?).contains(&first) {
                return Err(Fail::Rule("the steps have a gap"));
            }
            let mut insert = transaction.prepare_cached(
                "INSERT OR REPLACE INTO steps (job, seq, path, kind, action, reason, bytes)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for (seq, step) in (first..).zip(steps) {
                let Step {
                    path,
                    kind,
                    action,
                    reason,
                    bytes,
                } = step;
                insert.execute(params![
                    job,
                    seq,
                    path,
                    codes::code(&codes::KINDS, kind),
                    codes::code(&codes::ACTIONS, action),
                    codes::code(&codes::REASONS, reason),
                    bytes.cast_signed()
                ])?;
            }
            Ok(())
        })
    }

    /// Returns the steps of that range, and how many there are.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn steps(&mut self, id: JobId, range: Range<usize>) -> Result<(Vec<Step>, usize)> {
        self.look("read the plan of a job", |transaction| {
            let Some(job) = number(transaction, id)? else {
                return Ok((Vec::new(), 0));
            };
            let total = next(transaction, "steps", job)?;
            let mut statement = transaction.prepare_cached(
                "SELECT path, kind, action, reason, bytes FROM steps
                 WHERE job = ?1 AND seq >= ?2 AND seq < ?3 ORDER BY seq",
            )?;
            let (start, end) = (signed(range.start), signed(range.end));
            let steps = statement.query_map([job, start, end], |row| {
                let bytes: i64 = row.get(4)?;
                Ok(Step {
                    path: row.get(0)?,
                    kind: coded(row, 1, &codes::KINDS)?,
                    action: coded(row, 2, &codes::ACTIONS)?,
                    reason: coded(row, 3, &codes::REASONS)?,
                    bytes: bytes.cast_unsigned(),
                })
            })?;
            Ok((steps.collect::<rusqlite::Result<_>>()?, unsigned(total)))
        })
    }
}

/// The paths of a job's verified rows.
#[derive(Debug)]
pub struct VerifiedPaths<'a> {
    history: &'a mut History,
    id: JobId,
    after: i64,
    page: std::vec::IntoIter<(i64, Vec<u8>)>,
    is_over: bool,
}

impl Iterator for VerifiedPaths<'_> {
    type Item = Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.page.len() == 0 && !self.is_over {
            match self.next_page() {
                Ok(page) => self.page = page.into_iter(),
                Err(error) => {
                    self.is_over = true;
                    return Some(Err(error));
                }
            }
            self.is_over = self.page.len() == 0;
        }
        let (seq, path) = self.page.next()?;
        self.after = seq;
        Some(Ok(path))
    }
}

impl VerifiedPaths<'_> {
    fn next_page(&mut self) -> Result<Vec<(i64, Vec<u8>)>> {
        let (id, after) = (self.id, self.after);
        self.history.look("read what was verified", |transaction| {
            let Some(job) = number(transaction, id)? else {
                return Ok(Vec::new());
            };
            let verified = codes::code(&codes::VERDICTS, &"verified");
            let mut statement = transaction.prepare_cached(
                "SELECT seq, path FROM rows WHERE job = ?1 AND verdict = ?2 AND seq > ?3
                 ORDER BY seq LIMIT 10000",
            )?;
            let rows = statement
                .query_map([job, verified, after], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }
}

/// Returns the number of the next row or step, which is how many there are.
fn next(transaction: &Transaction<'_>, table: &str, job: i64) -> rusqlite::Result<i64> {
    let sql = format!("SELECT coalesce(max(seq) + 1, 0) FROM {table} WHERE job = ?1");
    transaction
        .prepare_cached(&sql)?
        .query_row([job], |row| row.get(0))
}

/// Brings what the last look found up to date, or searches anew.
fn filtered(
    transaction: &Transaction<'_>,
    old: Option<Filtered>,
    job: i64,
    verdict: Option<i64>,
    text: &[u8],
) -> rusqlite::Result<Filtered> {
    let rewrites: i64 = transaction
        .prepare_cached("SELECT rewrites FROM jobs WHERE num = ?1")?
        .query_row([job], |row| row.get(0))?;
    let is_same = |old: &Filtered| {
        old.job == job && old.verdict == verdict && old.text == text && old.rewrites == rewrites
    };
    let mut filter = old.filter(is_same).unwrap_or_else(|| Filtered {
        job,
        verdict,
        text: text.to_vec(),
        rewrites,
        searched: 0,
        found: Vec::new(),
    });
    let total = next(transaction, "rows", job)?;
    let from = filter.searched;
    let mut add = |sql: &str, parameters: &[&dyn ToSql]| -> rusqlite::Result<()> {
        let mut statement = transaction.prepare_cached(sql)?;
        for seq in statement.query_map(parameters, |row| row.get(0))? {
            filter.found.push(seq?);
        }
        Ok(())
    };
    match verdict {
        // Reads nothing but the index.
        Some(verdict) if text.is_empty() => add(
            "SELECT seq FROM rows WHERE job = ?1 AND seq >= ?2 AND verdict = ?3 ORDER BY seq",
            &[&job, &from, &verdict],
        )?,
        Some(verdict) => add(
            "SELECT seq FROM rows
             WHERE job = ?1 AND seq >= ?2 AND verdict = ?3 AND instr(path, ?4) > 0 ORDER BY seq",
            &[&job, &from, &verdict, &text],
        )?,
        None => add(
            "SELECT seq FROM rows
             WHERE job = ?1 AND seq >= ?2 AND instr(path, ?3) > 0 ORDER BY seq",
            &[&job, &from, &text],
        )?,
    }
    filter.searched = total;
    Ok(filter)
}

/// The columns that depend on the verdict.
#[derive(Default)]
struct Parts<'a> {
    algorithm: Option<i64>,
    digest: Option<&'a [u8]>,
    other: Option<&'a [u8]>,
    taken: Option<i64>,
    why: Option<&'a str>,
    error: Option<String>,
}

fn parts(verdict: &Verdict) -> Parts<'_> {
    let algorithm = |digest: &Digest| Some(codes::code(&codes::ALGORITHMS, &digest.algorithm()));
    match verdict {
        Verdict::Verified { digest, when } => Parts {
            algorithm: algorithm(digest),
            digest: Some(digest.as_bytes()),
            taken: Some(codes::code(&codes::TAKEN, when)),
            ..Parts::default()
        },
        Verdict::Differs { here, there } => Parts {
            algorithm: algorithm(here),
            digest: Some(here.as_bytes()),
            other: Some(there.as_bytes()),
            ..Parts::default()
        },
        Verdict::Unverified(why) | Verdict::Skipped(why) => Parts {
            why: Some(why),
            ..Parts::default()
        },
        Verdict::Failed(error) => Parts {
            error: Some(spec::error_to_json(error)),
            ..Parts::default()
        },
        Verdict::SizeOnly | Verdict::SourceChanged | Verdict::Vanished => Parts::default(),
    }
}

fn row(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    let bytes: i64 = row.get(2)?;
    let digest = |column| -> rusqlite::Result<Digest> {
        let bytes: Vec<u8> = row.get(column)?;
        Digest::new(coded(row, 4, &codes::ALGORITHMS)?, &bytes)
            .ok_or_else(|| wrong(column, "a digest of the wrong length"))
    };
    let why = || {
        row.get::<_, Option<String>>(8)
            .map(Option::unwrap_or_default)
    };
    let verdict = match coded(row, 3, &codes::VERDICTS)? {
        "verified" => Verdict::Verified {
            digest: digest(5)?,
            when: coded(row, 7, &codes::TAKEN)?,
        },
        "differs" => Verdict::Differs {
            here: digest(5)?,
            there: digest(6)?,
        },
        "size_only" => Verdict::SizeOnly,
        "unverified" => Verdict::Unverified(why()?),
        "source_changed" => Verdict::SourceChanged,
        "vanished" => Verdict::Vanished,
        "skipped" => Verdict::Skipped(why()?),
        _ => {
            let text: String = row.get(9)?;
            Verdict::Failed(spec::error_from_json(&text).map_err(|_| wrong(9, "no error"))?)
        }
    };
    Ok(Row {
        path: row.get(0)?,
        action: coded(row, 1, &codes::ACTIONS)?,
        bytes: bytes.cast_unsigned(),
        verdict,
    })
}

/// Reads a number that stands for a value.
fn coded<T: Copy>(row: &SqlRow<'_>, column: usize, table: &[T]) -> rusqlite::Result<T> {
    codes::value(table, row.get(column)?).ok_or_else(|| wrong(column, "an unknown number"))
}

fn wrong(column: usize, what: &str) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Null, what.into())
}

fn signed(index: usize) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}

fn unsigned(count: i64) -> usize {
    usize::try_from(count).unwrap_or_default()
}
