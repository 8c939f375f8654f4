//! Killed, on a full disk, on a failing disk: profiles and history are the old or the new, whole,
//! and what was acknowledged is there.
//!
//! `strace` stops or fails one system call at a time of a helper, which is this test program
//! itself; every call that the saving makes has its turn.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use transload::model::error::{Error, ErrorKind};
use transload::model::job::{Consent, JobId, JobSpec};
use transload::model::location::Location;
use transload::model::profile::{Profile, ProfileId, Settings};
use transload::model::progress::RunState;
use transload::store::dirs::Dirs;
use transload::store::history::{History, JobRecord, Owner};
use transload::store::profiles::{Entry, Profiles};

/// Tells the helper that it is one, and where to work.
const HELPER: &str = "TRANSLOAD_TEST_FAULTS";
/// Looking at this name says that from here on faults count.
const BEGIN: &str = "/transload-test-begin";
/// The calls that change something on disk or open what does.
const CALLS: [&str; 12] = [
    "openat",
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "ftruncate",
    "unlink",
    "unlinkat",
    "mkdir",
];

/// What a helper saw of a failed call; it is the last thing that it writes.
const SEEN: &str = "seen";

fn strace() -> Command {
    let mut command = Command::new("strace");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// Runs a helper test of this program under strace.
fn run(helper: &str, top: &Path, inject: Option<&str>, log: &Path) {
    let mut command = strace();
    command.arg("-f").arg("-o").arg(log);
    let calls: Vec<_> = CALLS.iter().map(|call| format!("?{call}")).collect();
    command
        .arg("-e")
        .arg(format!("trace={},?statx,?newfstatat", calls.join(",")));
    if let Some(inject) = inject {
        command.arg("-e").arg(format!("inject={inject}"));
    }
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", helper, "--nocapture", "--test-threads=1"])
        // cargo's list of folders would be searched call by call.
        .env_remove("LD_LIBRARY_PATH")
        .env(HELPER, top);
    let status = command.status();
    assert!(
        status.is_ok(),
        "strace does not run; install the Debian package strace"
    );
}

/// Returns for each call how often it was made before faults count and after, by the helper's
/// own thread: strace counts for each thread by itself.
fn counted(log: &Path) -> BTreeMap<&'static str, (usize, usize)> {
    let text = String::from_utf8_lossy(&fs::read(log).unwrap()).into_owned();
    let begin = text.lines().position(|line| line.contains(BEGIN));
    let begin = begin.expect("strace saw the helper begin; may this user trace processes?");
    let thread = text
        .lines()
        .nth(begin)
        .and_then(|line| line.split(' ').next())
        .unwrap();
    let mut counts = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let Some(rest) = line.strip_prefix(thread) else {
            continue;
        };
        let Some(call) = CALLS.iter().find(|call| {
            rest.trim_start()
                .strip_prefix(**call)
                .is_some_and(|rest| rest.starts_with('('))
        }) else {
            continue;
        };
        let (before, after) = counts.entry(*call).or_insert((0, 0));
        *if number < begin { before } else { after } += 1;
    }
    counts
}

/// Runs the helper once for each call that it makes, with that call killed, and once with it
/// failing; `check` looks at what is left.
fn with_every_fault(helper: &str, set_up: &dyn Fn(&Path), check: &dyn Fn(&Path, &str)) {
    let log_dir = tempfile::tempdir().unwrap();
    let log = log_dir.path().join("log");
    let fresh = || {
        let top = tempfile::tempdir().unwrap();
        set_up(top.path());
        top
    };
    let top = fresh();
    run(helper, top.path(), None, &log);
    assert!(
        top.path().join(SEEN).exists(),
        "the helper runs without faults"
    );
    let counts = counted(&log);
    assert!(counts.len() >= 3, "{counts:?}");
    let mut faults = 0;
    for (call, (before, after)) in counts {
        let error = match call {
            "fsync" | "fdatasync" => "error=EIO",
            _ => "error=ENOSPC",
        };
        for number in before + 1..=before + after {
            for fault in ["signal=KILL", error] {
                let fault = format!("{call}:{fault}:when={number}");
                let top = fresh();
                run(helper, top.path(), Some(&fault), &log);
                let told = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
                let sign = if fault.contains("KILL") {
                    "killed by SIGKILL"
                } else {
                    "(INJECTED)"
                };
                let is_late = told
                    .find(BEGIN)
                    .is_some_and(|begin| told[begin..].contains(sign));
                assert!(is_late, "{fault} did not happen where it should:\n{told}");
                check(top.path(), &fault);
                faults += 1;
            }
        }
    }
    println!("{helper}: {faults} faults");
}

