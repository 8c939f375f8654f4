//! The methods that need nothing of ours on the other side, rsync and sftp, over a real sshd, and how
//! `auto` comes to them.
//! Long because each promise of the method is tested in both directions.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

#[path = "support/direct.rs"]
mod direct;
mod support;
#[path = "support/tree.rs"]
mod tree;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use direct::{Told, job, plan, run};
use support::sshd::Sshd;
use support::temp_dir;
use support::user::User;
use transload::backend::by_id;
use transload::backend::contract::Backend;
use transload::model::digest::Algorithm;
use transload::model::entry::{Action, Reason};
use transload::model::error::ErrorKind;
use transload::model::job::JobSpec;
use transload::model::location::Location;
use transload::model::outcome::Route;
use transload::model::profile::Preserve;
use transload::model::rules::{Conflict, Rule, RuleVerb};
use transload::model::verdict::{Verdict, When};

fn local(path: &Path) -> Location {
    Location::Local(path.as_os_str().as_bytes().to_vec())
}

fn method(id: &str) -> &'static dyn Backend {
    support::tool("rsync", "rsync");
    by_id(id).expect("it is in the registry")
}

fn spec(server: &Sshd, id: &str, sources: Vec<Location>, destination: Location) -> JobSpec {
    let mut spec = job(id, sources, destination);
    spec.settings.ssh = server.settings();
    spec
}

/// Reads a tree as a method keeps it: sftp has whole seconds; of a link rsync sets the time only
/// where it is in another second.
fn kept(root: &Path, id: &str) -> BTreeMap<Vec<u8>, tree::Entry> {
    let mut all = tree::read(root);
    let coarse = |entry: &&mut tree::Entry| id == "sftp" || entry.kind == "link";
    let entries = all.values_mut().filter(coarse);
    entries.for_each(|entry| entry.mtime.1 = 0);
    all
}

#[track_caller]
fn assert_same(left: &Path, right: &Path, id: &str) {
    let (left, right) = (kept(left, id), kept(right, id));
    for (name, entry) in &left {
        let shown = String::from_utf8_lossy(name);
        let other = right
            .get(name)
            .unwrap_or_else(|| panic!("{id}: {shown} is missing"));
        assert_eq!(
            (entry.kind, entry.mode, entry.mtime),
            (other.kind, other.mode, other.mtime),
            "{id}: {shown}"
        );
        assert!(
            entry.content == other.content,
            "{id}: {shown} has other bytes"
        );
    }
    assert_eq!(left.len(), right.len(), "{id}: something is extra");
}

fn varied_there_and_back(id: &str) {
    let (server, dir) = (Sshd::start(), temp_dir());
    let (source, there, back) = (
        dir.path().join("src"),
        dir.path().join("there"),
        dir.path().join("back"),
    );
    for folder in [&source, &there, &back] {
        fs::create_dir(folder).unwrap();
    }
    tree::varied(&source);
    let files = kept(&source, id)
        .values()
        .filter(|e| e.kind == "file")
        .count() as u64;
    let push = spec(&server, id, vec![local(&source)], server.location(&there));
    let pull = spec(
        &server,
        id,
        vec![server.location(there.join("src"))],
        local(&back),
    );
    for (way, to) in [(&push, &there), (&pull, &back)] {
        let told = Told::default();
        let (tally, route) = run(method(id), way, &told).unwrap();
        assert_eq!(route, Route::Ssh);
        let arrived = tally.verified + tally.unchecked;
        assert_eq!(
            (arrived, tally.failed, tally.skipped),
            (files, 0, 0),
            "{id}"
        );
        // rsync's own digest; sftp has none and says so.
        assert_eq!(tally.verified, if id == "rsync" { files } else { 0 });
        assert_same(&source, &to.join("src"), id);
        assert_eq!(
            fs::read_dir(to).unwrap().count(),
            1,
            "something was left beside it"
        );
        let progress = told.counters.snapshot();
        assert!(progress.listed && progress.bytes_done == progress.bytes_total);
    }
    for way in [&push, &pull] {
        let told = Told::default();
        let totals = plan(method(id), way, &told).unwrap();
        assert_eq!(
            (totals.create, totals.update, totals.bytes),
            (0, 0, 0),
            "{id}"
        );
        let told = Told::default();
        let (tally, _) = run(method(id), way, &told).unwrap();
        assert_eq!(
            (tally.skipped, tally.verified, tally.failed),
            (files, 0, 0),
            "{id}"
        );
        assert_eq!(told.counters.snapshot().bytes_done, 0, "{id}");
    }
}

