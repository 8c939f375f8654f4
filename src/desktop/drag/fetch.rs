//! Fetches the list of a drag from the program that offers it: one selection transfer, in one piece
//! or, beyond the server's request limit, in many (INCR), each wait with an end.

use std::time::{Duration, Instant};

use x11rb::connection::Connection as _;
use x11rb::errors::ConnectionError;
use x11rb::protocol::xproto::{
    Atom, AtomEnum, ConnectionExt as _, Property, PropertyNotifyEvent, SelectionNotifyEvent,
    Timestamp, Window,
};
use x11rb::rust_connection::RustConnection;

use super::uri_list::MAX_BYTES;
use super::x11::{Atoms, unless_gone};

/// How long the other program may be silent.
const SILENCE: Duration = Duration::from_secs(10);

/// How long a whole transfer may take, however talkative it is.
const WHOLE: Duration = Duration::from_secs(60);

/// How much of a property is read at once, in its units of 4 bytes.
const SLICE: u32 = 256 << 10;

/// One transfer that is under way.
pub(super) struct Fetch {
    /// Where the other program puts the data.
    property: Atom,
    /// Whether this was asked for by the drop itself, not while hovering.
    pub(super) by_drop: bool,
    in_pieces: bool,
    bytes: Vec<u8>,
    silent_until: Instant,
    until: Instant,
}

/// Where a transfer stands.
pub(super) enum Step {
    /// More is to come.
    Pending,
    /// The whole list.
    Done(Vec<u8>),
    /// The list is too long to take.
    TooLong,
    /// The other program says no; it may say yes later.
    Refused,
    /// It failed, in words for people.
    Failed(&'static str),
}

impl Fetch {
    /// Asks for the list. `property` must not be in use by an earlier transfer.
    pub(super) fn start(
        conn: &RustConnection,
        atoms: &Atoms,
        proxy: Window,
        property: Atom,
        time: Timestamp,
        by_drop: bool,
    ) -> Result<Self, ConnectionError> {
        conn.delete_property(proxy, property)?;
        conn.convert_selection(proxy, atoms.XdndSelection, atoms.UriList, property, time)?;
        conn.flush()?;
        let now = Instant::now();
        Ok(Self {
            property,
            by_drop,
            in_pieces: false,
            bytes: Vec::new(),
            silent_until: now + SILENCE,
            until: now + WHOLE,
        })
    }

    /// Returns when to look at [`expire`](Self::expire).
    pub(super) fn deadline(&self) -> Instant {
        self.silent_until.min(self.until)
    }

    /// Gives up when the other program took too long.
    pub(super) fn expire(&self, now: Instant) -> Step {
        if now < self.deadline() {
            return Step::Pending;
        }
        Step::Failed("the program that offered it did not hand it over in time")
    }

    /// Gives the other program its full time again; for the moment of the drop.
    pub(super) fn wait_anew(&mut self) {
        let now = Instant::now();
        self.silent_until = now + SILENCE;
        self.until = now + WHOLE;
    }

    /// Takes the answer to what `start` asked.
    pub(super) fn on_answer(
        &mut self,
        conn: &RustConnection,
        atoms: &Atoms,
        answer: &SelectionNotifyEvent,
    ) -> Result<Step, ConnectionError> {
        if self.in_pieces || ![self.property, 0].contains(&answer.property) {
            return Ok(Step::Pending);
        }
        if answer.property == 0 {
            return Ok(Step::Refused);
        }
        let Some(piece) = self.read(conn, answer.requestor)? else {
            return Ok(Step::TooLong);
        };
        match piece {
            Piece::Missing => Ok(Step::Failed(
                "the program that offered it handed nothing over",
            )),
            Piece::Wrong => Ok(Step::Failed(
                "the program that offered it handed over something else",
            )),
            Piece::Read(kind) if kind == atoms.INCR => {
                // What was read is a lower bound of the size; deleting it asked for the first piece.
                self.bytes.clear();
                self.in_pieces = true;
                Ok(Step::Pending)
            }
            Piece::Read(_) => Ok(Step::Done(std::mem::take(&mut self.bytes))),
        }
    }

    /// Takes the next piece.
    pub(super) fn on_property(
        &mut self,
        conn: &RustConnection,
        event: &PropertyNotifyEvent,
    ) -> Result<Step, ConnectionError> {
        if !self.in_pieces || event.atom != self.property || event.state != Property::NEW_VALUE {
            return Ok(Step::Pending);
        }
        let before = self.bytes.len();
        let Some(piece) = self.read(conn, event.window)? else {
            return Ok(Step::TooLong);
        };
        match piece {
            Piece::Missing => Ok(Step::Pending),
            Piece::Wrong => Ok(Step::Failed(
                "the program that offered it handed over something else",
            )),
            // An empty piece is the end.
            Piece::Read(_) if self.bytes.len() == before => {
                Ok(Step::Done(std::mem::take(&mut self.bytes)))
            }
            Piece::Read(_) => {
                self.silent_until = Instant::now() + SILENCE;
                Ok(Step::Pending)
            }
        }
    }

    /// Appends the property to `bytes` and deletes it; `None` when that would be too much.
    fn read(
        &mut self,
        conn: &RustConnection,
        proxy: Window,
    ) -> Result<Option<Piece>, ConnectionError> {
        let mut offset = 0;
        loop {
            // Deleted by the server when this slice is the last.
            let cookie =
                conn.get_property(true, proxy, self.property, AtomEnum::ANY, offset, SLICE)?;
            let Some(reply) = unless_gone(cookie.reply())? else {
                return Ok(Some(Piece::Missing));
            };
            if reply.type_ == 0 {
                return Ok(Some(Piece::Missing));
            }
            self.bytes.extend_from_slice(&reply.value);
            if self.bytes.len() > MAX_BYTES {
                return Ok(None);
            }
            if reply.bytes_after == 0 {
                // INCR comes as one number of 32 bits, a list as bytes.
                let fits = reply.format == 8 || reply.format == 32 && reply.value_len == 1;
                return Ok(Some(match fits {
                    true => Piece::Read(reply.type_),
                    false => Piece::Wrong,
                }));
            }
            offset += SLICE;
        }
    }
}

/// What a property held.
enum Piece {
    /// Nothing: it is not there.
    Missing,
    /// Data that is no list.
    Wrong,
    /// Data of this type, now in `bytes`.
    Read(Atom),
}