/// Says that faults count from here on.
fn begin() {
    // strace counts for each thread by itself, and the fault must not hit the thread that prints
    // the test's name: it makes fewer of these calls than this.
    for _ in 0..300 {
        fs::File::create("/dev/null")
            .and_then(|mut null| null.write_all(b"x"))
            .unwrap();
    }
    assert!(fs::symlink_metadata(BEGIN).is_err());
}

fn helper_top() -> Option<PathBuf> {
    std::env::var_os(HELPER).map(PathBuf::from)
}

fn saw(top: &Path, what: &str) {
    // Made beforehand, so that the disk's faults do not hide what they did.
    fs::write(top.join(SEEN), what).unwrap();
}

fn profile(notes: String) -> Profile {
    Profile {
        id: ProfileId("0123abcd".into()),
        name: "Photos".into(),
        notes,
        destinations: vec![Location::Local(b"/b".to_vec())],
        ..Profile::default()
    }
}

fn old_profile() -> Profile {
    profile("old ".repeat(2000))
}

fn new_profile() -> Profile {
    Profile {
        name: "Photos and more".into(),
        ..profile("new ".repeat(3000))
    }
}

fn words(error: &Error) -> String {
    format!("{:?}: {error}", error.kind)
}

#[test]
fn helper_saves_a_profile() {
    let Some(top) = helper_top() else { return };
    let mut profiles = Profiles::open(&Dirs::below(&top).unwrap()).unwrap();
    begin();
    let saved = profiles.save(&new_profile());
    saw(
        &top,
        &saved.map_or_else(|e| words(&e), |()| "saved".to_owned()),
    );
}

#[test]
fn a_profile_is_the_old_or_the_new_one_whatever_stops_the_saving() {
    let set_up = |top: &Path| {
        let dirs = Dirs::below(top).unwrap();
        Profiles::open(&dirs).unwrap().save(&old_profile()).unwrap();
    };
    let check = |top: &Path, fault: &str| {
        let mut profiles = Profiles::open(&Dirs::below(top).unwrap()).unwrap();
        let entries = profiles.list().unwrap();
        let [Entry::Good(found)] = entries.as_slice() else {
            panic!("{fault}: {entries:?}");
        };
        // The name of the file may lag behind; the profile is one of the two.
        assert!(
            [old_profile(), new_profile()].contains(found),
            "{fault}: {found:?}"
        );
        let seen = fs::read_to_string(top.join(SEEN)).unwrap_or_default();
        if seen == "saved" {
            assert_eq!(*found, new_profile(), "{fault}");
        }
        if fault.contains("ENOSPC") && !seen.is_empty() && seen != "saved" {
            assert!(seen.starts_with("NoSpace"), "{fault}: {seen}");
        }
        profiles.save(&new_profile()).unwrap();
        assert_eq!(
            profiles.list().unwrap(),
            [Entry::Good(new_profile())],
            "{fault}"
        );
    };
    with_every_fault("helper_saves_a_profile", &set_up, &check);
}

fn job(number: u8) -> JobRecord {
    JobRecord {
        spec: Arc::new(JobSpec {
            id: JobId([number; 16]),
            title: format!("job {number}"),
            profile: None,
            sources: vec![Location::Local(b"/a".to_vec())],
            destination: Location::Local(b"/b".to_vec()),
            settings: Settings::default(),
            dry_run: false,
            attended: false,
            consent: Consent::default(),
            resume: false,
        }),
        state: RunState::Queued,
        plan: None,
        end: None,
        owner: Owner::default(),
    }
}

