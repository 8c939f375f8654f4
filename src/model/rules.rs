//! What to leave out, and what to do when the destination has a file of that name.

use serde::{Deserialize, Serialize};

/// One filter rule; the first that matches wins, and what none matches is included.
///
/// The pattern is a shell glob: `*` and `?` stop at a slash, `**` does not. One that starts with
/// a slash is anchored at the top of the transfer; others match at any depth. One that ends in a
/// slash matches folders only. An excluded folder is not entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Leave it out, or keep it in.
    pub verb: RuleVerb,
    /// The glob.
    pub pattern: String,
}

/// What a rule does with what it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleVerb {
    /// Leave it out.
    Exclude,
    /// Keep it in.
    Include,
}

/// What happens when the destination has a file of that name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conflict {
    /// Replace it when size or time differs, as rsync does.
    #[default]
    Differs,
    /// Replace it always.
    Overwrite,
    /// Leave it.
    Skip,
    /// Replace it when the source is newer.
    Newer,
    /// Replace it when the source is larger.
    Larger,
    /// Keep both: the new one gets a number.
    Rename,
    /// Finish it: what is there and agrees is not sent again.
    Resume,
    /// Treat it as an error.
    Fail,
    /// Ask a person, once, before the first write; without one it means Fail.
    Ask,
}

impl Conflict {
    /// Every rule, in the order of the wire codes; append only.
    pub const ALL: [Self; 9] = [
        Self::Differs,
        Self::Overwrite,
        Self::Skip,
        Self::Newer,
        Self::Larger,
        Self::Rename,
        Self::Resume,
        Self::Fail,
        Self::Ask,
    ];

    /// Returns the name used on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Differs => "differs",
            Self::Overwrite => "overwrite",
            Self::Skip => "skip",
            Self::Newer => "newer",
            Self::Larger => "larger",
            Self::Rename => "rename",
            Self::Resume => "resume",
            Self::Fail => "fail",
            Self::Ask => "ask",
        }
    }
}

impl std::str::FromStr for Conflict {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|c| c.name() == text).ok_or_else(|| {
            format!("'{text}' is none of differs, overwrite, skip, newer, larger, rename, resume, fail, ask")
        })
    }
}
