//! Methods that move bytes: one folder each, all behind [`contract::Backend`].

mod collect;
pub mod contract;
pub mod cx;
mod ends;
pub mod local;
pub mod rsync;
pub mod sftp;
pub mod tcp;
mod watch;

use contract::Backend;

/// Every method, in the order in which they are offered. A new method adds its folder, its `mod`
/// line and one entry here; form, flags, help and conformance tests follow from what it says of
/// itself.
pub const ALL: &[&dyn Backend] = &[&tcp::Tcp, &rsync::Rsync, &sftp::Sftp, &local::Local];

/// Returns the method of that name.
pub fn by_id(id: &str) -> Option<&'static dyn Backend> {
    ALL.iter().copied().find(|backend| backend.id() == id)
}
