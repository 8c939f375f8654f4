//! Where the history lies.

use std::path::PathBuf;

use crate::model::error::{Error, ErrorKind, Result};

/// Returns the folders of this user.
pub struct Dirs(PathBuf);

impl Dirs {
    /// Finds the folders.
    pub fn find() -> Result<Self> {
        if let Some(home) = std::env::var_os("TRANSLOAD_HOME").filter(|home| !home.is_empty()) {
            return Ok(Self(PathBuf::from(home).join("state")));
        }
        directories::ProjectDirs::from("", "", "transload")
            .and_then(|dirs| dirs.state_dir().map(|dir| Self(dir.to_owned())))
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
    pub fn history(&self) -> PathBuf {
        self.0.join("history.sqlite")
    }
}
