//! Folders that even their owner may not enter or write into: what belongs into them arrives, and
//! they have the right permissions in the end.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

#[path = "support/direct.rs"]
mod direct;
mod support;

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use direct::{Told, job, run};
use support::temp_dir;
use transload::backend::local::Local;
use transload::model::location::Location;

/// Tells the copy of this program that runs without rights that it is one, and where to work.
const HELPER: &str = "TRANSLOAD_TEST_WITHOUT_RIGHTS";
/// The user that has no rights on Debian.
const NOBODY: u32 = 65534;

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o777
}

/// Copies as the helper's own user, to whom permissions mean something.
#[test]
fn helper() {
    let Some(top) = std::env::var_os(HELPER).map(PathBuf::from) else {
        return;
    };
    let (source, there) = (top.join("src"), top.join("in"));
    for folder in ["read-only", "closed/deep"] {
        fs::create_dir_all(source.join(folder)).unwrap();
        fs::write(source.join(folder).join("old"), "old").unwrap();
    }
    fs::create_dir(&there).unwrap();
    set_mode(&source.join("read-only"), 0o555);
    let local = |path: &Path| Location::Local(path.as_os_str().to_owned().into_vec());
    let copy = |permissions: bool| {
        let mut spec = job("local", vec![local(&source)], local(&there));
        spec.settings.preserve.permissions = permissions;
        let (tally, _) = run(&Local, &spec, &Told::default()).unwrap();
        assert_eq!((tally.failed, tally.verified), (0, 2));
    };
    copy(true);
    let landed = there.join("src");
    assert_eq!(mode(&landed.join("read-only")), 0o555);
    for (n, keeps) in [true, false].into_iter().enumerate() {
        set_mode(&source.join("read-only"), 0o755);
        for folder in ["read-only", "closed/deep"] {
            fs::write(source.join(folder).join(format!("new-{n}")), "new").unwrap();
        }
        set_mode(&source.join("read-only"), 0o555);
        set_mode(&landed.join("read-only"), 0o555);
        set_mode(&landed.join("closed/deep"), 0o444);
        set_mode(&landed.join("closed"), 0);
        copy(keeps);
        assert_eq!(mode(&landed.join("read-only")), 0o555);
        assert_eq!(mode(&landed.join("closed")), if keeps { 0o755 } else { 0 });
        set_mode(&landed.join("closed"), 0o755);
        let deep = landed.join("closed/deep");
        assert_eq!(mode(&deep), if keeps { 0o755 } else { 0o444 });
        set_mode(&deep, 0o755);
        assert_eq!(
            fs::read_to_string(deep.join(format!("new-{n}"))).unwrap(),
            "new"
        );
    }
    fs::write(top.join("through"), "").unwrap();
}

#[test]
fn what_belongs_into_a_folder_without_permissions_arrives_and_the_folder_gets_its_own() {
    let dir = temp_dir();
    let top = match rustix::process::geteuid().is_root() {
        // The way to cargo's folders may be closed to others.
        true => tempfile::tempdir().unwrap(),
        false => dir,
    };
    let mut command = Command::new("/proc/self/exe");
    command
        .args(["--exact", "helper", "--test-threads=1"])
        .env(HELPER, top.path())
        .current_dir("/");
    if rustix::process::geteuid().is_root() {
        chown(top.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(top.path().join("through").exists(), "{said}");
}
