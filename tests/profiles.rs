//! Profiles on disk: what is saved comes back, what is damaged says where, and nothing that a
//! person wrote into a file is lost.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Instant;

use transload::model::digest::Algorithm;
use transload::model::error::ErrorKind;
use transload::model::location::Location;
use transload::model::profile::{MethodChoice, Profile, ProfileId};
use transload::model::rules::{Rule, RuleVerb};
use transload::model::units::Rate;
use transload::store::dirs::Dirs;
use transload::store::profiles::{self, Damaged, Entry, Profiles};
use transload::store::samples;

struct Home {
    top: tempfile::TempDir,
    dirs: Dirs,
}

impl Home {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let dirs = Dirs::below(top.path()).unwrap();
        Self { top, dirs }
    }

    fn open(&self) -> Profiles {
        Profiles::open(&self.dirs).unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.top.path().join("config/profiles")
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        fs::create_dir_all(self.folder()).unwrap();
        let path = self.folder().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

fn place(text: &str) -> Location {
    Location::parse(text.as_bytes()).unwrap()
}

fn names(profiles: &mut Profiles) -> Vec<String> {
    profiles
        .list()
        .unwrap()
        .into_iter()
        .map(|entry| match entry {
            Entry::Good(profile) => profile.name,
            Entry::Damaged(damaged) => format!("damaged: {}", damaged.reason),
        })
        .collect()
}

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
fn every_starter_profile_reads_and_is_put_into_a_new_folder_once() {
    let home = Home::new();
    let mut profiles = home.open();
    assert!(profiles.ensure_samples().unwrap());
    assert!(!profiles.ensure_samples().unwrap());
    let entries = profiles.list().unwrap();
    assert_eq!(entries.len(), samples::ALL.len());
    for (entry, sample) in entries.iter().zip(samples::ALL) {
        let Entry::Good(profile) = entry else {
            panic!("{entry:?}")
        };
        assert_eq!(*profile, sample.profile(profile.id.clone()).unwrap());
        let in_repository = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("profiles")
            .join(format!("{}.toml", sample.name));
        let loaded = profiles::read_given(&in_repository).unwrap();
        assert_eq!(loaded.unknown, Vec::<String>::new(), "{}", sample.name);
    }
    let files = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("profiles")).unwrap();
    assert_eq!(
        files.count(),
        samples::ALL.len(),
        "every file in profiles/ is a starter"
    );
    for entry in entries {
        profiles.delete(entry.id().unwrap()).unwrap();
    }
    assert!(
        !home.open().ensure_samples().unwrap(),
        "what was deleted does not come back"
    );
}

#[test]
fn the_first_starter_profile_can_be_started_as_it_is_and_the_others_ask_for_a_place() {
    for sample in samples::ALL {
        let profile = sample.profile(ProfileId::default()).unwrap();
        let is_complete = !profile.sources.is_empty() && !profile.destinations.is_empty();
        assert_eq!(
            is_complete,
            sample.name == samples::TRY_IT.name,
            "{}",
            sample.name
        );
        for place in profile.sources.iter().chain(&profile.destinations) {
            assert!(place.is_local(), "{}: {place}", sample.name);
        }
    }
    let profile = samples::TRY_IT.profile(ProfileId::default()).unwrap();
    let folder = profile.sources[0].local_path(Path::new("/")).unwrap();
    assert!(
        fs::read_dir(&folder).unwrap().count() > 3,
        "{}",
        folder.display()
    );
    assert_eq!(profile.settings.verify, Algorithm::Md5);
}

