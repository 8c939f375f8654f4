//! A disk that fills up in the middle: the reason is told at once, what was whole by then has its
//! name, and nothing else has.
//!
//! The writes of a traced program fail as they do on a full disk, from a certain one on.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

#[path = "support/direct.rs"]
mod direct;
mod support;

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use direct::{Told, job, run};
use support::sshd::Sshd;
use support::user::{Ran, User};
use support::{agent_binary, tool};
use transload::backend::local::Local;
use transload::model::location::Location;

/// Files of each tree; half of them find room.
const FILES: usize = 20;
/// Larger than what travels in batches, so that each is a part of its own.
const SIZE: usize = 3 << 20;

/// Writes of a thread after which the disk is full, with two of them at work.
const HALF: usize = FILES * SIZE / (1 << 20) / 4;
/// Tells the traced copy of this program that it is one, and where to work.
const HELPER: &str = "TRANSLOAD_TEST_FULL_DISK";

/// Arguments of strace after which the program's writes fail from this one of each thread on.
fn filling_up(write: usize) -> Vec<String> {
    let inject = format!("inject=pwrite64:error=ENOSPC:when={write}+");
    [
        "-f",
        "-qq",
        "-o",
        "/dev/null",
        "-e",
        "trace=pwrite64",
        "-e",
        &inject,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// An agent to whom the disk fills up.
fn agent_that_fills_up(user: &User) -> PathBuf {
    let (strace, agent) = (tool("strace", "strace"), agent_binary());
    let args = filling_up(HALF).join(" ");
    let script = format!(
        "#!/bin/sh\nexec {} {args} {} \"$@\"\n",
        strace.display(),
        agent.display()
    );
    let path = user.write("agent", script);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn tree(user: &User) {
    for n in 0..FILES {
        user.write(format!("src/{n:02}"), vec![n as u8 + 1; SIZE]);
    }
}

/// Returns how many files are there, each whole.
fn whole_files(dir: &Path) -> usize {
    let names = fs::read_dir(dir).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name());
    let names = names.filter(|name| !name.to_string_lossy().starts_with('.'));
    names
        .map(|name| {
            let n: u8 = name.to_str().unwrap().parse().unwrap();
            assert_eq!(fs::read(dir.join(&name)).unwrap(), vec![n + 1; SIZE]);
        })
        .count()
}

#[track_caller]
fn tells_the_full_disk(ran: Ran, arrived: &Path, place: &str) {
    let ran = ran.ends(23).says("no space left").says(place);
    for wrong in ["signal", "Trying again", "ended early"] {
        assert!(!ran.err.contains(wrong), "{}", ran.err);
    }
    let there = whole_files(arrived);
    assert!(there > 0 && there < FILES, "{there} files arrived");
    let said = format!("Partly done: {there} file");
    assert!(ran.err.contains(&said), "{said}: {}", ran.err);
    let last = ran.err.lines().last().unwrap();
    assert!(
        last.contains("did not arrive") && last.contains("no space left"),
        "{last}"
    );
}

#[test]
fn a_push_by_raw_tcp_onto_a_disk_that_fills_up_says_so_and_names_what_was_whole() {
    let user = User::new();
    let server = Sshd::setup()
        .agent_in_path(agent_that_fills_up(&user))
        .start();
    tree(&user);
    let host = server.host().name;
    let mut command = user.command();
    command.env("TRANSLOAD_SSH_CONFIG", server.config());
    command.args(["copy", "-m", "tcp", "src", &format!("{host}:in/")]);
    let ran = Ran::new(command.output().unwrap());
    tells_the_full_disk(ran, &server.home().join("in/src"), &host);
}

/// Runs in a traced copy of this test program, since the history of the program itself would
/// see the full disk first.
#[test]
fn helper() {
    let Some(top) = std::env::var_os(HELPER).map(PathBuf::from) else {
        return;
    };
    let told = Told::default();
    let local = |name: &str| Location::Local(top.join(name).into_os_string().into_vec());
    let error = run(
        &Local,
        &job("local", vec![local("src")], local("in")),
        &told,
    )
    .unwrap_err();
    fs::write(top.join("seen"), format!("{:?} {error}", error.kind)).unwrap();
}

#[test]
fn a_local_copy_onto_a_disk_that_fills_up_says_so_and_names_what_was_whole() {
    let user = User::new();
    tree(&user);
    fs::create_dir(user.work("in")).unwrap();
    let traced = Command::new(tool("strace", "strace"))
        .args(filling_up(HALF))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "helper", "--test-threads=1"])
        .env(HELPER, user.work(""))
        .output()
        .unwrap();
    assert!(
        traced.status.success(),
        "{}",
        String::from_utf8_lossy(&traced.stdout)
    );
    let seen = fs::read_to_string(user.work("seen")).unwrap();
    assert!(
        seen.starts_with("NoSpace ") && seen.contains("no space left"),
        "{seen}"
    );
    let there = whole_files(&user.work("in/src"));
    assert!(there > 0 && there < FILES, "{there} files arrived");
}
