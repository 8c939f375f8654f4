//! What a walk tells, in which order, and what it never touches.

use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify;

use super::{is_root, rel, root};
use crate::fs::filter::Filter;
use crate::fs::walk::{Found, Walk};
use crate::model::entry::EntryKind;
use crate::model::error::ErrorKind;
use crate::model::rules::{Rule, RuleVerb};

fn excluding(patterns: &[&str]) -> Filter {
    let rules: Vec<Rule> = patterns
        .iter()
        .map(|p| Rule {
            verb: RuleVerb::Exclude,
            pattern: (*p).to_owned(),
        })
        .collect();
    Filter::new(&rules).unwrap()
}

/// Returns one line for each thing found.
fn told(path: &Path, start: Option<&str>, filter: Filter, prefix: Option<&str>) -> Vec<String> {
    Walk::new(root(path), start.map(rel), filter, prefix.map(rel))
        .map(|found| match found {
            Found::Top { entry, .. } => format!("top {}", entry.path),
            Found::Entry { entry, real, .. } => {
                let kind = match entry.kind {
                    EntryKind::File => format!("file {}", entry.size),
                    EntryKind::Dir => "dir".to_owned(),
                    EntryKind::Symlink => {
                        format!("link {}", String::from_utf8(entry.link.unwrap()).unwrap())
                    }
                    EntryKind::Special => "special".to_owned(),
                };
                format!("{} ({real}) {kind}", entry.path)
            }
            Found::Excluded { path } => format!("excluded {path}"),
            Found::Failed { path, error } => {
                format!(
                    "failed {} {}",
                    String::from_utf8_lossy(&path),
                    error.kind.name()
                )
            }
        })
        .collect()
}

fn sample() -> tempfile::TempDir {
    let tmp = tempfile::tempdir().unwrap();
    let at = |name: &str| tmp.path().join(name);
    fs::create_dir_all(at("b/inner")).unwrap();
    fs::write(at("b/inner/file"), "12345").unwrap();
    fs::write(at("b-"), "").unwrap();
    fs::write(at("a"), "x").unwrap();
    symlink("b", at("link")).unwrap();
    symlink("nowhere", at("b/dangling")).unwrap();
    tmp
}

#[test]
fn parents_come_before_what_is_in_them_and_names_in_order() {
    let tmp = sample();
    assert_eq!(
        told(tmp.path(), None, Filter::default(), None),
        [
            "a (a) file 1",
            "b (b) dir",
            "b/dangling (b/dangling) link nowhere",
            "b/inner (b/inner) dir",
            "b/inner/file (b/inner/file) file 5",
            "b- (b-) file 0",
            "link (link) link b",
        ]
    );
}

#[test]
fn a_prefix_names_the_folder_and_a_start_comes_first() {
    let tmp = sample();
    let all = told(tmp.path(), None, excluding(&["/top/b/"]), Some("top"));
    assert_eq!(
        all,
        [
            "top top",
            "top/a (a) file 1",
            "excluded top/b",
            "top/b- (b-) file 0",
            "top/link (link) link b"
        ]
    );
    assert_eq!(
        told(tmp.path(), Some("b/inner"), Filter::default(), Some("p")),
        [
            "p/b/inner (b/inner) dir",
            "p/b/inner/file (b/inner/file) file 5"
        ]
    );
    assert_eq!(
        told(tmp.path(), Some("a"), Filter::default(), None),
        ["a (a) file 1"]
    );
    assert_eq!(
        told(tmp.path(), Some("link"), Filter::default(), None),
        ["link (link) link b"]
    );
    assert_eq!(
        told(tmp.path(), Some("link/inner"), Filter::default(), None),
        ["failed link/inner denied"]
    );
    assert_eq!(
        told(tmp.path(), Some("none"), Filter::default(), None),
        ["failed none not_found"]
    );
    assert_eq!(
        told(tmp.path(), None, excluding(&["top"]), Some("top")),
        ["excluded top"]
    );
}

