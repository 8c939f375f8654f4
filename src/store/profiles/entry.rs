//! One line of the list of profiles: a profile, or a file that cannot be read as one.

use std::fmt;
use std::path::PathBuf;

use crate::model::error::{Error, ErrorKind};
use crate::model::profile::{Profile, ProfileId};

/// One line of the list.
#[allow(clippy::large_enum_variant, reason = "nearly all of them are profiles")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A profile that can be used.
    Good(Profile),
    /// A file that cannot be read as one.
    Damaged(Damaged),
}

impl Entry {
    /// Returns the id, also of a damaged profile; `None` when the file's name has none.
    pub fn id(&self) -> Option<&ProfileId> {
        match self {
            Self::Good(profile) => Some(&profile.id),
            Self::Damaged(damaged) => damaged.id.as_ref(),
        }
    }
}

/// A profile's file that cannot be read, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damaged {
    /// The id in the file's name, if it has one.
    pub id: Option<ProfileId>,
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 when it is about the file as a whole.
    pub line: usize,
    /// The column in characters, from 1; 0 when it is about the file as a whole.
    pub column: usize,
    /// What is wrong there.
    pub reason: String,
}

impl Damaged {
    /// Returns it as an error that says what to do.
    pub fn to_error(&self) -> Error {
        Error::new(ErrorKind::Config, "read the profile", self.reason.as_str())
            .at(self.place())
            .hint("correct the file with a text editor, or delete the profile")
    }

    fn place(&self) -> String {
        let file = self.file.display();
        match self.line {
            0 => file.to_string(),
            line => format!("{file}:{line}:{}", self.column),
        }
    }
}

impl fmt::Display for Damaged {
    /// Writes `FILE:LINE:COLUMN: reason`, escaped.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}: {}", self.place(), self.reason);
        f.write_str(&crate::model::untrusted::shown(text.as_bytes()))
    }
}
