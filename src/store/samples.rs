//! The starter profiles that a new folder of profiles gets.

use std::path::Path;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Location;
use crate::model::profile::{Profile, ProfileId};
use crate::store::profiles::file;

/// A starter profile.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Its file name in `profiles/` of the source, without `.toml`.
    pub name: &'static str,
    /// The text of its file.
    pub text: &'static str,
}

/// All of them, in the order of the list.
pub const ALL: [Sample; 4] = [
    TRY_IT,
    Sample {
        name: "usb-drive",
        text: include_str!("../../profiles/usb-drive.toml"),
    },
    Sample {
        name: "nas-push",
        text: include_str!("../../profiles/nas-push.toml"),
    },
    Sample {
        name: "fetch",
        text: include_str!("../../profiles/fetch.toml"),
    },
];

/// The one that works at once on any computer.
pub const TRY_IT: Sample = Sample {
    name: "try-it",
    text: include_str!("../../profiles/try-it.toml"),
};

/// Small folders that systems come with, best first; the one in the sample's text is Debian's.
const FOLDERS: [&str; 5] = [
    "/usr/share/common-licenses",
    "/usr/share/licenses",
    "/usr/share/zoneinfo/Europe",
    "/usr/share/terminfo",
    "/etc/ssl/certs",
];

impl Sample {
    /// Returns the profile with this id. A source that is not on this computer is replaced by
    /// another folder that is.
    ///
    /// # Errors
    /// None that a released program can meet: a test reads every sample.
    pub fn profile(&self, id: ProfileId) -> Result<Profile> {
        let loaded = file::read(self.text.as_bytes(), id).map_err(|fault| {
            Error::new(ErrorKind::Bug, "read a starter profile", fault.reason).at(self.name)
        })?;
        let mut profile = loaded.profile;
        let folder = FOLDERS
            .into_iter()
            .find(|folder| Path::new(folder).is_dir());
        if let Some(folder) = folder.filter(|_| self.name == TRY_IT.name) {
            profile.sources = vec![Location::Local(folder.into())];
        }
        Ok(profile)
    }
}
