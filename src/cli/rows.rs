//! The rows and steps of a job: named as they come for people, and read in full at the end, when
//! no later attempt can replace one, for programs and for a list of digests.

use std::collections::HashSet;

use crate::cli::json::Line;
use crate::cli::out::Out;
use crate::engine::{Engine, RowFilter};
use crate::model::error::Result;
use crate::model::job::JobId;
use crate::model::plan::Step;
use crate::model::untrusted::shown;
use crate::model::verdict::{Row, Verdict};
use crate::present::text;
use crate::service::check_list::ListWriter;

/// Rows are fetched so many at a time.
const CHUNK: usize = 4096;
/// So many files of each bad verdict are named; the history has the rest.
const NAMED: usize = 20;
/// The verdicts that people are told of by name.
const BAD: [&str; 4] = ["differs", "failed", "source_changed", "vanished"];

/// Names rows to people as they come.
pub struct Follower<'a> {
    engine: &'a Engine,
    job: JobId,
    have: usize,
}

impl<'a> Follower<'a> {
    /// Starts behind the rows of earlier attempts.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn new(engine: &'a Engine, job: JobId, resumed: bool) -> Result<Self> {
        let have = match resumed {
            true => engine.fetch_rows(job, &RowFilter::default(), 0..0)?.total,
            false => 0,
        };
        Ok(Self { engine, job, have })
    }

    /// Names what is at hand; returns whether there was anything.
    pub fn name_some(&mut self, out: &Out) -> bool {
        let range = self.have..self.have + CHUNK;
        let page = self.engine.rows(self.job, &RowFilter::default(), range);
        let known = self.have.saturating_sub(page.start);
        let fresh = page.rows.get(known..).unwrap_or_default();
        if page.start > self.have || fresh.is_empty() {
            return false;
        }
        for row in fresh {
            out.say(&row_text(row));
        }
        self.have += fresh.len();
        true
    }

    /// Names the rest once the job has ended.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn name_rest(&mut self, out: &Out) -> Result<()> {
        let all = RowFilter::default();
        loop {
            let page = self
                .engine
                .fetch_rows(self.job, &all, self.have..self.have + CHUNK)?;
            for row in page.rows.iter() {
                out.say(&row_text(row));
            }
            self.have += page.rows.len();
            if page.rows.is_empty() || self.have >= page.total {
                return Ok(());
            }
        }
    }
}

/// Gives each row of a job that has ended to `take`.
///
/// # Errors
/// When the history cannot be read, or what `take` returns.
pub fn each(
    engine: &Engine,
    job: JobId,
    filter: &RowFilter,
    mut take: impl FnMut(&Row) -> Result<()>,
) -> Result<()> {
    let mut have = 0;
    loop {
        let page = engine.fetch_rows(job, filter, have..have + CHUNK)?;
        page.rows.iter().try_for_each(&mut take)?;
        have += page.rows.len();
        if page.rows.is_empty() || have >= page.total {
            return Ok(());
        }
    }
}

/// Saves the digests of verified files.
///
/// # Errors
/// When the history cannot be read or the list cannot be written.
pub fn save_list(engine: &Engine, job: JobId, mut list: ListWriter) -> Result<()> {
    let filter = RowFilter {
        verdict: Some("verified"),
        text: String::new(),
    };
    each(engine, job, &filter, |row| match &row.verdict {
        Verdict::Verified { digest, .. } => list.add(digest, &row.path),
        _ => Ok(()),
    })?;
    list.finish()
}

/// Names the files that went wrong, unless they were told of already.
///
/// # Errors
/// When the history cannot be read.
pub fn name_bad(engine: &Engine, job: JobId, out: &Out, told: &mut HashSet<String>) -> Result<()> {
    for verdict in BAD {
        let filter = RowFilter {
            verdict: Some(verdict),
            text: String::new(),
        };
        let page = engine.fetch_rows(job, &filter, 0..NAMED)?;
        for row in page.rows.iter() {
            let text = match &row.verdict {
                Verdict::Failed(error) => text::error_block(error),
                _ => row_text(row),
            };
            let key = text.lines().next().unwrap_or_default();
            if told.insert(key.to_owned()) {
                out.warn(&text);
            }
        }
        if page.total > NAMED {
            let more = page.total - NAMED;
            out.warn(&format!(
                "{more} more: transload history rows {job} --verdict {verdict}"
            ));
        }
    }
    Ok(())
}

/// Prints the steps of a dry run.
///
/// # Errors
/// When the history cannot be read.
pub fn print_steps(engine: &Engine, job: JobId, out: &Out) -> Result<()> {
    let mut have = 0;
    loop {
        let (steps, total) = engine.fetch_steps(job, have..have + CHUNK)?;
        steps.iter().for_each(|step| print_step(step, out));
        have += steps.len();
        if steps.is_empty() || have >= total || out.is_closed() {
            return Ok(());
        }
    }
}

/// Prints a planned step; what stays as it is has no line.
fn print_step(step: &Step, out: &Out) {
    let Some(line) = Line::step(step) else { return };
    out.emit(|| line);
    out.print(&format!(
        "{:<10} {}  ({})",
        text::action(step.action),
        shown(&step.path),
        text::reason(step.reason)
    ));
}

/// Returns a row as one line for people.
pub fn row_text(row: &Row) -> String {
    let (word, why) = text::verdict(&row.verdict);
    match why {
        Some(why) => format!("{word:<14} {}  ({why})", shown(&row.path)),
        None => format!("{word:<14} {}", shown(&row.path)),
    }
}
