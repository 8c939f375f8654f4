//! One lane: a way for frames, and the thread that owns it.

use std::io::{IoSlice, Read, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::model::error::{Error, ErrorKind, Result};
use crate::pump::abort::Abort;
use crate::pump::control::ControlWriter;
use crate::pump::limit::Throttle;
use crate::pump::link::Link;
use crate::pump::pool::{Chunk, Pool};
use crate::verify::tree::{Growing, STEP};
use crate::wire::codec::broken;
use crate::wire::frame::{HEADER, Header, Kind, TAG};

/// Where a sender's frames go.
pub enum Out {
    /// A data connection.
    Tcp(Link),
    /// The control channel.
    Channel(Arc<ControlWriter>),
}

/// A frame on its way out; its stream and sequence are set by the lane.
pub struct Outgoing {
    /// The header so far.
    pub header: Header,
    /// A batch's table, or a kept block's length; empty for blocks.
    pub table: Vec<u8>,
    /// The contents.
    pub chunk: Option<Arc<Chunk>>,
}

/// A frame that came in and was checked.
pub struct Incoming {
    /// What it is.
    pub header: Header,
    /// Its payload.
    pub chunk: Chunk,
}

/// How long a lost data connection waits for the other end's word, which travels on the control
/// channel: a full disk there closes the connection, and that is the reason to tell.
const WORD: Duration = Duration::from_secs(1);

/// Passes on what became of a lane; a lost connection counts only when the run was not ended for
/// another reason meanwhile.
pub fn after_word(done: Result<()>, abort: &Abort) -> Result<()> {
    match done {
        Err(error) if error.kind == ErrorKind::Disconnected => {
            abort.wait_stopped(WORD);
            Err(error)
        }
        done => done,
    }
}

/// Sends what comes out of the channel until that ends, then says so to the other end.
pub fn send_lane(
    number: u16,
    mut out: Out,
    frames: &Receiver<Outgoing>,
    throttle: &Throttle,
    wire_bytes: &AtomicU64,
    abort: &Abort,
) -> Result<()> {
    if let Out::Tcp(link) = &out {
        wake_on_stop(&link.stream, abort)?;
    }
    let mut sequence = 0;
    let mut send = |mut header: Header, table: &[u8], chunk: Option<&Chunk>| -> Result<()> {
        let contents = chunk.map_or(&b""[..], Chunk::bytes);
        header.stream = number;
        header.sequence = sequence;
        header.len = (table.len() + contents.len()) as u32;
        sequence += 1;
        let head = header.encode();
        let mut total = HEADER + table.len() + contents.len();
        match &mut out {
            Out::Tcp(link) => {
                let tag = match (header.kind, chunk) {
                    (Kind::Block, Some(chunk)) => {
                        link.key.tag(&head, &[&chunk.leaf_at(header.offset).value])
                    }
                    _ => link.key.tag(&head, &[table, contents]),
                };
                let mut pieces = [
                    IoSlice::new(&head),
                    IoSlice::new(table),
                    IoSlice::new(contents),
                    IoSlice::new(&tag),
                ];
                write_all(&mut link.stream, &mut pieces)?;
                total += TAG;
            }
            Out::Channel(control) => control.send_frame(&head, &[table, contents])?,
        }
        wire_bytes.fetch_add(total as u64, Relaxed);
        Ok(())
    };
    while let Some(frame) = abort.recv(frames) {
        let chunk = frame.chunk.as_deref();
        throttle.wait(chunk.map_or(0, |c| c.len) + frame.table.len(), abort);
        send(frame.header, &frame.table, chunk)?;
    }
    if abort.is_stopped() {
        return Ok(());
    }
    let end = Header {
        kind: Kind::End,
        attempt: 0,
        stream: 0,
        len: 0,
        sequence: 0,
        file: 0,
        offset: 0,
        size: 0,
    };
    send(end, b"", None)
}

fn write_all(stream: &mut TcpStream, pieces: &mut [IoSlice<'_>]) -> Result<()> {
    let mut pieces = pieces;
    // Skips empty slices at the front, so that a write of nothing is never taken for an end.
    IoSlice::advance_slices(&mut pieces, 0);
    while !pieces.is_empty() {
        match stream.write_vectored(pieces) {
            Ok(0) => return Err(lost(&std::io::ErrorKind::WriteZero.into())),
            Ok(n) => IoSlice::advance_slices(&mut pieces, n),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(lost(&e)),
        }
    }
    Ok(())
}

/// Receives and checks frames until the stream's end, and gives each to `take`.
///
/// # Errors
/// `Corrupt` for a wrong tag, `Disconnected` when the connection ends before the stream does.
pub fn receive_lane(
    mut link: Link,
    pool: &Pool,
    wire_bytes: &AtomicU64,
    abort: &Abort,
    mut take: impl FnMut(Incoming) -> bool,
) -> Result<()> {
    wake_on_stop(&link.stream, abort)?;
    let mut sequence = 0;
    loop {
        let mut head = [0; HEADER];
        fill(&mut link.stream, &mut head)?;
        let header = Header::decode(&head, link.number, sequence).map_err(tampered)?;
        sequence += 1;
        let Some(mut chunk) = pool.take(abort) else {
            return Ok(());
        };
        let len = header.len as usize;
        let room = chunk.room();
        if len + TAG > room.len() {
            return Err(broken("a frame is larger than this side takes"));
        }
        let mut tag = [0; TAG];
        let right = if header.kind == Kind::Block {
            let mut leaf = Growing::new(header.offset);
            for piece in room[..len].chunks_mut(STEP) {
                fill(&mut link.stream, piece)?;
                leaf.update(piece);
            }
            fill(&mut link.stream, &mut tag)?;
            let leaf = leaf.finish();
            chunk.leaf = Some(leaf);
            link.key.check(&head, &leaf.value, &tag)
        } else {
            fill(&mut link.stream, &mut room[..len + TAG])?;
            tag.copy_from_slice(&room[len..len + TAG]);
            link.key.check(&head, &room[..len], &tag)
        };
        chunk.len = len;
        if !right {
            return Err(tampered(broken("")));
        }
        wire_bytes.fetch_add((HEADER + len + TAG) as u64, Relaxed);
        if header.kind == Kind::End {
            return Ok(());
        }
        if !take(Incoming { header, chunk }) {
            return Ok(());
        }
    }
}

/// Makes the error for bytes that are not the ones that were sent. A header that makes no sense is
/// one too: its tag could not even be looked for.
fn tampered(_: Error) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "receive data",
        "the data was changed on its way",
    )
    .hint("a device on the way damages data; use an ssh method, or find it")
}

