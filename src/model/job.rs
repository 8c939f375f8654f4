//! One execution of a profile, a drop or a command.

use std::fmt;

use crate::model::location::Location;
use crate::model::profile::{ProfileId, Settings};

/// Names a job for ever, also in the staging folder of the receiver: 128 random bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobId(pub [u8; 16]);

impl JobId {
    /// Reads the 32 hexadecimal digits that `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let mut id = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        for (byte, pair) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(id))
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0 {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What a job is to do: a frozen copy of a profile or of what was dropped or typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobSpec {
    /// Names the job.
    pub id: JobId,
    /// What the list shows, for example "Photos → nas".
    pub title: String,
    /// The profile it was made from.
    pub profile: Option<ProfileId>,
    /// What to move.
    pub sources: Vec<Location>,
    /// Where to.
    pub destination: Location,
    /// How.
    pub settings: Settings,
    /// Plan only.
    pub dry_run: bool,
    /// Somebody is there to answer questions.
    pub attended: bool,
    /// What the user confirmed for this run.
    pub consent: Consent,
    /// This run goes on where an earlier one with the same id stopped.
    pub resume: bool,
}

/// What the user agreed to for this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Consent {
    /// The agent may be copied to the other side and started.
    pub upload_agent: bool,
    /// Data may go over plain TCP, readable on that network.
    pub plain_tcp: bool,
}

impl JobSpec {
    /// Returns the remote side's host name, or "local".
    pub fn host_key(&self) -> String {
        self.sources
            .iter()
            .chain([&self.destination])
            .find_map(Location::host)
            .map_or_else(|| "local".to_owned(), |host| host.name.clone())
    }
}
