//! Profiles on disk: what is saved comes back, what is damaged says where, and nothing that a
//! person wrote into a file is lost.

#![allow(clippy::unwrap_used)]

#[path = "support/profile_home.rs"]
mod profile_home;

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::time::Instant;

use transload::model::digest::Algorithm;
use transload::model::error::ErrorKind;
use transload::model::location::Location;
use transload::model::profile::{MethodChoice, Profile, ProfileId};
use transload::model::rules::{Rule, RuleVerb};
use transload::model::units::Rate;
use transload::store::profiles::{self, Entry};
use transload::store::samples;

use profile_home::{Home, names};

fn place(text: &str) -> Location {
    Location::parse(text.as_bytes()).unwrap()
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
        ".",
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
    let first = profiles.create("same").unwrap();
    // As when somebody copies a file by hand.
    let copy = ProfileId("0badf00d".into());
    home.write("same-0badf00d.toml", profiles::to_text(&first));
    let ids = [first.id, copy];
    let error = profiles.get("same").unwrap_err();
    let hint = error.hint.unwrap();
    assert!(
        hint.contains(&ids[0].0) && hint.contains(&ids[1].0),
        "{hint}"
    );
    assert_eq!(profiles.get(&ids[0].0).unwrap().id, ids[0]);
    // It can be changed all the same, and get a name of its own.
    let mut twin = profiles.get(&ids[1].0).unwrap();
    twin.notes = "a twin".into();
    profiles.save(&twin).unwrap();
    profiles.rename(&ids[1], "other").unwrap();
}

#[test]
fn a_name_that_shows_nothing_or_is_taken_is_refused_wherever_one_is_given() {
    let home = Home::new();
    let mut profiles = home.open();
    let photos = profiles.create("Photos").unwrap();
    let music = profiles.create("Music").unwrap();
    for bad in ["", " ", "\t\n", "\u{200b}\u{feff}", "Photos", " Photos  "] {
        let named = |name: &str| Profile {
            name: name.to_owned(),
            ..music.clone()
        };
        let errors = [
            profiles.create(bad).unwrap_err(),
            profiles.add(&named(bad)).unwrap_err(),
            profiles.rename(&music.id, bad).unwrap_err(),
            profiles.save(&named(bad)).unwrap_err(),
            profiles.check_new_names(&[bad]).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind, ErrorKind::Config, "{bad:?}: {error}");
            assert!(error.hint.is_some());
        }
    }
    assert!(profiles.check_new_names(&["a", "b", "a "]).is_err());
    assert_eq!(names(&mut profiles), ["Photos", "Music"]);
    profiles.rename(&photos.id, " Photos ").unwrap();
    let copy = profiles.duplicate(&photos.id).unwrap();
    assert_eq!(copy.name, "Photos (copy)");
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
    profile.name = "b".into();
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