#[test]
fn a_varied_tree_goes_by_rsync_and_comes_back_the_same_and_a_second_run_sends_nothing() {
    varied_there_and_back("rsync");
}

#[test]
fn a_varied_tree_goes_by_sftp_and_comes_back_the_same_and_a_second_run_sends_nothing() {
    varied_there_and_back("sftp");
}

const BOTH: [&str; 2] = ["rsync", "sftp"];

#[test]
fn a_destination_that_is_not_there_is_the_new_name_and_a_slash_means_into() {
    let server = Sshd::start();
    for id in BOTH {
        let dir = temp_dir();
        let source = dir.path().join("src");
        fs::create_dir(&source).unwrap();
        fs::write(source.join("a"), b"1").unwrap();
        let at = |tail: &str| Location::Ssh {
            host: server.host(),
            path: [dir.path().as_os_str().as_bytes(), tail.as_bytes()].concat(),
        };
        let go = |sources: Vec<Location>, to: Location, contents: bool| {
            let mut spec = spec(&server, id, sources, to);
            spec.settings.contents = contents;
            let told = Told::default();
            let (tally, _) = run(method(id), &spec, &told).unwrap();
            assert_eq!(tally.failed, 0, "{id}: {:?}", told.rows.lock().unwrap());
            told
        };
        let told = go(vec![local(&source)], at("/x/new"), false);
        assert!(told.verdict(b"new/a").is_some());
        go(vec![local(&source)], at("/into/"), false);
        go(vec![local(&source)], at("/contents"), true);
        let told = go(vec![local(&source.join("a"))], at("/into/b"), false);
        assert!(told.verdict(b"b").is_some());
        go(vec![at("/src")], local(&dir.path().join("y/pulled")), false);
        go(vec![at("/src/")], local(&dir.path().join("y/")), false);
        go(vec![at("/src/.")], local(&dir.path().join("y/dot/")), false);
        go(vec![at("/src")], local(&dir.path().join("z")), true);
        go(vec![at("/src/a")], local(&dir.path().join("file")), false);
        fs::write(server.home().join("in home"), b"1").unwrap();
        let home = |path: &str| Location::Ssh {
            host: server.host(),
            path: path.into(),
        };
        go(vec![home("in home")], local(&dir.path().join("h")), false);
        go(
            vec![local(&source)],
            home(&format!("way down {id}/")),
            false,
        );
        for path in [
            "x/new/a",
            "into/src/a",
            "contents/a",
            "into/b",
            "y/pulled/a",
            "y/src/a",
            "y/dot/src/a",
            "z/a",
            "file",
            "h",
        ] {
            let got =
                fs::read(dir.path().join(path)).unwrap_or_else(|e| panic!("{id} {path}: {e}"));
            assert_eq!(got, b"1", "{id}: {path}");
        }
        let below = server.home().join(format!("way down {id}/src/a"));
        assert_eq!(fs::read(below).unwrap(), b"1");
    }
}

#[test]
fn single_files_with_odd_names_are_those_files_and_no_others() {
    let server = Sshd::start();
    for id in BOTH {
        let dir = temp_dir();
        let (source, there, back) = (
            dir.path().join("src"),
            dir.path().join("there*"),
            dir.path().join("back"),
        );
        for folder in [&source, &there, &back, &dir.path().join("thereX")] {
            fs::create_dir(folder).unwrap();
        }
        let mut names = tree::odd_names();
        if id == "rsync" {
            // With a backslash and a wildcard in one name it says that it cannot.
            names.retain(|n| !(n.contains(&b'\\') && n.contains(&b'*')));
        }
        for name in &names {
            fs::write(source.join(OsStr::from_bytes(name)), name).unwrap();
        }
        let all = |top: &Path, far: bool| -> Vec<Location> {
            let at = |name: &Vec<u8>| top.join(OsStr::from_bytes(name));
            let place = |name| match far {
                true => server.location(at(name)),
                false => local(&at(name)),
            };
            names.iter().map(place).collect()
        };
        let push = spec(&server, id, all(&source, false), server.location(&there));
        let told = Told::default();
        let (tally, _) = run(method(id), &push, &told).unwrap();
        assert_eq!(tally.failed, 0, "{id}: {:?}", told.rows.lock().unwrap());
        assert_same(&source, &there, id);
        let pull = spec(&server, id, all(&there, true), local(&back));
        let (tally, _) = run(method(id), &pull, &Told::default()).unwrap();
        assert_eq!(tally.failed, 0);
        assert_same(&source, &back, id);
        assert!(
            fs::read_dir(dir.path().join("thereX"))
                .unwrap()
                .next()
                .is_none()
        );
    }
}

