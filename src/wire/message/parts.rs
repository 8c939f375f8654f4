//! How each message lies in bytes. Codes are for ever: new ones are appended.

use super::*;
use crate::model::entry::EntryKind;
use crate::model::error::ErrorKind;
use crate::model::relpath::{MAX_COMPONENT, MAX_PATH, RelPath};
use crate::model::rules::RuleVerb;
use crate::model::untrusted::shown;
use crate::model::verdict::When;

/// The type of a message that carries a data frame.
pub(super) const DATA: u8 = 14;

pub(super) fn write(message: &Message, e: &mut Encoder) {
    match message {
        Message::Hello(h) => {
            e.u8(1);
            e.num(h.oldest.into());
            e.num(h.newest.into());
            e.blob(h.version.as_bytes());
            e.blob(&h.connection);
        }
        Message::Start(s) => {
            e.u8(2);
            write_start(s, e);
        }
        Message::Ready(addresses, top) => {
            e.u8(3);
            write_texts(addresses, e);
            e.blob(top);
        }
        Message::Route(choice) => {
            e.u8(4);
            match choice {
                RouteChoice::Direct => e.u8(0),
                RouteChoice::Reversed(addresses) => {
                    e.u8(1);
                    write_texts(addresses, e);
                }
                RouteChoice::Channel => e.u8(2),
            }
        }
        Message::Routed(result) => {
            e.u8(5);
            e.flag(result.is_ok());
            if let Err(why) = result {
                e.blob(clip(why));
            }
        }
        Message::Entries(first, entries) => {
            e.u8(6);
            e.num(*first);
            e.num(entries.len() as u64);
            write_entries(entries, e);
        }
        Message::EntriesEnd(count) => {
            e.u8(7);
            e.num(*count);
        }
        Message::Wants(wants) => {
            e.u8(8);
            e.num(wants.len() as u64);
            for want in wants {
                e.num(want.file);
                e.u8(want.attempt);
                e.num(want.blocks.len() as u64);
                for block in &want.blocks {
                    e.raw(block);
                }
            }
        }
        Message::Sents(sents) => {
            e.u8(9);
            e.num(sents.len() as u64);
            for sent in sents {
                e.num(sent.file);
                e.u8(sent.attempt);
                e.num(sent.size);
                write_time(sent.mtime, e);
                e.flag(sent.digest.is_some());
                if let Some(digest) = &sent.digest {
                    write_digest(digest, e);
                }
            }
        }
        Message::Gone(file, gone) => {
            e.u8(10);
            e.num(*file);
            match gone {
                Gone::Vanished => e.u8(0),
                Gone::Changed => e.u8(1),
                Gone::Failed(error) => {
                    e.u8(2);
                    write_error(error, e);
                }
            }
        }
        Message::Trouble(path, error) => {
            e.u8(11);
            e.blob(&path[..path.len().min(MAX_PATH)]);
            write_error(error, e);
        }
        Message::Settleds(list) => {
            e.u8(12);
            e.num(list.len() as u64);
            for settled in list {
                e.num(settled.file);
                e.u8(settled.action as u8);
                e.u8(settled.reason as u8);
                e.num(settled.bytes);
                write_verdict(&settled.verdict, e);
                e.blob(&settled.name);
            }
        }
        Message::Progress(bytes, busy) => {
            e.u8(13);
            e.num(*bytes);
            e.flag(*busy);
        }
        Message::Data(frame) => {
            e.u8(DATA);
            e.raw(frame);
        }
        Message::Throttle(rate, paused) => {
            e.u8(15);
            e.num(*rate);
            e.flag(*paused);
        }
        Message::Note(error) => {
            e.u8(16);
            write_error(error, e);
        }
        Message::Fail(error) => {
            e.u8(17);
            write_error(error, e);
        }
        Message::Finished => e.u8(18),
    }
}

