//! Where drags arrive: our own target beside the window, or a channel that a test fills.

use std::sync::mpsc::Receiver;

use crate::desktop::drag::DragTarget;
use crate::model::drop::DropEvent;

/// Where drags arrive.
pub enum DropInbox {
    /// Only the toolkit's own events bring drops.
    None,
    /// Our own target.
    Target(DragTarget),
    /// Somebody else's.
    Channel(Receiver<DropEvent>),
}

impl DropInbox {
    /// Returns the next report, if there is one.
    pub fn next_event(&self) -> Option<DropEvent> {
        match self {
            Self::None => None,
            Self::Target(target) => target.next_event(),
            Self::Channel(channel) => channel.try_recv().ok(),
        }
    }
}
