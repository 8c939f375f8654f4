//! The program as a person or a script meets it: words, exit statuses, JSON, and that no name from
//! elsewhere reaches a terminal as it is.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use support::user::{Ran, User, names_below};

#[test]
fn help_names_the_commands_that_work_and_no_others() {
    let help = User::new().run(&["--help"]).ends(0).out;
    for command in ["copy", "run", "profiles", "verify", "history"] {
        assert!(
            help.contains(&format!("\n  {command} ")),
            "{command} in:\n{help}"
        );
    }
    for later in ["rsh", "compare", "receive", "send", "doctor", "mount"] {
        assert!(
            !help.contains(&format!("\n  {later} ")),
            "{later} in:\n{help}"
        );
    }
    for words in ["Examples:", "Exit status: 0 completed", "TRANSLOAD_HOME"] {
        assert!(help.contains(words), "{words} in:\n{help}");
    }
}

#[test]
fn the_help_of_copy_names_the_options_that_work_and_no_others() {
    let help = User::new().run(&["copy", "--help"]).ends(0).out;
    for option in [
        "-m, --method",
        "--verify",
        "--read-back",
        "-n, --dry-run",
        "--conflict",
        "--exclude",
        "--include",
        "--limit",
        "--port",
        "--identity",
        "--ssh-option",
        "--ssh-config",
        "--encrypt",
        "--upload-agent",
        "--no-durable",
        "--contents",
        "--no-times",
        "--no-perms",
        "--no-links",
        "-O",
        "-q, --quiet",
        "-v, --verbose",
        "--json",
        "--yes",
        "--save-list",
        "TRANSLOAD_SSH_CONFIG",
    ] {
        assert!(help.contains(option), "{option} in:\n{help}");
    }
    for later in ["--delete", "--compress", "--data-host", "--streams"] {
        assert!(!help.contains(later), "{later} in:\n{help}");
    }
    for value in [
        "auto, tcp, rsync, sftp, local",
        "none, size, md5, sha256, blake3, xxh3",
    ] {
        assert!(help.contains(value), "{value} in:\n{help}");
    }
}

#[test]
fn every_command_has_examples() {
    let user = User::new();
    for command in ["copy", "run", "profiles", "verify", "history"] {
        let help = user.run(&[command, "--help"]).ends(0).out;
        assert!(
            help.contains("Examples:\n  transload "),
            "{command}:\n{help}"
        );
    }
}

#[test]
fn what_cannot_be_understood_ends_with_2_and_touches_nothing() {
    let user = User::new();
    user.write("a", "a");
    let wrong: &[&[&str]] = &[
        &["copy"],
        &["copy", "a"],
        &["copy", "--no-such-option", "a", "b"],
        &["copy", "--limit", "fast", "a", "b"],
        &["copy", "--verify", "crc", "a", "b"],
        &["copy", "-m", "pigeon", "a", "b"],
        &["copy", "-q", "-v", "a", "b"],
        &["copy", "-O", "x", "a", "b"],
        &["copy", "-O", "no-such-thing=1", "a", "b"],
        &["copy", "--port", "2222", "a", "b"],
        &["copy", "--port", "0", "a", "h:b"],
        &["copy", "--save-list", "l", "--verify", "size", "a", "b"],
        &["copy", "--save-list", "l", "-n", "a", "b"],
        &["copy", "--limit", "10Mbit", "a", "b"],
        &["copy", "--exclude", "[", "a", "b"],
        &["copy", "--exclude", "", "a", "b"],
        &["copy", "--read-back", "--verify", "none", "a", "b"],
        &["copy", "--identity", "no-such-key", "a", "h:b"],
        &["copy", "--ssh-option", "Compression", "a", "h:b"],
        &["copy", "--ssh-option", "ProxyCommand=x", "a", "h:b"],
        &["run"],
        &["profiles"],
        &["history", "rows"],
    ];
    for args in wrong {
        let ran = user.run(args).ends(2);
        assert!(!ran.err.is_empty() && ran.out.is_empty(), "{args:?}");
    }
    assert_eq!(names_below(&user.work("")), [Path::new("a")]);
}