#[test]
fn conflict_rules_decide_as_their_names_say() {
    let server = Sshd::start();
    for id in BOTH {
        let rules = Conflict::ALL.into_iter().filter(|rule| {
            let mut spec = spec(
                &server,
                id,
                vec![local(Path::new("/x"))],
                server.location("/y"),
            );
            spec.settings.conflict = *rule;
            *rule != Conflict::Ask && method(id).supports(&spec).is_ok()
        });
        for rule in rules {
            for far in [true, false] {
                let dir = temp_dir();
                let (source, there) = (dir.path().join("src"), dir.path().join("there"));
                fs::create_dir(&source).unwrap();
                fs::create_dir(&there).unwrap();
                for (name, new, new_time, old, old_time) in [
                    ("newer", "new", 2_000, "older", 1_000),
                    ("older", "newer", 1_000, "new", 2_000),
                    ("same", "same", 1_000, "same", 1_000),
                ] {
                    tree::file(&source.join(name), new.as_bytes(), 0o644, new_time, 0);
                    tree::file(&there.join(name), old.as_bytes(), 0o644, old_time, 0);
                }
                let (from, to) = match far {
                    true => (local(&source), server.location(&there)),
                    false => (server.location(&source), local(&there)),
                };
                let mut spec = spec(&server, id, vec![from], to);
                spec.settings.contents = true;
                spec.settings.conflict = rule;
                let told = Told::default();
                let (tally, _) = run(method(id), &spec, &told).unwrap();
                let got = ["newer", "older"].map(|n| fs::read_to_string(there.join(n)).unwrap());
                let want = match rule {
                    Conflict::Differs | Conflict::Overwrite | Conflict::Resume => ["new", "newer"],
                    Conflict::Newer => ["new", "new"],
                    Conflict::Larger => ["older", "newer"],
                    _ => ["older", "new"],
                };
                assert_eq!(got, want, "{id} {rule:?} {far}");
                let beside = there.join("newer (1)").exists();
                assert_eq!(beside, rule == Conflict::Rename, "{id} {rule:?}");
                let failed = if rule == Conflict::Fail { 2 } else { 0 };
                assert_eq!(tally.failed, failed, "{id} {rule:?}");
                let rows = told.rows.lock().unwrap().len();
                assert_eq!(rows, 3, "{id} {rule:?}: a row for every file");
            }
        }
    }
}

