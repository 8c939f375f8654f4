//! Method `sftp`: the file transfer protocol of every ssh server, over the user's own ssh.
//!
//! [`request`] and [`packet`] have the protocol's bytes, [`channel`] the conversation, [`ask`] simple
//! questions, [`far`] folders and names on the other side; [`push`] sends, with [`put`], [`place`],
//! [`small`] and [`readback`]; [`pull`] and [`get`] receive; [`session`] runs either.
//!
//! # What it keeps to
//! - Nothing waits for a reply for each file: up to [`IN_FLIGHT`] files and [`WINDOW`] bytes are on
//!   the way.
//! - Files are written into a private folder `.transload-…` at the destination and renamed when they
//!   are whole. A server without `posix-rename@openssh.com` cannot replace a file in one step: there
//!   the old one is moved aside first. Where the connection breaks at that moment it is found in the
//!   folder of parts, from where nothing of ours removes it.
//! - What a broken connection leaves in that folder goes when the same job goes on.
//! - The other side's links are never followed on purpose: a link where a folder should be is an
//!   obstacle. The protocol looks and acts by path, so somebody who may write there could put a link
//!   in between the two.
//! - A server takes no digests. So without reading back, the length is compared and the verdict says
//!   so. With it, a file that was sent is read once more through the server, which may answer from
//!   its memory; one that was received is read from this computer's disk and held against what came
//!   over ssh, which lets no changed byte pass.
//! - Times have whole seconds. A name is stored under the new name or not at all; that it survives a
//!   power cut cannot be asked of a server, only the bytes of a file (`fsync@openssh.com`).

mod ask;
mod channel;
mod far;
mod get;
mod packet;
mod place;
mod pull;
mod push;
mod put;
mod readback;
mod receive;
mod request;
mod session;
mod small;

use std::sync::atomic::Ordering::Relaxed;

use crate::backend::contract::{Backend, Caps, Session};
use crate::backend::cx::{Cx, LimitCell};
use crate::backend::ends::ends;
use crate::model::digest::Algorithm;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::options::OptionSpec;
use crate::model::rules::Conflict;
use crate::model::verdict::Verdict;

/// The method.
pub struct Sftp;

/// Completes "Failed to ...".
const USE: &str = "use sftp";
/// Files that are on the way at a time.
const IN_FLIGHT: usize = 64;
/// Bytes that are on the way at a time: the most that a link of 1 Gbit/s holds at 30 ms.
const WINDOW: u64 = 4 << 20;

impl Backend for Sftp {
    fn id(&self) -> &'static str {
        "sftp"
    }

    fn title(&self) -> &'static str {
        "sftp"
    }

    fn about(&self) -> &'static str {
        "Works wherever ssh does, also for accounts that may only move files"
    }

    fn caps(&self) -> Caps {
        Caps {
            resume: false,
            delta: false,
            encrypted: true,
            remote_digest: false,
            parallel: false,
            needs_agent: false,
        }
    }

    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn supports(&self, spec: &JobSpec) -> Result<()> {
        ends(spec, USE)?;
        if spec.settings.conflict == Conflict::Resume {
            let cause = "what is there cannot be compared piece by piece, so it cannot be finished";
            return Err(Error::new(ErrorKind::Unsupported, USE, cause)
                .hint("choose differs or another rule, or raw TCP or rsync"));
        }
        Ok(())
    }

    fn connect(&self, spec: &JobSpec, cx: &Cx<'_>) -> Result<Box<dyn Session>> {
        self.supports(spec)?;
        Ok(Box::new(session::SftpSession::connect(spec, cx)?))
    }
}

/// Returns how many bytes to move with one request: less under a limit, so that the limit holds from
/// one second to the next and no request takes as long as a connection that hangs.
fn at_once(most: u64, limit: &LimitCell) -> u64 {
    match limit.0.load(Relaxed) {
        0 => most,
        limit => most.min((limit / 10).max(4 << 10)),
    }
}

/// Returns how many bytes may be on the way: half a second's worth under a limit, because nobody
/// takes replies, and so counts bytes, while the limit holds the next piece back.
fn window(limit: &LimitCell) -> u64 {
    match limit.0.load(Relaxed) {
        0 => WINDOW,
        limit => (limit / 2).clamp(8 << 10, WINDOW),
    }
}

/// Returns the verdict of a file of the right length that nobody compared by content.
fn by_length(verify: Algorithm) -> Verdict {
    match verify {
        Algorithm::Size => Verdict::SizeOnly,
        Algorithm::None => Verdict::Unverified("no check was asked for".to_owned()),
        _ => Verdict::Unverified("the server cannot take digests; read back to check".to_owned()),
    }
}