#[test]
fn places_that_cannot_be_used_say_what_to_do() {
    let user = User::new();
    user.write("a", "a");
    for (from, to, hint) in [
        ("smb://server/share", "b", "mount"),
        ("one:a", "two:b", "copy to a folder here first"),
        ("a", "http://host/b", ""),
    ] {
        let ran = user.run(&["copy", from, to]).ends(2);
        let lines: Vec<&str> = ran.err.lines().collect();
        let json = user.run(&["copy", "--json", from, to]).ends(2);
        assert_eq!(json.summary()["outcome"], "failed");
        assert_eq!(json.of_type("error").len(), 1);
        assert!(
            lines.len() >= 2 && lines[0].starts_with("Failed to "),
            "{}",
            ran.err
        );
        assert!(lines[1].to_lowercase().contains(hint), "{}", ran.err);
    }
}

#[test]
fn a_method_that_cannot_do_it_is_told_before_anything_starts() {
    let user = User::new();
    user.write("a", "a");
    for (args, words) in [
        (&["a", "ftp://host/b"][..], "ftp is not available"),
        (
            &["a", "host::module/b"],
            "rsync's own server is not available",
        ),
        (
            &["-m", "local", "a", "host:b"],
            "one side is on another computer",
        ),
        (
            &["-m", "rsync", "a", "b"],
            "both sides are on this computer",
        ),
        (&["-m", "sftp", "a", "b"], "both sides are on this computer"),
        (
            &["-m", "rsync", "--verify", "blake3", "a", "host:b"],
            "no blake3",
        ),
        (
            &["one:a", "two:a", "b"],
            "the sources are on different hosts",
        ),
    ] {
        let ran = user.run(&[&["copy"], args].concat()).ends(2).says(words);
        assert!(!ran.err.contains("raw TCP:"), "{}", ran.err);
        assert_eq!(
            ran.err.lines().count(),
            2,
            "what and what to do: {}",
            ran.err
        );
    }
    let history = user.run(&["history", "list"]).ends(0).out;
    assert_eq!(history, "", "none of them was a job");
}

#[test]
fn without_a_display_it_says_so_and_shows_the_help() {
    let ran = User::new().run::<&str>(&[]).ends(2);
    assert!(
        ran.err.contains("no display") || ran.err.contains("no window"),
        "{}",
        ran.err
    );
    assert!(ran.err.contains("transload copy"), "{}", ran.err);
    assert!(ran.out.is_empty());
}

#[test]
fn a_mistyped_command_or_a_far_place_is_told_before_any_window() {
    let user = User::new();
    user.run(&["nas:/x"]).ends(2).says("transload copy");
    user.run(&["smb://x/y"]).ends(2).says("mounts it");
    user.run(&["cpoy", "--json"]).ends(2);
}

#[test]
fn a_copy_arrives_whole_and_verified() {
    let user = User::new();
    user.write("src/a.txt", "hello");
    user.write("src/deep/b", vec![7; 300_000]);
    symlink("a.txt", user.work("src/link")).unwrap();
    fs::create_dir(user.work("dst")).unwrap();
    user.run(&["copy", "src", "dst"])
        .ends(0)
        .says("Done: 2 files")
        .says("all verified");
    assert_eq!(
        fs::read(user.work("dst/src/deep/b")).unwrap(),
        vec![7; 300_000]
    );
    assert_eq!(
        fs::read_link(user.work("dst/src/link")).unwrap(),
        Path::new("a.txt")
    );
    // The same again has nothing to do.
    user.run(&["copy", "src", "dst/"])
        .ends(0)
        .says("Done: 0 files");
    user.run(&["copy", "--contents", "src", "flat"]).ends(0);
    assert!(user.work("flat/a.txt").is_file());
}

