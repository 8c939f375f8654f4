//! What the integration tests stand on: real servers of their own, and folders that vanish.
//!
//! A test binary says `mod support;` and uses what it needs. A tool that is missing fails the
//! test with the name of its Debian package.

#![allow(dead_code)] // each test binary uses a part
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

pub mod fake_agent;
pub mod sshd;
pub mod user;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Returns the agent that belongs to this build.
pub fn agent_binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_transload-agent"))
}

/// Makes a folder below the target folder that vanishes with its value.
pub fn temp_dir() -> TempDir {
    tempfile::Builder::new()
        .prefix("t-")
        .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
        .expect("the target folder can be written")
}

/// Returns a program's path in the usual folders.
///
/// # Panics
/// When it is missing, with the package to install.
pub fn tool(name: &str, package: &str) -> PathBuf {
    let folders = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];
    folders
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("{name} is missing: apt-get install {package}"))
}

/// Looks until something holds.
///
/// # Panics
/// When it does not within 10 seconds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < until, "waited 10 s until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