#[test]
fn filters_links_modes_and_times_are_left_out_or_kept_as_asked() {
    let server = Sshd::start();
    for id in BOTH {
        for far in [true, false] {
            let dir = temp_dir();
            let (source, there) = (dir.path().join("src"), dir.path().join("there"));
            for folder in ["build", "sub/build", "a/x/b", "a/b", "cache"] {
                fs::create_dir_all(source.join(folder)).unwrap();
                fs::write(source.join(folder).join("f"), b"1").unwrap();
            }
            tree::file(&source.join("run.log"), b"1", 0o640, 1_000, 0);
            tree::file(&source.join("keep.log"), b"1", 0o755, 1_000, 0);
            symlink("keep.log", source.join("link")).unwrap();
            let fifo = source.join("fifo");
            let mkfifo = support::tool("mkfifo", "coreutils");
            assert!(
                std::process::Command::new(mkfifo)
                    .arg(&fifo)
                    .status()
                    .unwrap()
                    .success()
            );
            let (from, to) = match far {
                true => (local(&source), server.location(&there)),
                false => (server.location(&source), local(&there)),
            };
            let mut spec = spec(&server, id, vec![from], to);
            spec.settings.contents = true;
            spec.settings.rules = [
                (RuleVerb::Include, "keep.log"),
                (RuleVerb::Exclude, "*.log"),
                (RuleVerb::Exclude, "/build/"),
                (RuleVerb::Exclude, "a/**/b/"),
                (RuleVerb::Exclude, "cache/*"),
            ]
            .map(|(verb, pattern)| Rule {
                verb,
                pattern: pattern.into(),
            })
            .to_vec();
            spec.settings.preserve = Preserve {
                links: false,
                times: false,
                permissions: false,
            };
            let told = Told::default();
            let (tally, _) = run(method(id), &spec, &told).unwrap();
            let names: Vec<String> = tree::read(&there)
                .into_keys()
                .map(|n| String::from_utf8(n).unwrap())
                .collect();
            assert_eq!(
                names,
                [
                    "a",
                    "a/x",
                    "cache",
                    "keep.log",
                    "sub",
                    "sub/build",
                    "sub/build/f"
                ]
            );
            assert_eq!(tally.failed, 0);
            assert!(
                matches!(told.verdict(b"fifo"), Some(Verdict::Skipped(_))),
                "{id}"
            );
            let meta = fs::metadata(there.join("keep.log")).unwrap();
            assert!(meta.modified().unwrap().elapsed().unwrap() < Duration::from_secs(3600));
        }
    }
}

#[test]
fn a_dry_run_tells_every_step_and_writes_nothing() {
    let server = Sshd::start();
    for id in BOTH {
        for far in [true, false] {
            let dir = temp_dir();
            let (source, there) = (dir.path().join("src"), dir.path().join("x/y/there"));
            fs::create_dir(&source).unwrap();
            tree::file(&source.join("a"), b"12345", 0o644, 1_000, 0);
            let (from, to) = match far {
                true => (local(&source), server.location(&there)),
                false => (server.location(&source), local(&there)),
            };
            let told = Told::default();
            let totals = plan(method(id), &spec(&server, id, vec![from], to), &told).unwrap();
            assert_eq!((totals.create, totals.bytes), (2, 5), "{id} {far}");
            assert!(!dir.path().join("x").exists(), "{id} {far}");
            let steps = told.steps.lock().unwrap();
            let step = steps.iter().find(|s| s.path == b"there/a").unwrap();
            assert_eq!(
                (step.action, step.reason, step.bytes),
                (Action::Create, Reason::Missing, 5)
            );
            assert!(told.rows.lock().unwrap().is_empty());
        }
    }
}

#[test]
fn what_cannot_be_read_or_written_is_a_row_with_its_reason_and_the_rest_arrives() {
    let server = Sshd::start();
    for id in BOTH {
        let dir = temp_dir();
        let (source, there) = (dir.path().join("src"), dir.path().join("there"));
        fs::create_dir(&source).unwrap();
        fs::create_dir_all(there.join("folder/not empty")).unwrap();
        fs::write(source.join("folder"), b"a file here").unwrap();
        fs::write(source.join("good"), b"1").unwrap();
        let sources = vec![
            local(&source.join("folder")),
            local(&dir.path().join("gone")),
            local(&source.join("good")),
        ];
        let told = Told::default();
        let push = spec(&server, id, sources, server.location(&there));
        let (tally, _) = run(method(id), &push, &told).unwrap();
        assert_eq!(tally.failed, 2, "{id}: {:?}", told.rows.lock().unwrap());
        assert_eq!(fs::read(there.join("good")).unwrap(), b"1");
        assert!(
            matches!(told.verdict(b"folder"), Some(Verdict::Failed(_))),
            "{id}"
        );
        // From there: one is missing.
        let sources = vec![
            server.location(dir.path().join("gone")),
            server.location(source.join("good")),
        ];
        let told = Told::default();
        let back = dir.path().join("back");
        let pull = spec(&server, id, sources, local(&back));
        let (tally, _) = run(method(id), &pull, &told).unwrap();
        assert_eq!(tally.failed, 1, "{id}: {:?}", told.rows.lock().unwrap());
        assert_eq!(fs::read(back.join("good")).unwrap(), b"1");
    }
}

