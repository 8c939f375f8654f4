//! Whether a file's bytes are right, and the row that says so.

use serde::{Deserialize, Serialize};

use crate::model::digest::Digest;
use crate::model::entry::Action;
use crate::model::error::Error;

/// When the destination's digest was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    /// From the bytes as they were received.
    InFlight,
    /// From the destination's disk, after the rename, with the cache dropped.
    ReadBack,
}

/// Is this file right?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both digests agree.
    Verified {
        /// The common value.
        digest: Digest,
        /// When the destination's was taken.
        when: When,
    },
    /// The destination holds other bytes than were read.
    Differs {
        /// The source's digest.
        here: Digest,
        /// The destination's digest.
        there: Digest,
    },
    /// Lengths agree; contents were not compared.
    SizeOnly,
    /// Nothing was compared.
    Unverified(String),
    /// The source was edited while it was read, twice; the final name is untouched.
    SourceChanged,
    /// The source went away before it was read.
    Vanished,
    /// It was left alone.
    Skipped(String),
    /// It did not arrive; the final name is untouched.
    Failed(Error),
}

impl Verdict {
    /// Returns the name used in JSON, filters and the database.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Verified { .. } => "verified",
            Self::Differs { .. } => "differs",
            Self::SizeOnly => "size_only",
            Self::Unverified(_) => "unverified",
            Self::SourceChanged => "source_changed",
            Self::Vanished => "vanished",
            Self::Skipped(_) => "skipped",
            Self::Failed(_) => "failed",
        }
    }
}

/// One line of the verification list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Where it is below the destination, bytes.
    pub path: Vec<u8>,
    /// What was done.
    pub action: Action,
    /// Length in bytes.
    pub bytes: u64,
    /// Is it right?
    pub verdict: Verdict,
}