pub(super) fn read(kind: u8, d: &mut Decoder<'_>) -> Result<Message> {
    Ok(match kind {
        1 => Message::Hello(Hello {
            oldest: d.capped(u16::MAX.into())? as u16,
            newest: d.capped(u16::MAX.into())? as u16,
            version: read_text(d)?,
            connection: d.blob(MAX_TEXT)?.to_vec(),
        }),
        2 => Message::Start(Box::new(read_start(d)?)),
        3 => Message::Ready(read_texts(d)?, d.blob(MAX_COMPONENT)?.to_vec()),
        4 => Message::Route(match d.u8()? {
            0 => RouteChoice::Direct,
            1 => RouteChoice::Reversed(read_texts(d)?),
            2 => RouteChoice::Channel,
            _ => return Err(broken("an unknown route came")),
        }),
        5 => Message::Routed(if d.flag()? {
            Ok(())
        } else {
            Err(read_text(d)?)
        }),
        6 => {
            let first = d.num()?;
            let count = page(d.num()?)?;
            if first.checked_add(count as u64).is_none() {
                return Err(broken("a number is too large"));
            }
            Message::Entries(first, read_entries(count, d)?)
        }
        7 => Message::EntriesEnd(d.num()?),
        8 => Message::Wants(read_list(d, |d| {
            let (file, attempt) = (d.num()?, d.u8()?);
            let count = d.capped(MAX_BLOCKS as u64)?;
            let blocks = (0..count).map(|_| d.array()).collect::<Result<_>>()?;
            Ok(Want {
                file,
                attempt,
                blocks,
            })
        })?),
        9 => Message::Sents(read_list(d, |d| {
            Ok(Sent {
                file: d.num()?,
                attempt: d.u8()?,
                size: d.num()?,
                mtime: read_time(d)?,
                digest: if d.flag()? {
                    Some(read_digest(d)?)
                } else {
                    None
                },
            })
        })?),
        10 => Message::Gone(
            d.num()?,
            match d.u8()? {
                0 => Gone::Vanished,
                1 => Gone::Changed,
                2 => Gone::Failed(read_error(d)?),
                _ => return Err(broken("an unknown reason came")),
            },
        ),
        11 => Message::Trouble(d.blob(MAX_PATH)?.to_vec(), read_error(d)?),
        12 => Message::Settleds(read_list(d, |d| {
            Ok(Settled {
                file: d.num()?,
                action: pick(&ACTIONS, d.u8()?)?,
                reason: pick(&REASONS, d.u8()?)?,
                bytes: d.num()?,
                verdict: read_verdict(d)?,
                name: d.blob(MAX_COMPONENT)?.to_vec(),
            })
        })?),
        13 => Message::Progress(d.num()?, d.flag()?),
        15 => Message::Throttle(d.num()?, d.flag()?),
        16 => Message::Note(read_error(d)?),
        17 => Message::Fail(read_error(d)?),
        18 => Message::Finished,
        _ => return Err(broken("a message of unknown type came")),
    })
}

const ACTIONS: [Action; 6] = [
    Action::Create,
    Action::Update,
    Action::Touch,
    Action::Delete,
    Action::Keep,
    Action::Skip,
];
const REASONS: [Reason; 11] = [
    Reason::Missing,
    Reason::Size,
    Reason::Time,
    Reason::Digest,
    Reason::Content,
    Reason::Mode,
    Reason::Extra,
    Reason::Same,
    Reason::Excluded,
    Reason::Conflict,
    Reason::Special,
];
const KINDS: [EntryKind; 4] = [
    EntryKind::File,
    EntryKind::Dir,
    EntryKind::Symlink,
    EntryKind::Special,
];

/// Picks the value that has this code.
fn pick<T: Copy>(all: &[T], code: u8) -> Result<T> {
    all.get(usize::from(code))
        .copied()
        .ok_or_else(|| broken("an unknown code came"))
}

/// Returns the code of a value; the tables hold every value.
fn code<T: PartialEq>(all: &[T], value: &T) -> u8 {
    all.iter()
        .position(|v| v == value)
        .unwrap_or(usize::from(u8::MAX)) as u8
}