#[test]
fn json_is_one_object_a_line_and_the_summary_comes_last() {
    let user = User::new();
    user.write("src/a", "hello");
    user.write(OsStr::from_bytes(b"src/b\xff"), "x");
    let ran = user.run(&["copy", "--json", "src", "dst"]).ends(0);
    let rows = ran.of_type("row");
    let a = rows
        .iter()
        .find(|row| row["path"].as_str().unwrap().ends_with("/a"))
        .unwrap();
    assert_eq!(a["verdict"], "verified");
    assert_eq!(a["algorithm"], "md5");
    assert_eq!(a["digest"], "5d41402abc4b2a76b9719d911017c592");
    assert_eq!(a["when"], "in_flight");
    let b = rows.iter().find(|row| row["path_b64"].is_string()).unwrap();
    assert!(b["path"].as_str().unwrap().ends_with("b\\xff"), "{b}");
    let summary = ran.summary();
    assert_eq!(summary["outcome"], "completed");
    assert_eq!(summary["method"], "local");
    assert_eq!(summary["route"], "local");
    assert_eq!(
        (summary["files"].as_u64(), summary["verified"].as_u64()),
        (Some(2), Some(2))
    );
    assert_eq!(summary["bytes"], 6);
}

#[test]
fn a_dry_run_says_each_step_and_writes_nothing() {
    let user = User::new();
    user.write("src/a", "hello");
    let ran = user.run(&["copy", "-n", "--json", "src", "dst"]).ends(0);
    let steps = ran.of_type("step");
    let file = steps
        .iter()
        .find(|s| s["path"].as_str().unwrap().ends_with('a'))
        .unwrap();
    assert_eq!(file["action"], "create");
    assert_eq!(file["reason"], "missing");
    assert_eq!(file["bytes"], 5);
    assert_eq!(ran.of_type("plan")[0]["bytes"], 5);
    assert_eq!(ran.summary()["outcome"], "completed");
    assert!(!user.work("dst").exists());
    let ran = user
        .run(&["copy", "-n", "src", "dst"])
        .ends(0)
        .says("Nothing was written");
    assert!(
        ran.out.contains("Create") && ran.out.contains("/a"),
        "{}",
        ran.out
    );
}

#[test]
fn a_missing_source_is_told_and_the_others_go_on() {
    let user = User::new();
    user.write("a", "a");
    let ran = user
        .run(&["copy", "--json", "gone", "a", "dst/"])
        .ends(23)
        .says("gone");
    assert!(user.work("dst/a").is_file());
    assert_eq!(ran.of_type("error")[0]["kind"], "not_found");
    let rows = ran.of_type("row");
    assert!(
        rows.iter()
            .any(|r| r["path"] == "gone" && r["verdict"] == "failed"),
        "{rows:?}"
    );
    let summary = ran.summary();
    assert_eq!(
        (&summary["outcome"], &summary["failed"]),
        (&"partial".into(), &1.into())
    );
    let ran = user
        .run(&["copy", "gone", "gone too", "dst2/"])
        .ends(1)
        .says("no such file");
    assert!(ran.err.contains("None of the 2 sources"), "{}", ran.err);
    assert!(!user.work("dst2").exists());
}

#[test]
fn an_existing_file_is_refused_by_fail_and_left_by_skip() {
    let user = User::new();
    user.write("a", "new words");
    user.write("dst/a", "old");
    user.run(&["copy", "--conflict", "fail", "a", "dst/"])
        .ends(5)
        .says("a");
    user.run(&["copy", "--conflict", "skip", "a", "dst/"])
        .ends(0);
    // Nobody is there to be asked, and --yes decides nothing about files.
    user.run(&["copy", "--conflict", "ask", "--yes", "a", "dst/"])
        .ends(5)
        .says("Nobody can be asked here")
        .says("--conflict skip");
    assert_eq!(fs::read(user.work("dst/a")).unwrap(), b"old");
    user.run(&["copy", "a", "dst/"]).ends(0);
    assert_eq!(fs::read(user.work("dst/a")).unwrap(), b"new words");
}

