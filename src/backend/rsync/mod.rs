//! Method `rsync`: the program of that name on both sides, over the user's own ssh.
//!
//! [`far`] looks, in one log-in, whether the other side has rsync and what is under the names that
//! the job gives; [`layout`] decides what is copied where; [`args`] builds the argument vector, [`rules`] the filters; [`lines`] and
//! [`troubles`] read what rsync prints; [`session`] runs it.
//!
//! # What it keeps to
//! - rsync itself checks every file that it moved by a digest of the whole file, taken by both
//!   sides from what was read and what was written. With md5 that digest is shown. A file counts as
//!   verified only when rsync has ended and named no fault with it.
//! - Half a file never has a final name: rsync writes beside it and renames. What was cut off goes
//!   to a folder `.transload-rsync-partial` beside the file and is taken up by the next run.
//! - Where rsync is less strict than the other methods: an empty folder gives way to a file of its
//!   name, and a file or link to a folder; `newer` replaces a file of the same time and another
//!   size; `?` in a rule stands for one byte.

mod args;
mod far;
mod layout;
mod lines;
mod rules;
mod session;
mod troubles;

use crate::backend::contract::{Backend, Caps, Session};
use crate::backend::cx::Cx;
use crate::backend::ends::ends;
use crate::model::digest::Algorithm;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::options::OptionSpec;
use crate::model::rules::Conflict;

/// The method.
pub struct Rsync;

/// Completes "Failed to ...".
const USE: &str = "use rsync";

impl Backend for Rsync {
    fn id(&self) -> &'static str {
        "rsync"
    }

    fn title(&self) -> &'static str {
        "rsync over ssh"
    }

    fn about(&self) -> &'static str {
        "Sends only what differs within files; the other side needs rsync, nothing of ours"
    }

    fn caps(&self) -> Caps {
        Caps {
            resume: true,
            delta: true,
            encrypted: true,
            remote_digest: true,
            parallel: false,
            needs_agent: false,
        }
    }

    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn supports(&self, spec: &JobSpec) -> Result<()> {
        let unsupported = |cause: &str, hint: &str| {
            Err(Error::new(ErrorKind::Unsupported, USE, cause).hint(hint))
        };
        ends(spec, USE)?;
        let settings = &spec.settings;
        match settings.verify {
            Algorithm::None | Algorithm::Size | Algorithm::Md5 => {}
            other => {
                return unsupported(
                    &format!("rsync gives no {} digests", other.name()),
                    "choose md5, size or none, or another method",
                );
            }
        }
        if settings.read_back {
            return unsupported(
                "rsync does not read what it has written again",
                "switch reading back off, or choose raw TCP or sftp",
            );
        }
        match settings.conflict {
            Conflict::Differs
            | Conflict::Overwrite
            | Conflict::Skip
            | Conflict::Newer
            | Conflict::Resume => {}
            other => {
                return unsupported(
                    &format!(
                        "rsync has no rule like '{}' for files that exist",
                        other.name()
                    ),
                    "choose differs, overwrite, skip, newer or resume, or another method",
                );
            }
        }
        rules::arguments(&settings.rules).map(|_| ())
    }

    fn connect(&self, spec: &JobSpec, cx: &Cx<'_>) -> Result<Box<dyn Session>> {
        self.supports(spec)?;
        Ok(Box::new(session::RsyncSession::connect(spec, cx)?))
    }
}
