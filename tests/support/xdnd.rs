//! A program that drags: the sending half of XDND, version 5, as a file manager would do it, and
//! with the bad manners that a receiver must stand.
#![allow(clippy::unwrap_used, dead_code)]

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use x11rb::connection::Connection as _;
use x11rb::protocol::Event;
use x11rb::protocol::xproto::*;
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

/// How long a drag may take in all.
const PATIENCE: Duration = Duration::from_secs(60);

x11rb::atom_manager! {
    Atoms: AtomsCookie {
        INCR, XdndActionCopy, XdndAware, XdndDrop, XdndEnter, XdndFinished, XdndLeave, XdndPosition,
        XdndProxy, XdndSelection, XdndStatus, XdndTypeList, _NET_WM_NAME,
        UriList: b"text/uri-list",
        TextPlain: b"text/plain",
        Html: b"text/html",
        Image: b"image/png",
    }
}

/// What the source does when it is asked for the list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hands {
    /// All at once.
    Whole,
    /// In pieces of so many bytes.
    Pieces(usize),
    /// One piece of so many bytes, then nothing more.
    OnePieceOnly(usize),
    /// It says no.
    No,
    /// It says no while hovering and hands over after the drop.
    AfterTheDrop,
    /// It stays silent.
    Nothing,
}

/// How the drag ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Let go over the window.
    Drop,
    /// Moved away.
    Leave,
    /// The program dies while hovering.
    DieHovering,
    /// The program dies right after letting go.
    DieDropping,
}

/// One drag, to be built and then run.
pub struct Drag {
    pub list: Vec<u8>,
    /// Pixels from the window's top left corner that the pointer passes; the last is where it ends.
    pub path: Vec<(i16, i16)>,
    /// It hovers until this says something or its other end is gone.
    pub hold: Option<Receiver<()>>,
    pub hands: Hands,
    pub end: End,
    /// Offers text/plain instead of a list of files.
    pub no_list: bool,
    /// Offers many types, so that they stand in a property.
    pub many_types: bool,
    /// Talks to the window itself, as a program that never heard of `XdndProxy`.
    pub ignores_proxy: bool,
}

/// What the source saw.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Answers to its movements.
    pub statuses: usize,
    /// Whether the last of them accepted.
    pub accepts: bool,
    /// Whether each of them asked for a copy.
    pub copies: bool,
    /// `Some(accepted)` once the target said that it is done.
    pub finished: Option<bool>,
    /// How often the list was asked for.
    pub asked: usize,
}

impl Drag {
    /// A well-behaved drag of these addresses, dropped at (200, 150).
    pub fn of<S: AsRef<[u8]>>(uris: &[S]) -> Self {
        let mut list = Vec::new();
        for uri in uris {
            list.extend_from_slice(uri.as_ref());
            list.extend_from_slice(b"\r\n");
        }
        Self {
            list,
            path: vec![(20, 20), (200, 150)],
            hold: None,
            hands: Hands::Whole,
            end: End::Drop,
            no_list: false,
            many_types: false,
            ignores_proxy: false,
        }
    }

    /// Does it to the window with this title and waits for the end of it.
    pub fn onto(self, display: &str, title: &str) -> Seen {
        Source::start(display, title, self).run()
    }
}

/// Returns a path as a `file:` address, as a file manager writes it.
pub fn uri(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt as _;
    let mut uri = String::from("file://");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri
}

/// Returns the window with this title, once it is there and takes drags.
pub fn find_window(conn: &RustConnection, screen: usize, title: &str) -> Window {
    find(conn, screen, title, true)
}

/// Says whether the window with this title is there with a live stand-in for its drags.
pub fn takes_drags(conn: &RustConnection, screen: usize, title: &str) -> bool {
    let atoms = Atoms::new(conn).unwrap().reply().unwrap();
    let root = conn.setup().roots[screen].root;
    find_below(conn, &atoms, root, title, true)
        .and_then(|window| proxy_of(conn, &atoms, window))
        .is_some()
}

/// Returns the window that takes drags for this one. It counts only when it names itself: a
/// number left behind by a dead program does not.
fn proxy_of(conn: &RustConnection, atoms: &Atoms, window: Window) -> Option<Window> {
    let named = |window| {
        let (name, kind) = (atoms.XdndProxy, AtomEnum::WINDOW);
        let cookie = conn.get_property(false, window, name, kind, 0, 1).ok()?;
        cookie.reply().ok()?.value32()?.next()
    };
    named(window).filter(|proxy| named(*proxy) == Some(*proxy))
}

/// Returns the window with this title, once it is there.
pub fn find_titled(conn: &RustConnection, screen: usize, title: &str) -> Window {
    find(conn, screen, title, false)
}

