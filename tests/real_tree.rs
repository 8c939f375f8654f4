//! The command line, end to end, with real data: `/usr/share/doc` there and back by raw TCP.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::sshd::Sshd;
use support::{agent_binary, temp_dir, tool};

/// Thousands of small files and links that every Debian has.
const REAL: &str = "/usr/share/doc";

fn transload(home: &Path, server: &Sshd) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_transload"));
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin");
    command
        .env("TRANSLOAD_HOME", home.join("tl"))
        .env("TRANSLOAD_SSH_CONFIG", server.config());
    command
}

fn done(output: Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// rsync finds nothing to do.
fn assert_same(left: &Path, right: &Path) {
    let output = Command::new(tool("rsync", "rsync"))
        .args(["-rlptcn", "--delete", "--itemize-changes"])
        .arg(left.join(""))
        .arg(right.join(""))
        .output()
        .unwrap();
    assert_eq!(done(output), "");
}

fn copy(home: &Path, server: &Sshd, from: &str, to: &str, list: &Path) -> serde_json::Value {
    let output = transload(home, server)
        .args(["copy", "-m", "tcp", "--json", "--save-list"])
        .arg(list)
        .args([from, to])
        .output()
        .unwrap();
    let text = done(output);
    let last = text.lines().last().expect("there is a summary");
    serde_json::from_str(last).unwrap()
}

#[test]
fn the_documentation_of_this_computer_goes_there_and_back_unchanged() {
    let (server, dir) = (
        Sshd::setup().agent_in_path(agent_binary()).start(),
        temp_dir(),
    );
    let at = |name: &str| -> PathBuf { dir.path().join(name) };
    let list = at("list.md5");
    let there = format!("nas:{}/", at("there").display());
    let summary = copy(dir.path(), &server, REAL, &there, &list);
    assert_eq!(
        (&summary["outcome"], &summary["route"]),
        (&"completed".into(), &"direct".into())
    );
    assert!(summary["verified"].as_u64().unwrap() > 1000, "{summary}");
    assert_same(Path::new(REAL), &at("there/doc"));
    let output = Command::new("/usr/bin/md5sum")
        .args(["-c", "--strict", "--quiet"])
        .arg(&list)
        .current_dir(at("there"))
        .output()
        .unwrap();
    done(output);

    let from = format!("nas:{}", at("there/doc").display());
    let back = format!("{}/", at("back").display());
    let summary = copy(dir.path(), &server, &from, &back, &at("back.md5"));
    assert_eq!(summary["outcome"], "completed");
    assert_same(Path::new(REAL), &at("back/doc"));
}

#[test]
fn the_program_killed_at_many_points_leaves_nothing_wrong_and_the_same_command_goes_on() {
    let (server, dir) = (
        Sshd::setup().agent_in_path(agent_binary()).start(),
        temp_dir(),
    );
    let source = dir.path().join("src");
    std::fs::create_dir(&source).unwrap();
    for n in 0..200u64 {
        std::fs::write(
            source.join(format!("small-{n}")),
            vec![n as u8; n as usize * 50],
        )
        .unwrap();
    }
    std::fs::write(source.join("large"), vec![7; 30_000_000]).unwrap();
    let mut killed = 0;
    for n in 0..20 {
        let to = dir.path().join(format!("to-{n}"));
        let there = format!("nas:{}/", to.display());
        let mut child = transload(dir.path(), &server)
            .args(["copy", "-m", "tcp", "-q", "--limit", "40M"])
            .arg(&source)
            .arg(&there)
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // The point is met by what has arrived, not by the clock.
        let enough = n * 1_500_000;
        let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while arrived(&to) < enough && child.try_wait().unwrap().is_none() {
            assert!(std::time::Instant::now() < until, "nothing arrives");
            std::thread::yield_now();
        }
        child.kill().unwrap();
        killed += u64::from(!child.wait().unwrap().success());
        for entry in std::fs::read_dir(to.join("src"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let here = std::fs::read(source.join(entry.file_name())).unwrap();
            assert!(
                std::fs::read(entry.path()).unwrap() == here,
                "{:?}",
                entry.file_name()
            );
        }
        let output = transload(dir.path(), &server)
            .args(["copy", "-m", "tcp"])
            .arg(&source)
            .arg(&there)
            .output()
            .unwrap();
        done(output);
        assert_same(&source, &to.join("src"));
    }
    assert!(killed >= 15, "only {killed} of 20 were killed in time");
}

/// Bytes below a folder, parts included.
fn arrived(folder: &Path) -> u64 {
    let mut sum = 0;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.metadata() {
            Ok(meta) if meta.is_dir() => sum += arrived(&entry.path()),
            Ok(meta) => {
                use std::os::unix::fs::MetadataExt as _;
                sum += (meta.blocks() * 512).min(meta.len());
            }
            Err(_) => {}
        }
    }
    sum
}
