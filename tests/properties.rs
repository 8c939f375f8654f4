//! Properties that hold for all inputs: places and paths read back as written, and nothing that
//! comes from elsewhere makes a reader panic.

use proptest::collection::vec;
use proptest::prelude::*;
use transload::model::location::{Host, Location};
use transload::model::relpath::RelPath;
use transload::model::untrusted::{SHOWN_CHARS, Untrusted, shown};

/// Bytes that paths are made of, with those that mean something in places more often than others.
fn path_bytes() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        6 => prop::sample::select(b"~/.:@[]%?# 2aF-".as_slice()),
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
        bytes in vec(prop_oneof![prop::sample::select(b"./\0a".as_slice()), any::<u8>()], 0..40)
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
