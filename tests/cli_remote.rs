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
    // The second time, since what never connected left nothing to go on from.
    for to in [&refused, &nowhere, &refused] {
        let ran = user.run(&["copy", "--json", "a", to]).ends(3);
        assert_eq!(ran.summary()["outcome"], "failed");
        assert!(!ran.err.contains("Going on"), "{}", ran.err);
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

#[test]
fn a_slash_behind_a_file_and_a_source_that_is_missing_end_alike_by_every_method() {
    let server = Sshd::setup().agent_in_path(agent_binary()).start();
    let user = User::new();
    user.write("file", "f");
    fs::write(server.home().join("file"), "f").unwrap();
    for method in ["tcp", "rsync", "sftp"] {
        for name in ["gone", "file/", "gone/"] {
            let from = there(&server, name);
            let ran = copy(&user, &server, &["-m", method, &from, "dst/"]);
            assert_eq!(ran.code, 1, "{method} {name}: {}", ran.err);
            assert!(!user.work("dst/file").exists(), "{method} {name}");
        }
    }
    let file = there(&server, "file/");
    copy(&user, &server, &["-m", "tcp", &file, "dst/"])
        .ends(1)
        .says("leave out the slash");
    copy(&user, &server, &["file/", "dst/"])
        .ends(1)
        .says("leave out the slash");
    // Here the same.
    for name in ["gone", "file/", "gone/"] {
        copy(&user, &server, &[name, &there(&server, "in/")]).ends(1);
    }
    // A file where a folder is meant keeps its place, however that was said.
    user.write("other", "o");
    let to = there(&server, "file");
    let into = there(&server, "file/");
    for method in ["tcp", "rsync", "sftp"] {
        for args in [&["file", &into][..], &["file", "other", &to]] {
            copy(&user, &server, &[&["-m", method], args].concat())
                .ends(5)
                .says("it is not a folder");
        }
        copy(&user, &server, &["-m", method, &to, "other/"])
            .ends(5)
            .says("it is not a folder");
    }
    copy(&user, &server, &["file", "other/"]).ends(5);
}

#[test]
fn what_ssh_does_not_understand_of_the_options_is_wrong_usage() {
    let server = Sshd::setup().agent_in_path(agent_binary()).start();
    let user = User::new();
    user.write("a", "a");
    let to = there(&server, "in/");
    for option in ["Compression=maybe", "Ciphers=none-such"] {
        copy(&user, &server, &["--ssh-option", option, "a", &to])
            .ends(2)
            .says("ssh");
    }
}

#[test]
fn a_dry_run_moves_no_contents_and_so_asks_nothing_about_them() {
    let server = Sshd::setup().agent_in_path(agent_binary()).start();
    let user = User::new();
    user.write("a", "a");
    let to = there(&server, "in/");
    let config = server.config();
    // Were it asked, the third answer would end the job.
    for (option, asked, status) in [("-n", false, 0), ("-v", true, 130)] {
        let line = format!(
            "transload copy {option} --ssh-config {} a {to}",
            config.display()
        );
        let (text, code) = user.on_terminal(&line, "3\n");
        let asks = text.contains("Send without encryption");
        assert_eq!((asks, code), (asked, status), "{text}");
    }
    assert!(!server.home().join("in").exists(), "the end was chosen");
}