fn find(conn: &RustConnection, screen: usize, title: &str, takes_drags: bool) -> Window {
    let atoms = Atoms::new(conn).unwrap().reply().unwrap();
    let root = conn.setup().roots[screen].root;
    // The server tells of a new property or window only those who watch the window it is on, so
    // the tree is looked at again and again.
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(window) = find_below(conn, &atoms, root, title, takes_drags) {
            return window;
        }
        assert!(Instant::now() < until, "no window titled {title:?}");
        wait(conn, Duration::from_millis(50));
    }
}

fn find_below(
    conn: &RustConnection,
    atoms: &Atoms,
    top: Window,
    title: &str,
    takes_drags: bool,
) -> Option<Window> {
    // Windows come and go while we look: an error is "not this one".
    let text = |window, property: Atom| -> Option<Vec<u8>> {
        let cookie = conn
            .get_property(false, window, property, AtomEnum::ANY, 0, 1024)
            .ok()?;
        Some(cookie.reply().ok()?.value)
    };
    for window in conn.query_tree(top).ok()?.reply().ok()?.children {
        let aware = text(window, atoms.XdndAware).is_some_and(|value| !value.is_empty());
        let named = [atoms._NET_WM_NAME, AtomEnum::WM_NAME.into()]
            .iter()
            .any(|name| text(window, *name).is_some_and(|value| value == title.as_bytes()));
        if named && (aware || !takes_drags) {
            return Some(window);
        }
        if let Some(found) = find_below(conn, atoms, window, title, takes_drags) {
            return Some(found);
        }
    }
    None
}

/// Waits until the connection has something to read or the time is over.
fn wait(conn: &RustConnection, limit: Duration) {
    conn.flush().unwrap();
    let mut fds = [PollFd::from_borrowed_fd(
        conn.stream().as_fd(),
        PollFlags::IN,
    )];
    let limit = Timespec::try_from(limit).unwrap();
    poll(&mut fds, Some(&limit)).unwrap();
}

struct Source {
    conn: RustConnection,
    atoms: Atoms,
    root: Window,
    me: Window,
    /// The window that the drag is about, and the one that gets the messages.
    target: Window,
    to: Window,
    drag: Drag,
    seen: Seen,
    dropped: bool,
    /// Requestor, property and what is left of a transfer in pieces.
    pieces: Option<(Window, Atom, std::vec::IntoIter<Vec<u8>>)>,
}

impl Source {
    fn start(display: &str, title: &str, drag: Drag) -> Self {
        let (conn, screen) = x11rb::connect(Some(display)).unwrap();
        let atoms = Atoms::new(&conn).unwrap().reply().unwrap();
        let root = conn.setup().roots[screen].root;
        let target = find_window(&conn, screen, title);
        let me = conn.generate_id().unwrap();
        let class = WindowClass::INPUT_ONLY;
        conn.create_window(
            0,
            me,
            root,
            0,
            0,
            1,
            1,
            0,
            class,
            0,
            &CreateWindowAux::new(),
        )
        .unwrap();
        conn.set_selection_owner(me, atoms.XdndSelection, x11rb::CURRENT_TIME)
            .unwrap();
        if drag.many_types {
            let types = [atoms.Html, atoms.Image, atoms.TextPlain, atoms.UriList];
            let (list, atom) = (atoms.XdndTypeList, AtomEnum::ATOM);
            conn.change_property32(PropMode::REPLACE, me, list, atom, &types)
                .unwrap();
        }
        let mut source = Self {
            conn,
            atoms,
            root,
            me,
            target,
            to: target,
            drag,
            seen: Seen {
                copies: true,
                ..Seen::default()
            },
            dropped: false,
            pieces: None,
        };
        if !source.drag.ignores_proxy
            && let Some(proxy) = proxy_of(&source.conn, &source.atoms, target)
        {
            source.to = proxy;
        }
        source
    }

    fn send(&self, kind: Atom, data: [u32; 4]) {
        let [a, b, c, d] = data;
        let message = ClientMessageEvent::new(32, self.target, kind, [self.me, a, b, c, d]);
        self.conn
            .send_event(false, self.to, EventMask::NO_EVENT, message)
            .unwrap();
        self.conn.flush().unwrap();
    }

    fn move_to(&self, (x, y): (i16, i16)) {
        let place = self
            .conn
            .translate_coordinates(self.target, self.root, x, y)
            .unwrap()
            .reply()
            .unwrap();
        let place = u32::from(place.dst_x as u16) << 16 | u32::from(place.dst_y as u16);
        let copy = self.atoms.XdndActionCopy;
        self.send(
            self.atoms.XdndPosition,
            [0, place, x11rb::CURRENT_TIME, copy],
        );
    }

