//! Copies that are stopped, killed or lose their reader, and how the same command goes on.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

mod support;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use support::user::{PROGRAM, Ran, User, names_below};

/// Starts a slow copy and waits until bytes move.
fn slow_copy(user: &User) -> (Child, BufReader<ChildStdout>) {
    slow(user, &["copy", "--json", "--limit", "8M", "big", "dst/"])
}

/// Starts a command that copies slowly and waits until bytes move.
#[expect(clippy::zombie_processes)] // The callers wait for it.
fn slow(user: &User, args: &[&str]) -> (Child, BufReader<ChildStdout>) {
    let mut child = user
        .command()
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(
            lines.read_line(&mut line).unwrap(),
            0,
            "it ended before bytes moved"
        );
        let value: Value = serde_json::from_str(&line).unwrap();
        if value["type"] == "progress" && value["bytes_done"].as_u64() > Some(0) {
            return (child, lines);
        }
    }
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

fn end(child: Child, mut rest: BufReader<ChildStdout>) -> Ran {
    let mut out = String::new();
    rest.read_to_string(&mut out).unwrap();
    let output = child.wait_with_output().unwrap();
    Ran {
        out,
        ..Ran::new(output)
    }
}

#[test]
fn a_stopped_copy_ends_with_130_and_the_same_command_goes_on() {
    for how in [Signal::INT, Signal::TERM] {
        let user = User::new();
        let bytes: Vec<u8> = (0..64 << 20).map(|i: u32| (i >> 7) as u8).collect();
        user.write("big", &bytes);
        let (child, rest) = slow_copy(&user);
        signal(&child, how);
        let ran = end(child, rest)
            .ends(130)
            .says("of unfinished files is kept")
            .says("The same command again");
        assert_eq!(ran.summary()["outcome"], "aborted");
        assert!(
            !user.work("dst/big").exists(),
            "only whole files have their final name"
        );
        user.run(&["copy", "big", "dst/"])
            .ends(0)
            .says("Going on with the copy that stopped");
        assert_eq!(fs::read(user.work("dst/big")).unwrap(), bytes);
        let left = names_below(&user.work("dst"));
        assert_eq!(
            left,
            [Path::new("big")],
            "nothing is left of the staging folder"
        );
        // What got to its end is not gone on with.
        let again = user.run(&["copy", "big", "dst/"]).ends(0);
        assert!(!again.err.contains("Going on"), "{}", again.err);
    }
}

#[test]
fn a_killed_copy_is_found_by_the_same_command() {
    let user = User::new();
    user.write("big", vec![5; 64 << 20]);
    let (mut child, _rest) = slow_copy(&user);
    let list = || user.run(&["history", "list"]).ends(0).out;
    assert!(list().contains("running"), "{}", list());
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    assert!(list().contains("cut off"), "{}", list());
    assert!(!user.work("dst/big").exists());
    user.run(&["copy", "big", "dst/"])
        .ends(0)
        .says("Going on with the copy that stopped");
    assert_eq!(names_below(&user.work("dst")), [Path::new("big")]);
    let list = user.run(&["history", "list", "--json"]).ends(0).json();
    assert_eq!(list.len(), 1, "it is one run of the history");
    assert_eq!(list[0]["outcome"], "completed");
}

#[test]
fn a_profile_that_runs_is_not_started_again_until_it_is_through() {
    let user = User::new();
    user.write("big", vec![5; 24 << 20]);
    let new = [
        "profiles", "new", "daily", "--source", "big", "--dest", "dst/",
    ];
    user.run(&[&new[..], &["--limit", "8M"]].concat()).ends(0);
    let (child, rest) = slow(&user, &["run", "daily", "--json"]);
    let process = format!("running already, in process {}", child.id());
    user.run(&["run", "daily"]).ends(5).says(&process);
    user.run(&["run", "daily", "--dry-run"]).ends(0);
    signal(&child, Signal::KILL);
    let killed = child.wait_with_output().unwrap();
    drop(rest);
    assert!(!killed.status.success() && !user.work("dst/big").exists());
    user.run(&["run", "daily"]).ends(0);
    assert_eq!(names_below(&user.work("dst")), [Path::new("big")]);
}

#[test]
fn two_copies_of_the_same_files_at_once_both_get_to_their_end() {
    let user = User::new();
    for n in 0..2000 {
        user.write(format!("src/{}/{n}", n % 7), format!("{n}"));
    }
    std::os::unix::fs::symlink("0", user.work("src/link")).unwrap();
    let copies: Vec<_> = (0..3)
        .map(|_| {
            user.command()
                .args(["copy", "src", "dst/"])
                .stderr(Stdio::piped())
                .spawn()
        })
        .collect();
    for copy in copies {
        Ran::new(copy.unwrap().wait_with_output().unwrap()).ends(0);
    }
    assert_eq!(names_below(&user.work("dst")).len(), 2009);
}

#[test]
fn a_signal_that_the_caller_ignores_stays_ignored() {
    let user = User::new();
    user.write("big", vec![5; 16 << 20]);
    let mut command = Command::new(support::tool("nohup", "coreutils"));
    user.settle(&mut command);
    let mut child = command
        .arg(PROGRAM)
        .args(["copy", "--json", "--limit", "8M", "big", "dst/"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("\"progress\"") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0);
    }
    signal(&child, Signal::HUP);
    end(child, lines).ends(0);
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let user = User::new();
    user.write("big", vec![5; 64 << 20]);
    let (child, rest) = slow_copy(&user);
    drop(rest);
    let ran = Ran::new(child.wait_with_output().unwrap()).ends(130);
    assert!(
        !ran.err.contains("panicked") && !ran.err.contains("pipe"),
        "{}",
        ran.err
    );
    let mut list = user.command();
    let mut list = list
        .args(["history", "list"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(list.stdout.take());
    assert!(list.wait().unwrap().success());
}
