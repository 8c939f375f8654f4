//! What a person wants: widgets return wishes, one place (`execute`) fulfils them, and one table
//! gives menu, shortcuts and their help.

use std::path::PathBuf;

use egui::{Key, KeyboardShortcut, Modifiers};

use crate::model::event::{Answer, QuestionKind};
use crate::model::job::JobId;
use crate::model::profile::ProfileId;
use crate::ui::ports::{Look, Pick};
use crate::ui::state::{Browse, Tab, Target};

/// One thing that a person wants.
#[derive(Clone, Debug)]
pub enum Wish {
    /// A command of the table.
    Do(Deed),
    /// Edit this profile.
    SelectProfile(ProfileId),
    /// The editor changed something.
    Edited,
    /// Pick a file or folder for a field.
    Browse(Browse, Pick),
    /// These were picked in the window's own dialog.
    Picked(Vec<PathBuf>),
    /// List this folder for the window's own dialog.
    List(PathBuf),
    /// Look at this job; `None` at all of them.
    SelectJob(Option<JobId>),
    /// Look at this page.
    Show(Tab),
    /// Look at this page for this job.
    ShowJob(JobId, Tab),
    /// Do this with a job.
    Job(JobId, JobDeed),
    /// Answer a job's question, and remember the answer for the host.
    Answer {
        /// The job.
        job: JobId,
        /// The number of its question.
        question: u64,
        /// What the question was about.
        kind: QuestionKind,
        /// The answer.
        answer: Answer,
        /// Remember it for the host.
        remember: bool,
    },
    /// Look at a list that was pasted, named on the command line, or dropped through the toolkit.
    Look(Vec<u8>, Target),
    /// Send these, or add them to a profile; they were looked at.
    Send(Vec<PathBuf>, Target),
    /// Send what was dropped to the place that was typed in the dialog.
    SendTo,
    /// Ask for the latest runs.
    ReadRuns,
    /// Close the dialog.
    CloseDialog,
    /// Bring back a deleted profile.
    Restore(ProfileId),
    /// Take a note away.
    Dismiss(u64),
    /// End the program although jobs run.
    QuitNow,
}

/// What can be done with a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobDeed {
    /// Hold it.
    Pause,
    /// Let it go on.
    Resume,
    /// End it.
    Cancel,
    /// Queue it again.
    Retry,
    /// One place up the queue.
    Up,
    /// One place down the queue.
    Down,
    /// Take it off the list.
    Remove,
}

/// A command of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table below says what each does")]
pub enum Deed {
    Start,
    Simulate,
    NewProfile,
    Rename,
    Duplicate,
    Delete,
    MoveUp,
    MoveDown,
    AddSource,
    Swap,
    Search,
    CancelJob,
    SaveList,
    ClearEnded,
    Show(Tab),
    Look(Look),
    Quit,
}

/// A row of the table.
pub struct DeedRow {
    /// What is done.
    pub deed: Deed,
    /// The words in the menu.
    pub title: &'static str,
    /// The keys.
    pub keys: Option<KeyboardShortcut>,
    /// It starts a new group of the menu.
    pub group: bool,
}

const fn row(deed: Deed, title: &'static str, keys: Option<KeyboardShortcut>) -> DeedRow {
    DeedRow {
        deed,
        title,
        keys,
        group: false,
    }
}

const fn first(deed: Deed, title: &'static str, keys: Option<KeyboardShortcut>) -> DeedRow {
    DeedRow {
        deed,
        title,
        keys,
        group: true,
    }
}

const fn ctrl(key: Key) -> Option<KeyboardShortcut> {
    Some(KeyboardShortcut::new(Modifiers::COMMAND, key))
}

const fn plain(key: Key) -> Option<KeyboardShortcut> {
    Some(KeyboardShortcut::new(Modifiers::NONE, key))
}

const fn alt(key: Key) -> Option<KeyboardShortcut> {
    Some(KeyboardShortcut::new(Modifiers::ALT, key))
}

const fn ctrl_shift(key: Key) -> Option<KeyboardShortcut> {
    Some(KeyboardShortcut::new(
        Modifiers::COMMAND.plus(Modifiers::SHIFT),
        key,
    ))
}

/// Every command: menu, shortcut and help are made from it. Of two shortcuts that share a key the
/// one with more modifiers stands first.
pub const TABLE: &[DeedRow] = &[
    row(Deed::Simulate, "Simulate", ctrl_shift(Key::Enter)),
    row(Deed::Start, "Start", ctrl(Key::Enter)),
    first(Deed::NewProfile, "New profile", ctrl(Key::N)),
    row(Deed::Rename, "Rename profile", plain(Key::F2)),
    row(Deed::Duplicate, "Duplicate profile", ctrl(Key::D)),
    row(Deed::Delete, "Delete profile", ctrl(Key::Delete)),
    row(Deed::MoveUp, "Move profile up", alt(Key::ArrowUp)),
    row(Deed::MoveDown, "Move profile down", alt(Key::ArrowDown)),
    row(Deed::Search, "Search profiles", ctrl(Key::F)),
    first(Deed::AddSource, "Add source", None),
    row(Deed::Swap, "Swap source and destination", None),
    first(Deed::Show(Tab::Queue), "Show queue", ctrl(Key::Num1)),
    row(
        Deed::Show(Tab::Verification),
        "Show verification",
        ctrl(Key::Num2),
    ),
    row(Deed::Show(Tab::Plan), "Show plan", ctrl(Key::Num3)),
    row(Deed::Show(Tab::History), "Show history", ctrl(Key::Num4)),
    row(Deed::Show(Tab::Log), "Show log", ctrl(Key::Num5)),
    // Not Escape: who closes a menu or a field with it must not end a job.
    first(Deed::CancelJob, "Cancel job", ctrl(Key::Period)),
    row(Deed::SaveList, "Save list\u{2026}", ctrl(Key::S)),
    row(Deed::ClearEnded, "Clear ended jobs", None),
    first(Deed::Look(Look::System), "Colours as the desktop", None),
    row(Deed::Look(Look::Light), "Light colours", None),
    row(Deed::Look(Look::Dark), "Dark colours", None),
    first(Deed::Quit, "Quit", ctrl(Key::Q)),
];

/// Returns the row of a command.
pub fn entry(deed: Deed) -> &'static DeedRow {
    TABLE
        .iter()
        .find(|row| row.deed == deed)
        .expect("a test shows that every command that a widget offers has a row")
}

/// Returns the keys of a command as people read them; empty when it has none.
pub fn keys(ctx: &egui::Context, deed: Deed) -> String {
    entry(deed)
        .keys
        .map(|keys| ctx.format_shortcut(&keys))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_commands_share_their_keys_or_words() {
        for (i, a) in TABLE.iter().enumerate() {
            for b in &TABLE[i + 1..] {
                assert_ne!(a.title, b.title);
                assert!(a.keys.is_none() || a.keys != b.keys, "{}", a.title);
            }
        }
        for tab in Tab::ALL {
            assert_eq!(entry(Deed::Show(tab)).deed, Deed::Show(tab));
        }
    }
}
