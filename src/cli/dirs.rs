//! Where the history lies.

use std::path::PathBuf;

use crate::model::error::{Error, ErrorKind, Result};

/// Returns the folders of this user.
pub struct Dirs(PathBuf);

impl Dirs {
    /// Finds the folders.
    pub fn open() -> Result<Self> {
        if let Some(home) = std::env::var_os("TRANSLOAD_HOME").filter(|home| !home.is_empty()) {
            return Ok(Self(PathBuf::from(home).join("state")));
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let state = set("XDG_STATE_HOME").map(PathBuf::from);
        state
            .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/state")))
            .map(|state| Self(state.join("transload")))
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Config,
                    "find your home folder",
                    "HOME is not set",
                )
                .hint("set HOME, or TRANSLOAD_HOME to a folder for profiles and history")
            })
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        self.0.join("history.sqlite")
    }

    /// Returns why nothing can be kept.
    pub fn read_only(&self) -> Option<&Error> {
        None
    }
}