    fn run(mut self) -> Seen {
        let until = Instant::now() + PATIENCE;
        let first = match self.drag.no_list {
            true => self.atoms.TextPlain,
            false => self.atoms.UriList,
        };
        let enter = match self.drag.many_types {
            true => [5 << 24 | 1, 0, 0, 0],
            false => [5 << 24, first, 0, 0],
        };
        self.send(self.atoms.XdndEnter, enter);
        // One movement at a time, each answered before the next, as the protocol asks.
        for (moved, place) in self.drag.path.clone().into_iter().enumerate() {
            self.move_to(place);
            self.pump(until, |source| source.seen.statuses > moved);
            if self.seen.statuses <= moved {
                return self.seen;
            }
        }
        if let Some(hold) = self.drag.hold.take() {
            while hold.try_recv() == Err(TryRecvError::Empty) && Instant::now() < until {
                self.pump(Instant::now() + Duration::from_millis(20), |_| false);
            }
        }
        match self.drag.end {
            End::Leave => self.send(self.atoms.XdndLeave, [0; 4]),
            End::DieHovering => {}
            End::DieDropping => self.send(self.atoms.XdndDrop, [0, x11rb::CURRENT_TIME, 0, 0]),
            End::Drop if self.seen.accepts => {
                self.dropped = true;
                self.send(self.atoms.XdndDrop, [0, x11rb::CURRENT_TIME, 0, 0]);
                self.pump(until, |source| source.seen.finished.is_some());
            }
            // A program may not drop where it was not accepted.
            End::Drop => self.send(self.atoms.XdndLeave, [0; 4]),
        }
        self.conn.sync().unwrap();
        self.seen
    }

    /// Answers the target until `enough` or the time is over.
    fn pump(&mut self, until: Instant, enough: impl Fn(&Self) -> bool) {
        loop {
            while let Some(event) = self.conn.poll_for_event().unwrap() {
                self.on_event(event);
            }
            let left = until.saturating_duration_since(Instant::now());
            if enough(self) || left.is_zero() {
                return;
            }
            wait(&self.conn, left);
        }
    }

    fn on_event(&mut self, event: Event) {
        match event {
            Event::ClientMessage(message) if message.type_ == self.atoms.XdndStatus => {
                let data = message.data.as_data32();
                assert_eq!(data[0], self.target, "the answer names another window");
                self.seen.statuses += 1;
                self.seen.accepts = data[1] & 1 == 1;
                self.seen.copies &= data[4] == self.atoms.XdndActionCopy;
            }
            Event::ClientMessage(message) if message.type_ == self.atoms.XdndFinished => {
                let data = message.data.as_data32();
                assert_eq!(data[0], self.target, "the end names another window");
                self.seen.finished = Some(data[1] & 1 == 1);
            }
            Event::SelectionRequest(request) => self.hand_over(&request),
            Event::PropertyNotify(change) if change.state == Property::DELETE => {
                self.next_piece(change.window, change.atom);
            }
            _ => {}
        }
    }

    fn hand_over(&mut self, request: &SelectionRequestEvent) {
        self.seen.asked += 1;
        assert_eq!(request.target, self.atoms.UriList);
        let (window, property, kind) = (request.requestor, request.property, request.target);
        let list = &self.drag.list;
        let no = match self.drag.hands {
            Hands::Nothing => return,
            Hands::No => true,
            Hands::AfterTheDrop => !self.dropped,
            Hands::Whole => false,
            Hands::Pieces(size) | Hands::OnePieceOnly(size) => {
                let watch = ChangeWindowAttributesAux::new().event_mask(EventMask::PROPERTY_CHANGE);
                self.conn.change_window_attributes(window, &watch).unwrap();
                let pieces = list.chunks(size).map(<[u8]>::to_vec);
                let pieces: Vec<_> = match self.drag.hands {
                    Hands::OnePieceOnly(_) => pieces.take(1).collect(),
                    // An empty one is the end.
                    _ => pieces.chain([Vec::new()]).collect(),
                };
                self.pieces = Some((window, property, pieces.into_iter()));
                let (incr, size) = (self.atoms.INCR, list.len() as u32);
                self.conn
                    .change_property32(PropMode::REPLACE, window, property, incr, &[size])
                    .unwrap();
                self.notify(request, property);
                return;
            }
        };
        if no {
            return self.notify(request, 0);
        }
        self.conn
            .change_property8(PropMode::REPLACE, window, property, kind, list)
            .unwrap();
        self.notify(request, property);
    }

    fn notify(&self, request: &SelectionRequestEvent, property: Atom) {
        let answer = SelectionNotifyEvent {
            response_type: SELECTION_NOTIFY_EVENT,
            sequence: 0,
            time: request.time,
            requestor: request.requestor,
            selection: request.selection,
            target: request.target,
            property,
        };
        let to = request.requestor;
        self.conn
            .send_event(false, to, EventMask::NO_EVENT, answer)
            .unwrap();
        self.conn.flush().unwrap();
    }

    fn next_piece(&mut self, window: Window, property: Atom) {
        let Some((to, at, pieces)) = &mut self.pieces else {
            return;
        };
        if (*to, *at) != (window, property) {
            return;
        }
        if let Some(piece) = pieces.next() {
            let kind = self.atoms.UriList;
            self.conn
                .change_property8(PropMode::REPLACE, window, property, kind, &piece)
                .unwrap();
            self.conn.flush().unwrap();
        }
    }
}
