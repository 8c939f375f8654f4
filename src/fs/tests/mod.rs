//! Proves that nothing leaves a root, as root and as a person without rights.

#![allow(clippy::disallowed_methods)]

mod confine;
mod deep;
mod dirs;
mod race;
mod walks;

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use crate::fs::root::Root;
use crate::model::relpath::RelPath;

/// Set for the run without rights, so that it does not start another one.
const INNER: &str = "TRANSLOAD_TEST_WITHOUT_RIGHTS";

/// The user that has no rights on Debian.
const NOBODY: u32 = 65534;

fn rel(path: &str) -> RelPath {
    RelPath::new(path.as_bytes()).unwrap()
}

fn root(path: &Path) -> Arc<Root> {
    Arc::new(Root::open(path).unwrap())
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn all_of_this_holds_for_a_person_without_rights_too() {
    if !is_root() || std::env::var_os(INNER).is_some() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let run = Command::new("/proc/self/exe")
        .args(["fs::tests::", "--test-threads=2"])
        .env(INNER, "1")
        .env("TMPDIR", dir.path())
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
}
