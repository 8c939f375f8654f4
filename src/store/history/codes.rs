//! Numbers that stand for verdicts, actions and reasons in the tables; append only.

use crate::model::digest::Algorithm;
use crate::model::entry::{Action, EntryKind, Reason};
use crate::model::progress::RunState;
use crate::model::verdict::When;

/// Verdicts by their names; the index is the number.
pub(super) const VERDICTS: [&str; 8] = [
    "verified",
    "differs",
    "size_only",
    "unverified",
    "source_changed",
    "vanished",
    "skipped",
    "failed",
];

pub(super) const ACTIONS: [Action; 6] = [
    Action::Create,
    Action::Update,
    Action::Touch,
    Action::Delete,
    Action::Keep,
    Action::Skip,
];

pub(super) const REASONS: [Reason; 11] = [
    Reason::Missing,
    Reason::Size,
    Reason::Time,
    Reason::Digest,
    Reason::Content,
    Reason::Mode,
    Reason::Extra,
    Reason::Same,
    Reason::Excluded,
    Reason::Conflict,
    Reason::Special,
];

pub(super) const KINDS: [EntryKind; 4] = [
    EntryKind::File,
    EntryKind::Dir,
    EntryKind::Symlink,
    EntryKind::Special,
];

pub(super) const TAKEN: [When; 2] = [When::InFlight, When::ReadBack];

pub(super) const ALGORITHMS: [Algorithm; 6] = Algorithm::ALL;

/// States by the names in the table.
pub(super) const STATES: [(RunState, &str); 7] = [
    (RunState::Queued, "queued"),
    (RunState::Running, "running"),
    (RunState::Stalled, "stalled"),
    (RunState::Reconnecting, "reconnecting"),
    (RunState::Paused, "paused"),
    (RunState::Stopping, "stopping"),
    (RunState::Finished, "finished"),
];

/// Returns the number of a value.
pub(super) fn code<T: PartialEq>(table: &[T], value: &T) -> i64 {
    let at = table.iter().position(|known| known == value);
    // A value without a number is one that a newer model has; the test below finds it.
    at.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1)
}

/// Returns the value of a number.
pub(super) fn value<T: Copy>(table: &[T], code: i64) -> Option<T> {
    usize::try_from(code)
        .ok()
        .and_then(|at| table.get(at))
        .copied()
}

/// Returns the name of a state.
pub(super) fn state_name(state: RunState) -> &'static str {
    STATES
        .iter()
        .find(|(known, _)| *known == state)
        .map_or("finished", |(_, name)| name)
}

/// Returns the state of a name.
pub(super) fn state(name: &str) -> Option<RunState> {
    STATES
        .iter()
        .find(|(_, known)| *known == name)
        .map(|(state, _)| *state)
}
