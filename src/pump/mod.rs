//! The hot path of both ends: reader to wire, wire to disk, disk to disk.
//!
//! Control runs on the caller's thread, data on named threads that hand each other pooled buffers
//! over bounded channels. Nothing here logs in, asks anybody or knows a profile.
//!
//! | thread | does | waits for |
//! |---|---|---|
//! | caller | reads the control channel, decides about entries | the other end |
//! | `scan` | lists the sources | room in the window |
//! | `read` | opens and reads wanted files, forms batches | buffers |
//! | `hash` | digests large files | the reader or a writer |
//! | `lane-N` | tags and sends, or receives and checks, frames | its socket |
//! | `disk-N` | writes parts | its lane |
//! | `copy-N` | copies between local folders | the disk |
//! | `commit` | compares digests, makes groups durable, gives final names | the disk |

pub mod abort;
pub(crate) mod admit;
pub(crate) mod commit;
pub mod control;
pub mod destination;
mod digest;
pub mod direct;
pub(crate) mod disk;
pub mod lane;
pub mod latch;
pub mod limit;
pub mod link;
pub mod name;
pub mod pool;
mod read;
pub mod receive;
pub mod report;
mod scan;
pub mod send;
pub mod source;
pub(crate) mod staging;

/// Bytes of a buffer: one block of a large file. Smaller ones cost more hand-overs between threads
/// (with half of it a large file takes a tenth longer); larger ones leave the cache.
pub const CHUNK: usize = crate::wire::frame::BLOCK;
const _: () = assert!(CHUNK == crate::verify::tree::BLOCK);
/// Files up to this many bytes travel whole, many in one frame.
pub const SMALL: u64 = 128 * 1024;
/// Buffers of one end of one job: with [`CHUNK`] this bounds its memory to 64 MiB.
pub const BUFFERS: usize = 60;
/// Frames that wait before a lane or a disk thread: enough to even out hitches, and few enough to
/// stay in the cache.
const QUEUE: usize = 4;
/// Files from this many bytes on are resumed within; smaller ones start again.
pub const RESUMABLE: u64 = 8 << 20;
