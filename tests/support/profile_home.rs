//! A configuration folder of a test's own, with its profiles.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::fs;
use std::path::PathBuf;

use transload::store::dirs::Dirs;
use transload::store::profiles::{Entry, Profiles};

/// Goes away with the test.
pub struct Home {
    pub top: tempfile::TempDir,
    pub dirs: Dirs,
}

impl Home {
    pub fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let dirs = Dirs::below(top.path()).unwrap();
        Self { top, dirs }
    }

    pub fn open(&self) -> Profiles {
        Profiles::open(&self.dirs).unwrap()
    }

    pub fn folder(&self) -> PathBuf {
        self.top.path().join("config/profiles")
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::create_dir_all(self.folder()).unwrap();
        let path = self.folder().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

/// Returns the names in the list, or what is wrong with a profile.
pub fn names(profiles: &mut Profiles) -> Vec<String> {
    profiles
        .list()
        .unwrap()
        .into_iter()
        .map(|entry| match entry {
            Entry::Good(profile) => profile.name,
            Entry::Damaged(damaged) => format!("damaged: {}", damaged.reason),
        })
        .collect()
}
