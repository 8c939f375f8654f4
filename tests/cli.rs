//! The program as a person or a script meets it: words, exit statuses, JSON, and that no name from
//! elsewhere reaches a terminal as it is.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

mod support;

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_transload");

/// A user with a home of their own and a folder to work in.
struct User {
    top: TempDir,
}

impl User {
    fn new() -> Self {
        let top = support::temp_dir();
        for dir in ["home", "own", "work"] {
            fs::create_dir(top.path().join(dir)).unwrap();
        }
        Self { top }
    }

    fn work(&self, name: &str) -> PathBuf {
        self.top.path().join("work").join(name)
    }

    fn write(&self, name: impl AsRef<OsStr>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.top.path().join("work").join(name.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The program in the work folder, with nothing of this machine's user but PATH.
    fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        self.settle(&mut command);
        command
    }

    fn settle(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.top.path().join("home"))
            .env("TRANSLOAD_HOME", self.top.path().join("own"))
            .current_dir(self.top.path().join("work"))
            .stdin(Stdio::null());
    }

    fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Ran {
        Ran::new(self.command().args(args).output().unwrap())
    }

    /// Runs it on a terminal of its own, with these keys typed.
    fn on_terminal(&self, line: &str, keys: &str) -> (String, i32) {
        let script = support::tool("script", "bsdutils");
        let mut command = Command::new(script);
        self.settle(&mut command);
        let mut child = command
            .args(["-qec", &format!("{PROGRAM} {line}"), "/dev/null"])
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        use std::io::Write as _;
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        let mut text = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
        drop(stdin);
        let code = child.wait().unwrap().code().unwrap();
        (String::from_utf8_lossy(&text).into_owned(), code)
    }
}

/// What a run left behind.
struct Ran {
    code: i32,
    out: String,
    err: String,
}

impl Ran {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it ends by itself"),
            out: String::from_utf8(output.stdout).expect("what is printed is UTF-8"),
            err: String::from_utf8(output.stderr).expect("what is printed is UTF-8"),
        }
    }

    #[track_caller]
    fn ends(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        self
    }

    #[track_caller]
    fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no '{text}' in:\n{}", self.err);
        self
    }

    fn json(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }

    fn of_type(&self, kind: &str) -> Vec<Value> {
        self.json()
            .into_iter()
            .filter(|line| line["type"] == kind)
            .collect()
    }

    #[track_caller]
    fn summary(&self) -> Value {
        let lines = self.json();
        let last = lines.last().expect("there is a last line").clone();
        assert_eq!(last["type"], "summary", "the last line is the summary");
        last
    }
}

/// Every path below a folder, relative.
fn names_below(top: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            names.push(path.strip_prefix(top).unwrap().to_owned());
        }
    }
    names.sort();
    names
}

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
    for later in [
        "--delete",
        "--compress",
        "--data-host",
        "--streams",
        "rsync",
    ] {
        assert!(!help.contains(later), "{later} in:\n{help}");
    }
    for value in ["auto, tcp, local", "none, size, md5, sha256, blake3, xxh3"] {
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
        assert!(
            lines.len() >= 2 && lines[0].starts_with("Failed to "),
            "{}",
            ran.err
        );
        assert!(lines[1].to_lowercase().contains(hint), "{}", ran.err);
    }
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
        .ends(1)
        .says("a");
    user.run(&["copy", "--conflict", "skip", "a", "dst/"])
        .ends(0);
    // Nobody is there to be asked, and --yes decides nothing about files.
    user.run(&["copy", "--conflict", "ask", "--yes", "a", "dst/"])
        .ends(1);
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

/// Names that broke other tools.
const ODD: [&[u8]; 9] = [
    b"x\ny.txt",
    b"esc\x1b[31mred",
    b"cr\r",
    b"-rf",
    b"back\\slash",
    b"100%s b%20S",
    b"\xff\xfe",
    b"csi\xc2\x9bx",
    "evil\u{202e}fdp".as_bytes(),
];