#[test]
fn what_is_left_out_is_not_entered() {
    let tmp = sample();
    assert_eq!(
        told(tmp.path(), None, excluding(&["inner/", "a", "l*"]), None),
        [
            "excluded a",
            "b (b) dir",
            "b/dangling (b/dangling) link nowhere",
            "excluded b/inner",
            "b- (b-) file 0",
            "excluded link",
        ]
    );
}

#[test]
fn a_folder_that_cannot_be_listed_is_told_and_the_walk_goes_on() {
    if is_root() {
        // Root may list everything; the run without rights proves this.
        return;
    }
    let tmp = sample();
    fs::set_permissions(tmp.path().join("b"), fs::Permissions::from_mode(0o000)).unwrap();
    let all = told(tmp.path(), None, Filter::default(), None);
    fs::set_permissions(tmp.path().join("b"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(
        all,
        [
            "a (a) file 1",
            "b (b) dir",
            "failed b denied",
            "b- (b-) file 0",
            "link (link) link b"
        ]
    );
    fs::set_permissions(tmp.path(), fs::Permissions::from_mode(0o300)).unwrap();
    let all = told(tmp.path(), None, Filter::default(), Some("p"));
    fs::set_permissions(tmp.path(), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(all, ["top p", "failed p denied"]);
}

#[test]
fn fifos_and_sockets_are_told_and_never_opened() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(&*root.top(), "fifo", fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tmp.path().join("socket")).unwrap();
    let watch = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    for name in ["fifo", "socket"] {
        let flags = inotify::WatchFlags::OPEN;
        inotify::add_watch(&watch, tmp.path().join(name), flags).unwrap();
    }
    let all = told(tmp.path(), None, Filter::default(), None);
    assert_eq!(all, ["fifo (fifo) special", "socket (socket) special"]);
    let mut buffer = [MaybeUninit::uninit(); 512];
    let opened = inotify::Reader::new(&watch, &mut buffer).next().map(|_| ());
    assert_eq!(
        opened,
        Err(rustix::io::Errno::AGAIN),
        "something was opened"
    );
}

#[test]
fn what_vanishes_and_what_is_swapped_while_it_is_listed_is_told() {
    let tmp = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::write(tmp.path().join(name), "").unwrap();
    }
    let mut walk = Walk::new(root(tmp.path()), None, Filter::default(), None);
    assert!(matches!(walk.next(), Some(Found::Entry { .. })));
    fs::remove_file(tmp.path().join("b")).unwrap();
    let Some(Found::Failed { path, error }) = walk.next() else {
        panic!("b was told")
    };
    assert_eq!((&path[..], error.kind), (&b"b"[..], ErrorKind::NotFound));
    assert!(matches!(walk.next(), Some(Found::Entry { .. })));
    assert_eq!(walk.next(), None);
    assert_eq!(walk.next(), None);
}

#[test]
fn a_folder_swapped_for_another_while_it_was_closed_is_not_gone_on_with() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let deep = format!("t{}", "/d".repeat(100));
    root.make_dirs(&rel(&deep)).unwrap();
    fs::write(tmp.path().join("t/z"), "").unwrap();
    let mut walk = Walk::new(Arc::clone(&root), None, Filter::default(), None);
    for _ in 0..101 {
        assert!(matches!(walk.next(), Some(Found::Entry { .. })));
    }
    fs::rename(tmp.path().join("t"), tmp.path().join("old")).unwrap();
    fs::create_dir(tmp.path().join("t")).unwrap();
    fs::write(tmp.path().join("t/z"), "secret").unwrap();
    let rest: Vec<_> = walk.collect();
    assert!(
        !rest.iter().any(|f| matches!(f, Found::Entry { .. })),
        "{rest:?}"
    );
    assert!(rest.iter().any(
        |f| matches!(f, Found::Failed { error, .. } if error.kind == ErrorKind::SourceChanged)
    ));
}
