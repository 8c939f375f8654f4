//! What a running method is given: counters to add to, a flag to look at, a place for rows, and
//! somebody to ask.

use crate::model::error::Error;
use crate::model::event::{Answer, QuestionKind};
use crate::model::plan::Step;
use crate::model::progress::Counters;
use crate::model::rules::Conflict;
use crate::model::verdict::Row;

pub use crate::model::control::{Cancel, LimitCell, Pause};

/// What a job reports an item at a time. Called from data threads, in batches; never blocks on a
/// reader.
pub trait Rows: Sync {
    /// Stores what was done. Drains `rows`.
    fn rows(&self, rows: &mut Vec<Row>);
    /// Stores what would be done. Drains `steps`.
    fn steps(&self, steps: &mut Vec<Step>);
}

/// What a job tells and asks people while it runs.
pub trait Ask: Sync {
    /// Waits for a person's answer; ends with `Answer::Cancel` when the job is cancelled. Where
    /// nobody is there it answers no, `Rule(Fail)` or what the user's settings say.
    fn ask(&self, question: QuestionKind) -> Answer;
    /// Tells something worth knowing.
    fn note(&self, text: String);
    /// Tells that one thing went wrong and the job goes on.
    fn warn(&self, error: Error);
}

/// What a running method is given.
pub struct Cx<'a> {
    /// How far the job is; data threads add to it.
    pub counters: &'a Counters,
    /// To be looked at in every loop.
    pub cancel: Cancel,
    /// While set, no data is sent; the connection stays.
    pub paused: Pause,
    /// The live bandwidth limit.
    pub limit: LimitCell,
    /// The conflict rule of this run; never `Ask`.
    pub conflict: Conflict,
    /// Where items are reported.
    pub rows: &'a dyn Rows,
    /// Where people are.
    pub people: &'a dyn Ask,
}
