//! The messages of the control channel.

mod parts;
#[cfg(test)]
mod tests;

use crate::model::digest::{Algorithm, Digest};
use crate::model::entry::{Action, Entry, FileTime, Reason};
use crate::model::error::{Error, Result};
use crate::model::profile::{Preserve, Settings};
use crate::model::rules::{Conflict, Rule};
use crate::model::verdict::Verdict;
use crate::wire::codec::{Decoder, Encoder, broken};
use crate::wire::{MAX_CONTROL, MAX_FRAME, MAX_PAGE, frame};

/// The most sources of one job.
pub const MAX_SOURCES: usize = 100_000;
/// The longest text in a message, in bytes.
pub const MAX_TEXT: usize = 4096;
/// The most block digests of one file: at 4 MiB a block that is 64 GiB; larger files have larger
/// blocks ([`block_size`]).
pub const MAX_BLOCKS: usize = 16 * 1024;

/// Returns the size of the blocks that a file of this length is resumed by, in bytes.
pub fn block_size(len: u64) -> u64 {
    let mut size = 4 << 20;
    while len / size >= MAX_BLOCKS as u64 {
        size *= 2;
    }
    size
}

/// What the agent says first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hello {
    /// The oldest level it speaks.
    pub oldest: u16,
    /// The newest level it speaks.
    pub newest: u16,
    /// Its version, for people.
    pub version: String,
    /// The value of `SSH_CONNECTION`, empty without one.
    pub connection: Vec<u8>,
}

/// What a run has to keep to; the same on both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Decide only; write nothing.
    pub dry_run: bool,
    /// How contents are checked.
    pub verify: Algorithm,
    /// Hash the destination again from disk.
    pub read_back: bool,
    /// Flush to disk before anything is called done.
    pub durable: bool,
    /// What happens to existing files.
    pub conflict: Conflict,
    /// What is kept beside the bytes.
    pub preserve: Preserve,
    /// An earlier run with this job id stopped half-way.
    pub resume: bool,
}

impl Terms {
    /// Takes what matters to both ends out of a job's settings. A plan shows under `Ask` what a
    /// person will be asked about; a run never has it.
    pub fn of(settings: &Settings, conflict: Conflict, resume: bool, dry_run: bool) -> Self {
        Self {
            dry_run,
            verify: settings.verify,
            read_back: settings.read_back,
            durable: settings.durable,
            conflict: match conflict {
                Conflict::Ask if !dry_run => Conflict::Fail,
                rule => rule,
            },
            preserve: settings.preserve,
            resume,
        }
    }
}

/// What the agent is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// Send these paths.
    Send {
        /// Paths as the user wrote them; relative means below the home folder.
        sources: Vec<Vec<u8>>,
        /// A folder's contents instead of the folder itself.
        contents: bool,
        /// What to leave out.
        rules: Vec<Rule>,
        /// The name that the one source gets at the destination; empty for its own.
        top: Vec<u8>,
    },
    /// Receive into this path.
    Receive {
        /// The path as the user wrote it.
        destination: Vec<u8>,
        /// How many sources there are: with one, a missing destination is its new name.
        sources: u64,
        /// A folder's contents instead of the folder itself.
        contents: bool,
    },
}

/// Starts a run.
#[derive(Clone, PartialEq, Eq)]
pub struct Start {
    /// The agreed level.
    pub level: u16,
    /// Names the job; the staging folder is found by it.
    pub job: [u8; 16],
    /// The one-time key of the data connections.
    pub key: [u8; 32],
    /// How many data connections.
    pub streams: u16,
    /// Whether the agent shall listen at all.
    pub listen: bool,
    /// The ports it may listen on; 0 and 0 for any.
    pub ports: (u16, u16),
    /// What it is to do.
    pub role: Role,
    /// What to keep to.
    pub terms: Terms,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start")
            .field("role", &self.role)
            .field("terms", &self.terms)
            .finish_non_exhaustive()
    }
}

/// How the data goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteChoice {
    /// The client connects to the agent.
    Direct,
    /// The agent connects to one of these (`address:port`, as text).
    Reversed(Vec<String>),
    /// Through the control channel.
    Channel,
}

