//! What went wrong at one place: what was being done, where, why, and what to do next.
//!
//! Rules: an error is written once, where the call is made; whoever gets it passes it on or
//! shows it, never both. [`Error::doing`] completes the sentence "Failed to ...". The hint is
//! something the reader can act on. Retry policy depends on [`ErrorKind`] alone.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::untrusted::Untrusted;

/// The result type of everything that can fail at a place.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something failed, as far as a program may decide on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The thing does not exist.
    NotFound,
    /// Permission was refused.
    Denied,
    /// Something with that name is there already.
    Exists,
    /// The disk is full, out of inodes, or over quota.
    NoSpace,
    /// Any other failure of reading or writing.
    Io,
    /// The other computer or port cannot be reached.
    Unreachable,
    /// A deadline passed.
    Timeout,
    /// The connection ended while it was in use.
    Disconnected,
    /// The log-in was refused or needs a secret that nobody can give.
    Login,
    /// The host key is unknown, changed or revoked.
    HostKey,
    /// The two ends do not speak a common level.
    Version,
    /// The other side broke the rules of the wire.
    Protocol,
    /// A program that is needed is missing or failed.
    Tool,
    /// A setting, profile or argument is not valid.
    Config,
    /// This combination is not supported.
    Unsupported,
    /// The source was edited while it was read.
    SourceChanged,
    /// Bytes arrived changed.
    Corrupt,
    /// Somebody cancelled; an ending, not shown as a failure.
    Cancelled,
    /// A fault in this program.
    Bug,
}

impl ErrorKind {
    /// Says whether connecting again may help.
    pub fn is_network(self) -> bool {
        matches!(
            self,
            Self::Unreachable | Self::Timeout | Self::Disconnected | Self::Corrupt
        )
    }

    /// Returns the name used in JSON and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotFound => "not_found",
            Self::Denied => "denied",
            Self::Exists => "exists",
            Self::NoSpace => "no_space",
            Self::Io => "io",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Disconnected => "disconnected",
            Self::Login => "login",
            Self::HostKey => "host_key",
            Self::Version => "version",
            Self::Protocol => "protocol",
            Self::Tool => "tool",
            Self::Config => "config",
            Self::Unsupported => "unsupported",
            Self::SourceChanged => "source_changed",
            Self::Corrupt => "corrupt",
            Self::Cancelled => "cancelled",
            Self::Bug => "bug",
        }
    }

    /// Every kind, in the order of the wire codes (see `wire::message`); append only.
    pub const ALL: [Self; 19] = [
        Self::NotFound,
        Self::Denied,
        Self::Exists,
        Self::NoSpace,
        Self::Io,
        Self::Unreachable,
        Self::Timeout,
        Self::Disconnected,
        Self::Login,
        Self::HostKey,
        Self::Version,
        Self::Protocol,
        Self::Tool,
        Self::Config,
        Self::Unsupported,
        Self::SourceChanged,
        Self::Corrupt,
        Self::Cancelled,
        Self::Bug,
    ];
}

/// One failure: "Failed to *doing*: *cause* — *place*", then a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What a program may decide on.
    pub kind: ErrorKind,
    /// Completes "Failed to ...", for example "open the source file".
    pub doing: String,
    /// The file, host or setting it happened at; shown escaped.
    pub place: Untrusted,
    /// Why, in words; foreign text in it is shown escaped.
    pub cause: Untrusted,
    /// What the reader can do next.
    pub hint: Option<String>,
}

impl Error {
    /// Makes an error without a place or hint.
    pub fn new(kind: ErrorKind, doing: impl Into<String>, cause: impl Into<Untrusted>) -> Self {
        Self {
            kind,
            doing: doing.into(),
            place: Untrusted::default(),
            cause: cause.into(),
            hint: None,
        }
    }

    /// Names the file, host or setting.
    #[must_use]
    pub fn at(mut self, place: impl Into<Untrusted>) -> Self {
        self.place = place.into();
        self
    }

    /// Says on which host the place is.
    #[must_use]
    pub fn beside(mut self, host: &str) -> Self {
        let mut place = host.as_bytes().to_vec();
        if !self.place.is_empty() {
            place.push(b':');
            place.extend_from_slice(self.place.as_bytes());
        }
        self.place = place.into();
        self
    }

    /// Says what the reader can do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Makes an error from an operating-system one; the kind and a usual hint follow from it.
    pub fn io(doing: impl Into<String>, source: &std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        // ENOSPC 28, EDQUOT 122, EROFS 30, ELOOP 40, ENAMETOOLONG 36, ENOTDIR 20: the same on
        // every Linux architecture we build for.
        let (kind, hint) = match (source.raw_os_error(), source.kind()) {
            (Some(28), _) => (
                ErrorKind::NoSpace,
                Some("free some space there, then resume"),
            ),
            (Some(122), _) => (
                ErrorKind::NoSpace,
                Some("your quota there is used up; free some space, then resume"),
            ),
            (Some(30), _) => (
                ErrorKind::Denied,
                Some("the file system is mounted read-only"),
            ),
            (_, K::NotFound) => (ErrorKind::NotFound, None),
            (_, K::PermissionDenied) => (ErrorKind::Denied, None),
            (_, K::AlreadyExists) => (ErrorKind::Exists, None),
            (_, K::TimedOut | K::WouldBlock) => (ErrorKind::Timeout, None),
            (
                _,
                K::ConnectionRefused
                | K::HostUnreachable
                | K::NetworkUnreachable
                | K::AddrNotAvailable,
            ) => (ErrorKind::Unreachable, None),
            (
                _,
                K::ConnectionReset
                | K::ConnectionAborted
                | K::BrokenPipe
                | K::UnexpectedEof
                | K::NotConnected,
            ) => (ErrorKind::Disconnected, None),
            _ => (ErrorKind::Io, None),
        };
        let mut error = Self::new(kind, doing, os_words(source));
        error.hint = hint.map(str::to_owned);
        error
    }

    /// Makes the ending that somebody asked for.
    pub fn cancelled() -> Self {
        Self::new(ErrorKind::Cancelled, "finish", "cancelled")
    }
}

/// Returns the system's sentence without Rust's "(os error N)" and with a small first letter.
fn os_words(source: &std::io::Error) -> String {
    let text = source.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Failed to {}: {}", self.doing, self.cause)?;
        if !self.place.is_empty() {
            write!(f, " \u{2014} {}", self.place)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_one_sentence() {
        let os = std::io::Error::from_raw_os_error(13);
        let error = Error::io("open the source file", &os).at("/home/me/a\nb");
        assert_eq!(
            error.to_string(),
            "Failed to open the source file: permission denied \u{2014} /home/me/a\\nb"
        );
        assert_eq!(error.kind, ErrorKind::Denied);
    }

    #[test]
    fn a_full_disk_says_what_to_do() {
        let error = Error::io("write", &std::io::Error::from_raw_os_error(28));
        assert_eq!(error.kind, ErrorKind::NoSpace);
        assert!(error.hint.is_some());
    }

    #[test]
    fn every_kind_is_listed_once() {
        let mut names: Vec<_> = ErrorKind::ALL.iter().map(|k| k.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorKind::ALL.len());
    }
}