#[test]
fn a_saved_list_of_odd_names_passes_md5sum_and_finds_damage() {
    let user = User::new();
    for name in ODD {
        user.write(Path::new("src").join(OsStr::from_bytes(name)), name);
    }
    user.run(&["copy", "--save-list", "list.md5", "src", "dst/"])
        .ends(0);
    let md5sum = Command::new(support::tool("md5sum", "coreutils"))
        .args(["--strict", "--quiet", "-c"])
        .arg(user.work("list.md5"))
        .current_dir(user.work("dst"))
        .output()
        .unwrap();
    assert!(
        md5sum.status.success(),
        "{}",
        String::from_utf8_lossy(&md5sum.stderr)
    );
    let verify = ["verify", "list.md5", "--root", "dst"];
    user.run(&verify).ends(0).says("9 files verified");

    user.write("dst/src/-rf", "-Rf");
    let ran = user.run(&[&verify[..], &["--json"]].concat()).ends(4);
    let summary = ran.summary();
    assert_eq!(summary["verified"], 8);
    assert_eq!(summary["differs"], 1);
    user.run(&["copy", "src", "dst/", "--conflict", "overwrite"])
        .ends(0);
    fs::remove_file(user.work("dst/src/-rf")).unwrap();
    user.run(&verify).ends(23).says("-rf");
}

#[test]
fn a_list_that_is_none_and_a_far_folder_say_what_to_do() {
    let user = User::new();
    user.write("list", "hello\n");
    user.run(&["verify", "list"])
        .ends(2)
        .says("none of its lines");
    user.run(&["verify", "gone"]).ends(1).says("no such file");
    user.run(&["verify", "list", "--root", "nas:/x"])
        .ends(2)
        .says("md5sum -c");
}

#[test]
fn no_name_reaches_the_terminal_as_it_is() {
    let user = User::new();
    for name in ODD {
        user.write(Path::new("src").join(OsStr::from_bytes(name)), name);
    }
    user.write("dst/src/x\ny.txt", "there before");
    let esc = OsStr::from_bytes(b"gone\x1b]0;title\x07\n\xc2\x9b");
    let src = OsStr::new("src");
    let calls: &[&[&OsStr]] = &[
        &["copy".as_ref(), "-v".as_ref(), src, "dst/".as_ref()],
        &["copy".as_ref(), "-n".as_ref(), src, "new".as_ref()],
        &["copy".as_ref(), "--json".as_ref(), src, "json/".as_ref()],
        &["copy".as_ref(), esc, src, "dst/".as_ref()],
        &[
            "copy".as_ref(),
            "--conflict=fail".as_ref(),
            src,
            "dst/".as_ref(),
        ],
        &["run".as_ref(), esc],
        &["verify".as_ref(), esc],
        &[
            "profiles".as_ref(),
            "new".as_ref(),
            "n\u{1b}[2J\n\u{9b}".as_ref(),
        ],
        &["profiles".as_ref(), "list".as_ref()],
        &[
            "profiles".as_ref(),
            "show".as_ref(),
            "n\u{1b}[2J\n\u{9b}".as_ref(),
        ],
        &["profiles".as_ref(), "show".as_ref(), "\u{1b}".as_ref()],
        &["history".as_ref(), "list".as_ref()],
        &["history".as_ref(), "show".as_ref(), "\u{1b}".as_ref()],
        &[OsStr::from_bytes(b"--\x1b[31m")],
    ];
    for args in calls {
        let ran = user.run(args);
        for text in [&ran.out, &ran.err] {
            let bad = text
                .chars()
                .find(|c| *c != '\n' && (c.is_control() || *c == '\u{202e}'));
            assert_eq!(bad, None, "{args:?}:\n{text:?}");
            // A name with a newline must not be able to forge a line.
            assert!(
                !text.lines().any(|line| line.starts_with("y.txt")),
                "{args:?}:\n{text}"
            );
        }
    }
}

