//! One directory: names, kinds, modes, times, and what is kept open.

use std::fs;
use std::io::{BufRead as _, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::sync::Arc;

use super::{is_root, rel, root};
use crate::fs::meta::set_file_meta;
use crate::fs::root::Replace;
use crate::model::entry::{EntryKind, FileTime};
use crate::model::error::ErrorKind;

#[test]
fn names_of_any_bytes_are_kept() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let top = root.top();
    let names: [&[u8]; 7] = [
        b"-rf",
        b"a\nb",
        b"\xff\xfe",
        b" ",
        b"...",
        b"\\",
        &[b'x'; 255],
    ];
    for name in names {
        drop(top.create_part(name).unwrap());
        assert!(top.stat(name).unwrap().is_some());
        assert!(top.open_read(name).is_ok());
    }
    let mut listed: Vec<_> = top.list().unwrap().into_iter().map(|(n, _)| n).collect();
    listed.sort();
    let mut wanted: Vec<_> = names.iter().map(|n| n.to_vec()).collect();
    wanted.sort();
    assert_eq!(listed, wanted);
    // A second listing starts at the start.
    assert_eq!(top.list().unwrap().len(), names.len());
    assert!(
        tmp.path()
            .join(std::ffi::OsStr::from_bytes(b"\xff\xfe"))
            .exists()
    );
}

#[test]
fn only_regular_files_are_opened_and_nobody_is_waited_for() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let top = root.top();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(&*top, "fifo", fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    fs::create_dir(tmp.path().join("dir")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tmp.path().join("socket")).unwrap();
    for name in [&b"fifo"[..], b"dir"] {
        let error = top.open_read(name).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    }
    assert!(top.open_read(b"socket").is_err());
    assert_eq!(
        top.open_read(b"none").unwrap_err().kind,
        ErrorKind::NotFound
    );
    assert_eq!(top.stat(b"fifo").unwrap().unwrap().kind, EntryKind::Special);
}

#[test]
fn a_file_that_a_server_has_lent_out_is_asked_back() {
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("lent");
    fs::write(&path, "text").unwrap();
    // 1024 is F_SETLEASE, 1 a lease for writing; the signal that asks for it back ends perl.
    let script = "open F, '>>', $ARGV[0] or die; fcntl(F, 1024, 1) or die $!; \
                  $| = 1; print qq(ready\\n); sleep 60";
    let mut holder = std::process::Command::new("perl")
        .args(["-e", script])
        .arg(&path)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("perl is missing: apt-get install perl-base");
    let mut ready = String::new();
    let mut out = std::io::BufReader::new(holder.stdout.take().unwrap());
    out.read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    let (mut file, _) = root(tmp.path()).top().open_read(b"lent").unwrap();
    let mut text = String::new();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "text");
    holder.kill().unwrap();
    holder.wait().unwrap();
}

#[test]
fn a_rename_replaces_only_when_it_may() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let top = root.top();
    let sub = root.make_dirs(&rel("sub")).unwrap();
    for (name, text) in [("new", "new"), ("sub/old", "old")] {
        fs::write(tmp.path().join(name), text).unwrap();
    }
    let kept = top
        .rename_to(b"new", &sub, b"old", Replace::No)
        .unwrap_err();
    assert_eq!(kept.kind, ErrorKind::Exists);
    let kept = top.rename_without_flag(b"new", &sub, b"old").unwrap_err();
    assert_eq!(kept, rustix::io::Errno::EXIST);
    assert_eq!(fs::read(tmp.path().join("sub/old")).unwrap(), b"old");
    top.rename_to(b"new", &sub, b"old", Replace::Yes).unwrap();
    assert_eq!(fs::read(tmp.path().join("sub/old")).unwrap(), b"new");
    sub.rename_to(b"old", &top, b"there", Replace::No).unwrap();
    top.rename_without_flag(b"there", &sub, b"back").unwrap();
    assert_eq!(fs::read(tmp.path().join("sub/back")).unwrap(), b"new");
    assert!(!tmp.path().join("there").exists());
    // Folders have no second names, so this one is renamed after a look.
    fs::create_dir(tmp.path().join("folder")).unwrap();
    top.rename_without_flag(b"folder", &sub, b"folder").unwrap();
    assert!(tmp.path().join("sub/folder").is_dir());
}

#[test]
fn making_a_folder_says_whether_it_was_there() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let top = root.top();
    assert!(top.make_dir(b"a", 0o700).unwrap());
    assert!(!top.make_dir(b"a", 0o755).unwrap());
    assert_eq!(top.stat(b"a").unwrap().unwrap().mode, 0o700);
    fs::write(tmp.path().join("f"), "").unwrap();
    let error = top.make_dir(b"f", 0o755).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Exists);
    assert!(
        error.to_string().contains("a file with that name"),
        "{error}"
    );
    assert_eq!(root.make_dirs(&rel("f/x")).unwrap_err().kind, ErrorKind::Io);
    root.make_dirs(&rel("p/q/r")).unwrap();
    root.make_dirs(&rel("p/q/r")).unwrap();
    assert!(tmp.path().join("p/q/r").is_dir());
}

#[test]
fn modes_lose_what_runs_as_somebody_else_and_folders_keep_what_they_inherit() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let top = root.top();
    let file = top.create_part(b"f").unwrap();
    assert!(set_file_meta(&file, Some(0o6755), None).unwrap().all());
    assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o755);

    let dir = root.make_dirs(&rel("d")).unwrap();
    fs::set_permissions(tmp.path().join("d"), fs::Permissions::from_mode(0o2775)).unwrap();
    assert!(dir.set_own_meta(Some(0o4750), None).unwrap().all());
    assert_eq!(dir.stat_self().unwrap().mode, 0o2750);
}

