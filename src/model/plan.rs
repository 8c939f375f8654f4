//! What a run would do: totals, and one step an item.

use serde::{Deserialize, Serialize};

use crate::model::entry::{Action, EntryKind, Reason};

/// One item of a plan, rsync's itemized change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Where it is below the destination, bytes.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: EntryKind,
    /// What would be done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Bytes that would be sent.
    pub bytes: u64,
}

/// The sums of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanTotals {
    /// Items that are not there yet.
    pub create: u64,
    /// Items that differ.
    pub update: u64,
    /// Items of which only metadata changes.
    pub touch: u64,
    /// Items that would go.
    pub delete: u64,
    /// Items that are the same.
    pub keep: u64,
    /// Items that are left out.
    pub skip: u64,
    /// Existing items that the conflict rule has to decide.
    pub conflicts: u64,
    /// Bytes that would be sent.
    pub bytes: u64,
}

impl PlanTotals {
    /// Counts one step.
    pub fn add(&mut self, step: &Step) {
        match step.action {
            Action::Create => self.create += 1,
            Action::Update => self.update += 1,
            Action::Touch => self.touch += 1,
            Action::Delete => self.delete += 1,
            Action::Keep => self.keep += 1,
            Action::Skip => self.skip += 1,
        }
        if step.reason == Reason::Conflict {
            self.conflicts += 1;
        }
        self.bytes += step.bytes;
    }
}