#[test]
fn verdicts_claim_what_was_compared_and_no_more() {
    let server = Sshd::start();
    for id in BOTH {
        let dir = temp_dir();
        let source = dir.path().join("f");
        fs::write(&source, b"abc").unwrap();
        for (algorithm, read_back) in [
            (Algorithm::None, false),
            (Algorithm::Size, false),
            (Algorithm::Md5, false),
            (Algorithm::Md5, true),
            (Algorithm::Blake3, true),
        ] {
            for far in [true, false] {
                let to = dir
                    .path()
                    .join(format!("{id}-{}-{read_back}-{far}/", algorithm.name()));
                let (from, to) = match far {
                    true => (local(&source), server.location(&to)),
                    false => (server.location(&source), local(&to)),
                };
                let mut spec = spec(&server, id, vec![from], to);
                spec.settings.verify = algorithm;
                spec.settings.read_back = read_back;
                let told = Told::default();
                if id == "rsync" && (read_back || algorithm == Algorithm::Blake3) {
                    let error = method(id).supports(&spec).unwrap_err();
                    assert_eq!(error.kind, ErrorKind::Unsupported);
                    assert!(error.hint.is_some());
                    continue;
                }
                run(method(id), &spec, &told).unwrap();
                let verdict = told.verdict(b"f").unwrap();
                match (id, algorithm, read_back) {
                    (_, Algorithm::Size, _) => assert_eq!(verdict, Verdict::SizeOnly),
                    ("rsync", Algorithm::Md5, _) | (_, _, true) => {
                        let Verdict::Verified { digest, when } = verdict else {
                            panic!("{id} {verdict:?}");
                        };
                        if algorithm == Algorithm::Md5 {
                            assert_eq!(digest.to_string(), "900150983cd24fb0d6963f7d28e17f72");
                        }
                        let want = match read_back {
                            true => When::ReadBack,
                            false => When::InFlight,
                        };
                        assert_eq!(when, want);
                    }
                    _ => assert!(
                        matches!(verdict, Verdict::Unverified(_)),
                        "{id} {verdict:?}"
                    ),
                }
            }
        }
    }
}

#[test]
fn a_cancel_ends_it_within_a_second_and_leaves_no_half_file_under_its_name() {
    let server = Sshd::start();
    for id in BOTH {
        for far in [true, false] {
            let dir = temp_dir();
            let (source, there) = (dir.path().join("big"), dir.path().join("there"));
            fs::write(&source, tree::noise(8_000_000, 1)).unwrap();
            fs::create_dir(&there).unwrap();
            let (from, to) = match far {
                true => (local(&source), server.location(&there)),
                false => (server.location(&source), local(&there)),
            };
            let spec = spec(&server, id, vec![from], to);
            let told = Told::default();
            told.limit.0.store(500_000, Relaxed);
            let ended = std::thread::scope(|scope| {
                let running = scope.spawn(|| {
                    let result = run(method(id), &spec, &told);
                    (result, Instant::now())
                });
                support::wait_until("bytes move", || told.counters.snapshot().bytes_done > 0);
                let cancelled = Instant::now();
                told.cancel.set();
                let (result, ended) = running.join().unwrap();
                assert_eq!(result.unwrap_err().kind, ErrorKind::Cancelled, "{id} {far}");
                ended - cancelled
            });
            // A second, and as much again for a busy machine.
            assert!(ended < Duration::from_secs(2), "{id} {far}: {ended:?}");
            assert!(!there.join("big").exists(), "{id} {far}");
            // It goes on, under the same id.
            let mut again = spec.clone();
            again.resume = true;
            let told = Told::default();
            run(method(id), &again, &told).unwrap();
            assert_eq!(
                fs::read(there.join("big")).unwrap(),
                fs::read(&source).unwrap()
            );
            assert_eq!(
                fs::read_dir(&there).unwrap().count(),
                1,
                "{id} {far}: parts are left"
            );
        }
    }
}