#[test]
fn times_no_file_system_holds_are_clamped() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let top = root.top();
    let file = top.create_part(b"f").unwrap();
    symlink("f", tmp.path().join("l")).unwrap();
    let seconds = [i64::MIN, -1, 0, 1 << 31, 1 << 33, 1 << 62, i64::MAX];
    // The two above 2^30 - 3 are the kernel's words for "now" and "leave it".
    let nanos = [
        0,
        999_999_999,
        1_000_000_000,
        (1 << 30) - 1,
        (1 << 30) - 2,
        1 << 31,
        u32::MAX,
    ];
    for secs in seconds {
        for nanos in nanos {
            let time = FileTime { secs, nanos };
            set_file_meta(&file, None, Some(time)).unwrap();
            top.set_times(b"l", time).unwrap();
            top.set_own_meta(None, Some(time)).unwrap();
            for stat in [
                top.stat(b"f").unwrap().unwrap(),
                top.stat(b"l").unwrap().unwrap(),
                top.stat_self().unwrap(),
            ] {
                assert!(stat.mtime.nanos < 1_000_000_000);
                if secs == 0 {
                    assert_eq!(stat.mtime.nanos, nanos.min(999_999_999));
                    assert_eq!(stat.mtime.secs, 0);
                }
            }
        }
    }
}

#[test]
fn attributes_that_cannot_be_kept_are_told_and_are_no_failure() {
    if is_root() {
        // Root may set anything here; the run without rights proves this.
        return;
    }
    let other = root("/".as_ref()).top();
    let kept = other
        .set_own_meta(Some(0o755), Some(FileTime::default()))
        .unwrap();
    assert_eq!((kept.mode, kept.times), (false, false));
    assert!(
        !root("/".as_ref())
            .top()
            .set_times(b"etc", FileTime::default())
            .unwrap()
    );
}

#[test]
fn a_tree_goes_with_its_links_and_closed_folders_but_nothing_outside() {
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir_all(tmp.path().join("out")).unwrap();
    fs::write(tmp.path().join("out/canary"), "").unwrap();
    fs::create_dir_all(tmp.path().join("t/a/b")).unwrap();
    symlink("../../out", tmp.path().join("t/a/link")).unwrap();
    fs::write(tmp.path().join("t/a/b/f"), "").unwrap();
    fs::set_permissions(tmp.path().join("t/a/b"), fs::Permissions::from_mode(0o500)).unwrap();
    let root = root(tmp.path());
    root.top().remove_tree(b"t").unwrap();
    assert!(!tmp.path().join("t").exists());
    assert!(tmp.path().join("out/canary").exists());
    let error = root.top().remove_tree(b"t").unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[test]
fn a_folder_that_may_be_entered_and_not_listed_can_be_written_to() {
    if is_root() {
        // Root may list everything; the run without rights proves this.
        return;
    }
    let tmp = tempfile::tempdir().unwrap();
    let path = tmp.path().join("drop");
    fs::create_dir(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o300)).unwrap();
    for top in [
        root(&path).top(),
        root(tmp.path()).dir(Some(&rel("drop"))).unwrap(),
    ] {
        drop(top.create_part(b"f").unwrap());
        top.sync().unwrap();
        assert_eq!(top.list().unwrap_err().kind, ErrorKind::Denied);
        assert!(
            top.set_own_meta(Some(0o300), Some(FileTime::default()))
                .unwrap()
                .all()
        );
        top.remove_file(b"f").unwrap();
    }
    root(&path).sync_fs().unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn few_directories_are_kept_open_and_what_is_forgotten_is_opened_anew() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    for i in 0..1200 {
        let path = rel(&format!("d{i}"));
        root.make_dirs(&path).unwrap();
        // The first one is used all the time and stays.
        root.dir(Some(&rel("d0"))).unwrap();
        assert!(root.count_held() <= 512);
    }
    let kept = root.dir(Some(&rel("d0"))).unwrap();
    assert!(Arc::ptr_eq(&kept, &root.dir(Some(&rel("d0"))).unwrap()));

    root.make_dirs(&rel("d0/sub")).unwrap();
    let other = root.make_dirs(&rel("d00")).unwrap();
    fs::rename(tmp.path().join("d0"), tmp.path().join("moved")).unwrap();
    assert!(root.dir(Some(&rel("d0/sub"))).is_ok());
    root.forget(&rel("d0"));
    let gone = root.dir(Some(&rel("d0/sub"))).unwrap_err();
    assert_eq!(gone.kind, ErrorKind::NotFound);
    assert!(Arc::ptr_eq(&other, &root.dir(Some(&rel("d00"))).unwrap()));
}

#[test]
fn room_is_taken_only_where_there_is_room() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let file = root.top().create_part(b"f").unwrap();
    assert!(!crate::fs::meta::preallocate(&file, 1 << 62));
    assert!(!crate::fs::meta::preallocate(&file, u64::MAX));
    assert_eq!(file.metadata().unwrap().len(), 0);
    if crate::fs::meta::preallocate(&file, 4096) {
        assert_eq!(file.metadata().unwrap().len(), 4096);
    }
    assert!(root.free_bytes() > 0);
    crate::fs::meta::sync_data(&file).unwrap();
    crate::fs::meta::drop_cache(&file);
    crate::fs::meta::advise_sequential(&file);
    root.sync_fs().unwrap();
    root.top().sync().unwrap();
}
