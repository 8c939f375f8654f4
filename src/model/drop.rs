//! What a drag over the window, a paste, or a path on the command line brings.

use std::path::PathBuf;

use crate::model::untrusted::Untrusted;

/// One step of a drag over the window, in order; `Leave` or `Dropped` ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropEvent {
    /// Something that could be dropped hovers here.
    Hover {
        /// Pixels from the window's top left corner, as the screen has them (not scaled).
        position: (i32, i32),
        /// How many items; `None` while the source has not told.
        count: Option<usize>,
    },
    /// It went away or was called off.
    Leave,
    /// It was let go.
    Dropped {
        /// Pixels from the window's top left corner, as the screen has them (not scaled).
        position: (i32, i32),
        /// Everything that the source listed, in its order; never empty.
        items: Vec<DroppedItem>,
    },
}

/// One item that was dropped or pasted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DroppedItem {
    /// A path on this computer, as listed: a symbolic link stays one.
    Path(PathBuf),
    /// Something that cannot be taken.
    Refused {
        /// What the source listed.
        text: Untrusted,
        /// Why not, as a sentence without a full stop.
        why: String,
    },
}
