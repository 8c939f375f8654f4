//! The receiving half of XDND, version 5: an unmapped window of its own connection answers for the
//! real one, so that neither the toolkit's connection nor its thread takes part.
//!
//! The other program sends Enter, then Position for each pointer movement (each is answered by
//! Status), then Leave or Drop. The list is asked for at the first Position, since its length tells
//! the person what a drop would do; Drop is answered by Finished as soon as the list is there,
//! before any file is looked at. We always answer "copy": the source must never delete anything.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use x11rb::connection::Connection as _;
use x11rb::errors::{ConnectionError, ReplyError};
use x11rb::protocol::Event;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ChangeWindowAttributesAux, ClientMessageEvent, ConnectionExt as _,
    CreateWindowAux, EventMask, PropMode, Timestamp, Window, WindowClass,
};
use x11rb::rust_connection::RustConnection;
use x11rb::wrapper::ConnectionExt as _;

use crate::model::drop::{DropEvent, DroppedItem};

use super::fetch::{Fetch, Step};
use super::outbox::Outbox;
use super::{take, uri_list};

/// The version of XDND that is spoken; 5 is the last.
const VERSION: u32 = 5;

/// How often a window that lags behind is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// The most types that a source may offer; real ones have about ten.
const MAX_TYPES: u32 = 1024;

/// Properties that transfers use in turn, so that a late answer to an old question is not taken for
/// the answer to the new one.
const PROPERTIES: usize = 4;

x11rb::atom_manager! {
    /// The names of the protocol.
    pub(super) Atoms: AtomsCookie {
        INCR,
        XdndActionCopy,
        XdndAware,
        XdndDrop,
        XdndEnter,
        XdndFinished,
        XdndLeave,
        XdndPosition,
        XdndProxy,
        XdndSelection,
        XdndStatus,
        XdndTypeList,
        UriList: b"text/uri-list",
        List0: b"TRANSLOAD_LIST_0",
        List1: b"TRANSLOAD_LIST_1",
        List2: b"TRANSLOAD_LIST_2",
        List3: b"TRANSLOAD_LIST_3",
    }
}

/// Serves drags until the window is gone or closed, `stop` is readable, or nobody listens.
///
/// # Errors
/// When there is no X server at `display` or it went away, in words.
pub(super) fn run(
    display: Option<&str>,
    window: Window,
    outbox: Outbox,
    stop: &OwnedFd,
) -> Result<(), String> {
    let (conn, screen) = x11rb::connect(display).map_err(|e| e.to_string())?;
    let mut target = Target::new(&conn, screen, window, outbox).map_err(|e| e.to_string())?;
    let served = target.serve(stop);
    target.withdraw();
    served.map_err(|e| e.to_string())
}

/// Treats an error of the server, such as a window that went away meanwhile, as "nothing there".
pub(super) fn unless_gone<T>(reply: Result<T, ReplyError>) -> Result<Option<T>, ConnectionError> {
    match reply {
        Ok(reply) => Ok(Some(reply)),
        Err(ReplyError::X11Error(_)) => Ok(None),
        Err(ReplyError::ConnectionError(error)) => Err(error),
    }
}

/// The stand-in for one window.
struct Target<'a> {
    conn: &'a RustConnection,
    atoms: Atoms,
    root: Window,
    window: Window,
    window_is_gone: bool,
    proxy: Window,
    outbox: Outbox,
    held: Option<Held>,
    transfers: usize,
}

/// What hovers over the window, or was let go and is being handed over.
struct Held {
    source: Window,
    /// Whether a list of files is among what the source offers.
    has_list: bool,
    position: (i32, i32),
    hovers: bool,
    /// When it was let go, by the server's clock.
    dropped: Option<Timestamp>,
    list: List,
}

enum List {
    NotAsked,
    Coming(Fetch),
    Here(Vec<u8>),
    Failed(DroppedItem),
}

