//! A window as a toolkit makes it, with a [`DragTarget`] in place of it.
#![allow(clippy::unwrap_used, dead_code)]

use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use transload::desktop::drag::DragTarget;
use transload::model::drop::{DropEvent, DroppedItem};
use x11rb::connection::Connection as _;
use x11rb::properties::{WmSizeHints, WmSizeHintsSpecification};
use x11rb::protocol::xproto::*;
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use super::display::Display;
use super::xdnd::{Drag, Seen};

/// What the window is called.
pub const TITLE: &str = "Drop here \u{2014} \u{c4}";

/// Longer than anything here may take, shorter than a person's patience with a test.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A window as a toolkit makes it, and what stands in for it.
pub struct Fixture {
    pub display: Display,
    pub conn: RustConnection,
    pub window: Window,
    pub target: Option<DragTarget>,
    pub woken: Receiver<()>,
}

impl Fixture {
    /// Opens it on a screen of its own.
    pub fn start() -> Self {
        Self::on(Display::start())
    }

    /// Opens it on this screen.
    pub fn on(display: Display) -> Self {
        let (conn, screen) = x11rb::connect(Some(display.name())).unwrap();
        let window = open_window(&conn, screen);
        let (target, woken) = take_drags(&display, window);
        let fixture = Self {
            display,
            conn,
            window,
            target: Some(target),
            woken,
        };
        fixture.until(|| fixture.proxy().is_some());
        fixture
    }

    /// Drags something onto it.
    pub fn drag(&self, drag: Drag) -> Seen {
        drag.onto(self.display.name(), TITLE)
    }

    /// Returns all events up to and with the one that ends the drag.
    pub fn events(&self) -> Vec<DropEvent> {
        let until = Instant::now() + PATIENCE;
        let mut events = Vec::new();
        loop {
            while let Some(event) = self.target.as_ref().unwrap().next_event() {
                let last = !matches!(event, DropEvent::Hover { .. });
                events.push(event);
                if last {
                    return events;
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(self.woken.recv_timeout(left).is_ok(), "only {events:?}");
        }
    }

    /// Returns what the drop that comes next brings.
    pub fn items(&self) -> Vec<DroppedItem> {
        match self.events().pop() {
            Some(DropEvent::Dropped { items, .. }) => items,
            other => panic!("{other:?}"),
        }
    }

    /// Waits for something that only the server knows.
    pub fn until(&self, mut done: impl FnMut() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !done() {
            assert!(Instant::now() < until, "it never happened");
            std::thread::yield_now();
        }
    }

    fn atom(&self, name: &str) -> Atom {
        self.conn
            .intern_atom(false, name.as_bytes())
            .unwrap()
            .reply()
            .unwrap()
            .atom
    }

    /// Returns the window that stands in for ours.
    pub fn proxy(&self) -> Option<Window> {
        let (window, name) = (self.window, self.atom("XdndProxy"));
        let cookie = self
            .conn
            .get_property(false, window, name, AtomEnum::WINDOW, 0, 1)
            .unwrap();
        cookie.reply().ok()?.value32()?.next()
    }

    /// Says whether a window is there.
    pub fn exists(&self, window: Window) -> bool {
        self.conn
            .get_window_attributes(window)
            .unwrap()
            .reply()
            .is_ok()
    }

    /// Says whether no message came to the window itself.
    pub fn undisturbed(&self) -> bool {
        self.conn.sync().unwrap();
        self.conn.poll_for_event().unwrap().is_none()
    }
}

fn open_window(conn: &RustConnection, screen: usize) -> Window {
    let window = conn.generate_id().unwrap();
    let root = conn.setup().roots[screen].root;
    let (class, look) = (WindowClass::INPUT_OUTPUT, CreateWindowAux::new());
    conn.create_window(0, window, root, 100, 60, 640, 400, 0, class, 0, &look)
        .unwrap();
    let atom = |name: &str| {
        conn.intern_atom(false, name.as_bytes())
            .unwrap()
            .reply()
            .unwrap()
            .atom
    };
    let (aware, name, text) = (atom("XdndAware"), atom("_NET_WM_NAME"), atom("UTF8_STRING"));
    let how = PropMode::REPLACE;
    conn.change_property32(how, window, aware, AtomEnum::ATOM, &[5])
        .unwrap();
    conn.change_property8(how, window, name, text, TITLE.as_bytes())
        .unwrap();
    let mut hints = WmSizeHints::new();
    hints.position = Some((WmSizeHintsSpecification::UserSpecified, 100, 60));
    hints.set_normal_hints(conn, window).unwrap();
    conn.map_window(window).unwrap();
    conn.sync().unwrap();
    window
}

/// Starts to take the drags of a window.
pub fn take_drags(display: &Display, window: Window) -> (DragTarget, Receiver<()>) {
    let (wake, woken) = sync_channel(1);
    let waker = move || {
        let _ = wake.try_send(());
    };
    (
        DragTarget::on_x11(Some(display.name()), window, waker).unwrap(),
        woken,
    )
}
