//! Saved session profiles: one text file each, found again at every start, never lost by a crash.
//!
//! [`mod@file`] describes the format. A profile that cannot be read is an [`Entry::Damaged`] that says
//! why and where; it is never overwritten. The list's order lies in `order.toml`, deleted profiles
//! in `trash/`, from where [`Profiles::restore`] takes them back.

mod entry;
pub mod file;
mod names;
mod order;
mod scan;
mod slug;

use std::path::{Path, PathBuf};

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::profile::{Profile, ProfileId};
use crate::store::dirs::{Dirs, make_private};
use crate::store::file as disk;

pub use entry::{Damaged, Entry};
pub use file::Loaded;
pub use names::name_fault;
pub use slug::slug;

use names::check_free;
use scan::{Found, Scan};

/// Days that deleted profiles can be taken back.
const TRASH_DAYS: u64 = 30;

/// A deleted profile that [`Profiles::restore`] takes back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// Which one.
    pub id: ProfileId,
    /// What it was called.
    pub name: String,
    file: String,
    position: usize,
}

/// The profiles of one configuration folder.
#[derive(Debug)]
pub struct Profiles {
    dir: PathBuf,
    trash: PathBuf,
    order_file: PathBuf,
    scan: Scan,
}

impl Profiles {
    /// Opens the folder, makes it if it is missing, and reads all files.
    ///
    /// # Errors
    /// When the folder is there and cannot be read. One that cannot be made has no profiles.
    pub fn open(dirs: &Dirs) -> Result<Self> {
        let dir = dirs.config().join("profiles");
        let mut profiles = Self {
            trash: dirs.config().join("trash"),
            order_file: dirs.config().join("order.toml"),
            scan: Scan::default(),
            dir,
        };
        if dirs.read_only().is_none() {
            make_private(&profiles.dir)?;
            disk::remove_left_over(&profiles.dir);
            disk::remove_left_over(dirs.config());
            profiles.empty_trash();
        }
        profiles.scan.refresh(&profiles.dir)?;
        Ok(profiles)
    }

