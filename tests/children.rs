//! Programs that this one started end with it, even when it is killed.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::wait_until;
use transload::proc::Program;

/// Tells a run of this test binary that it is the program to be killed.
const PARENT: &str = "TRANSLOAD_TEST_PARENT";

#[test]
fn a_killed_program_leaves_no_children() {
    if std::env::var_os(PARENT).is_some() {
        return be_the_parent();
    }
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "a_killed_program_leaves_no_children",
            "--nocapture",
        ])
        .env(PARENT, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let out = BufReader::new(parent.stdout.take().unwrap());
    let child = out.lines().find_map(|line| {
        let line = line.unwrap();
        line.split_once("child: ").map(|(_, pid)| pid.to_owned())
    });
    let child = PathBuf::from(format!("/proc/{}", child.unwrap()));
    assert!(child.exists());
    parent.kill().unwrap(); // SIGKILL: no destructor runs
    parent.wait().unwrap();
    wait_until("the child has ended", || !child.exists());
}

/// Starts a child on a thread that ends, tells its number, and waits to be killed.
fn be_the_parent() {
    let start = || {
        Program::named("sleep")
            .unwrap()
            .arg("1000")
            .spawn()
            .unwrap()
    };
    let child = std::thread::scope(|scope| scope.spawn(start).join().unwrap());
    println!("child: {}", child.id());
    let _ = std::io::stdin().read(&mut [0]);
}

#[test]
fn a_child_gets_its_three_streams_and_no_other_descriptor() {
    // Open here: one of ours and, from whoever runs the tests, perhaps others. Reading the
    // folder takes one more for a moment.
    let ours = std::fs::File::open("/dev/null").unwrap();
    let listing = Program::named("sh")
        .unwrap()
        .args([
            "-c",
            "for fd in /proc/$$/fd/*; do test -e $fd && echo ${fd##*/}; done",
        ])
        .run(b"", 10_000, Duration::from_secs(10), &|| false)
        .unwrap();
    drop(ours);
    let listing = String::from_utf8(listing.stdout).unwrap();
    assert_eq!(listing, "0\n1\n2\n");
}