impl<'a> Target<'a> {
    fn new(
        conn: &'a RustConnection,
        screen: usize,
        window: Window,
        outbox: Outbox,
    ) -> Result<Self, Box<dyn std::error::Error>> {
        let root = conn.setup().roots[screen].root;
        let atoms = Atoms::new(conn)?.reply()?;
        let proxy = conn.generate_id()?;
        let look = CreateWindowAux::new()
            .override_redirect(1)
            .event_mask(EventMask::PROPERTY_CHANGE);
        let class = WindowClass::INPUT_ONLY;
        conn.create_window(0, proxy, root, -10, -10, 1, 1, 0, class, 0, &look)?;
        let property = PropMode::REPLACE;
        conn.change_property32(property, proxy, atoms.XdndAware, AtomEnum::ATOM, &[VERSION])?;
        conn.change_property32(property, proxy, atoms.XdndProxy, AtomEnum::WINDOW, &[proxy])?;
        watch(conn, window, EventMask::STRUCTURE_NOTIFY)?.check()?;
        // Last: from here on sources talk to the proxy, which the lines above made ready.
        conn.change_property32(
            property,
            window,
            atoms.XdndProxy,
            AtomEnum::WINDOW,
            &[proxy],
        )?
        .check()?;
        Ok(Self {
            conn,
            atoms,
            root,
            window,
            window_is_gone: false,
            proxy,
            outbox,
            held: None,
            transfers: 0,
        })
    }

    fn serve(&mut self, stop: &OwnedFd) -> Result<(), ConnectionError> {
        loop {
            while let Some(event) = self.conn.poll_for_event()? {
                self.on_event(event)?;
            }
            self.expire()?;
            self.outbox.flush();
            if self.window_is_gone || self.outbox.is_closed() {
                return Ok(());
            }
            self.conn.flush()?;
            let mut fds = [
                PollFd::from_borrowed_fd(self.conn.stream().as_fd(), PollFlags::IN),
                PollFd::new(stop, PollFlags::IN),
            ];
            match poll(&mut fds, self.patience().as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(ConnectionError::IoError(error.into())),
            }
            if !fds[1].revents().is_empty() {
                return Ok(());
            }
        }
    }

    /// Returns how long there is nothing to do without an event; `None` is for ever.
    fn patience(&self) -> Option<Timespec> {
        let retry = self.outbox.has_waiting().then_some(RETRY);
        let transfer = match &self.held {
            Some(Held {
                list: List::Coming(fetch),
                ..
            }) => Some(fetch.deadline().saturating_duration_since(Instant::now())),
            _ => None,
        };
        let wait = retry.into_iter().chain(transfer).min()?;
        // Never zero for a deadline that is less than a tick away, never beyond a minute.
        Timespec::try_from(wait + Duration::from_millis(1)).ok()
    }

    /// Hands the window back to the toolkit's own handling.
    fn withdraw(&self) {
        // Errors tell that there is nothing left to tidy.
        if !self.window_is_gone
            && let Ok(cookie) = self.conn.delete_property(self.window, self.atoms.XdndProxy)
        {
            let _ = cookie.check();
        }
        let _ = self.conn.destroy_window(self.proxy);
        let _ = self.conn.flush();
    }

    fn on_event(&mut self, event: Event) -> Result<(), ConnectionError> {
        match event {
            Event::ClientMessage(message)
                if message.format == 32 && [self.window, self.proxy].contains(&message.window) =>
            {
                self.on_message(message.type_, message.data.as_data32())
            }
            Event::SelectionNotify(answer) if answer.requestor == self.proxy => {
                let Some(List::Coming(fetch)) = self.held.as_mut().map(|held| &mut held.list)
                else {
                    return Ok(());
                };
                let step = fetch.on_answer(self.conn, &self.atoms, &answer)?;
                self.on_step(step)
            }
            Event::PropertyNotify(change) if change.window == self.proxy => {
                let Some(List::Coming(fetch)) = self.held.as_mut().map(|held| &mut held.list)
                else {
                    return Ok(());
                };
                let step = fetch.on_property(self.conn, &change)?;
                self.on_step(step)
            }
            Event::DestroyNotify(end) if end.window == self.window => {
                self.window_is_gone = true;
                Ok(())
            }
            Event::DestroyNotify(end) if self.is_from(end.window) => {
                self.give_up("the program that offered it ended before it handed it over")
            }
            // Errors are of windows that went away while we wrote to them; the rest is not ours.
            _ => Ok(()),
        }
    }

