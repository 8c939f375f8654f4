//! Files of every released format still read as what they meant.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use transload::model::digest::Algorithm;
use transload::model::job::{Consent, JobId, JobSpec};
use transload::model::location::{Host, Location};
use transload::model::options::Options;
use transload::model::profile::{
    Encrypt, MethodChoice, Preserve, Profile, ProfileId, Settings, SshSettings,
};
use transload::model::rules::{Conflict, Rule, RuleVerb};
use transload::model::units::Rate;
use transload::store::{profiles, spec};

/// Every file in `tests/old_files`, with the test that reads it.
const TESTED: [&str; 2] = ["job-1.json", "profile-1.toml"];

fn file(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/old_files")
        .join(name)
}

fn nas() -> Location {
    let host = Host {
        user: Some("me".into()),
        name: "nas.local".into(),
        port: Some(2222),
    };
    Location::Ssh {
        host,
        path: b"photo".to_vec(),
    }
}

fn cafe() -> Location {
    Location::Local(b"/home/me/caf\xe9.jpg".to_vec())
}

fn rule(verb: RuleVerb, pattern: &str) -> Rule {
    Rule {
        verb,
        pattern: pattern.into(),
    }
}

fn settings() -> Settings {
    Settings {
        method: MethodChoice::Named("tcp".into()),
        options: Options([("streams".to_owned(), "4".to_owned())].into()),
        contents: true,
        verify: Algorithm::Blake3,
        read_back: true,
        conflict: Conflict::Newer,
        preserve: Preserve {
            times: true,
            permissions: false,
            links: true,
        },
        rules: vec![rule(RuleVerb::Exclude, "*.tmp")],
        limit: Some(Rate(1536 * 1024)),
        encrypt: Encrypt::Always,
        durable: false,
        ssh: SshSettings {
            identity: Some("/home/me/.ssh/nas".into()),
            config: None,
            options: vec!["Compression=no".into()],
        },
    }
}

#[test]
fn every_old_file_has_a_test() {
    let mut names: Vec<_> = std::fs::read_dir(file(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, TESTED);
}

#[test]
fn a_profile_of_schema_1_still_means_the_same() {
    let loaded = profiles::read_given(&file("profile-1.toml")).unwrap();
    assert_eq!(loaded.unknown, ["colour", "preserve.owners"]);
    let mut expected = settings();
    expected
        .rules
        .insert(0, rule(RuleVerb::Include, "/keep/**"));
    expected.options.0.insert("port".into(), "5000".into());
    expected.options.0.insert("fast".into(), "true".into());
    expected.ssh.config = Some("/home/me/.ssh/other".into());
    expected.ssh.options.push("ConnectTimeout=5".into());
    let old = Host {
        name: "old".into(),
        ..Host::default()
    };
    assert_eq!(
        loaded.profile,
        Profile {
            id: ProfileId::default(),
            name: "Photos → nas / 📷".into(),
            notes: "First line.\nSecond line.".into(),
            sources: vec![
                Location::Local(b"/home/me/Pictures".to_vec()),
                cafe(),
                Location::Local(b"a:b".to_vec()),
            ],
            destinations: vec![
                nas(),
                Location::RsyncDaemon {
                    host: old,
                    path: b"module/path \"x\"".to_vec()
                },
            ],
            settings: expected,
        }
    );
}

#[test]
fn a_job_of_schema_1_still_means_the_same_and_is_still_written_so() {
    let text = std::fs::read_to_string(file("job-1.json")).unwrap();
    let expected = JobSpec {
        id: JobId([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]),
        title: "Photos → nas".into(),
        profile: Some(ProfileId("0123abcd".into())),
        sources: vec![Location::Local(b"/home/me/Pictures".to_vec()), cafe()],
        destination: nas(),
        settings: settings(),
        dry_run: true,
        attended: true,
        consent: Consent {
            upload_agent: true,
            plain_tcp: false,
        },
        resume: true,
    };
    assert_eq!(spec::from_json(&text).unwrap(), expected);
    assert_eq!(spec::to_json(&expected), text.trim_end());
}
