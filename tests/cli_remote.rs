//! The program with another computer: push, pull, what is asked, and each way not to get there.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

mod support;

use std::fs;
use std::net::TcpListener;
use std::process::Command;

use serde_json::Value;

use support::sshd::Sshd;
use support::user::{Ran, User};
use support::{agent_binary, tool};

/// Runs a copy with the server's client configuration.
fn copy(user: &User, server: &Sshd, args: &[&str]) -> Ran {
    let mut command = user.command();
    command.env("TRANSLOAD_SSH_CONFIG", server.config());
    Ran::new(command.arg("copy").args(args).output().unwrap())
}

/// Returns a folder of the far side as the command line has it.
fn there(server: &Sshd, name: &str) -> String {
    format!("{}:{name}", server.host().name)
}

#[test]
fn push_and_pull_by_raw_tcp_are_verified_and_the_list_holds_there() {
    let server = Sshd::setup().agent_in_path(agent_binary()).start();
    let user = User::new();
    user.write("src/a", "hello");
    user.write("src/deep/x\ny", vec![3; 2 << 20]);
    let to = there(&server, "in/");
    let push = ["-m", "tcp", "--json", "--save-list", "list", "src", &to];
    let summary = copy(&user, &server, &push).ends(0).summary();
    assert_eq!(summary["method"], "tcp");
    assert_eq!(summary["route"], "direct", "{summary}");
    assert_eq!(
        (&summary["files"], &summary["verified"]),
        (&2.into(), &2.into())
    );
    assert!(summary["wire_bytes"].as_u64() > summary["bytes"].as_u64());
    let md5sum = Command::new(tool("md5sum", "coreutils"))
        .args(["--strict", "-c"])
        .arg(user.work("list"))
        .current_dir(server.home().join("in"))
        .output()
        .unwrap();
    assert!(
        md5sum.status.success(),
        "{}",
        String::from_utf8_lossy(&md5sum.stdout)
    );

    copy(
        &user,
        &server,
        &["-m", "tcp", &there(&server, "in/src"), "back/"],
    )
    .ends(0);
    assert_eq!(
        fs::read(user.work("back/src/deep/x\ny")).unwrap(),
        vec![3; 2 << 20]
    );
    copy(&user, &server, &["-m", "tcp", "src", &to])
        .ends(0)
        .says("Done: 0 files");
    // Without the word for plain TCP the data goes through ssh.
    let summary = copy(&user, &server, &["--json", "src", &there(&server, "two/")]).ends(0);
    assert_eq!(summary.summary()["route"], "ssh");
}

#[test]
fn the_agent_is_copied_there_only_after_a_yes() {
    let server = Sshd::start();
    let user = User::new();
    user.write("a", "a");
    let to = there(&server, "in/");
    let mut command = user.command();
    command.env("TRANSLOAD_SSH_CONFIG", server.config());
    let no = Ran::new(
        command
            .args(["copy", "-m", "tcp", "a", &to])
            .output()
            .unwrap(),
    );
    assert_ne!(no.code, 0);
    assert!(no.err.contains("--upload-agent"), "{}", no.err);
    assert!(!server.home().join(".cache/transload").exists());

    let yes = copy(
        &user,
        &server,
        &["-m", "tcp", "--upload-agent", "--json", "a", &to],
    )
    .ends(0);
    assert_eq!(yes.summary()["verified"], 1);
    assert_eq!(fs::read(server.home().join("in/a")).unwrap(), b"a");
}

#[test]
fn the_question_about_the_agent_is_asked_on_a_terminal() {
    let server = Sshd::start();
    let user = User::new();
    user.write("a", "a");
    let to = there(&server, "in/");
    let config = server.config();
    let line = format!(
        "transload copy -m tcp --ssh-config {} a {to}",
        config.display()
    );
    let (text, code) = user.on_terminal(&line, "1\n");
    assert!(text.contains("Type a number from 1 to 3"), "{text}");
    assert_eq!(code, 0, "{text}");
    assert_eq!(fs::read(server.home().join("in/a")).unwrap(), b"a");
}

#[test]
fn a_host_that_cannot_be_reached_or_lets_nobody_in_ends_with_3() {
    let user = User::new();
    user.write("a", "a");
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let refused = format!("ssh://127.0.0.1:{port}/tmp/never");
    let nowhere = "no-such-host.invalid:/tmp/never".to_owned();
    for to in [&refused, &nowhere] {
        let ran = user.run(&["copy", "--json", "a", to]).ends(3);
        assert_eq!(ran.summary()["outcome"], "failed");
        let errors = ran.of_type("error");
        assert!(
            errors.iter().any(|e: &Value| e["kind"] == "unreachable"),
            "{errors:?}"
        );
    }
    for setup in [
        Sshd::setup().changed_host_key(),
        Sshd::setup().unknown_host_key(),
        Sshd::setup().password_only(),
    ] {
        let server = setup.agent_in_path(agent_binary()).start();
        let ran = copy(&user, &server, &["a", &there(&server, "in/")]).ends(3);
        // What failed, and what to do next.
        let lines = ran
            .err
            .lines()
            .filter(|line| line.starts_with("Failed to "))
            .count();
        assert_eq!(lines, 1, "{}", ran.err);
    }
}