    fn on_message(&mut self, kind: Atom, data: [u32; 5]) -> Result<(), ConnectionError> {
        let source = data[0];
        if kind == self.atoms.XdndEnter {
            return self.on_enter(source, data);
        }
        if !self.is_from(source) {
            return Ok(());
        }
        if kind == self.atoms.XdndPosition {
            self.on_position(data[2], data[3])
        } else if kind == self.atoms.XdndLeave {
            self.give_up("the program that offered it took it back")
        } else if kind == self.atoms.XdndDrop {
            self.on_drop(data[2])
        } else {
            Ok(())
        }
    }

    fn is_from(&self, source: Window) -> bool {
        self.held.as_ref().is_some_and(|held| held.source == source)
    }

    fn on_enter(&mut self, source: Window, data: [u32; 5]) -> Result<(), ConnectionError> {
        self.give_up("another drag began before it was handed over")?;
        if self.outbox.is_full() {
            return Ok(());
        }
        let types = if data[1] & 1 == 0 {
            data[2..].to_vec()
        } else {
            let list = self.atoms.XdndTypeList;
            let cookie =
                self.conn
                    .get_property(false, source, list, AtomEnum::ATOM, 0, MAX_TYPES)?;
            match unless_gone(cookie.reply())? {
                Some(reply) => reply.value32().into_iter().flatten().collect(),
                None => return Ok(()),
            }
        };
        // To know when the program ends in the middle of a drag.
        if source != self.window {
            let cookie = watch(self.conn, source, EventMask::STRUCTURE_NOTIFY)?;
            if unless_gone(cookie.check())?.is_none() {
                return Ok(());
            }
        }
        self.held = Some(Held {
            source,
            has_list: types.contains(&self.atoms.UriList),
            position: (0, 0),
            hovers: false,
            dropped: None,
            list: List::NotAsked,
        });
        Ok(())
    }

    fn on_position(&mut self, place: u32, time: Timestamp) -> Result<(), ConnectionError> {
        let Some(held) = self.held.as_mut().filter(|held| held.dropped.is_none()) else {
            return Ok(());
        };
        // Two 16-bit coordinates of the screen, which may be negative.
        let (x, y) = ((place >> 16) as i16, place as i16);
        let cookie = self
            .conn
            .translate_coordinates(self.root, self.window, x, y)?;
        let Some(here) = unless_gone(cookie.reply())? else {
            return Ok(());
        };
        held.position = (here.dst_x.into(), here.dst_y.into());
        let source = held.source;
        if !held.has_list {
            return self.answer(self.atoms.XdndStatus, source, [0, 0, 0, 0]);
        }
        held.hovers = true;
        if matches!(held.list, List::NotAsked) {
            self.ask(time, false)?;
        }
        // Bit 0 accepts, bit 1 asks for every movement; the rectangle in which movements need not
        // be told is therefore empty.
        let copy = self.atoms.XdndActionCopy;
        self.answer(self.atoms.XdndStatus, source, [0b11, 0, 0, copy])?;
        self.report_hover();
        Ok(())
    }

    fn report_hover(&mut self) {
        if let Some(held) = &self.held {
            let count = match &held.list {
                List::Here(list) => Some(uri_list::count(list)),
                _ => None,
            };
            self.outbox.push(DropEvent::Hover {
                position: held.position,
                count,
            });
        }
    }

    fn on_drop(&mut self, time: Timestamp) -> Result<(), ConnectionError> {
        let Some(held) = self.held.as_mut().filter(|held| held.dropped.is_none()) else {
            return Ok(());
        };
        if !held.has_list {
            let source = held.source;
            self.answer(self.atoms.XdndFinished, source, [0, 0, 0, 0])?;
            return self.forget().map(drop);
        }
        held.dropped = Some(time);
        match &mut held.list {
            List::Here(_) => self.conclude(),
            List::Coming(fetch) => {
                fetch.wait_anew();
                Ok(())
            }
            // What failed while hovering may work now: some programs make the list on the drop.
            List::NotAsked | List::Failed(_) => self.ask(time, true),
        }
    }

