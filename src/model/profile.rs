//! A saved session profile: what to move, where to, how, and how to check it.

use serde::{Deserialize, Serialize};

use crate::model::digest::Algorithm;
use crate::model::location::Location;
use crate::model::options::Options;
use crate::model::rules::{Conflict, Rule};
use crate::model::units::Rate;

/// Names a profile for ever: the end of its file name, 8 lower-case hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProfileId(pub String);

/// A saved session profile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Names it for ever.
    pub id: ProfileId,
    /// What the user calls it; any UTF-8.
    pub name: String,
    /// Free text.
    pub notes: String,
    /// What to move, in order.
    pub sources: Vec<Location>,
    /// Where to; the window edits the first.
    pub destinations: Vec<Location>,
    /// How.
    pub settings: Settings,
}

/// How a transfer is done; shared by profiles, drops and the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which method.
    pub method: MethodChoice,
    /// The method's own options.
    pub options: Options,
    /// A source folder's contents instead of the folder itself.
    pub contents: bool,
    /// How contents are checked.
    pub verify: Algorithm,
    /// Read the destination again from disk after the rename.
    pub read_back: bool,
    /// What happens to existing files.
    pub conflict: Conflict,
    /// What is kept beside the bytes.
    pub preserve: Preserve,
    /// Filter rules, first match wins.
    pub rules: Vec<Rule>,
    /// At most so many bytes a second; `None` for no limit.
    pub limit: Option<Rate>,
    /// Whether data must be unreadable on the way.
    pub encrypt: Encrypt,
    /// Done means that it survives a power cut.
    pub durable: bool,
    /// How to log in.
    pub ssh: SshSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            method: MethodChoice::Auto,
            options: Options::default(),
            contents: false,
            verify: Algorithm::default(),
            read_back: false,
            conflict: Conflict::default(),
            preserve: Preserve::default(),
            rules: Vec::new(),
            limit: None,
            encrypt: Encrypt::default(),
            durable: true,
            ssh: SshSettings::default(),
        }
    }
}

/// Which method moves the bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MethodChoice {
    /// The fastest safe one; the reason is told.
    #[default]
    Auto,
    /// This one, by its registry name.
    Named(String),
}

impl From<String> for MethodChoice {
    fn from(text: String) -> Self {
        if text == "auto" {
            Self::Auto
        } else {
            Self::Named(text)
        }
    }
}

impl From<MethodChoice> for String {
    fn from(choice: MethodChoice) -> Self {
        match choice {
            MethodChoice::Auto => "auto".to_owned(),
            MethodChoice::Named(name) => name,
        }
    }
}

/// What is kept beside the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Preserve {
    /// Modification times, to the nanosecond.
    pub times: bool,
    /// Permission bits (0777).
    pub permissions: bool,
    /// Symbolic links as links; otherwise they are left out.
    pub links: bool,
}

impl Default for Preserve {
    fn default() -> Self {
        Self {
            times: true,
            permissions: true,
            links: true,
        }
    }
}

/// Whether data must be unreadable on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Encrypt {
    /// Plain only with the user's word; otherwise through ssh.
    #[default]
    Auto,
    /// Through ssh.
    Always,
    /// Plain TCP: readable by others on that network, changes are detected.
    Never,
}

impl std::str::FromStr for Encrypt {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!("'{text}' is none of auto, always, never")),
        }
    }
}

/// How to log in, beside what the user's own ssh configuration says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SshSettings {
    /// A key file (`-i`).
    pub identity: Option<String>,
    /// A configuration file instead of the user's (`-F`).
    pub config: Option<String>,
    /// More `-o` options, `Name=value`; those that run commands or weaken host keys are refused.
    pub options: Vec<String>,
}