fn read_list<T>(
    d: &mut Decoder<'_>,
    mut each: impl FnMut(&mut Decoder<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let count = page(d.num()?)?;
    (0..count).map(|_| each(d)).collect()
}

/// Cuts a text to its limit at a character boundary.
fn clip(text: &str) -> &[u8] {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}

fn write_texts(texts: &[String], e: &mut Encoder) {
    e.num(texts.len() as u64);
    for text in texts {
        e.blob(clip(text));
    }
}

/// Reads words that people may see: what could move a cursor is escaped here, once.
fn read_text(d: &mut Decoder<'_>) -> Result<String> {
    Ok(shown(d.blob(MAX_TEXT)?))
}

fn read_texts(d: &mut Decoder<'_>) -> Result<Vec<String>> {
    let count = d.capped(256)?;
    (0..count).map(|_| read_text(d)).collect()
}

fn write_time(time: FileTime, e: &mut Encoder) {
    e.signed(time.secs);
    e.num(time.nanos.into());
}

fn read_time(d: &mut Decoder<'_>) -> Result<FileTime> {
    Ok(FileTime {
        secs: d.signed()?,
        nanos: d.capped(999_999_999)? as u32,
    })
}

fn write_digest(digest: &Digest, e: &mut Encoder) {
    e.u8(code(&Algorithm::ALL, &digest.algorithm()));
    e.blob(digest.as_bytes());
}

fn read_digest(d: &mut Decoder<'_>) -> Result<Digest> {
    let algorithm = pick(&Algorithm::ALL, d.u8()?)?;
    Digest::new(algorithm, d.blob(32)?).ok_or_else(|| broken("a digest has the wrong length"))
}

fn write_error(error: &Error, e: &mut Encoder) {
    e.u8(code(&ErrorKind::ALL, &error.kind));
    e.blob(clip(&error.doing));
    for text in [error.place.as_bytes(), error.cause.as_bytes()] {
        e.blob(&text[..text.len().min(MAX_TEXT)]);
    }
    e.blob(clip(error.hint.as_deref().unwrap_or_default()));
}

fn read_error(d: &mut Decoder<'_>) -> Result<Error> {
    let kind = pick(&ErrorKind::ALL, d.u8()?)?;
    let doing = read_text(d)?;
    let (place, cause) = (d.blob(MAX_TEXT)?, d.blob(MAX_TEXT)?);
    let hint = read_text(d)?;
    let mut error = Error::new(kind, doing, cause).at(place);
    if !hint.is_empty() {
        error = error.hint(hint);
    }
    Ok(error)
}

fn write_verdict(verdict: &Verdict, e: &mut Encoder) {
    match verdict {
        Verdict::Verified { digest, when } => {
            e.u8(0);
            e.flag(*when == When::ReadBack);
            write_digest(digest, e);
        }
        Verdict::Differs { here, there } => {
            e.u8(1);
            write_digest(here, e);
            write_digest(there, e);
        }
        Verdict::SizeOnly => e.u8(2),
        Verdict::Unverified(why) => {
            e.u8(3);
            e.blob(clip(why));
        }
        Verdict::SourceChanged => e.u8(4),
        Verdict::Vanished => e.u8(5),
        Verdict::Skipped(why) => {
            e.u8(6);
            e.blob(clip(why));
        }
        Verdict::Failed(error) => {
            e.u8(7);
            write_error(error, e);
        }
    }
}

fn read_verdict(d: &mut Decoder<'_>) -> Result<Verdict> {
    Ok(match d.u8()? {
        0 => Verdict::Verified {
            when: if d.flag()? {
                When::ReadBack
            } else {
                When::InFlight
            },
            digest: read_digest(d)?,
        },
        1 => Verdict::Differs {
            here: read_digest(d)?,
            there: read_digest(d)?,
        },
        2 => Verdict::SizeOnly,
        3 => Verdict::Unverified(read_text(d)?),
        4 => Verdict::SourceChanged,
        5 => Verdict::Vanished,
        6 => Verdict::Skipped(read_text(d)?),
        7 => Verdict::Failed(read_error(d)?),
        _ => return Err(broken("an unknown verdict came")),
    })
}

/// Writes a page of entries; a path repeats only what differs from the one before.
fn write_entries(entries: &[Entry], e: &mut Encoder) {
    let mut last: &[u8] = b"";
    for entry in entries {
        let path = entry.path.as_bytes();
        let shared = last.iter().zip(path).take_while(|(a, b)| a == b).count();
        e.num(shared as u64);
        e.blob(&path[shared..]);
        last = path;
        e.u8(code(&KINDS, &entry.kind));
        e.num(entry.size);
        write_time(entry.mtime, e);
        e.num(entry.mode.into());
        if entry.kind == EntryKind::Symlink {
            e.blob(entry.link.as_deref().unwrap_or_default());
        }
    }
}

fn read_entries(count: usize, d: &mut Decoder<'_>) -> Result<Vec<Entry>> {
    let mut entries = Vec::with_capacity(count);
    let mut last: Vec<u8> = Vec::new();
    for _ in 0..count {
        let shared = d.capped(last.len() as u64)? as usize;
        let suffix = d.blob(MAX_PATH)?;
        last.truncate(shared);
        last.extend_from_slice(suffix);
        let path = RelPath::new(&last[..])?;
        let kind = pick(&KINDS, d.u8()?)?;
        let size = d.capped(i64::MAX as u64)?;
        let mtime = read_time(d)?;
        let mode = d.capped(0o7777)? as u32;
        let link = match kind {
            EntryKind::Symlink => Some(read_link(d)?),
            _ => None,
        };
        entries.push(Entry {
            path,
            kind,
            size,
            mtime,
            mode,
            link,
        });
    }
    Ok(entries)
}

fn read_link(d: &mut Decoder<'_>) -> Result<Vec<u8>> {
    let target = d.blob(MAX_PATH)?;
    if target.is_empty() || target.contains(&0) {
        return Err(broken("a link points nowhere"));
    }
    Ok(target.to_vec())
}

fn write_start(s: &Start, e: &mut Encoder) {
    e.num(s.level.into());
    e.raw(&s.job);
    e.raw(&s.key);
    e.num(s.streams.into());
    e.flag(s.listen);
    e.num(s.ports.0.into());
    e.num(s.ports.1.into());
    match &s.role {
        Role::Send {
            sources,
            contents,
            rules,
            top,
        } => {
            e.u8(0);
            e.num(sources.len() as u64);
            for source in sources {
                e.blob(source);
            }
            e.flag(*contents);
            e.num(rules.len() as u64);
            for rule in rules {
                e.flag(rule.verb == RuleVerb::Include);
                e.blob(rule.pattern.as_bytes());
            }
            e.blob(top);
        }
        Role::Receive {
            destination,
            sources,
            contents,
        } => {
            e.u8(1);
            e.blob(destination);
            e.num(*sources);
            e.flag(*contents);
        }
    }
    let Terms {
        dry_run,
        verify,
        read_back,
        durable,
        conflict,
        preserve,
        resume,
    } = s.terms;
    let Preserve {
        times,
        permissions,
        links,
    } = preserve;
    e.u8(code(&Algorithm::ALL, &verify));
    e.u8(code(&Conflict::ALL, &conflict));
    for flag in [
        dry_run,
        read_back,
        durable,
        resume,
        times,
        permissions,
        links,
    ] {
        e.flag(flag);
    }
}

fn read_start(d: &mut Decoder<'_>) -> Result<Start> {
    Ok(Start {
        level: d.capped(u16::MAX.into())? as u16,
        job: d.array()?,
        key: d.array()?,
        streams: d.capped(crate::wire::MAX_STREAMS.into())? as u16,
        listen: d.flag()?,
        ports: (
            d.capped(u16::MAX.into())? as u16,
            d.capped(u16::MAX.into())? as u16,
        ),
        role: match d.u8()? {
            0 => Role::Send {
                sources: (0..d.capped(MAX_SOURCES as u64)?)
                    .map(|_| Ok(d.blob(MAX_PATH)?.to_vec()))
                    .collect::<Result<_>>()?,
                contents: d.flag()?,
                rules: (0..d.capped(MAX_PAGE as u64)?)
                    .map(|_| read_rule(d))
                    .collect::<Result<_>>()?,
                top: d.blob(MAX_COMPONENT)?.to_vec(),
            },
            1 => Role::Receive {
                destination: d.blob(MAX_PATH)?.to_vec(),
                sources: d.num()?,
                contents: d.flag()?,
            },
            _ => return Err(broken("an unknown role came")),
        },
        terms: {
            let (verify, conflict) = (
                pick(&Algorithm::ALL, d.u8()?)?,
                pick(&Conflict::ALL, d.u8()?)?,
            );
            Terms {
                verify,
                conflict,
                dry_run: d.flag()?,
                read_back: d.flag()?,
                durable: d.flag()?,
                resume: d.flag()?,
                preserve: Preserve {
                    times: d.flag()?,
                    permissions: d.flag()?,
                    links: d.flag()?,
                },
            }
        },
    })
}

fn read_rule(d: &mut Decoder<'_>) -> Result<Rule> {
    let verb = if d.flag()? {
        RuleVerb::Include
    } else {
        RuleVerb::Exclude
    };
    let pattern =
        String::from_utf8(d.blob(MAX_TEXT)?.to_vec()).map_err(|_| broken("a rule is not UTF-8"))?;
    Ok(Rule { verb, pattern })
}
