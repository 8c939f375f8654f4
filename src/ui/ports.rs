//! What the window stands on: thin traits over the engine, the user's profiles, slow chores and
//! the desktop's file picker, so that a test can put fakes in their place.
//!
//! Each has the same shape: tell it something, never wait, and take what it has to say later. The
//! real ones are in [`crate::ui::real`].

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use crate::engine::{Command, JobView, RowFilter, RowPage, Totals};
use crate::model::drop::DroppedItem;
use crate::model::error::{Error, Result};
use crate::model::event::Event;
use crate::model::job::{Consent, JobId};
use crate::model::outcome::{Outcome, Report};
use crate::model::plan::Step;
use crate::model::profile::{Profile, ProfileId};
use crate::store::profiles::Damaged;
use crate::store::settings::Window;
use crate::ui::parts::browse::FolderItem;
use crate::ui::state::Target;

/// Everything that the window stands on.
pub struct Ports {
    /// Runs jobs.
    pub jobs: Box<dyn Jobs>,
    /// Keeps profiles, settings and the memory of runs.
    pub library: Box<dyn Library>,
    /// Does what takes time.
    pub chores: Box<dyn Chores>,
    /// The desktop's own dialogs for files and folders.
    pub picker: Box<dyn Picker>,
}

/// The engine as the window sees it.
pub trait Jobs {
    /// Tells the engine something.
    fn send(&self, command: Command);
    /// Returns the jobs in the order of the list.
    fn jobs(&self) -> Arc<Vec<JobView>>;
    /// Returns the sums over all jobs.
    fn totals(&self) -> Totals;
    /// Returns rows of a job that pass a filter.
    fn rows(&self, job: JobId, filter: &RowFilter, range: Range<usize>) -> RowPage;
    /// Returns steps of a job's plan and how many there are.
    fn steps(&self, job: JobId, range: Range<usize>) -> (Arc<Vec<Step>>, usize);
    /// Returns the next event, if there is one.
    fn event(&mut self) -> Option<Event>;
}

/// A profile as the list shows it.
#[derive(Clone, Debug)]
pub enum ShelfItem {
    /// One that can be used.
    Ready(Arc<Profile>),
    /// One that cannot be read; it is shown, and never overwritten.
    Damaged(Damaged),
}

/// A run that ended.
#[derive(Clone, Debug)]
pub struct Run {
    /// The job.
    pub job: JobId,
    /// The profile it was made from.
    pub profile: Option<ProfileId>,
    /// What the list shows.
    pub title: String,
    /// It was a simulation.
    pub dry_run: bool,
    /// When it ended, in seconds since 1970.
    pub ended: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// Its figures.
    pub report: Report,
}

/// Light or dark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// As the desktop says.
    #[default]
    System,
    /// Light.
    Light,
    /// Dark.
    Dark,
}

/// The settings that the window needs.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Light or dark.
    pub look: Look,
    /// What the user allowed for good, by host.
    pub hosts: BTreeMap<String, Consent>,
    /// The profile that was selected last.
    pub last: Option<ProfileId>,
}

/// What the library is told.
#[derive(Clone, Debug)]
pub enum Order {
    /// Read everything and say what is there.
    Load,
    /// Make a profile; its id is given by the library.
    Create(Box<Profile>),
    /// Keep these changes.
    Save(Box<Profile>),
    /// Make a copy.
    Duplicate(ProfileId),
    /// Take a profile away; it can be restored.
    Delete(ProfileId),
    /// Bring back the profile that was deleted last.
    Restore(ProfileId),
    /// Keep this order of the list.
    Reorder(Vec<ProfileId>),
    /// Remember what the user allowed for a host, for good.
    Allow(String, Consent),
    /// Remember which profile was selected last.
    Selected(ProfileId),
    /// Remember the look.
    Look(Look),
    /// Look whether another program changed a profile.
    Refresh,
    /// Remember the window's size.
    Window(Window),
    /// Read the latest runs again.
    Runs,
}

/// What the library says.
#[derive(Clone, Debug)]
pub enum LibraryNews {
    /// All profiles in order.
    Profiles(Vec<ShelfItem>),
    /// This profile was made, after `Profiles` that has it; it is to be named.
    Made(ProfileId),
    /// This profile was brought back, after `Profiles` that has it.
    Restored(ProfileId),
    /// The latest runs, newest first.
    Runs(Vec<Run>),
    /// The settings.
    Settings(Settings),
    /// Something went wrong.
    Failed(Error),
}

/// Profiles, settings and the memory of runs, kept by somebody who may wait for a disk.
pub trait Library {
    /// Tells it something.
    fn send(&mut self, order: Order);
    /// Returns the next thing it has to say.
    fn news(&mut self) -> Option<LibraryNews>;
}

/// Something that takes time and ends with one answer.
#[derive(Debug)]
pub enum Chore {
    /// Read a list of paths and `file://` addresses and find out which are there; links are not
    /// followed.
    Look(Vec<u8>, Target),
    /// List a folder.
    List(PathBuf),
    /// Write a job's digests as `md5sum -c` reads them.
    SaveList(JobId, PathBuf),
}

/// How a chore ended.
#[derive(Debug)]
pub enum Done {
    /// The items of the list; those that cannot be taken are refused with the reason.
    Looked(Vec<DroppedItem>, Target),
    /// The names of that folder, sorted for people.
    Listed(PathBuf, Result<Vec<FolderItem>>),
    /// The list is written: how many lines, and where.
    ListSaved(Result<(u64, PathBuf)>),
}

/// Somebody who does chores.
pub trait Chores {
    /// Begins a chore.
    fn start(&mut self, chore: Chore);
    /// Returns the next chore that ended.
    fn done(&mut self) -> Option<Done>;
}

/// What is to be picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// One or more files.
    Files,
    /// One folder.
    Folder,
    /// A name to save a list under.
    SaveList,
}

/// What was picked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picked {
    /// These; empty when it was called off.
    Paths(Vec<PathBuf>),
    /// The desktop has no such dialog; the window shows its own.
    Unavailable,
}

/// The desktop's dialogs; one at a time.
pub trait Picker {
    /// Opens a dialog.
    fn open(&mut self, pick: Pick);
    /// Returns what came of it.
    fn picked(&mut self) -> Option<Picked>;
}
