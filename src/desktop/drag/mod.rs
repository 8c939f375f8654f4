//! Takes what is dragged onto the window, whatever its names and however many items.
//!
//! The toolkit drops the whole set without a word when one name is not UTF-8, one file is gone or
//! one address is foreign, and it follows links. So on X11 a [`DragTarget`] stands in for the
//! window: drags go to it (the `XdndProxy` property says so), it reads the raw list itself and
//! reports each item as a path or as a refusal. A program that ignores the property talks to the
//! window as ever, so the toolkit's own events stay the fall-back and no drop comes twice.
//!
//! Start with [`DragTarget::on_x11`]; [`take`] reads a list that came another way, such as a paste.

pub mod uri_list;

mod fetch;
mod outbox;
mod x11;

use std::collections::HashSet;
use std::io::ErrorKind as IoKind;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;

use crate::model::drop::{DropEvent, DroppedItem};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::untrusted::Untrusted;

use outbox::Outbox;

/// Reports that may wait for the window. A drag makes one a pointer movement and the window takes
/// them all each frame, so this is several frames' worth; beyond it only the newest hover counts.
const WAITING: usize = 64;

/// Tells the window that there is something to look at.
type Waker = Arc<dyn Fn() + Send + Sync>;

/// Receives drags in place of a window until it is dropped or the window goes away.
pub struct DragTarget {
    events: Receiver<DropEvent>,
    fault: Arc<OnceLock<Error>>,
    stop: Arc<OwnedFd>,
}

impl DragTarget {
    /// Starts to take the drags of a top-level X11 window, given its id; `display` is `None` for
    /// `$DISPLAY`. `waker` is called from another thread when [`next_event`](Self::next_event) has something;
    /// it must not block.
    ///
    /// Returns at once. What goes wrong later is told by [`fault`](Self::fault), and the toolkit's
    /// own events then bring the drops.
    ///
    /// # Errors
    /// When the system has no thread or descriptor left.
    pub fn on_x11(
        display: Option<&str>,
        window: u32,
        waker: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        const DOING: &str = "take drags from the desktop";
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| Error::io(DOING, &e.into()))?;
        let stop = Arc::new(stop);
        let fault = Arc::new(OnceLock::new());
        let (sender, events) = sync_channel(WAITING);
        let waker: Waker = Arc::new(waker);
        let outbox = Outbox::new(sender, Arc::clone(&waker));
        thread::Builder::new()
            .name("drag".to_owned())
            .spawn({
                let display = display.map(str::to_owned);
                let (stop, fault) = (Arc::clone(&stop), Arc::clone(&fault));
                move || {
                    if let Err(why) = x11::run(display.as_deref(), window, outbox, &stop) {
                        let error = Error::new(ErrorKind::Io, DOING, why)
                            .hint("drops still work, but all items must exist and be UTF-8 named");
                        // Set once, here.
                        let _ = fault.set(error);
                        waker();
                    }
                }
            })
            .map_err(|e| Error::io(DOING, &e))?;
        Ok(Self {
            events,
            fault,
            stop,
        })
    }

    /// Returns the next report, or `None` when there is none now.
    pub fn next_event(&self) -> Option<DropEvent> {
        self.events.try_recv().ok()
    }

    /// Returns why drags are no longer taken here.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.get()
    }
}

impl Drop for DragTarget {
    fn drop(&mut self) {
        // The thread is not waited for: it may be looking at files of a network that hangs. A
        // write of 1 to a fresh counter cannot block or fail.
        let _ = rustix::io::write(&*self.stop, &1u64.to_ne_bytes());
    }
}

/// Returns the items of a `text/uri-list`, each looked at on the disk: what is gone is refused, a
/// link is looked at itself and never followed, and an item listed twice is taken once.
pub fn take(list: &[u8]) -> Vec<DroppedItem> {
    let host = rustix::system::uname();
    let items = uri_list::parse(list, host.nodename().to_bytes());
    let mut seen = HashSet::with_capacity(items.len());
    let mut taken = Vec::with_capacity(items.len());
    for item in items {
        match item {
            DroppedItem::Path(path) => {
                if !seen.insert(path.clone()) {
                    continue;
                }
                taken.push(match why_not(&path) {
                    None => DroppedItem::Path(path),
                    Some(why) => DroppedItem::Refused {
                        text: Untrusted::from(path.as_path()),
                        why,
                    },
                });
            }
            refused => taken.push(refused),
        }
    }
    taken
}

/// Returns why a path cannot be taken.
fn why_not(path: &Path) -> Option<String> {
    let error = path.symlink_metadata().err()?;
    Some(match error.kind() {
        IoKind::NotFound | IoKind::NotADirectory => "it is no longer there".to_owned(),
        _ => Error::io("look at it", &error).cause.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_taken_as_the_link_even_when_it_points_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        let list = format!("file://{}\r\n", link.display());
        assert_eq!(take(list.as_bytes()), [DroppedItem::Path(link)]);
    }

    #[test]
    fn what_is_gone_is_refused_and_what_is_listed_twice_is_taken_once() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("here");
        std::fs::write(&here, "x").unwrap();
        let (shown, gone) = (here.display(), folder.path().join("gone"));
        let list = format!("{shown}\n{}\n{shown}/in\nfile://{shown}\n", gone.display());
        let refused = |path: &Path| DroppedItem::Refused {
            text: Untrusted::from(path),
            why: "it is no longer there".to_owned(),
        };
        assert_eq!(
            take(list.as_bytes()),
            [
                DroppedItem::Path(here.clone()),
                refused(&gone),
                refused(&here.join("in")),
            ]
        );
    }

    #[test]
    fn a_name_too_long_to_exist_says_so() {
        let items = take(format!("file:///tmp/{}", "x".repeat(300)).as_bytes());
        assert!(
            matches!(&items[..], [DroppedItem::Refused { why, .. }] if why == "file name too long"),
            "{items:?}"
        );
    }
}
