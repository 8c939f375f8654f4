//! Properties that hold for all inputs: places and paths read back as written, and nothing that
//! comes from elsewhere makes a reader panic.

#![allow(clippy::unwrap_used)]

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use transload::model::digest::Algorithm;
use transload::model::error::{Error, ErrorKind};
use transload::model::job::{Consent, JobId, JobSpec};
use transload::model::location::{Host, Location};
use transload::model::options::Options;
use transload::model::outcome::{Abort, Outcome, Report, Route, Tally};
use transload::model::profile::{
    Encrypt, MethodChoice, Preserve, Profile, ProfileId, Settings, SshSettings,
};
use transload::model::relpath::RelPath;
use transload::model::rules::{Conflict, Rule, RuleVerb};
use transload::model::units::Rate;
use transload::model::untrusted::{SHOWN_CHARS, Untrusted, shown};
use transload::store::{profiles, spec};

/// Bytes that paths are made of, with those that mean something in places more often than others.
fn path_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        6 => select(b"~/.:@[]%?# 2aF-".as_slice()),
        2 => 1u8..=255,
    ];
    vec(byte, 1..40)
}

fn user() -> impl Strategy<Value = String> {
    "[a-zA-Z0-9_.ä][a-zA-Z0-9_.@#?+=-]{0,12}"
}

fn host_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9_.ü][a-z0-9._-]{0,20}",
        any::<std::net::Ipv4Addr>().prop_map(|a| a.to_string()),
        any::<std::net::Ipv6Addr>().prop_map(|a| a.to_string()),
        (any::<std::net::Ipv6Addr>(), "[a-z0-9._-]{1,15}").prop_map(|(a, z)| format!("{a}%{z}")),
        "25[0-9a-f]{0,3}".prop_map(|zone| format!("fe80::1%{zone}")),
    ]
}

fn port() -> impl Strategy<Value = Option<u16>> {
    prop::option::of(1u16..)
}

fn host() -> impl Strategy<Value = Host> {
    (prop::option::of(user()), host_name(), port()).prop_map(|(user, name, port)| Host {
        user,
        name,
        port,
    })
}

fn location() -> impl Strategy<Value = Location> {
    // A module has a name, and a path below the home folder is relative.
    let module = path_bytes().prop_filter("a module", |path| path[0] != b'/');
    let far_path = prop_oneof![9 => path_bytes(), 1 => Just(Vec::new())];
    prop_oneof![
        3 => path_bytes().prop_map(Location::Local),
        3 => (host(), far_path.clone()).prop_map(|(host, path)| Location::Ssh { host, path }),
        1 => (host(), module).prop_map(|(host, path)| Location::RsyncDaemon { host, path }),
        1 => (host(), far_path.clone(), any::<bool>())
            .prop_map(|(host, path, tls)| Location::Ftp { host, path, tls }),
        1 => (host(), far_path).prop_map(|(host, path)| Location::Tftp { host, path }),
        1 => (host(), 1u16..).prop_map(|(host, port)| Location::Tcp {
            host: Host { port: Some(port), ..host }
        }),
    ]
}

/// Any text that a person or a file may give, controls and quotes more often than chance.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[a-z \\\\\"'#=\\[\\]\n\r\t\u{0}\u{7f}\u{1b}\u{202e}😀]{0,30}",
    ]
}

fn filled() -> impl Strategy<Value = String> {
    text().prop_filter("not empty", |text| !text.is_empty())
}

fn rule() -> impl Strategy<Value = Rule> {
    let verb = select(vec![RuleVerb::Exclude, RuleVerb::Include]);
    (verb, filled()).prop_map(|(verb, pattern)| Rule { verb, pattern })
}

fn settings() -> impl Strategy<Value = Settings> {
    let choices = (
        select(Algorithm::ALL.as_slice()),
        select(Conflict::ALL.as_slice()),
        select(vec![Encrypt::Auto, Encrypt::Always, Encrypt::Never]),
        filled().prop_map(MethodChoice::from),
        prop::option::of((1u64..1 << 49).prop_map(Rate)),
    );
    let lists = (
        btree_map(text(), text(), 0..4),
        vec(rule(), 0..4),
        vec(text(), 0..4),
    );
    let files = (prop::option::of(text()), prop::option::of(text()));
    (choices, lists, files, any::<[bool; 6]>()).prop_map(
        |(
            (verify, conflict, encrypt, method, limit),
            (values, rules, more),
            (identity, config),
            [contents, read_back, durable, times, permissions, links],
        )| Settings {
            method,
            options: Options(values),
            contents,
            verify,
            read_back,
            conflict,
            preserve: Preserve {
                times,
                permissions,
                links,
            },
            rules,
            limit,
            encrypt,
            durable,
            ssh: SshSettings {
                identity,
                config,
                options: more,
            },
        },
    )
}

