//! A checked relative path: the only path type that is taken off a wire or resolved beneath a root.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::untrusted::shown;

/// The longest path in bytes (Linux `PATH_MAX`).
pub const MAX_PATH: usize = 4096;
/// The longest component in bytes (Linux `NAME_MAX`).
pub const MAX_COMPONENT: usize = 255;

/// Non-empty relative path of bytes: no empty, `.` or `..` component, no NUL, no leading or
/// trailing slash. Bytes are never decoded, trimmed or normalised.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Box<[u8]>);

impl RelPath {
    /// Checks bytes from anywhere.
    ///
    /// # Errors
    /// `Protocol`, naming the rule that the path breaks.
    pub fn new(bytes: impl Into<Box<[u8]>>) -> Result<Self> {
        let bytes = bytes.into();
        match fault(&bytes) {
            None => Ok(Self(bytes)),
            Some(why) => {
                Err(Error::new(ErrorKind::Protocol, "accept a file name", why).at(&bytes[..]))
            }
        }
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path for system calls that are relative to a directory descriptor.
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// Returns the components in order, each a checked name.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.0.split(|b| *b == b'/')
    }

    /// Returns the last component.
    pub fn name(&self) -> &[u8] {
        self.components().next_back().unwrap_or(&self.0)
    }

    /// Returns the path without its last component; `None` at the top.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.0.iter().rposition(|b| *b == b'/')?;
        Some(Self(self.0[..slash].into()))
    }

    /// Appends one component.
    ///
    /// # Errors
    /// `Protocol` when the name or the whole breaks a rule.
    pub fn join(&self, name: &[u8]) -> Result<Self> {
        let mut bytes = Vec::with_capacity(self.0.len() + 1 + name.len());
        bytes.extend_from_slice(&self.0);
        bytes.push(b'/');
        bytes.extend_from_slice(name);
        Self::new(bytes)
    }

    /// Replaces the last component.
    ///
    /// # Errors
    /// `Protocol` when the name or the whole breaks a rule.
    pub fn with_name(&self, name: &[u8]) -> Result<Self> {
        match self.parent() {
            Some(parent) => parent.join(name),
            None => Self::new(name),
        }
    }

    /// Returns the number of components.
    pub fn depth(&self) -> usize {
        self.components().count()
    }
}

/// Returns the rule that the bytes break.
fn fault(bytes: &[u8]) -> Option<&'static str> {
    if bytes.is_empty() {
        return Some("the name is empty");
    }
    if bytes.len() > MAX_PATH {
        return Some("the path is longer than 4096 bytes");
    }
    if bytes.contains(&0) {
        return Some("the name holds a NUL byte");
    }
    for part in bytes.split(|b| *b == b'/') {
        match part {
            b"" => return Some("the path has an empty component or is absolute"),
            b"." | b".." => return Some("the path has a '.' or '..' component"),
            part if part.len() > MAX_COMPONENT => return Some("a name is longer than 255 bytes"),
            _ => {}
        }
    }
    None
}

impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shown(&self.0))
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaping_names_are_refused_and_odd_ones_kept() {
        for bad in [
            "",
            ".",
            "..",
            "../x",
            "a/../../x",
            "/abs",
            "//abs",
            "a//b",
            "./a",
            "a/",
            "a/.",
            "a\0b",
            "foo/..",
        ] {
            assert!(RelPath::new(bad.as_bytes()).is_err(), "{bad:?}");
        }
        for good in [
            "..\\..\\x",
            "a",
            "a/b",
            "...",
            ".a",
            "-rf",
            "a b",
            "\n",
            "\u{202e}",
        ] {
            assert_eq!(
                RelPath::new(good.as_bytes()).unwrap().as_bytes(),
                good.as_bytes()
            );
        }
        assert!(RelPath::new(vec![b'a'; 255]).is_ok());
        assert!(RelPath::new(vec![b'a'; 256]).is_err());
        assert!(RelPath::new(vec![0xff; 3]).is_ok());
    }

    #[test]
    fn parents_and_names_come_apart_and_together() {
        let path = RelPath::new(*b"a/b/c").unwrap();
        assert_eq!(path.name(), b"c");
        assert_eq!(path.parent().unwrap().as_bytes(), b"a/b");
        assert_eq!(path.parent().unwrap().join(b"c").unwrap(), path);
        assert_eq!(path.with_name(b"d").unwrap().as_bytes(), b"a/b/d");
        assert!(RelPath::new(*b"a").unwrap().parent().is_none());
    }
}
