//! How a job ended.

use serde::{Deserialize, Serialize};

use crate::model::error::Error;

/// Who or what stopped a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abort {
    /// The user.
    User,
    /// The program ended.
    Shutdown,
    /// The program was killed; found at the next start.
    LeftRunning,
    /// A question had nobody to answer it.
    Unanswered,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Everything arrived and was checked as asked.
    Completed,
    /// Some items did not arrive, changed, vanished or differ; with what ended it early, if that
    /// is why.
    Partial(Option<Error>),
    /// It was stopped.
    Aborted(Abort),
    /// A guard or rule forbade it; nothing was written.
    Refused(Error),
    /// It failed as a whole.
    Failed(Error),
}

impl Outcome {
    /// Returns the name used in JSON and the database.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Partial(_) => "partial",
            Self::Aborted(_) => "aborted",
            Self::Refused(_) => "refused",
            Self::Failed(_) => "failed",
        }
    }
}

/// Which way the data went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Route {
    /// This side connected to the agent's port.
    Direct,
    /// The agent connected to this side's port.
    Reversed,
    /// Through the ssh connection.
    Ssh,
    /// No network.
    #[default]
    Local,
}

impl Route {
    /// Returns the name used in JSON and the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Reversed => "reversed",
            Self::Ssh => "ssh",
            Self::Local => "local",
        }
    }
}

/// The figures of a job that ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Files and links that arrived.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Bytes on the data connections.
    pub wire_bytes: u64,
    /// Bytes of unfinished files that are kept there for a run that goes on, as far as is known.
    pub kept: u64,
    /// Seconds from start to end, without those in which it was paused or waited for an answer.
    pub seconds: f64,
    /// Seconds until data could flow, without those in which it waited for an answer.
    pub connect_seconds: f64,
    /// The method that was used.
    pub method: String,
    /// Which way the data went.
    pub route: Route,
    /// Why that method and route.
    pub why: String,
    /// Files of each verdict.
    pub tally: Tally,
    /// Items that were listed and came to no end; `None` when the listing was cut short too.
    pub missing: Option<u64>,
}

impl Report {
    /// Returns useful bytes per second over the whole run.
    pub fn goodput(&self) -> f64 {
        if self.seconds > 0.0 {
            self.bytes as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// Counts of verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Digests agree.
    pub verified: u64,
    /// Digests differ.
    pub differs: u64,
    /// Did not arrive.
    pub failed: u64,
    /// Left alone: the same already, by rule, or not a file.
    pub skipped: u64,
    /// The source went away.
    pub vanished: u64,
    /// The source changed while it was read.
    pub changed: u64,
    /// Lengths only, or nothing, compared.
    pub unchecked: u64,
    /// Removed at the destination.
    pub deleted: u64,
}
