//! The nouns of the window: its pages, targets, dialogs and notes.

use std::ops::Range;
use std::path::PathBuf;

use egui::Pos2;

use crate::model::job::JobId;
use crate::model::plan::PlanTotals;
use crate::model::profile::ProfileId;
use crate::model::untrusted::Untrusted;
use crate::ui::draft::PlaceField;
use crate::ui::wish::Wish;

/// A page below the editor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Tab {
    /// The jobs and their graph.
    #[default]
    Queue,
    /// A verdict a file.
    Verification,
    /// What a dry run found.
    Plan,
    /// The runs that ended.
    History,
    /// Notes and warnings of a job.
    Log,
}

impl Tab {
    /// Every page in the order of the tabs.
    pub const ALL: [Self; 5] = [
        Self::Queue,
        Self::Verification,
        Self::Plan,
        Self::History,
        Self::Log,
    ];

    /// Returns the word on the tab.
    pub fn title(self) -> &'static str {
        match self {
            Self::Queue => "Queue",
            Self::Verification => "Verification",
            Self::Plan => "Plan",
            Self::History => "History",
            Self::Log => "Log",
        }
    }
}

/// Where what is dropped goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A job of its own with this profile's destination and settings; without one a dialog asks.
    Send(Option<ProfileId>),
    /// Into this profile's sources.
    Sources(ProfileId),
}

/// Who asked for a file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browse {
    /// This source field.
    Source(usize),
    /// The destination field.
    Destination,
    /// The field of the dialog that asks where to.
    WhereTo,
    /// The key file.
    Identity,
    /// Save list, for this job.
    SaveList(JobId),
}

/// Something dragged over the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drag {
    /// Where, in points; `None` when the desktop does not tell.
    pub position: Option<Pos2>,
    /// How many items; `None` while not known.
    pub count: Option<usize>,
}

/// A dialog of the window's own (jobs' questions come from the jobs).
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant)] // There is one at a time.
pub enum Dialog {
    /// Where shall these go?
    WhereTo {
        /// What was dropped.
        items: Vec<PathBuf>,
        /// What was typed so far.
        to: PlaceField,
    },
    /// These could not be taken.
    Refused {
        /// Each with the reason.
        items: Vec<(Untrusted, String)>,
        /// How many were taken.
        taken: usize,
    },
    /// Jobs run; end the program?
    Quit {
        /// How many.
        running: usize,
    },
}

/// How good a note is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// All is well.
    Good,
    /// Worth knowing.
    Plain,
    /// Something needs a look.
    Warn,
    /// Something went wrong.
    Bad,
}

/// A note in the corner that goes by itself.
#[derive(Clone, Debug)]
pub struct Toast {
    /// Tells notes apart.
    pub id: u64,
    /// What it says.
    pub text: String,
    /// How good it is.
    pub tone: Tone,
    /// When it goes, in seconds of the window's clock.
    pub until: f64,
    /// The word and wish of its button.
    pub button: Option<(&'static str, Wish)>,
}

/// What a virtual table showed last.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The rows that were on screen.
    pub range: Range<usize>,
    /// Of which job.
    pub job: Option<JobId>,
}

/// Which field gets the keyboard in the next frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// The search field.
    Search,
    /// The profile's name.
    Name,
}

/// What the pages tell of: a job of the queue, or a run of the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// Names its rows and steps.
    pub id: JobId,
    /// What it is called.
    pub title: String,
    /// The counts of its plan, where they are known.
    pub plan: Option<PlanTotals>,
}