fn profile() -> impl Strategy<Value = Profile> {
    (
        text(),
        text(),
        vec(location(), 0..4),
        vec(location(), 0..3),
        settings(),
    )
        .prop_map(|(name, notes, sources, destinations, settings)| Profile {
            id: ProfileId::default(),
            name,
            notes,
            sources,
            destinations,
            settings,
        })
}

fn job() -> impl Strategy<Value = JobSpec> {
    let profile = prop::option::of("[0-9a-f]{8}".prop_map(ProfileId));
    let places = (vec(location(), 0..4), location());
    (
        any::<[u8; 16]>(),
        text(),
        profile,
        places,
        settings(),
        any::<[bool; 5]>(),
    )
        .prop_map(
            |(id, title, profile, (sources, destination), settings, flags)| {
                let [dry_run, attended, upload_agent, plain_tcp, resume] = flags;
                JobSpec {
                    id: JobId(id),
                    title,
                    profile,
                    sources,
                    destination,
                    settings,
                    dry_run,
                    attended,
                    consent: Consent {
                        upload_agent,
                        plain_tcp,
                    },
                    resume,
                }
            },
        )
}

fn error() -> impl Strategy<Value = Error> {
    let foreign = || vec(any::<u8>(), 0..20);
    (
        select(ErrorKind::ALL.as_slice()),
        text(),
        foreign(),
        foreign(),
        prop::option::of(text()),
    )
        .prop_map(|(kind, doing, place, cause, hint)| {
            let mut error = Error::new(kind, doing, cause).at(place);
            error.hint = hint;
            error
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_profile_reads_back_as_it_was_written_and_after_any_change(
        before in profile(), after in profile()
    ) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.toml");
        std::fs::write(&file, profiles::to_text(&before)).unwrap();
        prop_assert_eq!(&profiles::read_given(&file).unwrap().profile, &before);

        let dirs = transload::store::dirs::Dirs::below(dir.path()).unwrap();
        let mut saved = profiles::Profiles::open(&dirs).unwrap();
        let id = ProfileId("0123abcd".into());
        for profile in [&before, &after, &before] {
            // A name that shows nothing is not taken.
            let name = format!("n{}", profile.name);
            let profile = Profile { id: id.clone(), name, ..profile.clone() };
            saved.save(&profile).unwrap();
            prop_assert_eq!(saved.get(&id.0).unwrap(), profile);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_bytes_make_the_reader_of_profiles_panic(
        junk in vec(any::<u8>(), 0..200), at in any::<prop::sample::Index>()
    ) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.toml");
        let good = transload::store::samples::TRY_IT.text.as_bytes();
        let at = at.index(good.len());
        for bytes in [junk.clone(), [&good[..at], &junk, &good[at..]].concat()] {
            std::fs::write(&file, bytes).unwrap();
            if let Err(error) = profiles::read_given(&file) {
                prop_assert!(error.place.to_string().contains("a.toml:"), "{}", error);
            }
        }
    }

    #[test]
    fn every_job_of_the_history_reads_back_as_it_was_kept(job in job()) {
        prop_assert_eq!(spec::from_json(&spec::to_json(&job)).unwrap(), job);
    }

    #[test]
    fn every_ending_of_the_history_reads_back_as_it_was_kept(
        error in error(), which in 0..9usize, counts in any::<[u64; 11]>(), texts in [text(), text()],
        route in select(vec![Route::Direct, Route::Reversed, Route::Ssh, Route::Local]),
        time in any::<[u16; 2]>(), missing in any::<Option<u64>>(),
    ) {
        prop_assert_eq!(spec::error_from_json(&spec::error_to_json(&error)).unwrap(), error.clone());
        let outcome = match which {
            0 => Outcome::Completed,
            1 => Outcome::Partial(None),
            2 => Outcome::Aborted(Abort::User),
            3 => Outcome::Aborted(Abort::Shutdown),
            4 => Outcome::Aborted(Abort::LeftRunning),
            5 => Outcome::Aborted(Abort::Unanswered),
            6 => Outcome::Refused(error),
            7 => Outcome::Partial(Some(error)),
            _ => Outcome::Failed(error),
        };
        let [files, bytes, wire_bytes, verified, differs, failed, skipped, vanished, changed,
            unchecked, deleted] = counts;
        let [method, why] = texts;
        let report = Report {
            files,
            bytes,
            wire_bytes,
            kept: files ^ bytes,
            // Short enough for the text to be exact; the last bit of others may change.
            seconds: f64::from(time[0]) / 64.0,
            connect_seconds: f64::from(time[1]) / 64.0,
            method,
            route,
            why,
            tally: Tally {
                verified, differs, failed, skipped, vanished, changed, unchecked, deleted,
            },
            missing,
        };
        let text = spec::end_to_json(&outcome, &report);
        prop_assert_eq!(spec::end_from_json(&text).unwrap(), (outcome, report));
    }

    #[test]
    fn half_a_job_is_no_job(job in job(), at in any::<prop::sample::Index>()) {
        let text = spec::to_json(&job);
        let cut = (0..=at.index(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        prop_assert!(spec::from_json(&text[..cut]).is_err());
        prop_assert!(spec::from_json(&text.replacen("\"dry_run\":", "\"dry\":", 1)).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_place_reads_back_as_it_was_written(place in location()) {
        prop_assert_eq!(Location::parse(&place.to_bytes()).unwrap(), place.clone());
        prop_assert_eq!(Location::parse(place.to_text().as_bytes()).unwrap(), place.clone());
        prop_assert_eq!(Location::parse(place.to_url().as_bytes()).unwrap(), place);
    }

    #[test]
    fn reading_a_place_never_panics_and_never_gives_one_that_cannot_be_written(
        text in prop_oneof![
            vec(any::<u8>(), 0..200),
            path_bytes(),
            ("(file|ssh|sftp|rsync|ftp|ftps|tftp|tcp|smb)://", path_bytes())
                .prop_map(|(scheme, rest)| [scheme.as_bytes(), &rest].concat()),
        ]
    ) {
        if let Ok(place) = Location::parse(&text) {
            prop_assert!(!place.path().contains(&0));
            if let Some(host) = place.host() {
                prop_assert!(host.check().is_ok());
            }
            prop_assert_eq!(Location::parse(&place.to_bytes()).unwrap(), place);
        }
    }

    #[test]
    fn a_path_off_the_wire_stays_below_its_root(
        bytes in vec(prop_oneof![select(b"./\0a".as_slice()), any::<u8>()], 0..40)
    ) {
        if let Ok(path) = RelPath::new(bytes.clone()) {
            prop_assert_eq!(path.as_bytes(), &bytes[..]);
            prop_assert!(!bytes.contains(&0));
            for name in path.components() {
                prop_assert!(!matches!(name, b"" | b"." | b".."));
                prop_assert!(name.len() <= 255);
            }
            let again = path.parent().map(|parent| parent.join(path.name()).unwrap());
            prop_assert_eq!(again.unwrap_or_else(|| RelPath::new(path.name()).unwrap()), path);
        }
    }

    #[test]
    fn foreign_text_is_shown_on_one_line_without_controls(bytes in vec(any::<u8>(), 0..300)) {
        let text = shown(&bytes);
        prop_assert!(!text.chars().any(char::is_control));
        prop_assert_eq!(Untrusted::from(bytes).to_string(), text);
    }

    #[test]
    fn foreign_text_keeps_its_letters_and_loses_what_turns_the_line(text in "\\PC{0,60}") {
        let seen = shown(text.as_bytes());
        let turning = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'];
        prop_assert!(!seen.contains(turning));
        if text.chars().all(char::is_alphanumeric) {
            prop_assert_eq!(seen, text);
        }
    }
}

#[test]
fn foreign_text_of_any_length_is_shown_short() {
    let long = "é\n".repeat(SHOWN_CHARS);
    assert!(shown(long.as_bytes()).len() < SHOWN_CHARS * 4);
    assert!(shown(&vec![0xff; 1 << 20]).len() <= SHOWN_CHARS * 4 + 4);
}