/// Jobs that the helper queues after the one that is there already.
const JOBS: std::ops::Range<u8> = 2..6;

#[test]
fn helper_queues_jobs() {
    let Some(top) = helper_top() else { return };
    let mut acknowledged = fs::File::create(top.join("acknowledged")).unwrap();
    begin();
    let queued = History::open(&top.join("history.sqlite")).and_then(|mut history| {
        for number in JOBS {
            history.save_job(&job(number))?;
            let _ = acknowledged.write_all(&[number]);
        }
        Ok(())
    });
    saw(
        &top,
        &queued.map_or_else(|e| words(&e), |()| "saved".to_owned()),
    );
}

#[test]
fn an_acknowledged_job_is_there_whatever_stops_the_history() {
    let set_up = |top: &Path| {
        let mut history = History::open(&top.join("history.sqlite")).unwrap();
        history.save_job(&job(1)).unwrap();
    };
    let check = |top: &Path, fault: &str| {
        let mut history = History::open(&top.join("history.sqlite")).unwrap();
        assert!(
            history.notes().is_empty(),
            "{fault}: the file is not damaged"
        );
        let jobs = history.jobs(100).unwrap();
        assert!(history.notes().is_empty(), "{fault}");
        let acknowledged = fs::read(top.join("acknowledged")).unwrap_or_default();
        let found: Vec<u8> = jobs.iter().map(|job| job.record.spec.id.0[0]).collect();
        assert_eq!(found[0], 1, "{fault}");
        for number in &acknowledged {
            assert!(
                found.contains(number),
                "{fault}: job {number} was acknowledged, has {found:?}"
            );
        }
        for (number, job_found) in found.iter().zip(&jobs) {
            assert_eq!(job_found.record, job(*number), "{fault}");
        }
        let seen = fs::read_to_string(top.join(SEEN)).unwrap_or_default();
        if fault.contains("error") && !seen.is_empty() && seen != "saved" {
            let kinds = [ErrorKind::NoSpace, ErrorKind::Io, ErrorKind::Denied];
            let is_clear = kinds
                .iter()
                .any(|kind| seen.starts_with(&format!("{kind:?}: ")));
            assert!(is_clear, "{fault}: {seen}");
        }
        // It recovers: the next job is taken.
        history.save_job(&job(9)).unwrap();
        assert!(history.job(JobId([9; 16])).unwrap().is_some(), "{fault}");
    };
    with_every_fault("helper_queues_jobs", &set_up, &check);
}

#[test]
fn helper_goes_on_after_a_failed_fsync() {
    let Some(top) = helper_top() else { return };
    let mut history = History::open(&top.join("history.sqlite")).unwrap();
    begin();
    let first = history.save_job(&job(1));
    let second = history.save_job(&job(2));
    let seen = [first, second].map(|saved| match saved {
        Ok(()) => "saved".to_owned(),
        Err(error) => error.hint.unwrap_or_default(),
    });
    saw(&top, &seen.join("\n"));
}

#[test]
fn after_a_failed_fsync_nothing_more_is_promised() {
    let top = tempfile::tempdir().unwrap();
    let log = top.path().join("log");
    drop(History::open(&top.path().join("history.sqlite")).unwrap());
    run(
        "helper_goes_on_after_a_failed_fsync",
        top.path(),
        None,
        &log,
    );
    assert_eq!(
        fs::read_to_string(top.path().join(SEEN)).unwrap(),
        "saved\nsaved"
    );
    let counts = counted(&log);
    let call = if counts.contains_key("fdatasync") {
        "fdatasync"
    } else {
        "fsync"
    };
    let fault = format!("{call}:error=EIO:when={}", counts[call].0 + 1);
    run(
        "helper_goes_on_after_a_failed_fsync",
        top.path(),
        Some(&fault),
        &log,
    );
    let seen = fs::read_to_string(top.path().join(SEEN)).unwrap();
    let hints: Vec<_> = seen.lines().collect();
    assert_eq!(hints.len(), 2, "{seen}");
    assert!(
        hints
            .iter()
            .all(|hint| hint.contains("nothing more is kept")),
        "{seen}"
    );
}