#[test]
fn a_terminal_shows_the_bar_and_escaped_names_also_with_no_width() {
    let user = User::new();
    user.write("src/esc\u{1b}]0;owned\u{7}", vec![1; 3 << 20]);
    for line in [
        "copy --limit 4M src dst/",
        "copy --conflict overwrite --limit 4M src dst/",
    ] {
        let (text, code) = user.on_terminal(&format!("{line}; stty cols 1 2>/dev/null"), "");
        assert!(text.contains("Done: 1 file"), "{code} {text}");
        assert!(!text.contains("\u{1b}]0;owned"), "{text:?}");
    }
}

#[test]
fn a_question_on_the_terminal_is_answered_by_a_number() {
    let user = User::new();
    user.write("a", "new words");
    user.write("dst/a", "old");
    // The answer that stops the job is the last one; end of input is the same.
    let (text, code) = user.on_terminal("copy --conflict ask a dst/", "99\n\u{4}");
    assert!(text.contains("Type a number from 1 to"), "{text}");
    assert_eq!(code, 130, "{text}");
    assert_eq!(fs::read(user.work("dst/a")).unwrap(), b"old");
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
fn profiles_are_made_changed_copied_moved_and_deleted() {
    let user = User::new();
    let new = [
        "profiles",
        "new",
        "Photos ☂ a/b",
        "--source",
        "pics",
        "--dest",
        "nas:/photo/",
    ];
    user.run(
        &[
            &new[..],
            &["--verify", "blake3", "--limit", "20M", "--port", "2222"],
        ]
        .concat(),
    )
    .ends(0);
    let show = |name: &str| user.run(&["profiles", "show", name]).ends(0).out;
    let text = show("Photos ☂ a/b");
    for words in [
        "pics",
        "nas:2222",
        "/photo/",
        "verify = \"blake3\"",
        "limit = \"20M\"",
    ] {
        let words = words.trim_start_matches("nas:");
        assert!(text.contains(words), "{words} in:\n{text}");
    }
    let set = [
        "profiles",
        "set",
        "Photos ☂ a/b",
        "--limit",
        "none",
        "--no-times",
        "--notes",
        "n",
    ];
    user.run(&set).ends(0);
    let text = show("Photos ☂ a/b");
    assert!(
        !text.contains("20M") && text.contains("times = false"),
        "{text}"
    );
    assert!(
        text.contains("verify = \"blake3\""),
        "what is not named stays:\n{text}"
    );

    user.run(&["profiles", "rename", "Photos ☂ a/b", "Pictures"])
        .ends(0);
    user.run(&["profiles", "duplicate", "Pictures", "Second"])
        .ends(0);
    user.run(&["profiles", "export", "Second", "second.toml"])
        .ends(0);
    user.run(&["profiles", "export", "Second", "second.toml"])
        .ends(1)
        .says("another name");
    let exported = fs::read_to_string(user.work("second.toml")).unwrap();
    assert_eq!(
        user.run(&["profiles", "export", "Second"]).ends(0).out,
        exported
    );
    user.run(&["profiles", "delete", "Second", "Pictures"])
        .ends(0);
    user.run(&["profiles", "show", "Second"])
        .ends(1)
        .says("profiles list");
    user.run(&["profiles", "import", "second.toml"]).ends(0);
    assert_eq!(show("Second"), exported);

    let list = user.run(&["profiles", "list", "--json"]).ends(0);
    let second = list
        .json()
        .into_iter()
        .find(|p| p["name"] == "Second")
        .unwrap();
    assert_eq!(second["type"], "profile");
    assert_eq!(second["method"], "auto");
    let id = second["id"].as_str().unwrap();
    assert_eq!(show(id), exported);
    user.run(&["profiles", "set", "Second", "--source", "other:/x"])
        .ends(2)
        .says("other");
}

#[test]
fn a_damaged_profile_is_named_with_its_line_and_the_others_are_listed() {
    let user = User::new();
    user.run(&["profiles", "new", "Good"]).ends(0);
    let folder = user.top.path().join("own/config/profiles");
    fs::write(folder.join("bad-0badf00d.toml"), "schema = 1\nname = 5\n").unwrap();
    let ran = user.run(&["profiles", "list"]).ends(0);
    assert!(ran.out.contains("Good"), "{}", ran.out);
    let bad = ran
        .out
        .lines()
        .find(|line| line.contains("damaged"))
        .unwrap();
    assert!(bad.contains("0badf00d") && bad.contains('2'), "{bad}");
    user.run(&["run", "0badf00d"])
        .ends(2)
        .says("bad-0badf00d.toml");
}

#[test]
fn the_bundled_sample_runs_with_no_server() {
    let user = User::new();
    let sample = "Try it: copy a folder on this computer, md5 verified";
    let ran = user.run(&["run", "--json", sample]).ends(0);
    assert!(ran.summary()["verified"].as_u64().unwrap() > 0);
    assert!(!names_below(&user.top.path().join("home/transload-try-it")).is_empty());
}

#[test]
fn profiles_run_in_order_and_the_worst_status_is_theirs() {
    let user = User::new();
    user.write("a", "a");
    let new = |name, source, dest| {
        let args = ["profiles", "new", name, "--source", source, "--dest", dest];
        user.run(&args).ends(0);
    };
    new("One", "a", "one/");
    new("Two", "gone", "two/");
    new("Three", "a", "three/");
    user.run(&["profiles", "export", "Three", "./three.toml"])
        .ends(0);
    user.run(&["run", "One", "Two", "./three.toml"])
        .ends(1)
        .says("Running One")
        .says("gone");
    assert!(user.work("one/a").is_file() && user.work("three/a").is_file());
    user.run(&["run", "One", "No such"]).ends(1).says("No such");
    user.run(&["run", "-n", "One"])
        .ends(0)
        .says("Nothing was written");
    user.run(&["profiles", "new", "Empty"]).ends(0);
    user.run(&["run", "Empty"]).ends(2).says("no source");
}

#[test]
fn history_lists_shows_and_names_the_files() {
    let user = User::new();
    user.write("src/a", "a");
    user.run(&["copy", "src", "dst/"]).ends(0);
    user.run(&["copy", "-n", "src", "dst/"]).ends(0);
    let list = user.run(&["history", "list", "--json"]).ends(0).json();
    assert_eq!(list.len(), 2);
    assert_eq!(
        (&list[0]["dry_run"], &list[1]["dry_run"]),
        (&true.into(), &false.into())
    );
    let id = list[1]["id"].as_str().unwrap();
    let show = user.run(&["history", "show", &id[..10]]).ends(0).out;
    assert!(show.contains(id) && show.contains("all verified"), "{show}");
    let rows = user
        .run(&["history", "rows", id, "--verdict", "verified"])
        .ends(0)
        .out;
    assert!(rows.contains("src/a"), "{rows}");
    let rows = user
        .run(&["history", "rows", id, "--verdict", "failed"])
        .ends(0)
        .out;
    assert_eq!(rows, "");
    user.run(&["history", "show", "zz"])
        .ends(1)
        .says("history list");
    let text = user.run(&["history", "list", "--limit", "1"]).ends(0).out;
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// Starts a slow copy and waits until bytes move.
fn slow_copy(user: &User) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut child = user
        .command()
        .args(["copy", "--json", "--limit", "8M", "big", "dst/"])
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

fn end(child: Child, mut rest: BufReader<std::process::ChildStdout>) -> Ran {
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
        let ran = end(child, rest).ends(130).says("The same command again");
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
    signal(&child, Signal::KILL);
    child.wait().unwrap();
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
