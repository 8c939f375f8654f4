//! Every message reads back as written, keeps its bytes for ever, and breaks cleanly.

use super::*;
use crate::model::entry::EntryKind;
use crate::model::error::ErrorKind;
use crate::model::relpath::RelPath;
use crate::model::rules::RuleVerb;
use crate::model::verdict::When;
use proptest::prelude::*;

fn bytes(message: &Message) -> Vec<u8> {
    let mut out = Vec::new();
    message.encode(&mut out);
    out
}

fn digest(n: u8) -> Digest {
    Digest::new(Algorithm::Md5, &[n; 16]).unwrap()
}

fn entry(path: &str, kind: EntryKind) -> Entry {
    Entry {
        path: RelPath::new(path.as_bytes()).unwrap(),
        kind,
        size: 300,
        mtime: FileTime { secs: -2, nanos: 5 },
        mode: 0o644,
        link: (kind == EntryKind::Symlink).then(|| b"../x".to_vec()),
    }
}

/// One of each, with every field away from its default.
fn samples() -> Vec<Message> {
    let error = Error::new(ErrorKind::Denied, "open", "no")
        .at("p")
        .hint("h");
    let settled = |verdict| Settled {
        file: 9,
        action: Action::Update,
        reason: Reason::Time,
        bytes: 300,
        verdict,
        name: b"n".to_vec(),
    };
    vec![
        Message::Hello(Hello {
            oldest: 1,
            newest: 2,
            version: "0.1".into(),
            connection: b"a 1 b 2".to_vec(),
        }),
        Message::Start(Box::new(Start {
            level: 1,
            job: [1; 16],
            key: [2; 32],
            streams: 3,
            listen: true,
            ports: (4000, 4001),
            role: Role::Send {
                sources: vec![b"/a".to_vec()],
                contents: true,
                rules: vec![Rule {
                    verb: RuleVerb::Include,
                    pattern: "*.c".into(),
                }],
                top: b"t".to_vec(),
            },
            terms: Terms {
                dry_run: true,
                verify: Algorithm::Blake3,
                read_back: true,
                durable: true,
                conflict: Conflict::Newer,
                preserve: Preserve::default(),
                resume: true,
            },
        })),
        Message::Ready(vec!["127.0.0.1:9".into()], b"n".to_vec()),
        Message::Route(RouteChoice::Reversed(vec!["[::1]:9".into()])),
        Message::Routed(Err("no".into())),
        Message::Routed(Ok(())),
        Message::Entries(
            7,
            vec![
                entry("d", EntryKind::Dir),
                entry("d/f", EntryKind::File),
                entry("d/l", EntryKind::Symlink),
            ],
        ),
        Message::EntriesEnd(10),
        Message::Wants(vec![Want {
            file: 300,
            attempt: 1,
            blocks: vec![[8; 32]],
        }]),
        Message::Sents(vec![Sent {
            file: 1,
            attempt: 0,
            size: 5,
            mtime: FileTime { secs: 1, nanos: 2 },
            digest: Some(digest(1)),
        }]),
        Message::Gone(4, Gone::Failed(error.clone())),
        Message::Trouble(b"x\xff".to_vec(), error.clone()),
        Message::Settleds(vec![
            settled(Verdict::Verified {
                digest: digest(1),
                when: When::ReadBack,
            }),
            settled(Verdict::Differs {
                here: digest(1),
                there: digest(2),
            }),
            settled(Verdict::SizeOnly),
            settled(Verdict::Unverified("why".into())),
            settled(Verdict::SourceChanged),
            settled(Verdict::Vanished),
            settled(Verdict::Skipped("s".into())),
            settled(Verdict::Failed(error.clone())),
        ]),
        Message::Progress(70_000, true),
        Message::Data(vec![1, 2, 3]),
        Message::Throttle(5, true),
        Message::Note(error.clone()),
        Message::Fail(error),
        Message::Finished,
    ]
}

#[test]
fn every_message_reads_back_as_written() {
    for message in samples() {
        let out = bytes(&message);
        let len = u32::from_le_bytes(out[..4].try_into().unwrap());
        assert_eq!(Message::check_len(len).unwrap(), out.len() - 4);
        assert_eq!(Message::decode(&out[4..]).unwrap(), message);
    }
}

#[test]
fn the_bytes_of_level_1_never_change() {
    let mut all = Vec::new();
    for message in samples() {
        message.encode(&mut all);
    }
    // A digest stands for the golden bytes; when this fails, the wire changed: raise the level.
    assert_eq!(
        (all.len(), blake3::hash(&all).to_hex()[..16].to_owned()),
        (523, "1441a0279732b89f".to_owned())
    );
}

#[test]
fn every_cut_is_an_error_and_so_is_anything_added() {
    for message in samples()
        .into_iter()
        .filter(|m| !matches!(m, Message::Data(_)))
    {
        let out = bytes(&message);
        for end in 4..out.len() {
            assert!(
                Message::decode(&out[4..end]).is_err(),
                "{message:?} cut at {end}"
            );
        }
        let mut more = out[4..].to_vec();
        more.push(0);
        assert!(Message::decode(&more).is_err(), "{message:?}");
    }
}

#[test]
fn lengths_are_checked_before_anything_is_allocated() {
    for bad in [0, u32::MAX, 1 << 31, (MAX_FRAME + frame::HEADER + 2) as u32] {
        assert!(Message::check_len(bad).is_err());
    }
    // A page that claims 2^60 entries.
    assert!(
        Message::decode(&[6, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]).is_err()
    );
}

#[test]
fn hostile_names_do_not_pass() {
    for bad in ["..", "a/../b", "/abs", ""] {
        let good = bytes(&Message::Entries(
            0,
            vec![entry(&"x".repeat(bad.len().max(1)), EntryKind::File)],
        ));
        let mut body = good[4..].to_vec();
        // type, first, count, shared, length, path
        body[5..5 + bad.len()].copy_from_slice(bad.as_bytes());
        body[4] = bad.len() as u8;
        assert!(Message::decode(&body).is_err(), "{bad:?}");
    }
}

#[test]
fn a_file_of_any_length_has_few_enough_blocks() {
    for len in [0, 1, 4 << 20, 1 << 36, 1 << 62] {
        assert!(len / block_size(len) <= MAX_BLOCKS as u64);
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 1..200)) {
        let _ = Message::decode(&body);
    }

    #[test]
    fn every_flipped_bit_is_an_error_or_another_message(pick in 0usize..19, bit in any::<proptest::sample::Index>()) {
        let all = samples();
        let message = &all[pick % all.len()];
        let mut out = bytes(message);
        let n = bit.index((out.len() - 4) * 8);
        out[4 + n / 8] ^= 1 << (n % 8);
        if let Ok(other) = Message::decode(&out[4..]) {
            // Text is escaped on reading, so what is read back may say the same in other bytes.
            let mut again = Vec::new();
            other.encode(&mut again);
            prop_assert!(Message::decode(&again[4..]).is_ok());
        }
    }
}
