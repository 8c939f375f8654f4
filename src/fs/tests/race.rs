//! Somebody swaps a folder for a link to elsewhere, over and over, while we work in it.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::{rel, root};
use crate::fs::filter::Filter;
use crate::fs::root::{Replace, Root};
use crate::fs::walk::{Found, Walk};
use crate::model::entry::FileTime;

/// How long each operation is raced.
const EACH: Duration = Duration::from_millis(250);

struct Arena {
    tmp: tempfile::TempDir,
}

impl Arena {
    fn new() -> Self {
        let tmp = tempfile::tempdir().unwrap();
        fs::create_dir_all(tmp.path().join("dest/sub")).unwrap();
        fs::create_dir_all(tmp.path().join("out/inner")).unwrap();
        fs::write(tmp.path().join("out/secret"), "secret").unwrap();
        fs::write(tmp.path().join("out/inner/secret"), "secret").unwrap();
        symlink("../out", tmp.path().join("dest/other")).unwrap();
        Self { tmp }
    }

    fn dest(&self) -> PathBuf {
        self.tmp.path().join("dest")
    }

    fn out(&self) -> PathBuf {
        self.tmp.path().join("out")
    }

    /// Runs `work` over and over until it says stop or time is up, while `dest/sub` is now a
    /// folder and now a link.
    fn race(&self, limit: Duration, mut work: impl FnMut() -> bool) -> u64 {
        let stop = AtomicBool::new(false);
        let spare = self.tmp.path().join("spare");
        let (sub, other) = (self.dest().join("sub"), self.dest().join("other"));
        std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("flipper".into())
                .spawn_scoped(scope, || {
                    while !stop.load(Ordering::Relaxed) {
                        if renameat_with(CWD, &sub, CWD, &other, RenameFlags::EXCHANGE).is_err() {
                            // One of the two was removed.
                            let _ = fs::create_dir(&spare);
                            let _ = fs::write(spare.join("f"), "");
                            let _ = fs::rename(&spare, &other);
                            let _ = symlink("../out", &sub);
                        }
                    }
                })
                .unwrap();
            let start = Instant::now();
            let mut rounds = 0;
            while start.elapsed() < limit && work() {
                rounds += 1;
            }
            stop.store(true, Ordering::Relaxed);
            rounds
        })
    }
}

/// Returns all that would show if something outside was touched.
fn traces(out: &Path) -> Vec<(String, u32, i64, i64, u64, u64)> {
    let mut all = Vec::new();
    for path in [
        out.to_owned(),
        out.join("inner"),
        out.join("secret"),
        out.join("inner/secret"),
    ] {
        let m = fs::symlink_metadata(&path).unwrap();
        let name = path.display().to_string();
        all.push((
            name,
            m.mode(),
            m.mtime(),
            m.mtime_nsec(),
            m.nlink(),
            m.size(),
        ));
    }
    for dir in [out.to_owned(), out.join("inner")] {
        for entry in fs::read_dir(dir).unwrap() {
            all.push((entry.unwrap().path().display().to_string(), 0, 0, 0, 0, 0));
        }
    }
    all.sort();
    all
}

/// The arena catches those who look first and go by path then; otherwise it would prove nothing.
#[test]
fn who_checks_a_path_and_then_uses_it_is_led_outside() {
    let arena = Arena::new();
    let (dest, out) = (arena.dest(), arena.out());
    arena.race(Duration::from_secs(60), || {
        let sub = dest.join("sub");
        if fs::canonicalize(&sub).is_ok_and(|real| real.starts_with(&dest)) {
            let _ = fs::write(sub.join("escaped"), "");
        }
        !out.join("escaped").exists()
    });
    assert!(out.join("escaped").exists(), "the harness catches nobody");
}

fn check(work: impl Fn(&Root)) {
    let arena = Arena::new();
    let before = traces(&arena.out());
    let root = root(&arena.dest());
    let rounds = arena.race(EACH, || {
        root.forget(&rel("sub"));
        work(&root);
        true
    });
    assert!(rounds > 100, "only {rounds} rounds");
    assert_eq!(traces(&arena.out()), before);
}

#[test]
fn no_operation_is_led_outside() {
    let odd = FileTime { secs: 7, nanos: 7 };
    let in_sub = |work: &dyn Fn(&crate::fs::root::Dir)| {
        let (inside, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        check(|root| match root.dir(Some(&rel("sub"))) {
            Ok(dir) => {
                work(&dir);
                inside.fetch_add(1, Ordering::Relaxed);
            }
            Err(_) => {
                refused.fetch_add(1, Ordering::Relaxed);
            }
        });
        assert!(
            inside.into_inner() > 0 && refused.into_inner() > 0,
            "nothing was flipped"
        );
    };
    in_sub(&|dir| {
        drop(dir.create_part(b"new"));
        drop(dir.open_part(b"new"));
        let _ = dir.rename_to(b"new", dir, b"secret", Replace::Yes);
    });
    in_sub(&|dir| {
        let _ = dir.make_dir(b"new", 0o777);
        let _ = dir.remove_dir(b"new");
    });
    in_sub(&|dir| {
        let _ = dir.make_link(b"x", b"new");
        let _ = dir.set_times(b"new", odd);
        let _ = dir.remove_file(b"new");
    });
    in_sub(&|dir| {
        let _ = dir.remove_file(b"secret");
        let _ = dir.remove_tree(b"inner");
    });
    in_sub(&|dir| {
        let _ = dir.set_own_meta(Some(0o700), Some(odd));
    });
    in_sub(&|dir| {
        assert!(dir.open_read(b"secret").is_err());
        assert!(
            !dir.list()
                .unwrap()
                .iter()
                .any(|(name, _)| name == b"secret")
        );
        assert!(dir.stat(b"inner").unwrap().is_none());
    });
    check(|root| {
        let top = root.top();
        let _ = top.set_times(b"sub", odd);
        let _ = top.make_dir(b"sub", 0o777);
        drop(top.create_part(b"sub"));
    });
    check(|root| {
        let _ = root.make_dirs(&rel("sub/inner/new"));
        root.forget(&rel("sub"));
        let _ = root.make_dirs(&rel("sub/secret/new"));
    });
    check(|root| {
        let _ = root.top().remove_tree(b"sub");
    });
}

#[test]
fn the_steps_for_old_kernels_are_not_led_outside() {
    check(|root| {
        if let Ok(dir) = root.dir_by_steps(&rel("sub/inner")) {
            drop(dir.create_part(b"new"));
        }
        if let Ok(dir) = root.dir_by_steps(&rel("sub")) {
            drop(dir.create_part(b"new"));
            let _ = dir.make_dir(b"inner", 0o777);
            let _ = dir.remove_file(b"new");
        }
    });
}

#[test]
fn a_walk_tells_nothing_from_outside() {
    check(|root| {
        // The walk holds its own root, on the same folder.
        let root = Arc::new(Root::open(root.path()).unwrap());
        for found in Walk::new(root, None, Filter::default(), None) {
            if let Found::Entry { entry, .. } = found {
                assert_ne!(entry.path.name(), b"secret");
            }
        }
    });
}
