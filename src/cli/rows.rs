//! Reads the rows and steps of a job as they come: to JSON, to people, to a list of digests.

use std::collections::HashSet;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use crate::cli::json::Line;
use crate::cli::out::Out;
use crate::engine::{Engine, RowFilter};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::{JobId, JobSpec};
use crate::model::plan::Step;
use crate::model::untrusted::shown;
use crate::model::verdict::{Row, Verdict};
use crate::present::text;
use crate::service::check_list::ListWriter;

/// Rows are fetched so many at a time.
const CHUNK: usize = 1000;
/// How long the engine may take for the next rows of a job that has ended.
const PATIENCE: Duration = Duration::from_secs(30);
/// So many files of each bad verdict are named; the history has the rest.
const NAMED: usize = 20;
/// The verdicts that people are told of by name.
const BAD: [&str; 4] = ["differs", "failed", "source_changed", "vanished"];

/// What was read so far of one job.
pub struct RowReader<'a> {
    engine: &'a Engine,
    woken: &'a Receiver<()>,
    job: JobId,
    dry_run: bool,
    list: Option<ListWriter>,
    have: usize,
}

impl<'a> RowReader<'a> {
    /// Starts at the first row; `woken` says when the engine has fetched some.
    pub fn new(
        engine: &'a Engine,
        woken: &'a Receiver<()>,
        spec: &JobSpec,
        list: Option<ListWriter>,
    ) -> Self {
        Self {
            engine,
            woken,
            job: spec.id,
            dry_run: spec.dry_run,
            list,
            have: 0,
        }
    }

    fn wants_each(&self, out: &Out) -> bool {
        !self.dry_run && (out.json() || out.verbose() || self.list.is_some())
    }

    /// Passes on what is at hand, if somebody wants each row. Returns whether there was anything.
    ///
    /// # Errors
    /// When the list of digests cannot be written.
    pub fn read_some(&mut self, out: &Out) -> Result<bool> {
        if !self.wants_each(out) {
            return Ok(false);
        }
        let filter = RowFilter::default();
        let page = self
            .engine
            .rows(self.job, &filter, self.have..self.have + CHUNK);
        let known = self.have.saturating_sub(page.start);
        let fresh = page.rows.get(known..).unwrap_or_default();
        if page.start > self.have || fresh.is_empty() {
            return Ok(false);
        }
        for row in fresh {
            self.pass_on(row, out)?;
        }
        self.have += fresh.len();
        Ok(true)
    }

    fn pass_on(&mut self, row: &Row, out: &Out) -> Result<()> {
        out.emit(|| Line::row(row));
        if out.verbose() {
            out.say(&row_text(row));
        }
        match (&mut self.list, &row.verdict) {
            (Some(list), Verdict::Verified { digest, .. }) => list.add(digest, &row.path),
            _ => Ok(()),
        }
    }

    /// Passes on the rest once the job has ended, the steps of a dry run, and names what went
    /// wrong unless it was told already.
    ///
    /// # Errors
    /// When the list of digests cannot be written or the engine does not give all rows.
    pub fn read_rest(&mut self, out: &Out, told: &mut HashSet<String>) -> Result<()> {
        if self.dry_run {
            return self.read_steps(out);
        }
        if self.wants_each(out) {
            let mut deadline = Instant::now() + PATIENCE;
            let all = RowFilter::default();
            while self.have < self.engine.rows(self.job, &all, 0..1).total {
                if self.read_some(out)? {
                    deadline = Instant::now() + PATIENCE;
                } else {
                    self.wait_until(deadline)?;
                }
            }
        }
        for verdict in BAD {
            self.name_bad(verdict, out, told)?;
        }
        self.list.take().map_or(Ok(()), ListWriter::finish)
    }

    fn name_bad(&self, verdict: &'static str, out: &Out, told: &mut HashSet<String>) -> Result<()> {
        let filter = RowFilter {
            verdict: Some(verdict),
            text: String::new(),
        };
        let deadline = Instant::now() + PATIENCE;
        let page = loop {
            let page = self.engine.rows(self.job, &filter, 0..NAMED);
            if page.rows.len() >= page.total.min(NAMED) {
                break page;
            }
            self.wait_until(deadline)?;
        };
        for row in page.rows.iter() {
            let text = match &row.verdict {
                Verdict::Failed(error) => error.to_string(),
                _ => row_text(row),
            };
            // With -v each row was named when it came.
            if !out.verbose() && told.insert(text) {
                match &row.verdict {
                    Verdict::Failed(error) => out.warn(&text::error_block(error)),
                    _ => out.warn(&row_text(row)),
                }
            }
        }
        if page.total > NAMED {
            out.warn(&format!(
                "{} more: transload history rows {} --verdict {verdict}",
                page.total - NAMED,
                self.job
            ));
        }
        Ok(())
    }

    /// Waits a moment for the engine to fetch, or ends when it took too long.
    fn wait_until(&self, deadline: Instant) -> Result<()> {
        if Instant::now() > deadline {
            let cause = "the engine did not give all rows in 30 s";
            return Err(
                Error::new(ErrorKind::Timeout, "read the rows of the job", cause)
                    .hint("the history has them: transload history list"),
            );
        }
        // Woken or not, the caller looks again.
        let _ = self.woken.recv_timeout(Duration::from_millis(20));
        Ok(())
    }

    fn read_steps(&self, out: &Out) -> Result<()> {
        let mut have = 0;
        let mut deadline = Instant::now() + PATIENCE;
        loop {
            let (steps, total) = self.engine.steps(self.job, have..have + CHUNK);
            for step in steps.iter() {
                print_step(step, out);
            }
            have += steps.len();
            if have >= total || out.is_closed() {
                return Ok(());
            }
            if steps.is_empty() {
                self.wait_until(deadline)?;
            } else {
                deadline = Instant::now() + PATIENCE;
            }
        }
    }
}

/// Prints a planned step; what stays as it is has no line.
pub fn print_step(step: &Step, out: &Out) {
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
