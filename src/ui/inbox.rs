//! Where drags arrive: our own target beside the window, or a channel that a test fills.

use std::sync::mpsc::Receiver;

use crate::desktop::drag::DragTarget;
use crate::model::drop::DropEvent;
use crate::model::error::Error;

/// Where drags arrive.
pub enum DropInbox {
    /// Only the toolkit's own events bring drops.
    None,
    /// Our own target, and whether its fault was told.
    Target(DragTarget, bool),
    /// Somebody else's.
    Channel(Receiver<DropEvent>),
}

impl DropInbox {
    /// Returns the next report, if there is one.
    pub fn next_event(&self) -> Option<DropEvent> {
        match self {
            Self::None => None,
            Self::Target(target, _) => target.next_event(),
            Self::Channel(channel) => channel.try_recv().ok(),
        }
    }

    /// Returns, once, why our own target takes no drags any more.
    pub fn new_fault(&mut self) -> Option<Error> {
        let Self::Target(target, told) = self else {
            return None;
        };
        let fault = target.fault().filter(|_| !*told)?;
        *told = true;
        Some(fault.clone())
    }
}