    /// Returns all profiles in the order of the list, as they are on disk now. Files that did not
    /// change are not read again.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&mut self) -> Result<Vec<Entry>> {
        self.scan.refresh(&self.dir)?;
        let order = order::read(&self.order_file);
        let place = |entry: &Entry| {
            entry
                .id()
                .and_then(|id| order.iter().position(|o| o == id))
                .unwrap_or(usize::MAX)
        };
        let mut entries: Vec<_> = self.scan.entries().cloned().collect();
        entries.sort_by_cached_key(place);
        Ok(entries)
    }

    /// Says whether a file came, went or changed since the profiles were last listed or saved.
    pub fn changed(&self) -> bool {
        self.scan.changed(&self.dir)
    }

    /// Returns the profile with this id, name, or file name (with or without the id).
    ///
    /// # Errors
    /// `NotFound`; `Config` when several have the name or the file is damaged.
    pub fn get(&mut self, wanted: &str) -> Result<Profile> {
        self.scan.refresh(&self.dir)?;
        let found = self.scan.find(wanted);
        match found.as_slice() {
            [found] => match &found.entry {
                Entry::Good(profile) => Ok(profile.clone()),
                Entry::Damaged(damaged) => Err(damaged.to_error()),
            },
            [] => Err(no_profile(wanted)),
            several => {
                let ids: Vec<_> = several.iter().filter_map(|f| f.entry.id()).collect();
                let ids: Vec<_> = ids.iter().map(|id| id.0.as_str()).collect();
                let why = format!("{} profiles have that name", several.len());
                Err(Error::new(ErrorKind::Config, "choose a profile", why)
                    .at(wanted)
                    .hint(format!("name one by its id: {}", ids.join(", "))))
            }
        }
    }

    /// Returns the file that a profile is in.
    ///
    /// # Errors
    /// `NotFound`.
    pub fn file_of(&mut self, id: &ProfileId) -> Result<PathBuf> {
        let file_name = self.found(id)?.file_name.clone();
        Ok(self.dir.join(file_name))
    }

    /// Saves a profile over the one with its id, or as a new one. Comments and unknown keys of
    /// the file stay; nothing is written when nothing changed.
    ///
    /// # Errors
    /// Those of the system; the old file is whole then. `Config` when the file is damaged, since
    /// saving would lose what is in it, or when the profile gets a name that is blank or taken.
    pub fn save(&mut self, profile: &Profile) -> Result<()> {
        check_id(&profile.id)?;
        self.scan.refresh(&self.dir)?;
        self.check_name(profile)?;
        let wanted = slug::file_name(&profile.name, &profile.id);
        let Some(found) = self.scan.with_id(&profile.id) else {
            return self.write_new(profile, &file::create(profile));
        };
        let old = match &found.entry {
            Entry::Good(old) => old,
            Entry::Damaged(damaged) => {
                let mut error = damaged.to_error();
                error.doing = "save the profile over a damaged file".to_owned();
                return Err(error);
            }
        };
        let path = self.dir.join(&found.file_name);
        let bytes = disk::read_own(&path)?;
        // The bytes may be newer than the scan; what counts is what they say.
        let is_current = file::read(&bytes, profile.id.clone()).is_ok_and(|l| l.profile == *old);
        if !is_current {
            return Err(Error::new(
                ErrorKind::Config,
                "save the profile",
                "its file has changed",
            )
            .at(path.as_path())
            .hint("look at it again, then save"));
        }
        let text = String::from_utf8_lossy(&bytes);
        let text = file::rewrite(&text, old, profile).map_err(|fault| {
            Error::new(ErrorKind::Bug, "change the profile's text", fault.reason).at(path.as_path())
        })?;
        check_reads_back(&text, profile)?;
        disk::save(&path, text.as_bytes())?;
        if found.file_name != wanted {
            disk::rename_new(&path, &self.dir.join(wanted))?;
        }
        self.scan.refresh(&self.dir)
    }

    /// Refuses a new name that says nothing, or that another profile has. A profile that has such a
    /// name from before can still be changed in other ways.
    fn check_name(&self, profile: &Profile) -> Result<()> {
        let kept = self
            .scan
            .with_id(&profile.id)
            .and_then(|f| name_of(&f.entry));
        if kept.as_deref() == Some(profile.name.as_str()) {
            return Ok(());
        }
        let others = self
            .scan
            .entries()
            .filter(|entry| entry.id() != Some(&profile.id));
        check_free(
            &profile.name,
            &others.filter_map(name_of).collect::<Vec<_>>(),
        )
    }

    /// Refuses names for new profiles that say nothing, or that a profile or another of them has.
    ///
    /// # Errors
    /// `Config`, naming the first that cannot be given.
    pub fn check_new_names(&mut self, new: &[&str]) -> Result<()> {
        self.scan.refresh(&self.dir)?;
        let mut names: Vec<String> = self.scan.entries().filter_map(name_of).collect();
        for name in new {
            check_free(name, &names)?;
            names.push((*name).to_owned());
        }
        Ok(())
    }

    fn write_new(&mut self, profile: &Profile, text: &str) -> Result<()> {
        check_reads_back(text, profile)?;
        make_private(&self.dir)?;
        let path = self.dir.join(slug::file_name(&profile.name, &profile.id));
        disk::save(&path, text.as_bytes())?;
        self.scan.refresh(&self.dir)
    }

    /// Makes a profile without sources and destination, at the end of the list.
    ///
    /// # Errors
    /// As [`Profiles::save`].
    pub fn create(&mut self, name: &str) -> Result<Profile> {
        let profile = Profile {
            id: self.new_id()?,
            name: name.to_owned(),
            ..Profile::default()
        };
        self.save(&profile)?;
        self.place(&profile.id, usize::MAX)?;
        Ok(profile)
    }

    /// Saves somebody else's profile as a new one with an id of its own, at the end of the list.
    ///
    /// # Errors
    /// As [`Profiles::save`].
    pub fn add(&mut self, profile: &Profile) -> Result<Profile> {
        let profile = Profile {
            id: self.new_id()?,
            ..profile.clone()
        };
        self.save(&profile)?;
        self.place(&profile.id, usize::MAX)?;
        Ok(profile)
    }

    /// Gives a profile another name. Its id, which other things refer to, stays.
    ///
    /// # Errors
    /// As [`Profiles::save`].
    pub fn rename(&mut self, id: &ProfileId, name: &str) -> Result<Profile> {
        let mut profile = self.get(&id.0)?;
        profile.name = name.to_owned();
        self.save(&profile)?;
        Ok(profile)
    }

    /// Makes a copy below the original, with its comments and unknown keys.
    ///
    /// # Errors
    /// As [`Profiles::save`].
    pub fn duplicate(&mut self, id: &ProfileId) -> Result<Profile> {
        let old = self.get(&id.0)?;
        let path = self.file_of(id)?;
        let text = String::from_utf8_lossy(&disk::read_own(&path)?).into_owned();
        let names: Vec<_> = self.scan.entries().filter_map(name_of).collect();
        let name = (1u32..)
            .map(|n| match n {
                1 => format!("{} (copy)", old.name.trim()),
                n => format!("{} (copy {n})", old.name.trim()),
            })
            .find(|name| name_fault(name, &names).is_none())
            .unwrap_or_else(|| old.name.clone());
        let copy = Profile {
            id: self.new_id()?,
            name,
            ..old.clone()
        };
        let text = file::rewrite(&text, &old, &copy).map_err(|fault| {
            Error::new(ErrorKind::Bug, "copy the profile's text", fault.reason).at(path.as_path())
        })?;
        self.write_new(&copy, &text)?;
        let below = self
            .ids()?
            .iter()
            .position(|other| other == id)
            .map_or(usize::MAX, |at| at + 1);
        self.place(&copy.id, below)?;
        Ok(copy)
    }

    /// Deletes a profile, damaged or not. It can be taken back for 30 days.
    ///
    /// # Errors
    /// Those of the system.
    pub fn delete(&mut self, id: &ProfileId) -> Result<Deleted> {
        let position = self
            .ids()?
            .iter()
            .position(|other| other == id)
            .unwrap_or(usize::MAX);
        let found = self.found(id)?;
        let deleted = Deleted {
            id: id.clone(),
            name: name_of(&found.entry).unwrap_or_else(|| found.file_name.clone()),
            file: found.file_name.clone(),
            position,
        };
        make_private(&self.trash)?;
        let grave = self.trash.join(&deleted.file);
        if grave.symlink_metadata().is_ok() {
            // The same profile, deleted before and put back by hand.
            std::fs::remove_file(&grave)
                .map_err(|e| Error::io("make room in the trash", &e).at(grave.as_path()))?;
        }
        disk::rename_new(&self.dir.join(&deleted.file), &grave)?;
        self.scan.refresh(&self.dir)?;
        Ok(deleted)
    }

    /// Takes a deleted profile back to its place in the list.
    ///
    /// # Errors
    /// Those of the system; `NotFound` when it is in the trash no more.
    pub fn restore(&mut self, deleted: &Deleted) -> Result<()> {
        disk::rename_new(
            &self.trash.join(&deleted.file),
            &self.dir.join(&deleted.file),
        )?;
        self.scan.refresh(&self.dir)?;
        self.place(&deleted.id, deleted.position)
    }

    /// Sets the order of the list; profiles that are not named come after.
    ///
    /// # Errors
    /// Those of the system.
    pub fn reorder(&mut self, ids: &[ProfileId]) -> Result<()> {
        let mut order = ids.to_vec();
        order.extend(self.ids()?.into_iter().filter(|id| !ids.contains(id)));
        order::write(&self.order_file, &order)
    }

    /// Puts the starter profiles into a folder that never had any. Returns whether it did.
    ///
    /// # Errors
    /// Those of the system.
    pub fn ensure_samples(&mut self) -> Result<bool> {
        self.scan.refresh(&self.dir)?;
        let is_new = self.scan.entries().next().is_none()
            && !self.trash.exists()
            && !self.order_file.exists();
        if !is_new {
            return Ok(false);
        }
        let mut ids = Vec::new();
        for sample in crate::store::samples::ALL {
            let id = self.new_id()?;
            let profile = sample.profile(id.clone())?;
            self.write_new(&profile, sample.text)?;
            ids.push(id);
        }
        order::write(&self.order_file, &ids)?;
        Ok(true)
    }

    fn found(&mut self, id: &ProfileId) -> Result<&Found> {
        self.scan.refresh(&self.dir)?;
        self.scan.with_id(id).ok_or_else(|| no_profile(&id.0))
    }

    fn ids(&mut self) -> Result<Vec<ProfileId>> {
        Ok(self.list()?.iter().filter_map(Entry::id).cloned().collect())
    }

    fn place(&mut self, id: &ProfileId, position: usize) -> Result<()> {
        let mut ids = self.ids()?;
        ids.retain(|other| other != id);
        ids.insert(position.min(ids.len()), id.clone());
        order::write(&self.order_file, &ids)
    }

    fn new_id(&self) -> Result<ProfileId> {
        loop {
            let id = ProfileId(disk::random_hex()?);
            if self.scan.with_id(&id).is_none() {
                return Ok(id);
            }
        }
    }

    /// Removes what was deleted long ago.
    fn empty_trash(&self) {
        use std::os::unix::fs::MetadataExt as _;
        let Ok(entries) = std::fs::read_dir(&self.trash) else {
            return;
        };
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let limit = now.map_or(0, |now| now.as_secs().saturating_sub(TRASH_DAYS * 86_400));
        for entry in entries.flatten() {
            // The move into the trash sets the change time.
            let moved = entry.metadata().map(|meta| meta.ctime());
            if moved.is_ok_and(|at| u64::try_from(at).is_ok_and(|at| at < limit)) {
                // It only takes room; the next start tries again.
                let _ = std::fs::remove_file(entry.path());
            }
        }
    }
}

