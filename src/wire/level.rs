//! Protocol levels and what each brought.

use crate::model::error::{Error, ErrorKind, Result};

/// The oldest level that this program speaks.
pub const OLDEST: u16 = 1;
/// The newest level that this program speaks.
pub const NEWEST: u16 = 1;

/// What each level brought, oldest first.
pub const FEATURES: &[(u16, &str)] =
    &[(1, "files, folders, links; resume by blocks; three routes")];

/// Picks the newest level that both ends speak.
///
/// # Errors
/// `Version` when there is none, saying which end is older.
pub fn agree(oldest: u16, newest: u16) -> Result<u16> {
    let level = newest.min(NEWEST);
    if oldest <= newest && level >= oldest.max(OLDEST) {
        return Ok(level);
    }
    let (cause, hint) = if newest < OLDEST {
        (
            "the agent on the other side is too old",
            "remove or update transload-agent there",
        )
    } else {
        (
            "the agent on the other side is newer than this program",
            "update this program",
        )
    };
    Err(Error::new(ErrorKind::Version, "agree on a protocol level", cause).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_level_is_taken_and_none_is_an_error() {
        assert_eq!(agree(1, 1).unwrap(), 1);
        assert_eq!(agree(1, 9).unwrap(), 1);
        assert!(agree(2, 9).is_err());
        assert!(agree(0, 0).is_err());
        assert!(agree(3, 1).is_err());
    }

    #[test]
    fn every_level_says_what_it_brought() {
        assert_eq!(FEATURES.last().map(|f| f.0), Some(NEWEST));
    }
}
