//! What a run tells its caller, an item at a time.

use crate::model::entry::EntryKind;
use crate::model::error::Error;
use crate::wire::message::Settled;

/// Hears of every item. Called from data threads; must not block for long.
pub trait Observer: Sync {
    /// An entry came to its end. `path` is below the destination, under the name it got.
    fn settled(&self, path: &[u8], kind: EntryKind, settled: &Settled);
    /// Something could not be listed or read before it became an entry.
    fn trouble(&self, path: &[u8], error: &Error);
    /// Something to know that ends nothing.
    fn note(&self, error: &Error);
}
