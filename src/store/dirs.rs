//! The folders that Transload keeps things in, each readable by their owner alone.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use crate::model::error::{Error, ErrorKind, Result};

/// The variable that moves all folders below one, for tests and portable use.
pub const HOME_VARIABLE: &str = "TRANSLOAD_HOME";

/// Where this user's profiles, settings, history, caches and sockets lie.
#[derive(Clone, Debug)]
pub struct Dirs {
    config: PathBuf,
    state: PathBuf,
    cache: PathBuf,
    runtime: PathBuf,
    read_only: Option<Error>,
}

impl Dirs {
    /// Finds the folders of this user and makes those that are missing.
    ///
    /// # Errors
    /// `Config` when no home folder is known; `Denied` when a folder belongs to somebody else.
    /// Folders that cannot be made or written are no error, see [`Dirs::read_only`].
    pub fn open() -> Result<Self> {
        match std::env::var_os(HOME_VARIABLE).filter(|dir| !dir.is_empty()) {
            Some(dir) => Self::below(Path::new(&dir)),
            None => Self::of_user()?.make(),
        }
    }

    /// Makes the folders below this one: `config`, `state`, `cache` and `run`.
    ///
    /// # Errors
    /// As [`Dirs::open`].
    pub fn below(dir: &Path) -> Result<Self> {
        let dir = std::path::absolute(dir)
            .map_err(|e| Error::io("find the folder for settings", &e).at(dir))?;
        Self {
            config: dir.join("config"),
            state: dir.join("state"),
            cache: dir.join("cache"),
            runtime: dir.join("run"),
            read_only: None,
        }
        .make()
    }

    fn of_user() -> Result<Self> {
        let dirs = directories::ProjectDirs::from("", "", "transload").ok_or_else(no_home)?;
        let state = dirs
            .state_dir()
            .unwrap_or_else(|| dirs.data_local_dir())
            .to_owned();
        Ok(Self {
            config: dirs.config_dir().to_owned(),
            cache: dirs.cache_dir().to_owned(),
            // Without a session there is no runtime folder; sockets then lie beside the state.
            runtime: dirs
                .runtime_dir()
                .map_or_else(|| state.join("run"), Path::to_owned),
            state,
            read_only: None,
        })
    }

    fn make(mut self) -> Result<Self> {
        for dir in [&self.config, &self.state, &self.cache, &self.runtime] {
            if let Err(error) = make_private(dir) {
                self.read_only.get_or_insert(error);
            } else {
                check_owner(dir)?;
            }
        }
        Ok(self)
    }

    /// Returns the folder of profiles and settings.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Returns the folder of the history and logs.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// Returns the folder of what can be made again: measurements, agents.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns the folder of sockets.
    pub fn runtime(&self) -> &Path {
        &self.runtime
    }

    /// Returns the file of the queue and history.
    pub fn database(&self) -> PathBuf {
        self.state.join("history.sqlite")
    }

    /// Returns why nothing can be kept, to be shown as long as it is so: a folder is missing and
    /// cannot be made, or cannot be written.
    pub fn read_only(&self) -> Option<&Error> {
        self.read_only.as_ref()
    }
}

/// Returns the user's home folder, which `~/` in places stands for.
///
/// # Errors
/// `Config` when none is known.
pub fn home() -> Result<PathBuf> {
    let base = directories::BaseDirs::new().ok_or_else(no_home)?;
    Ok(base.home_dir().to_owned())
}

fn no_home() -> Error {
    Error::new(
        ErrorKind::Config,
        "find the folder for settings",
        "no home folder is known",
    )
    .hint(format!(
        "set HOME, or set {HOME_VARIABLE} to a folder that you own"
    ))
}

/// Makes a folder that only its owner can enter, with its parents.
///
/// # Errors
/// Those of the system, also when it cannot be written.
pub(super) fn make_private(dir: &Path) -> Result<()> {
    let failed = |doing: &str, e: &std::io::Error| {
        let mut error = Error::io(doing, e).at(dir);
        error.hint.get_or_insert_with(|| {
            format!("make it writable, or set {HOME_VARIABLE} to a folder that is")
        });
        error
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|e| failed("make the folder", &e))?;
    rustix::fs::access(dir, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|e| failed("write to the folder", &e.into()))
}

/// Makes sure that a folder is this user's own and closed to others.
fn check_owner(dir: &Path) -> Result<()> {
    let failed = |e: &std::io::Error| Error::io("close the folder to others", e).at(dir);
    let meta = fs::metadata(dir).map_err(|e| failed(&e))?;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        let why = format!("it belongs to another user (number {})", meta.uid());
        return Err(Error::new(ErrorKind::Denied, "use the folder", why)
            .at(dir)
            .hint(format!(
                "run Transload as that user, or set {HOME_VARIABLE} to a folder of your own"
            )));
    }
    if meta.mode() & 0o077 != 0 {
        fs::set_permissions(dir, Permissions::from_mode(0o700)).map_err(|e| failed(&e))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_folders_move_below_one_and_only_their_owner_can_enter() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir(top.path().join("state")).unwrap();
        let dirs = Dirs::below(top.path()).unwrap();
        for (dir, name) in [
            (dirs.config(), "config"),
            (dirs.state(), "state"),
            (dirs.cache(), "cache"),
            (dirs.runtime(), "run"),
        ] {
            assert_eq!(dir, top.path().join(name));
            assert_eq!(fs::metadata(dir).unwrap().mode() & 0o777, 0o700);
        }
        assert!(dirs.read_only().is_none());
    }

    #[test]
    fn a_folder_of_somebody_else_is_refused() {
        // Root's own folder stands for it where the tests do not run as root.
        let top = tempfile::tempdir().unwrap();
        let state = top.path().join("state");
        let foreign = if rustix::process::geteuid().is_root() {
            fs::create_dir(&state).unwrap();
            std::os::unix::fs::chown(&state, Some(1), None).unwrap();
            state
        } else {
            PathBuf::from("/usr")
        };
        let error = check_owner(&foreign).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied);
        assert!(error.to_string().contains("another user"), "{error}");
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_told_and_does_not_stop_the_program() {
        let top = tempfile::tempdir().unwrap();
        fs::write(top.path().join("state"), "a file in its place").unwrap();
        let dirs = Dirs::below(top.path()).unwrap();
        assert!(dirs.config().is_dir());
        let error = dirs.read_only().unwrap();
        assert!(error.to_string().contains("state"), "{error}");
        assert!(error.hint.as_deref().unwrap().contains(HOME_VARIABLE));
    }
}
