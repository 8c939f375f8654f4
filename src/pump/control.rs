//! The control channel: whole messages over a pair of pipes.

use std::io::{Read, Write};
use std::sync::{Mutex, PoisonError};

use crate::model::error::{Error, ErrorKind, Result};
use crate::wire::frame::HEADER;
use crate::wire::message::Message;

/// Writes messages; shared by all threads of a run.
pub struct ControlWriter {
    inner: Mutex<(Box<dyn Write + Send>, Vec<u8>)>,
}

impl ControlWriter {
    /// Takes the pipe to the other end.
    pub fn new(to: impl Write + Send + 'static) -> Self {
        Self {
            inner: Mutex::new((Box::new(to), Vec::new())),
        }
    }

    /// Sends one message.
    ///
    /// # Errors
    /// `Disconnected` when the other end is gone.
    pub fn send(&self, message: &Message) -> Result<()> {
        self.with(|buffer| message.encode(buffer))
    }

    /// Sends a data frame as a message without building one.
    ///
    /// # Errors
    /// `Disconnected` when the other end is gone.
    pub fn send_frame(&self, header: &[u8; HEADER], payload: &[&[u8]]) -> Result<()> {
        self.with(|buffer| {
            let len = payload.iter().map(|p| p.len()).sum::<usize>() + HEADER + 1;
            buffer.extend_from_slice(&(len as u32).to_le_bytes());
            buffer.push(Message::DATA);
            buffer.extend_from_slice(header);
            payload
                .iter()
                .for_each(|piece| buffer.extend_from_slice(piece));
        })
    }

    fn with(&self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (to, buffer) = &mut *inner;
        buffer.clear();
        fill(buffer);
        to.write_all(buffer)
            .and_then(|()| to.flush())
            .map_err(|e| gone("send to the other side", &e))
    }
}

/// Reads messages.
pub struct ControlReader<'a> {
    from: &'a mut (dyn Read + Send),
    host: Option<String>,
    buffer: Vec<u8>,
}

impl<'a> ControlReader<'a> {
    /// Takes the pipe from the other end.
    pub fn new(from: &'a mut (dyn Read + Send)) -> Self {
        Self {
            from,
            host: None,
            buffer: Vec::new(),
        }
    }

    /// Names the host whose errors come this way: a path in them is one over there.
    #[must_use]
    pub fn of_host(self, name: &str) -> Self {
        Self {
            host: Some(name.to_owned()),
            ..self
        }
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// `Disconnected` at the end, `Protocol` for anything that breaks the rules.
    #[expect(clippy::should_implement_trait)] // An iterator could not say that the end is an error.
    pub fn next(&mut self) -> Result<Message> {
        let mut len = [0; 4];
        let doing = "hear from the other side";
        self.from
            .read_exact(&mut len)
            .map_err(|e| gone(doing, &e))?;
        let len = Message::check_len(u32::from_le_bytes(len))?;
        // Grown as bytes come in: a peer that claims much and sends little costs little.
        self.buffer.clear();
        let got = (&mut *self.from)
            .take(len as u64)
            .read_to_end(&mut self.buffer);
        match got {
            Ok(n) if n == len => Ok(self.placed(Message::decode(&self.buffer)?)),
            Ok(_) => Err(gone(doing, &std::io::ErrorKind::UnexpectedEof.into())),
            Err(e) => Err(gone(doing, &e)),
        }
    }

    fn placed(&self, message: Message) -> Message {
        match (message, &self.host) {
            (Message::Fail(error), Some(host)) => Message::Fail(error.beside(host)),
            (Message::Note(error), Some(host)) => Message::Note(error.beside(host)),
            (message, _) => message,
        }
    }
}

/// Makes the error for a channel that broke.
fn gone(doing: &str, source: &std::io::Error) -> Error {
    use std::io::ErrorKind as K;
    match source.kind() {
        K::UnexpectedEof | K::BrokenPipe => {
            Error::new(ErrorKind::Disconnected, doing, "the connection ended")
        }
        _ => {
            let mut error = Error::io(doing, source);
            error.kind = ErrorKind::Disconnected;
            error
        }
    }
}