#[test]
fn a_folder_under_a_new_name_keeps_it_when_a_broken_run_goes_on() {
    let server = Sshd::start();
    for id in BOTH {
        for far in [true, false] {
            let dir = temp_dir();
            let (source, there) = (dir.path().join("src"), dir.path().join("new"));
            fs::create_dir(&source).unwrap();
            fs::write(source.join("a"), b"1").unwrap();
            fs::write(source.join("big"), tree::noise(8_000_000, 1)).unwrap();
            let (from, to) = match far {
                true => (local(&source), server.location(&there)),
                false => (server.location(&source), local(&there)),
            };
            let mut spec = spec(&server, id, vec![from], to);
            let told = Told::default();
            told.limit.0.store(500_000, Relaxed);
            std::thread::scope(|scope| {
                scope.spawn(|| run(method(id), &spec, &told).unwrap_err());
                support::wait_until("bytes move", || told.counters.snapshot().bytes_done > 1);
                told.cancel.set();
            });
            assert!(there.is_dir(), "{id} {far}");
            spec.resume = true;
            run(method(id), &spec, &Told::default()).unwrap();
            assert_same(&source, &there, id);
        }
    }
}

#[test]
fn a_host_without_rsync_or_with_an_old_or_noisy_one_says_so() {
    let dir = temp_dir();
    let source = dir.path().join("f");
    fs::write(&source, b"1").unwrap();
    let error = |server: &Sshd| {
        let push = spec(
            server,
            "rsync",
            vec![local(&source)],
            server.location("/nowhere/"),
        );
        run(method("rsync"), &push, &Told::default()).unwrap_err()
    };
    let server = Sshd::setup().without_tool("rsync").start();
    let missing = error(&server);
    assert_eq!(missing.kind, ErrorKind::Tool);
    assert!(
        missing
            .to_string()
            .contains("rsync is not installed on nas"),
        "{missing}"
    );
    let server = Sshd::start();
    server.add_program(
        "rsync",
        "#!/bin/sh\necho 'rsync  version 3.0.9  protocol version 30'\n",
    );
    let old = error(&server);
    assert_eq!(old.kind, ErrorKind::Unsupported);
    assert!(old.to_string().contains("3.0.9 is too old"), "{old}");
    let noisy = error(&Sshd::setup().noise(b"welcome\n").start());
    assert_eq!(noisy.kind, ErrorKind::Unsupported);
    assert!(noisy.to_string().contains("prints something"), "{noisy}");
    let login = error(&Sshd::setup().password_only().start());
    assert_eq!(login.kind, ErrorKind::Login, "{login}");
}

/// Copies a file by `auto` and returns the summary.
fn copied_by_auto(server: &Sshd) -> serde_json::Value {
    let user = User::new();
    let file = user.write("f", b"abc");
    let mut command = user.command();
    command
        .env("TRANSLOAD_SSH_CONFIG", server.config())
        .args(["copy", "--json"])
        .arg(&file)
        .arg(format!("nas:{}", server.home().join("copied").display()));
    let ran = support::user::Ran::new(command.output().unwrap()).ends(0);
    let copied = server.home().join("copied");
    assert_eq!(fs::read(&copied).unwrap(), b"abc");
    assert_eq!(
        fs::metadata(&copied).unwrap().permissions().mode() & 0o777,
        0o644
    );
    ran.json().last().unwrap().clone()
}

#[test]
fn auto_falls_back_to_rsync_and_says_why() {
    let summary = copied_by_auto(&Sshd::start());
    assert_eq!(summary["method"], "rsync", "{summary}");
    let why = "raw TCP needs the agent, which is not on nas and may not be uploaded";
    assert!(summary["why"].as_str().unwrap().contains(why), "{summary}");
}

#[test]
fn auto_ends_in_sftp_where_rsync_is_missing_too_and_says_why() {
    let summary = copied_by_auto(&Sshd::setup().without_tool("rsync").start());
    assert_eq!(summary["method"], "sftp", "{summary}");
    for why in [
        "raw TCP needs the agent, which is not on nas and may not be uploaded",
        "rsync is not installed on nas",
    ] {
        assert!(summary["why"].as_str().unwrap().contains(why), "{summary}");
    }
}

#[test]
fn auto_uses_sftp_for_an_account_that_may_only_move_files() {
    let only = Sshd::setup().server_line("ForceCommand internal-sftp");
    let summary = copied_by_auto(&only.start());
    assert_eq!(summary["method"], "sftp", "{summary}");
}
