//! Names that broke other tools, on terminals and in lists of digests.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::Command;

use support::user::User;

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
    for (columns, dest) in [(100, "wide/"), (1, "narrow/"), (0, "none/")] {
        let line = format!("stty cols {columns}; transload copy --limit 4M src {dest}");
        let (text, code) = user.on_terminal(&line, "");
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("Done: 1 file"), "{text}");
        assert!(!text.contains("\u{1b}]0;owned"), "{text:?}");
        if columns == 100 {
            assert!(text.contains(" %  ") && text.contains("MiB/s"), "{text:?}");
            assert!(text.contains("esc\\x1b]0;owned\\x07"), "{text:?}");
        }
    }
}

#[test]
fn a_question_on_the_terminal_is_answered_by_a_number() {
    let user = User::new();
    user.write("a", "new words");
    user.write("dst/a", "old");
    // The answer that stops the job is the last one; end of input is the same.
    let (text, code) = user.on_terminal("transload copy --conflict ask a dst/", "99\n\u{4}");
    assert!(text.contains("Type a number from 1 to"), "{text}");
    assert_eq!(code, 130, "{text}");
    assert_eq!(fs::read(user.work("dst/a")).unwrap(), b"old");
}