    /// Asks the source for the list.
    fn ask(&mut self, time: Timestamp, by_drop: bool) -> Result<(), ConnectionError> {
        let a = &self.atoms;
        let properties: [Atom; PROPERTIES] = [a.List0, a.List1, a.List2, a.List3];
        let property = properties[self.transfers % PROPERTIES];
        self.transfers += 1;
        let fetch = Fetch::start(self.conn, a, self.proxy, property, time, by_drop)?;
        if let Some(held) = &mut self.held {
            held.list = List::Coming(fetch);
        }
        Ok(())
    }

    fn expire(&mut self) -> Result<(), ConnectionError> {
        let step = match &self.held {
            Some(Held {
                list: List::Coming(fetch),
                ..
            }) => fetch.expire(Instant::now()),
            _ => Step::Pending,
        };
        self.on_step(step)
    }

    /// Goes on with what a transfer brought.
    fn on_step(&mut self, step: Step) -> Result<(), ConnectionError> {
        let Some(held) = &mut self.held else {
            return Ok(());
        };
        held.list = match (step, held.dropped) {
            (Step::Pending, _) => return Ok(()),
            (Step::Done(list), _) => List::Here(list),
            (Step::TooLong, _) => List::Failed(uri_list::too_long()),
            (Step::Refused, Some(time)) if !matches!(&held.list, List::Coming(f) if f.by_drop) => {
                return self.ask(time, true);
            }
            (Step::Refused, _) => List::Failed(uri_list::whole(
                "the program that offered it refused to hand it over",
            )),
            (Step::Failed(why), _) => List::Failed(uri_list::whole(why)),
        };
        if held.dropped.is_some() {
            return self.conclude();
        }
        self.report_hover();
        Ok(())
    }

    /// Ends a drop: the source is told first, so that it never waits for a slow disk.
    fn conclude(&mut self) -> Result<(), ConnectionError> {
        let Some(held) = self.forget()? else {
            return Ok(());
        };
        let taken = matches!(&held.list, List::Here(list) if uri_list::count(list) > 0);
        let reply = match taken {
            true => [1, self.atoms.XdndActionCopy, 0, 0],
            false => [0; 4],
        };
        self.answer(self.atoms.XdndFinished, held.source, reply)?;
        let items = match held.list {
            List::Here(list) if taken => take(&list),
            List::Failed(item) => vec![item],
            _ => vec![uri_list::whole(
                "the program that offered it listed no files",
            )],
        };
        let position = held.position;
        self.outbox.push(DropEvent::Dropped { position, items });
        Ok(())
    }

    /// Ends a drag from outside: a drop that was under way is refused with the reason.
    fn give_up(&mut self, why: &str) -> Result<(), ConnectionError> {
        match &mut self.held {
            Some(held) if held.dropped.is_some() => {
                held.list = List::Failed(uri_list::whole(why));
                self.conclude()
            }
            Some(held) => {
                if held.hovers {
                    self.outbox.push(DropEvent::Leave);
                }
                self.forget().map(drop)
            }
            None => Ok(()),
        }
    }

    /// Forgets the drag and stops to watch its source.
    fn forget(&mut self) -> Result<Option<Held>, ConnectionError> {
        let held = self.held.take();
        if let Some(held) = &held
            && held.source != self.window
        {
            watch(self.conn, held.source, EventMask::NO_EVENT)?.ignore_error();
            self.conn.flush()?;
        }
        Ok(held)
    }

    /// Sends a message to the source in the name of the window.
    fn answer(&self, kind: Atom, source: Window, data: [u32; 4]) -> Result<(), ConnectionError> {
        let [a, b, c, d] = data;
        let message = ClientMessageEvent::new(32, source, kind, [self.window, a, b, c, d]);
        let cookie = self
            .conn
            .send_event(false, source, EventMask::NO_EVENT, message)?;
        cookie.ignore_error();
        self.conn.flush()
    }
}

/// Asks for events of a window that is not ours.
fn watch(
    conn: &RustConnection,
    window: Window,
    mask: EventMask,
) -> Result<x11rb::cookie::VoidCookie<'_, RustConnection>, ConnectionError> {
    conn.change_window_attributes(window, &ChangeWindowAttributesAux::new().event_mask(mask))
}