/// Asks for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The entry.
    pub file: u64,
    /// Which attempt.
    pub attempt: u8,
    /// BLAKE3 of the whole blocks that the receiver has from an earlier attempt.
    pub blocks: Vec<[u8; 32]>,
}

/// Says that a file was read and sent whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The entry.
    pub file: u64,
    /// Which attempt.
    pub attempt: u8,
    /// Its length as it was read.
    pub size: u64,
    /// Its modification time as it was read.
    pub mtime: FileTime,
    /// The digest of what was read; `None` where none was asked for.
    pub digest: Option<Digest>,
}

/// Why a file will not be sent after all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gone {
    /// It is not there any more.
    Vanished,
    /// It changed while it was read, twice.
    Changed,
    /// It cannot be read.
    Failed(Error),
}

/// The end of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// The entry.
    pub file: u64,
    /// What was, or in a dry run would be, done.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Bytes that were, or would be, sent.
    pub bytes: u64,
    /// Is it right? `Unverified` with no text in a dry run.
    pub verdict: Verdict,
    /// The name it got, where that is not its own ("keep both"); else empty.
    pub name: Vec<u8>,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Agent to client, first.
    Hello(Hello),
    /// Client to agent.
    Start(Box<Start>),
    /// Agent to client: the addresses it listens on, as text (none when it does not), and the name
    /// that the one source gets (empty for its own).
    Ready(Vec<String>, Vec<u8>),
    /// Client to agent.
    Route(RouteChoice),
    /// Agent to client: the route works, or why not.
    Routed(std::result::Result<(), String>),
    /// Sender to receiver: entries with consecutive numbers from the first.
    Entries(u64, Vec<Entry>),
    /// Sender to receiver: the listing is complete; how many entries there were.
    EntriesEnd(u64),
    /// Receiver to sender.
    Wants(Vec<Want>),
    /// Sender to receiver.
    Sents(Vec<Sent>),
    /// Sender to receiver: this file will not come.
    Gone(u64, Gone),
    /// Sender to receiver: something could not be listed. Path and error.
    Trouble(Vec<u8>, Error),
    /// Receiver to sender.
    Settleds(Vec<Settled>),
    /// Receiver to sender: bytes taken so far; whether it is busy with the disk.
    Progress(u64, bool),
    /// Sender to receiver, when no port could be reached: header and payload of a frame.
    Data(Vec<u8>),
    /// Client to agent: the limit in bytes a second (0 for none), and whether to pause.
    Throttle(u64, bool),
    /// Either way: one thing to know that ends nothing.
    Note(Error),
    /// Either way: the run is over because of this.
    Fail(Error),
    /// Receiver to sender: everything is settled and durable.
    Finished,
}

impl Message {
    /// The type of a message that carries a data frame.
    pub const DATA: u8 = parts::DATA;

    /// Appends the whole message, length first, to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let mut e = Encoder {
            bytes: std::mem::take(out),
        };
        e.raw(&[0; 4]);
        parts::write(self, &mut e);
        let len = (e.bytes.len() - start - 4) as u32;
        e.bytes[start..start + 4].copy_from_slice(&len.to_le_bytes());
        *out = e.bytes;
    }

    /// Checks the length that a peer claims, before anything is allocated for it.
    ///
    /// # Errors
    /// `Protocol` when it is 0 or beyond the limits.
    pub fn check_len(len: u32) -> Result<usize> {
        let len = len as usize;
        if len == 0 || len > MAX_FRAME + frame::HEADER + 1 {
            return Err(broken("a message is beyond its limit"));
        }
        Ok(len)
    }

    /// Reads type and body.
    ///
    /// # Errors
    /// `Protocol` for anything that breaks the rules.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut d = Decoder::new(bytes);
        let kind = d.u8()?;
        if kind == parts::DATA {
            return Ok(Self::Data(d.rest().to_vec()));
        }
        if bytes.len() > MAX_CONTROL {
            return Err(broken("a message is beyond its limit"));
        }
        let message = parts::read(kind, &mut d)?;
        d.end()?;
        Ok(message)
    }
}

/// Checks the length of a page.
fn page(count: u64) -> Result<usize> {
    if count as usize > MAX_PAGE {
        Err(broken("a page holds too much"))
    } else {
        Ok(count as usize)
    }
}