/// Reads a profile from a file that the user named, as `transload run FILE.toml` does. Its id is
/// the one in the file's name, or empty.
///
/// # Errors
/// Those of the system; `Config` with line and column.
pub fn read_given(path: &Path) -> Result<Loaded> {
    let bytes = disk::read_given(path)?;
    let id = path
        .file_name()
        .and_then(|name| slug::split(name.to_str()?))
        .map(|(_, id)| id)
        .unwrap_or_default();
    file::read(&bytes, id).map_err(|fault| {
        Damaged {
            id: None,
            file: path.to_owned(),
            line: fault.line,
            column: fault.column,
            reason: fault.reason,
        }
        .to_error()
    })
}

/// Writes a profile as the text of a file of its own, for export.
pub fn to_text(profile: &Profile) -> String {
    file::create(profile)
}

fn name_of(entry: &Entry) -> Option<String> {
    match entry {
        Entry::Good(profile) => Some(profile.name.clone()),
        Entry::Damaged(_) => None,
    }
}

fn no_profile(wanted: &str) -> Error {
    Error::new(
        ErrorKind::NotFound,
        "find the profile",
        "there is none of that name or id",
    )
    .at(wanted)
    .hint("see 'transload profiles list'")
}

fn check_id(id: &ProfileId) -> Result<()> {
    if slug::is_id(&id.0) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Bug,
        "save the profile",
        "its id is not 8 hexadecimal digits",
    )
    .at(id.0.as_str()))
}

/// Makes sure that what is written can be read, before it replaces anything: a place that was put
/// together by hand may be one that no text stands for.
fn check_reads_back(text: &str, profile: &Profile) -> Result<()> {
    let why = match file::read(text.as_bytes(), profile.id.clone()) {
        Ok(loaded) if loaded.profile == *profile => return Ok(()),
        Ok(_) => "it would read back differently".to_owned(),
        Err(fault) => fault.reason,
    };
    Err(Error::new(ErrorKind::Config, "save the profile", why).at(profile.name.as_str()))
}
