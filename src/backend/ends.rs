//! Sorts out which side of a job is far, for methods that log in by ssh on one side.

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::location::{Host, Location};

/// Which side is far, and what is there.
pub(super) enum Ends {
    /// From here to there.
    Push {
        host: Host,
        sources: Vec<Vec<u8>>,
        destination: Vec<u8>,
    },
    /// From there to here.
    Pull {
        host: Host,
        sources: Vec<Vec<u8>>,
        destination: Vec<u8>,
    },
}

impl Ends {
    /// Returns the far host.
    pub fn host(&self) -> &Host {
        let (Self::Push { host, .. } | Self::Pull { host, .. }) = self;
        host
    }
}

/// Sorts the two sides out; `doing` completes "Failed to ...".
///
/// # Errors
/// `Unsupported` unless exactly one side is one host that is reached by ssh.
pub(super) fn ends(spec: &JobSpec, doing: &str) -> Result<Ends> {
    let unsupported =
        |cause: &str, hint: &str| Err(Error::new(ErrorKind::Unsupported, doing, cause).hint(hint));
    if spec.sources.is_empty() {
        return unsupported("there is no source", "add a file or folder to send");
    }
    if spec.destination.is_local() && spec.sources.iter().all(Location::is_local) {
        return unsupported(
            "both sides are on this computer",
            "use the method local, or auto, which takes it here",
        );
    }
    let sources = spec.sources.iter().map(|s| s.path().to_vec()).collect();
    match &spec.destination {
        Location::Ssh { host, path } => {
            if spec.sources.iter().any(|s| !s.is_local()) {
                return unsupported(
                    "both sides are on other computers",
                    "copy to this computer first, then from here",
                );
            }
            Ok(Ends::Push {
                host: host.clone(),
                sources,
                destination: path.clone(),
            })
        }
        Location::Local(path) => {
            let mut host = None;
            for source in &spec.sources {
                match source {
                    Location::Ssh { host: this, .. } if host.is_none_or(|h| h == this) => {
                        host = Some(this);
                    }
                    Location::Ssh { .. } => {
                        return unsupported(
                            "the sources are on different hosts",
                            "make a job for each host",
                        );
                    }
                    _ => {
                        return unsupported(
                            "a source is not reached by ssh",
                            "write it as host:path",
                        );
                    }
                }
            }
            Ok(Ends::Pull {
                host: host.cloned().unwrap_or_default(),
                sources,
                destination: path.clone(),
            })
        }
        _ => unsupported(
            "the destination is not reached by ssh",
            "write it as host:path",
        ),
    }
}
