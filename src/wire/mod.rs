//! The raw TCP protocol, without sockets. This page is its specification.
//!
//! # Channels
//! *Control*: the standard input and output of an agent that ssh started. Authenticated and
//! confidential by ssh. Names, metadata, digests, verdicts and orders travel here.
//! *Data*: up to [`MAX_STREAMS`] TCP connections, or the control channel itself when no port can
//! be reached. Only payload travels here; on TCP every frame carries a keyed tag.
//!
//! # Control messages
//! `length: u32 LE`, `type: u8`, body ([`message`]). A message is at most [`MAX_CONTROL`] bytes, one
//! that carries a data frame at most [`MAX_FRAME`] and some. Lengths are checked before anything is
//! allocated. Numbers are LEB128, byte strings are length-prefixed ([`codec`]).
//!
//! # Flow
//! ```text
//! client                                    agent
//!                                       <-  Hello     levels, version, where ssh arrived
//! Start        level, role, terms, key  ->
//!                                       <-  Ready     where it listens
//! Route        direct, reversed, channel ->
//!                                       <-  Routed    or why not; then another Route may follow
//! ```
//! Then one end is the *sender* and the other the *receiver*, whichever of them is the client:
//! ```text
//! sender                                    receiver
//! Entries      pages of the listing     ->            decides about each
//!                                       <-  Want      files to send, with what it has of them
//! frames on the data channel            ->            written to part files, hashed
//! Sent         size, time, digest       ->            compared; group made durable; renamed
//! Gone, Trouble  what cannot be read    ->
//!                                       <-  Settled   action and verdict, once an entry, final
//!                                       <-  Progress  bytes taken so far
//! EntriesEnd                            ->
//!                                       <-  Finished  all settled and durable
//! ```
//! There is no round trip per file: the sender keeps at most [`WINDOW`] entries open, so memory is
//! bounded whatever the size of the tree. In a dry run nothing is wanted: every entry is settled
//! with what would be done. After `Finished` another `Start` may follow on the same channel.
//!
//! # Security
//! The client makes a key of 32 random bytes for each job and gives it to the agent in `Start`.
//! On TCP both ends prove over fresh nonces that they hold it ([`hello`]); it never travels there.
//! Frame keys follow from it, from both nonces, and from the stream's number. A frame's tag covers
//! its header and payload, and the header counts frames, so that a changed, repeated, reordered,
//! moved or missing frame is seen ([`frame`]). The payload itself is readable by whoever is on the
//! path. The peer names things to create, never things to delete, and names are checked
//! ([`crate::model::relpath::RelPath`]).

pub mod codec;
pub mod frame;
pub mod hello;
pub mod level;
pub mod message;

/// The longest control message in bytes.
pub const MAX_CONTROL: usize = 1 << 20;
/// The longest payload of a data frame in bytes.
pub const MAX_FRAME: usize = 4 << 20;
/// The most data connections of one job.
pub const MAX_STREAMS: u16 = 64;
/// How many entries the sender keeps open: announced and not yet settled.
pub const WINDOW: usize = 32 * 1024;
/// The most items in one page of a message.
pub const MAX_PAGE: usize = 8 * 1024;
