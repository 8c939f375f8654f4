//! Names that we give: staging folders, parts, and numbered names when both files are kept.

use crate::model::relpath::MAX_COMPONENT;

/// The beginning of a staging folder's name; 32 hexadecimal digits follow.
pub const STAGING: &str = ".transload-";
/// The rule that keeps staging folders out of every listing.
pub const STAGING_GLOB: &str = ".transload-????????????????????????????????/";

/// Returns the staging folder of a job.
pub fn staging(job: &[u8; 16]) -> String {
    let mut name = String::from(STAGING);
    for byte in job {
        name.push_str(&format!("{byte:02x}"));
    }
    name
}

/// Returns `name` with a number before its ending: `a.tar.gz` gives `a (1).tar.gz`. Shortened at a
/// character boundary where it would be too long.
pub fn numbered(name: &[u8], number: u32) -> Vec<u8> {
    let dot = name
        .iter()
        .skip(1)
        .position(|b| *b == b'.')
        .map_or(name.len(), |at| at + 1);
    let (stem, ending) = name.split_at(dot);
    // An ending longer than this is no ending.
    let (stem, ending) = if ending.len() > 32 {
        (name, &b""[..])
    } else {
        (stem, ending)
    };
    let mark = format!(" ({number})");
    let room = MAX_COMPONENT - mark.len() - ending.len();
    let mut cut = stem.len().min(room);
    while cut > 0 && cut < stem.len() && stem[cut] & 0xc0 == 0x80 {
        cut -= 1;
    }
    [&stem[..cut], mark.as_bytes(), ending].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_before_the_ending_and_names_stay_short_enough() {
        assert_eq!(numbered(b"a.tar.gz", 1), b"a (1).tar.gz");
        assert_eq!(numbered(b".bashrc", 2), b".bashrc (2)");
        assert_eq!(numbered(b"a", 3), b"a (3)");
        let long = "字".repeat(85);
        let got = numbered(long.as_bytes(), 10);
        assert!(got.len() <= 255 && std::str::from_utf8(&got).is_ok());
        assert_eq!(STAGING_GLOB.matches('?').count(), 32);
    }
}
