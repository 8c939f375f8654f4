//! What must be seen of a job: few, in order, `Finished` exactly once and last.

use crate::model::error::Error;
use crate::model::job::JobId;
use crate::model::outcome::{Outcome, Report};
use crate::model::plan::PlanTotals;
use crate::model::progress::RunState;

/// One report that must be seen.
#[derive(Clone, Debug)]
pub struct Event {
    /// Which job.
    pub job: JobId,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum EventKind {
    /// The job changed state.
    State(RunState),
    /// The plan is known.
    Planned(PlanTotals),
    /// A person has to decide.
    Asked(Question),
    /// Something to know, for people; at most 100 a job, the rest is counted.
    Note(String),
    /// One thing went wrong and the job goes on; at most 100 a job, the rest is counted.
    Warned(Error),
    /// It is over; the last event of a job.
    Finished(Outcome, Report),
}

/// A decision that the engine leaves to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Tells questions of one job apart.
    pub id: u64,
    /// What it is about.
    pub kind: QuestionKind,
}

/// What a question is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    /// May the agent be copied to this host and started? Yes or no.
    UploadAgent {
        /// The host.
        host: String,
        /// Its size in bytes.
        bytes: u64,
    },
    /// May data go over plain TCP to this host? Yes or no (then it goes through ssh).
    PlainTcp {
        /// The host.
        host: String,
    },
    /// So many files exist at the destination and differ: which rule? Answered by a conflict rule.
    Conflicts {
        /// Files that exist and differ.
        count: u64,
        /// The first of their paths, at most 100.
        examples: Vec<Vec<u8>>,
    },
}

/// What a person decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Yes, or no.
    Yes(bool),
    /// This conflict rule for all of them.
    Rule(crate::model::rules::Conflict),
    /// Stop the job.
    Cancel,
}
