//! Turns what a run tells into rows, steps and counts.

use std::sync::{Mutex, PoisonError};

use crate::backend::cx::Cx;
use crate::model::entry::{Action, EntryKind};
use crate::model::error::{Error, ErrorKind};
use crate::model::outcome::Tally;
use crate::model::plan::{PlanTotals, Step};
use crate::model::verdict::{Row, Verdict};
use crate::pump::report::Observer;
use crate::pump::send::has_row;
use crate::wire::message::Settled;

/// Rows that are handed on together.
const PAGE: usize = 512;

/// Collects for one run.
pub(super) struct Collector<'a> {
    cx: &'a Cx<'a>,
    dry_run: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    rows: Vec<Row>,
    steps: Vec<Step>,
    tally: Tally,
    totals: PlanTotals,
}

impl<'a> Collector<'a> {
    /// Starts with nothing.
    pub fn new(cx: &'a Cx<'a>, dry_run: bool) -> Self {
        Self {
            cx,
            dry_run,
            state: Mutex::default(),
        }
    }

    /// Hands on what waits.
    pub fn flush(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.rows.is_empty() {
            self.cx.rows.rows(&mut state.rows);
        }
        if !state.steps.is_empty() {
            self.cx.rows.steps(&mut state.steps);
        }
    }

    /// Hands on what waits and returns the counts.
    pub fn finish(self) -> (PlanTotals, Tally) {
        self.flush();
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        (state.totals, state.tally)
    }

    /// Tells that something did not arrive, for a reason that the other side gave.
    pub fn failed(&self, path: &[u8], error: Error) {
        if self.dry_run {
            self.cx.people.warn(error);
            return;
        }
        self.row(Row {
            path: path.to_vec(),
            action: Action::Skip,
            bytes: 0,
            verdict: Verdict::Failed(error),
        });
    }

    fn row(&self, row: Row) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let tally = &mut state.tally;
        *match row.verdict {
            Verdict::Verified { .. } => &mut tally.verified,
            Verdict::Differs { .. } => &mut tally.differs,
            Verdict::SizeOnly | Verdict::Unverified(_) => &mut tally.unchecked,
            Verdict::SourceChanged => &mut tally.changed,
            Verdict::Vanished => &mut tally.vanished,
            Verdict::Skipped(_) => &mut tally.skipped,
            Verdict::Failed(_) => &mut tally.failed,
        } += 1;
        state.rows.push(row);
        if state.rows.len() >= PAGE {
            self.cx.rows.rows(&mut state.rows);
        }
    }
}

impl Observer for Collector<'_> {
    fn settled(&self, path: &[u8], kind: EntryKind, settled: &Settled) {
        let Settled {
            action,
            reason,
            bytes,
            verdict,
            ..
        } = settled;
        if self.dry_run {
            let step = Step {
                path: path.to_vec(),
                kind,
                action: *action,
                reason: *reason,
                bytes: *bytes,
            };
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.totals.add(&step);
            state.steps.push(step);
            if state.steps.len() >= PAGE {
                self.cx.rows.steps(&mut state.steps);
            }
        } else if has_row(kind, settled) {
            self.row(Row {
                path: path.to_vec(),
                action: *action,
                bytes: *bytes,
                verdict: verdict.clone(),
            });
        }
    }

    fn trouble(&self, path: &[u8], error: &Error) {
        if self.dry_run {
            self.cx.people.warn(error.clone());
            return;
        }
        let verdict = match error.kind {
            ErrorKind::NotFound if error.doing != "open the source" => Verdict::Vanished,
            _ => Verdict::Failed(error.clone()),
        };
        self.row(Row {
            path: path.to_vec(),
            action: Action::Skip,
            bytes: 0,
            verdict,
        });
    }

    fn note(&self, error: &Error) {
        self.cx.people.warn(error.clone());
    }
}