/// Turns a frame that came by the control channel into a checked one.
///
/// # Errors
/// `Protocol` for anything that breaks the rules.
pub fn from_channel(
    bytes: &[u8],
    sequence: u64,
    pool: &Pool,
    abort: &Abort,
) -> Result<Option<Incoming>> {
    let (head, payload) = bytes
        .split_first_chunk::<HEADER>()
        .ok_or_else(|| broken("a frame is too short"))?;
    let header = Header::decode(head, 0, sequence)?;
    if header.len as usize != payload.len() {
        return Err(broken("a frame has the wrong length"));
    }
    let Some(mut chunk) = pool.take(abort) else {
        return Ok(None);
    };
    if payload.len() > chunk.room().len() {
        return Err(broken("a frame is larger than this side takes"));
    }
    chunk.room()[..payload.len()].copy_from_slice(payload);
    chunk.len = payload.len();
    Ok(Some(Incoming { header, chunk }))
}

fn wake_on_stop(stream: &TcpStream, abort: &Abort) -> Result<()> {
    let other = stream
        .try_clone()
        .map_err(|e| Error::io("share the data connection", &e))?;
    abort.on_stop(move |_| {
        let _ = other.shutdown(Shutdown::Both);
    });
    Ok(())
}

fn fill(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<()> {
    stream.read_exact(buffer).map_err(|e| lost(&e))
}

fn lost(source: &std::io::Error) -> Error {
    let mut error = Error::io("move data", source);
    error.kind = ErrorKind::Disconnected;
    if source.kind() == std::io::ErrorKind::UnexpectedEof {
        error.cause = "the data connection ended early".into();
    }
    error
}
