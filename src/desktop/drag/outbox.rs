//! Hands reports to the window without ever waiting for it: a hover may be replaced by a newer one,
//! a drop waits its turn for as long as it takes.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, TrySendError};

use crate::model::drop::DropEvent;

use super::Waker;

/// Reports kept for a window that does not listen, before new drags are turned away.
const KEPT: usize = 64;

/// The sending end of a drag's reports.
pub(super) struct Outbox {
    sender: SyncSender<DropEvent>,
    waker: Waker,
    waiting: VecDeque<DropEvent>,
    closed: bool,
}

impl Outbox {
    pub(super) fn new(sender: SyncSender<DropEvent>, waker: Waker) -> Self {
        Self {
            sender,
            waker,
            waiting: VecDeque::new(),
            closed: false,
        }
    }

    /// Sends a report now or as soon as there is room.
    pub(super) fn push(&mut self, event: DropEvent) {
        match (&event, self.waiting.back_mut()) {
            (DropEvent::Hover { .. }, Some(last @ DropEvent::Hover { .. })) => *last = event,
            _ => self.waiting.push_back(event),
        }
        self.flush();
    }

    /// Sends what there is room for and wakes the window if that was anything.
    pub(super) fn flush(&mut self) {
        let mut sent = false;
        while let Some(event) = self.waiting.pop_front() {
            match self.sender.try_send(event) {
                Ok(()) => sent = true,
                Err(TrySendError::Full(event)) => {
                    self.waiting.push_front(event);
                    break;
                }
                Err(TrySendError::Disconnected(_)) => {
                    self.closed = true;
                    self.waiting.clear();
                }
            }
        }
        if sent {
            (self.waker)();
        }
    }

    /// Says whether reports wait for room.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Says whether the window lags so far behind that no further drag should begin.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.len() >= KEPT
    }

    /// Says whether nobody will ever listen again.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn hover(x: i32) -> DropEvent {
        DropEvent::Hover {
            position: (x, 0),
            count: None,
        }
    }

    #[test]
    fn a_window_that_does_not_listen_gets_the_newest_hover_and_every_ending() {
        let woken = Arc::new(AtomicUsize::new(0));
        let (sender, receiver) = sync_channel(1);
        let count = Arc::clone(&woken);
        let mut outbox = Outbox::new(
            sender,
            Arc::new(move || {
                count.fetch_add(1, Ordering::Relaxed);
            }),
        );
        for x in 0..10 {
            outbox.push(hover(x));
        }
        outbox.push(DropEvent::Leave);
        let mut got = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            got.push(event);
            outbox.flush();
        }
        assert_eq!(got, [hover(0), hover(9), DropEvent::Leave]);
        assert_eq!(woken.load(Ordering::Relaxed), 3);
        assert!(!outbox.has_waiting());
    }

    #[test]
    fn a_closed_window_ends_it() {
        let (sender, receiver) = sync_channel(1);
        let mut outbox = Outbox::new(sender, Arc::new(|| {}));
        drop(receiver);
        outbox.push(DropEvent::Leave);
        assert!(outbox.is_closed() && !outbox.has_waiting());
    }

    #[test]
    fn drags_are_turned_away_while_too_many_reports_wait() {
        let (sender, _receiver) = sync_channel(1);
        let mut outbox = Outbox::new(sender, Arc::new(|| {}));
        for x in 0..40 {
            outbox.push(hover(x));
            outbox.push(DropEvent::Leave);
        }
        assert!(outbox.is_full());
    }
}
