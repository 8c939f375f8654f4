//! One side of a transfer: a place on this computer or on another, with a path of bytes.

use std::fmt;

use crate::model::error::Result;

/// A host as the user wrote it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Host {
    /// Log-in name; `None` leaves it to ssh's own configuration.
    pub user: Option<String>,
    /// Name, alias or address; an IPv6 address without brackets.
    pub name: String,
    /// Port; `None` leaves it to the method.
    pub port: Option<u16>,
}

/// One side of a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// A path on this computer, absolute, relative, or starting with `~/`.
    Local(Vec<u8>),
    /// A path on a host that is reached by ssh; relative means below the home folder.
    Ssh {
        /// Whom to log in to.
        host: Host,
        /// The path there; empty means the home folder.
        path: Vec<u8>,
    },
    /// A path in a module of an rsync daemon.
    RsyncDaemon {
        /// Where the daemon is.
        host: Host,
        /// `module/path`.
        path: Vec<u8>,
    },
    /// A path on an ftp server.
    Ftp {
        /// Where the server is.
        host: Host,
        /// The path there.
        path: Vec<u8>,
        /// `ftps://`: the connection is encrypted.
        tls: bool,
    },
    /// A file on a tftp server.
    Tftp {
        /// Where the server is.
        host: Host,
        /// The file's name there.
        path: Vec<u8>,
    },
    /// A plain TCP port, as netcat has it.
    Tcp {
        /// Where to connect to; the port is always set.
        host: Host,
    },
}

impl Location {
    /// Returns the path's bytes; empty for a plain TCP port.
    pub fn path(&self) -> &[u8] {
        match self {
            Self::Local(path)
            | Self::Ssh { path, .. }
            | Self::RsyncDaemon { path, .. }
            | Self::Ftp { path, .. }
            | Self::Tftp { path, .. } => path,
            Self::Tcp { .. } => b"",
        }
    }

    /// Returns the host; `None` for a place on this computer.
    pub fn host(&self) -> Option<&Host> {
        match self {
            Self::Local(_) => None,
            Self::Ssh { host, .. }
            | Self::RsyncDaemon { host, .. }
            | Self::Ftp { host, .. }
            | Self::Tftp { host, .. }
            | Self::Tcp { host } => Some(host),
        }
    }

    /// Says whether the place is on this computer.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// Reads what a user wrote or a file holds.
    ///
    /// # Errors
    /// `Config` with what is wrong and what to write instead.
    pub fn parse(_text: &[u8]) -> Result<Self> {
        todo!()
    }

    /// Returns the bytes that [`Location::parse`] reads back as the same place.
    pub fn to_bytes(&self) -> Vec<u8> {
        todo!()
    }
}

impl fmt::Display for Location {
    /// Shows the place escaped, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::model::untrusted::shown(&self.to_bytes()))
    }
}
