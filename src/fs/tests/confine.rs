//! Links planted below a root, and links that lead to one.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::{NOBODY, is_root, rel, root};
use crate::fs::root::{Replace, Root};
use crate::model::entry::FileTime;
use crate::model::error::ErrorKind;

#[test]
fn a_planted_link_is_refused_or_replaced_and_never_followed() {
    let tmp = tempfile::tempdir().unwrap();
    let out = tmp.path().join("out");
    let dest = tmp.path().join("dest");
    fs::create_dir_all(out.join("inner")).unwrap();
    fs::create_dir(&dest).unwrap();
    fs::write(out.join("canary"), "canary").unwrap();
    symlink("../out", dest.join("relative")).unwrap();
    symlink(&out, dest.join("absolute")).unwrap();
    symlink("../out/canary", dest.join("file")).unwrap();
    symlink("../out/new", dest.join("dangling")).unwrap();
    symlink("link1", dest.join("link0")).unwrap();
    for i in 1..40 {
        symlink(format!("link{}", i + 1), dest.join(format!("link{i}"))).unwrap();
    }
    symlink("../out", dest.join("link40")).unwrap();
    let before = fs::metadata(&out).unwrap();

    let root = root(&dest);
    let top = root.top();
    for name in ["relative", "absolute", "link0", "link40"] {
        for path in [
            name.to_owned(),
            format!("{name}/inner"),
            format!("{name}/new"),
        ] {
            let error = root.dir(Some(&rel(&path))).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Denied, "{path}: {error}");
            assert!(root.make_dirs(&rel(&path)).is_err(), "{path}");
        }
    }
    let odd = FileTime { secs: 1, nanos: 1 };
    for name in [
        &b"relative"[..],
        b"absolute",
        b"file",
        b"dangling",
        b"link0",
    ] {
        assert_eq!(top.open_read(name).unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(top.open_part(name).unwrap_err().kind, ErrorKind::Denied);
        assert_eq!(top.create_part(name).unwrap_err().kind, ErrorKind::Exists);
        assert_eq!(
            top.make_dir(name, 0o777).unwrap_err().kind,
            ErrorKind::Exists
        );
        assert_eq!(
            top.make_link(b"x", name).unwrap_err().kind,
            ErrorKind::Exists
        );
        assert!(top.set_times(name, odd).unwrap());
        assert!(top.remove_dir(name).is_err());
    }
    // A file that gets the name takes the link's place.
    drop(top.create_part(b"part").unwrap());
    let refused = top.rename_to(b"part", &top, b"file", Replace::No);
    assert_eq!(refused.unwrap_err().kind, ErrorKind::Exists);
    top.rename_to(b"part", &top, b"file", Replace::Yes).unwrap();
    assert!(dest.join("file").symlink_metadata().unwrap().is_file());
    top.remove_tree(b"absolute").unwrap();
    top.remove_file(b"dangling").unwrap();

    let after = fs::metadata(&out).unwrap();
    assert_eq!(
        (before.mode(), before.mtime_nsec()),
        (after.mode(), after.mtime_nsec())
    );
    assert_eq!(fs::read(out.join("canary")).unwrap(), b"canary");
    assert_eq!(fs::metadata(out.join("canary")).unwrap().nlink(), 1);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 2);
}

#[test]
fn a_part_name_that_was_planted_is_never_written_through() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("victim"), "victim").unwrap();
    let root = root(tmp.path());
    let top = root.top();
    symlink("victim", tmp.path().join("link")).unwrap();
    fs::hard_link(tmp.path().join("victim"), tmp.path().join("hard")).unwrap();
    fs::create_dir(tmp.path().join("dir")).unwrap();
    rustix::fs::mknodat(
        &*top,
        "fifo",
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for name in [&b"link"[..], b"hard", b"dir", b"fifo"] {
        assert_eq!(top.create_part(name).unwrap_err().kind, ErrorKind::Exists);
        assert!(top.open_part(name).is_err());
    }
    assert!(top.open_part(b"missing").unwrap().is_none());
    assert_eq!(fs::read(tmp.path().join("victim")).unwrap(), b"victim");

    let part = top.create_part(b"part").unwrap();
    assert_eq!(part.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert!(top.open_part(b"part").unwrap().is_some());
}

#[test]
fn a_root_may_be_a_link_of_our_own() {
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir(tmp.path().join("real")).unwrap();
    symlink("real", tmp.path().join("one")).unwrap();
    symlink(tmp.path().join("one"), tmp.path().join("two")).unwrap();
    let real = root(&tmp.path().join("real")).identity();
    for path in ["one", "two", "two/", "two/.", "two//"] {
        assert_eq!(root(&tmp.path().join(path)).identity(), real, "{path}");
    }
    symlink("loop", tmp.path().join("loop")).unwrap();
    symlink("nowhere", tmp.path().join("dangling")).unwrap();
    fs::write(tmp.path().join("file"), "").unwrap();
    let kind = |name: &str| Root::open(&tmp.path().join(name)).unwrap_err().kind;
    assert_eq!(kind("loop"), ErrorKind::Io);
    assert_eq!(kind("dangling"), ErrorKind::NotFound);
    assert_eq!(kind("missing"), ErrorKind::NotFound);
    assert_eq!(kind("file"), ErrorKind::Io);
    assert_eq!(Root::open("".as_ref()).unwrap_err().kind, ErrorKind::Config);
}

#[test]
fn a_root_behind_another_users_link_is_refused_with_the_reason() {
    if !is_root() {
        // Only root can make a link that belongs to somebody else.
        return;
    }
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir(tmp.path().join("real")).unwrap();
    symlink("real", tmp.path().join("theirs")).unwrap();
    std::os::unix::fs::lchown(tmp.path().join("theirs"), Some(NOBODY), None).unwrap();
    symlink("theirs", tmp.path().join("ours")).unwrap();
    for name in ["theirs", "theirs/", "theirs/.", "ours"] {
        let error = Root::open(&tmp.path().join(name)).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{name}");
        assert!(
            error.to_string().contains("belongs to another user"),
            "{error}"
        );
        assert!(error.hint.is_some());
        assert!(Root::create(&tmp.path().join(name)).is_err());
    }
    // What the link points to may be anybody's.
    std::os::unix::fs::chown(tmp.path().join("real"), Some(NOBODY), None).unwrap();
    assert!(Root::open(&tmp.path().join("real")).is_ok());
}

#[test]
fn a_root_stays_the_folder_that_was_opened() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("a");
    fs::create_dir(&path).unwrap();
    let root = root(&path);
    root.check_in_place().unwrap();
    fs::rename(&path, tmp.path().join("b")).unwrap();
    assert!(root.check_in_place().is_err());
    fs::create_dir(&path).unwrap();
    let error = root.check_in_place().unwrap_err();
    assert!(error.hint.is_some(), "{error}");
    drop(root.top().create_part(b"x").unwrap());
    assert!(tmp.path().join("b/x").exists() && !path.join("x").exists());
}

#[test]
fn missing_folders_above_a_root_are_made() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("a/b/c/");
    let made = Root::create(&path).unwrap();
    assert_eq!(made.identity(), Root::create(&path).unwrap().identity());
    fs::write(tmp.path().join("file"), "").unwrap();
    assert!(Root::create(&tmp.path().join("file/x")).is_err());
    assert!(Root::create(&tmp.path().join("file")).is_err());
    symlink("nowhere", tmp.path().join("dangling")).unwrap();
    assert!(Root::create(&tmp.path().join("dangling")).is_err());
    assert!(!tmp.path().join("nowhere").exists());
}
