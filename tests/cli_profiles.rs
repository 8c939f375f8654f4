//! The commands about what is kept: profiles, runs of profiles, and the history.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

mod support;

use std::fs;

use support::user::{Ran, User, names_below};

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
    let mut abroad = user.command();
    abroad.args(["history", "show", id]).env("TZ", "FAR-9:30");
    let abroad = Ran::new(abroad.output().unwrap()).ends(0).out;
    assert!(abroad.contains(" FAR (just now)"), "{abroad}");
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

#[test]
fn a_profile_gets_a_name_of_its_own_and_rules_that_can_be_read() {
    let user = User::new();
    user.run(&["profiles", "new", "Photos"]).ends(0);
    user.run(&["profiles", "new", " Music "]).ends(0);
    user.run(&["profiles", "show", "Music"]).ends(0);
    user.run(&["profiles", "export", "Photos", "p.toml"])
        .ends(0);
    let text = fs::read_to_string(user.work("p.toml")).unwrap();
    user.write("blank.toml", text.replace("\"Photos\"", "\"  \""));
    user.write("new.toml", text.replace("\"Photos\"", "\"New\""));
    let before = user.run(&["profiles", "list"]).ends(0).out;
    let wrong: &[&[&str]] = &[
        &["new", ""],
        &["new", " \t"],
        &["new", "Photos"],
        &["new", " Photos"],
        &["rename", "Photos", " "],
        &["rename", "Photos", "Music "],
        &["duplicate", "Photos", "Music"],
        &["import", "p.toml"],
        &["import", "blank.toml"],
        &["import", "new.toml", "new.toml"],
        &["set", "Photos", "--exclude", "["],
        &["set", "Photos", "--include", ""],
        &["set", "Photos", "--ssh-option", "x"],
        &["new", "Backup", "--exclude", "a//b"],
    ];
    for args in wrong {
        let ran = user.run(&[&["profiles"], *args].concat()).ends(2);
        assert!(ran.err.starts_with("Failed to "), "{args:?}: {}", ran.err);
    }
    let after = user.run(&["profiles", "list"]).ends(0).out;
    assert_eq!(after, before, "nothing was changed or half made");
    user.run(&["profiles", "rename", "Photos", "Photos "])
        .ends(0);
    user.run(&["profiles", "import", "new.toml"]).ends(0);
}
