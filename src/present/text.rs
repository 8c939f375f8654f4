//! Sentences about jobs, verdicts, outcomes and places.

use crate::model::job::JobSpec;
use crate::model::outcome::{Outcome, Report};
use crate::model::profile::Profile;
use crate::model::progress::{Phase, RunState};
use crate::model::verdict::Verdict;

/// Says where the first file will land, for example
/// `first file lands in nas:/volume1/photo/Pictures/…`; `None` while a side is empty.
pub fn landing(_profile: &Profile) -> Option<String> {
    todo!()
}

/// Says what a job is busy with, for example `Connecting to nas`.
pub fn state(_spec: &JobSpec, _state: RunState, _phase: Phase) -> String {
    todo!()
}

/// Says how a job ended in one line, for example
/// `Done: 7105 files, 58.2 MiB in 0.9 s, all verified by md5`.
pub fn outcome(_outcome: &Outcome, _report: &Report) -> String {
    todo!()
}

/// Returns a verdict's word for people and, where there is one, its explanation.
pub fn verdict(_verdict: &Verdict) -> (&'static str, Option<String>) {
    todo!()
}
