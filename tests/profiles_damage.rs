//! Profiles that cannot be read: each says where and why, hides no other and is never overwritten.

#![allow(clippy::unwrap_used)]

#[path = "support/profile_home.rs"]
mod profile_home;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use transload::model::error::ErrorKind;
use transload::model::profile::{Profile, ProfileId};
use transload::store::profiles::{Damaged, Entry, Profiles};

use profile_home::{Home, names};

fn only_damaged(profiles: &mut Profiles) -> Damaged {
    let damaged: Vec<_> = profiles
        .list()
        .unwrap()
        .into_iter()
        .filter_map(|entry| match entry {
            Entry::Good(_) => None,
            Entry::Damaged(damaged) => Some(damaged),
        })
        .collect();
    assert_eq!(damaged.len(), 1, "{damaged:?}");
    damaged.into_iter().next().unwrap()
}

#[test]
fn each_kind_of_damage_says_where_and_why_and_hides_no_other_profile() {
    let good = "schema = 1\nname = \"x\"\nsources = []\ndestinations = []\n";
    let with = |more: &str| format!("{good}{more}\n").into_bytes();
    let cases: Vec<(Vec<u8>, usize, usize, &str)> = vec![
        (b"schema = 1\nname = \n".to_vec(), 2, 8, ""),
        (b"schema = 1\nname = \"x\"\nname = \"y\"\n".to_vec(), 3, 1, "duplicate key"),
        (b"name = \"x\"\n".to_vec(), 1, 11, "schema is missing"),
        (b"".to_vec(), 1, 1, "schema is missing"),
        (b"schema = 2\n".to_vec(), 1, 10, "newer Transload"),
        (b"schema = 0\n".to_vec(), 1, 10, "no such schema"),
        (b"schema = \"1\"\n".to_vec(), 1, 10, "whole number, not a string"),
        (b"schema = 1\nname = \"x\"\nsources = []\n".to_vec(), 3, 13, "destinations is missing"),
        (b"schema = 1\nsources = []\n".to_vec(), 2, 13, "name is missing"),
        (b"schema = 1\nname = \"\xff\"\n".to_vec(), 2, 9, "not UTF-8"),
        (b"schema = 1\nname = \"x\"\nsources = \"/a\"\n".to_vec(), 3, 11, "a list in [ ], not a str"),
        (with("verify = \"md6\""), 5, 10, "'md6' is none of"),
        (with("verify = 5"), 5, 10, "text in quotes, not an integer"),
        (with("read_back = \"yes\""), 5, 13, "true or false, not a string"),
        (with("conflict = \"maybe\""), 5, 12, "none of"),
        (with("encrypt = \"sometimes\""), 5, 11, "none of"),
        (with("limit = \"fast\""), 5, 9, "20M"),
        (with("limit = \"0\""), 5, 9, "not a rate"),
        (with("method = \"\""), 5, 10, "write \"auto\""),
        (with("preserve = 1"), 5, 12, "a table, not an integer"),
        (with("preserve.times = 1"), 5, 18, "preserve.times is true or false"),
        (with("options = { a = 1.5 }"), 5, 17, "options.a is a text"),
        (with("ssh.options = [\"a\", 2]"), 5, 21, "ssh.options holds texts"),
        (with("rules = [\"*.tmp\"]"), 5, 10, "rules holds tables, not a string"),
        (with("rules = [{ exclude = \"a\", include = \"b\" }]"), 5, 10, "a rule is"),
        (with("rules = [{ exclude = \"\" }]"), 5, 10, "a rule is"),
        (
            b"schema = 1\nname = \"x\"\nsources = [\"/a\", \"smb://n/x\"]\ndestinations = []\n".to_vec(),
            3,
            18,
            "sources: smb:// addresses belong to the file manager; open it in the file manager",
        ),
        (
            "schema = 1\nname = \"ö\"\nsources = []\ndestinations = [ \"ö\", \"-oProxyCommand=x:\" ]\n"
                .into(),
            4,
            23,
            "starts with '-'",
        ),
    ];
    for (bytes, line, column, why) in cases {
        let home = Home::new();
        home.write("good-00000001.toml", good);
        let path = home.write("bad-00000002.toml", &bytes);
        let mut profiles = home.open();
        let shown = String::from_utf8_lossy(&bytes);
        assert_eq!(profiles.get("00000001").unwrap().name, "x");
        let damaged = only_damaged(&mut profiles);
        assert!(damaged.reason.contains(why), "{shown}: {damaged}");
        assert!(
            !damaged.reason.is_empty() && !damaged.reason.contains('\n'),
            "{damaged}"
        );
        assert_eq!(
            (damaged.line, damaged.column),
            (line, column),
            "{shown}: {damaged}"
        );
        assert_eq!(damaged.file, path);
        assert!(
            damaged
                .to_string()
                .contains(&format!("bad-00000002.toml:{line}:{column}: "))
        );

        // It is never overwritten, renamed or copied; reading it is an error that says the same.
        let id = ProfileId("00000002".into());
        let fresh = Profile {
            id: id.clone(),
            name: "n".into(),
            ..Profile::default()
        };
        assert_eq!(profiles.save(&fresh).unwrap_err().kind, ErrorKind::Config);
        assert!(profiles.rename(&id, "n").is_err());
        assert!(profiles.duplicate(&id).is_err());
        assert!(
            profiles
                .get("00000002")
                .unwrap_err()
                .to_string()
                .contains(".toml:")
        );
        assert_eq!(fs::read(&path).unwrap(), bytes);
        // But it can be deleted and taken back.
        let deleted = profiles.delete(&id).unwrap();
        assert_eq!(names(&mut profiles), ["x"]);
        profiles.restore(&deleted).unwrap();
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn files_that_are_none_of_ours_are_not_followed_and_not_waited_for() {
    let home = Home::new();
    let good = "schema = 1\nname = \"x\"\nsources = []\ndestinations = []\n";
    let outside = home.top.path().join("outside.toml");
    fs::write(&outside, good).unwrap();
    let link = home.folder().join("link-00000001.toml");
    let mut profiles = home.open();
    for target in [
        outside.as_path(),
        Path::new("/dev/zero"),
        Path::new("/nowhere"),
    ] {
        symlink(target, &link).unwrap();
        let damaged = only_damaged(&mut profiles);
        assert!(damaged.reason.contains("symbolic link"), "{damaged}");
        assert_eq!(damaged.line, 0);
        fs::remove_file(&link).unwrap();
    }
    fs::create_dir(&link).unwrap();
    assert!(only_damaged(&mut profiles).reason.contains("regular file"));
    fs::remove_dir(&link).unwrap();
    let large = home.write("large-00000002.toml", vec![b'#'; (1 << 20) + 1]);
    assert!(
        only_damaged(&mut profiles)
            .reason
            .contains("larger than 1 MiB")
    );
    fs::remove_file(large).unwrap();
    let odd = home.write("no id.toml", good);
    let damaged = only_damaged(&mut profiles);
    assert!(
        damaged.reason.contains("8 digits") && damaged.id.is_none(),
        "{damaged}"
    );
    fs::remove_file(odd).unwrap();
    let first = home.write("a-00000003.toml", good);
    home.write("b-00000003.toml", good);
    let damaged = only_damaged(&mut profiles);
    assert!(damaged.reason.contains("same id") && damaged.file.ends_with("b-00000003.toml"));
    fs::remove_file(first).unwrap();
    assert_eq!(
        names(&mut profiles),
        ["x"],
        "the copy counts once the first is gone"
    );
    if fs::metadata(home.folder()).unwrap().uid() == 0 {
        let foreign = home.write("foreign-00000004.toml", good);
        std::os::unix::fs::chown(&foreign, Some(1), None).unwrap();
        assert!(only_damaged(&mut profiles).reason.contains("another user"));
    }
    home.write("half.toml~", "x");
    home.write(".hidden-00000005.toml", "x");
}