#[test]
fn rules_are_taken_in_the_order_in_which_they_are_given() {
    let user = User::new();
    for name in ["src/keep.tmp", "src/other.tmp", "src/c"] {
        user.write(name, name);
    }
    let rules = ["--include", "keep.*", "--exclude", "*.tmp"];
    user.run(&[&["copy"], &rules[..], &["src", "one/"]].concat())
        .ends(0);
    let names = |dir| names_below(&user.work(dir));
    assert_eq!(names("one/src"), [Path::new("c"), Path::new("keep.tmp")]);
    let rules = ["--exclude", "*.tmp", "--include", "keep.*"];
    user.run(&[&["copy"], &rules[..], &["src", "two/"]].concat())
        .ends(0);
    assert_eq!(names("two/src"), [Path::new("c")]);
}

#[test]
fn nothing_is_kept_outside_the_folder_that_is_named() {
    let user = User::new();
    user.write("a", "a");
    user.run(&["copy", "a", "b"]).ends(0);
    user.run(&["profiles", "list"]).ends(0);
    user.run(&["history", "list"]).ends(0);
    assert!(names_below(&user.top.path().join("home")).is_empty());
    assert!(user.top.path().join("own/state/history.sqlite").is_file());
}

#[test]
fn home_and_path_are_all_it_needs() {
    let user = User::new();
    user.write("a", "a");
    let mut command = user.command();
    command
        .env_remove("TRANSLOAD_HOME")
        .args(["copy", "a", "b"]);
    Ran::new(command.output().unwrap()).ends(0);
    assert_eq!(fs::read(user.work("b")).unwrap(), b"a");
    assert!(
        user.top
            .path()
            .join("home/.local/state/transload/history.sqlite")
            .is_file()
    );
}

#[test]
fn quiet_says_nothing_but_errors() {
    let user = User::new();
    user.write("a", "a");
    let ran = user.run(&["copy", "-q", "a", "b"]).ends(0);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("", ""));
    user.run(&["copy", "-q", "a", "gone", "c/"])
        .ends(23)
        .says("gone");
}

#[test]
fn a_list_is_checked_as_md5sum_would() {
    let user = User::new();
    user.write("one", "1");
    user.write("two", "2");
    let md5 = |text: &str| match text {
        "1" => "c4ca4238a0b923820dcc509a6f75849b",
        _ => "c81e728d9d4c2f636f067f89cc14862c",
    };
    let whole = user.work("two").into_os_string().into_string().unwrap();
    let list = format!("{}  one\n{}  {whole}\n", md5("1"), md5("2"));
    user.write("list", &list);
    user.run(&["verify", "list"])
        .ends(0)
        .says("2 files verified");
    // A whole path is not below any folder.
    user.run(&["verify", "list", "--root", "/usr"])
        .ends(23)
        .says("1 file verified, 1 could not be checked");
    let mut command = user.command();
    command.args(["verify", "-"]).stdin(Stdio::piped());
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(list.as_bytes())
        .unwrap();
    Ran::new(child.wait_with_output().unwrap())
        .ends(0)
        .says("2 files verified");

    user.write("two", "3");
    let ran = user.run(&["verify", "list"]).ends(4).says("1 differs");
    assert!(!ran.err.contains("was sent"), "{}", ran.err);
    assert!(ran.err.contains("the list says"), "{}", ran.err);
    user.run(&["verify", "list", "--root", "nas:/x"])
        .ends(2)
        .says("come here to be read")
        .says("md5sum -c");
}

#[test]
fn a_file_that_is_written_to_all_the_time_ends_with_24_and_stays_away() {
    let user = User::new();
    let path = user.write("log", vec![b'x'; 4 << 20]);
    let over = Arc::new(AtomicBool::new(false));
    let writer = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut log = fs::File::options().append(true).open(path).unwrap();
            while !over.load(Relaxed) {
                log.write_all(b"one more line\n").unwrap();
            }
        }
    });
    let ran = user.run(&["copy", "--json", "log", "dst/"]);
    over.store(true, Relaxed);
    writer.join().unwrap();
    let ran = ran.ends(24).says("Source changed");
    assert_eq!(ran.summary()["outcome"], "partial");
    assert!(!user.work("dst/log").exists());
}
