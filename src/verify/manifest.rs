//! Digest lists as `md5sum` and its kin write and check them.

use std::io;

use crate::model::digest::Digest;

/// Writes one line that `md5sum -c` reads back, names with backslash or newline escaped as
/// coreutils does.
///
/// # Errors
/// Those of the writer.
pub fn write_line(_out: &mut dyn io::Write, _digest: &Digest, _path: &[u8]) -> io::Result<()> {
    todo!()
}