#[test]
fn names_of_any_kind_are_kept_and_files_have_safe_ones() {
    let home = Home::new();
    let mut profiles = home.open();
    let wild = [
        "a/b",
        "..",
        "",
        "😀👩‍💻",
        &"字".repeat(300),
        "\u{202e}x\n\t\"'",
        "-rf",
        "CON",
    ];
    let made: Vec<_> = wild
        .iter()
        .map(|name| profiles.create(name).unwrap())
        .collect();
    assert_eq!(names(&mut profiles), wild);
    assert_eq!(names(&mut home.open()), wild);
    for profile in made {
        let file = profiles.file_of(&profile.id).unwrap();
        assert_eq!(file.parent().unwrap(), home.folder());
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(name.len() < 60 && !name.starts_with(['-', '.']), "{name}");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(profiles.get(&profile.id.0).unwrap(), profile);
    }
    assert_eq!(fs::metadata(home.folder()).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn all_fields_come_back_and_so_do_paths_that_are_not_utf8() {
    let home = Home::new();
    let mut profiles = home.open();
    let mut profile = profiles.create("Photos").unwrap();
    profile.notes = "two\nlines \"\"\" and # no comment".into();
    profile.sources = vec![
        Location::Local(b"/a\xff\n ".to_vec()),
        Location::Local(b"rel\xff".to_vec()),
        Location::Local(b"~/\xff".to_vec()),
        place("nas:x y"),
    ];
    profile.destinations = vec![place("ssh://me@[fe80::1%25eth0]:2222/a"), place("~/b ")];
    let settings = &mut profile.settings;
    settings.method = MethodChoice::Named("tcp".into());
    settings.options.0.insert("odd key.".into(), "value".into());
    settings.limit = Some(Rate(5 << 20));
    settings.durable = false;
    settings.contents = true;
    settings.verify = Algorithm::Xxh3;
    settings.preserve.links = false;
    settings.ssh.identity = Some("/k".into());
    settings.ssh.options = vec!["A=b".into()];
    settings.rules = vec![
        Rule {
            verb: RuleVerb::Include,
            pattern: "/a/**".into(),
        },
        Rule {
            verb: RuleVerb::Exclude,
            pattern: "* \"x\"".into(),
        },
    ];
    profiles.save(&profile).unwrap();
    assert_eq!(home.open().get("Photos").unwrap(), profile);
    // And back to the defaults.
    let plain = Profile {
        id: profile.id.clone(),
        name: "Photos".into(),
        ..Profile::default()
    };
    profiles.save(&plain).unwrap();
    assert_eq!(home.open().get("Photos").unwrap(), plain);
}

#[test]
fn comments_unknown_keys_and_formatting_survive_every_change() {
    let home = Home::new();
    let text = r#"# My own words.
schema = 1
name = "Old"   # behind the name
sources = [
    "/a", # one
    # above two
    "/b", # two
    "/c",
]
destinations = ['nas:/x']
future = { deep = [1, 2] } # of a later version

[hooks]
before = "do not touch" # really

[preserve] # all
times = true
owners = true
"#;
    let path = home.write("old-0123abcd.toml", text);
    let mut profiles = home.open();
    let mut profile = profiles.get("Old").unwrap();
    profiles.save(&profile).unwrap();
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        text,
        "nothing changed, nothing is written"
    );

    profile.sources.remove(1);
    profile.sources.push(place("/d"));
    profile.settings.preserve.times = false;
    profile.settings.limit = Some(Rate(1 << 20));
    profiles.save(&profile).unwrap();
    assert_eq!(
        home.open().get("old").unwrap(),
        profile,
        "found by the name of its file"
    );
    let now = fs::read_to_string(&path).unwrap();
    for kept in [
        "# My own words.\n",
        "name = \"Old\"   # behind the name\n",
        "\n    \"/a\", # one\n    \"/c\",\n    \"/d\",\n]\n",
        "destinations = ['nas:/x']\n",
        "future = { deep = [1, 2] } # of a later version\n",
        "before = \"do not touch\" # really\n",
        "[preserve] # all\ntimes = false\nowners = true\n",
    ] {
        assert!(now.contains(kept), "{kept:?} is not in\n{now}");
    }

    let renamed = profiles.rename(&profile.id, "New/er").unwrap();
    assert_eq!(renamed.name, "New/er");
    assert!(!path.exists());
    let copy = profiles.duplicate(&profile.id).unwrap();
    assert_eq!(copy.name, "New/er (copy)");
    assert_eq!(
        profiles.duplicate(&profile.id).unwrap().name,
        "New/er (copy 2)"
    );
    for id in [&profile.id, &copy.id] {
        let text = fs::read_to_string(profiles.file_of(id).unwrap()).unwrap();
        assert!(
            text.contains("# My own words.") && text.contains("do not touch"),
            "{text}"
        );
    }
    assert_eq!(
        names(&mut profiles),
        ["New/er", "New/er (copy 2)", "New/er (copy)"]
    );
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

#[test]
fn the_order_is_kept_and_a_wrong_order_file_harms_nothing() {
    let home = Home::new();
    let mut profiles = home.open();
    let ids: Vec<_> = ["a", "b", "c"]
        .map(|name| profiles.create(name).unwrap().id)
        .into();
    assert_eq!(names(&mut profiles), ["a", "b", "c"]);
    profiles.reorder(&[ids[2].clone(), ids[0].clone()]).unwrap();
    assert_eq!(names(&mut home.open()), ["c", "a", "b"]);
    let order = home.top.path().join("config/order.toml");
    for text in [
        "",
        "order = 3",
        "order = [1, \"x\"",
        "\u{0}",
        "order = [\"00000000\", 7]",
    ] {
        fs::write(&order, text).unwrap();
        assert_eq!(names(&mut home.open()).len(), 3, "{text:?}");
    }
    profiles.reorder(&[ids[1].clone()]).unwrap();
    assert_eq!(names(&mut profiles)[0], "b");
}

#[test]
fn a_deleted_profile_comes_back_to_its_place_with_its_text() {
    let home = Home::new();
    let mut profiles = home.open();
    let ids: Vec<_> = ["a", "b", "c"]
        .map(|name| profiles.create(name).unwrap().id)
        .into();
    let path = profiles.file_of(&ids[1]).unwrap();
    let text = format!("# mine\n{}", fs::read_to_string(&path).unwrap());
    fs::write(&path, &text).unwrap();
    let deleted = profiles.delete(&ids[1]).unwrap();
    assert_eq!(deleted.name, "b");
    assert_eq!(names(&mut profiles), ["a", "c"]);
    assert_eq!(profiles.get("b").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(
        profiles.delete(&ids[1]).unwrap_err().kind,
        ErrorKind::NotFound
    );
    // Undo also works in a program that was started since.
    let mut later = home.open();
    later.restore(&deleted).unwrap();
    assert_eq!(names(&mut later), ["a", "b", "c"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(
        later.restore(&deleted).unwrap_err().kind,
        ErrorKind::NotFound
    );
}

#[test]
fn changes_from_outside_are_noticed_and_not_overwritten() {
    let home = Home::new();
    let mut profiles = home.open();
    let mut profile = profiles.create("a").unwrap();
    assert!(!profiles.changed());
    let mut other = home.open();
    other.create("b").unwrap();
    assert!(profiles.changed());
    assert_eq!(names(&mut profiles), ["a", "b"]);
    assert!(!profiles.changed());
    let path = profiles.file_of(&profile.id).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("md5", "blake3")).unwrap();
    assert!(profiles.changed());
    profile = profiles.get("a").unwrap();
    assert_eq!(profile.settings.verify, Algorithm::Blake3);
    profile.name = "c".into();
    profiles.save(&profile).unwrap();
    assert!(!profiles.changed());
}

#[test]
fn equal_names_are_told_apart_by_id() {
    let home = Home::new();
    let mut profiles = home.open();
    let ids = [
        profiles.create("same").unwrap().id,
        profiles.create("same").unwrap().id,
    ];
    let error = profiles.get("same").unwrap_err();
    let hint = error.hint.unwrap();
    assert!(
        hint.contains(&ids[0].0) && hint.contains(&ids[1].0),
        "{hint}"
    );
    assert_eq!(profiles.get(&ids[0].0).unwrap().id, ids[0]);
}

#[test]
fn a_file_that_the_user_names_is_read_from_anywhere_but_only_if_it_is_one() {
    let home = Home::new();
    let mut profile = home.open().create("a").unwrap();
    profile.sources = vec![place("/x")];
    let path = home.top.path().join("mine.toml");
    fs::write(&path, profiles::to_text(&profile)).unwrap();
    let loaded = profiles::read_given(&path).unwrap();
    assert_eq!(
        loaded.profile,
        Profile {
            id: ProfileId::default(),
            ..profile.clone()
        }
    );
    let link = home.top.path().join("link.toml");
    symlink(&path, &link).unwrap();
    assert!(profiles::read_given(&link).is_ok());
    fs::write(&path, "schema = 1\nname = 3\n").unwrap();
    let error = profiles::read_given(&path).unwrap_err();
    assert!(error.to_string().contains("mine.toml:2:8"), "{error}");
    for bad in [
        Path::new("/dev/zero"),
        Path::new("/"),
        Path::new("/nowhere"),
    ] {
        assert!(profiles::read_given(bad).is_err());
    }
    let added = home.open().add(&profile).unwrap();
    assert_ne!(added.id, profile.id);
    assert_eq!(home.open().list().unwrap().len(), 2);
}

#[test]
fn a_thousand_profiles_load_at_once() {
    let home = Home::new();
    let text = samples::TRY_IT.text;
    for n in 0..1000 {
        home.write(&format!("p-{n:08x}.toml"), text);
    }
    let start = Instant::now();
    let mut profiles = home.open();
    let opened = start.elapsed();
    let start = Instant::now();
    assert_eq!(profiles.list().unwrap().len(), 1000);
    let listed = start.elapsed();
    let start = Instant::now();
    assert!(!profiles.changed());
    println!(
        "1000 profiles: {opened:?} to open, {listed:?} to list, {:?} to look",
        start.elapsed()
    );
    assert!(opened.as_secs() < 5, "{opened:?}");
}
