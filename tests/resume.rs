//! Killed at any point, both ways: never a wrong file under a final name, and the next run goes on.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

#[path = "support/direct.rs"]
mod direct;
mod support;
#[path = "support/tree.rs"]
mod tree;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use direct::{Told, job, run};
use support::sshd::{Sshd, children_of};
use support::{agent_binary, temp_dir};
use transload::backend::tcp::Tcp;
use transload::model::error::ErrorKind;
use transload::model::job::JobSpec;
use transload::model::location::Location;
use transload::model::units::Rate;

fn local(path: &Path) -> Location {
    Location::Local(path.as_os_str().as_bytes().to_vec())
}

fn sample(dir: &Path) -> PathBuf {
    let source = dir.join("src");
    fs::create_dir_all(source.join("sub")).unwrap();
    for n in 0..300 {
        fs::write(
            source.join(format!("sub/small-{n}")),
            tree::noise(n * 97, n as u64),
        )
        .unwrap();
    }
    fs::write(source.join("large-1"), tree::noise(40_000_000, 1)).unwrap();
    fs::write(source.join("large-2"), tree::noise(9_000_001, 2)).unwrap();
    source
}

/// Whatever has its final name is whole and right.
fn assert_whole(source: &Path, to: &Path) {
    let want = tree::read(source);
    for (name, entry) in tree::read(to) {
        if entry.kind == "file" && !name.starts_with(b".transload-") {
            assert!(
                want[&name].content == entry.content,
                "{}",
                String::from_utf8_lossy(&name)
            );
        }
    }
}

/// Kills with signal 9.
fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
}

/// Returns the processes below `root` whose command line holds `word`.
fn below(root: u32, word: &str) -> Vec<u32> {
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        for child in children_of(pid) {
            let line = fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&line).contains(word) {
                found.push(child);
            }
            open.push(child);
        }
    }
    found
}

/// Starts a job, waits until so many bytes have passed, and kills what `victim` finds.
fn interrupted(
    spec: &JobSpec,
    bytes: u64,
    victim: &(dyn Fn() -> Vec<u32> + Sync),
) -> Result<(), ErrorKind> {
    let told = Told::default();
    // Slow enough that the point is met, fast enough that the test is.
    told.limit
        .0
        .store(200 << 20, std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let until = Instant::now() + Duration::from_secs(30);
            while told
                .counters
                .snapshot()
                .wire_bytes
                .max(told.counters.snapshot().bytes_done)
                < bytes
            {
                if Instant::now() > until {
                    return;
                }
                std::thread::yield_now();
            }
            victim().into_iter().for_each(kill);
        });
        let result = run(&Tcp, spec, &told).map(|_| ()).map_err(|e| e.kind);
        killer.join().unwrap();
        result
    })
}

fn kill_at_many_points(push: bool, word: &'static str) {
    let (server, dir) = (
        Sshd::setup().agent_in_path(agent_binary()).start(),
        temp_dir(),
    );
    let source = sample(dir.path());
    let mut stopped = 0;
    for n in 0..20 {
        let to = dir.path().join(format!("to-{n}"));
        let mut spec = if push {
            job("tcp", vec![local(&source)], server.location(&to))
        } else {
            job("tcp", vec![server.location(&source)], local(&to))
        };
        spec.settings.ssh = server.settings();
        spec.settings.limit = Some(Rate(1 << 30));
        let ours = std::process::id();
        let victim = || {
            // Other tests of this process have an ssh of their own.
            match word {
                "serve" => below(server.pid(), word),
                _ => below(ours, server.config().to_str().unwrap()),
            }
        };
        let bytes = 1 + n * 2_400_000;
        match interrupted(&spec, bytes, &victim) {
            Ok(()) => {}
            Err(kind) => {
                assert_eq!(kind, ErrorKind::Disconnected);
                stopped += 1;
            }
        }
        if to.exists() {
            assert_whole(&source, &to);
        }
        spec.resume = true;
        let told = Told::default();
        run(&Tcp, &spec, &told).unwrap();
        tree::assert_same(&source, &to);
        fs::remove_dir_all(&to).unwrap();
    }
    assert!(stopped >= 10, "only {stopped} of 20 runs were stopped");
}

#[test]
fn a_push_whose_agent_is_killed_goes_on() {
    kill_at_many_points(true, "serve");
}

#[test]
fn a_pull_whose_agent_is_killed_goes_on() {
    kill_at_many_points(false, "serve");
}

#[test]
fn a_push_whose_ssh_is_killed_goes_on() {
    kill_at_many_points(true, "ssh");
}

#[test]
fn a_large_file_goes_on_within_and_what_is_there_is_checked() {
    let (server, dir) = (
        Sshd::setup().agent_in_path(agent_binary()).start(),
        temp_dir(),
    );
    let source = dir.path().join("big");
    fs::write(&source, tree::noise(60_000_000, 5)).unwrap();
    let to = dir.path().join("to");
    fs::create_dir(&to).unwrap();
    let mut spec = job("tcp", vec![local(&source)], server.location(&to));
    spec.settings.ssh = server.settings();
    let victim = || below(server.pid(), "serve");
    assert!(interrupted(&spec, 45_000_000, &victim).is_err());
    // Damage in the middle of what arrived: found, and only that block is sent again.
    let staging = fs::read_dir(&to).unwrap().next().unwrap().unwrap().path();
    let part = fs::read_dir(staging.join("large"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&part).unwrap();
    bytes[5_000_000] ^= 1;
    fs::write(&part, bytes).unwrap();
    spec.resume = true;
    let told = Told::default();
    let (tally, _) = run(&Tcp, &spec, &told).unwrap();
    assert_eq!(tally.verified, 1);
    assert_eq!(
        fs::read(to.join("big")).unwrap(),
        fs::read(&source).unwrap()
    );
    let sent = told.counters.snapshot().wire_bytes;
    assert!(sent < 40_000_000, "{sent} bytes were sent again");
    assert_eq!(
        fs::read_dir(&to).unwrap().count(),
        1,
        "the staging folder was left"
    );
}

#[test]
fn another_version_of_a_file_is_never_spliced_onto_the_old_part() {
    let (server, dir) = (
        Sshd::setup().agent_in_path(agent_binary()).start(),
        temp_dir(),
    );
    let source = dir.path().join("big");
    fs::write(&source, tree::noise(60_000_000, 5)).unwrap();
    let to = dir.path().join("to");
    fs::create_dir(&to).unwrap();
    let mut spec = job("tcp", vec![local(&source)], server.location(&to));
    spec.settings.ssh = server.settings();
    let victim = || below(server.pid(), "serve");
    assert!(interrupted(&spec, 30_000_000, &victim).is_err());
    fs::write(&source, tree::noise(60_000_000, 6)).unwrap();
    spec.resume = true;
    run(&Tcp, &spec, &Told::default()).unwrap();
    assert_eq!(
        fs::read(to.join("big")).unwrap(),
        fs::read(&source).unwrap()
    );
}
