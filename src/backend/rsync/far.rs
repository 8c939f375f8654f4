//! Looks at the other side in one log-in: is rsync there and which one, and what is under the names
//! that a job gives.
//!
//! The remote command is constant, as everywhere; the names follow on its standard input, a line
//! each, with every unusual byte written as an octal number for `printf`.

use std::fmt::Write as _;

use crate::backend::cx::Cx;
use crate::backend::rsync::USE;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Host;
use crate::model::profile::SshSettings;
use crate::model::untrusted::Untrusted;
use crate::proc::Program;
use crate::remote::connection::{Mode, login_limit, ssh_argv, ssh_program};
use crate::remote::failure::login_failure;

/// The remote command. Between its quotes there is no quote, backslash, bang or newline, so every
/// login shell passes it on unchanged; splitting and globbing are off, which makes unquoted
/// variables safe. A name comes with `/.` at its end: that keeps a newline at the end of a name, and
/// asks for a folder.
const COMMAND: &str = concat!(
    "exec /bin/sh -c '",
    "set -f; IFS=; read -r m; echo $m; ",
    "while read -r l; do p=$(printf %b $l); q=${p%/.}; h=o; k=n; ",
    "test -h $q && h=l; test -e $q && k=f; test -d $p && k=d; ",
    "echo $h$k; test $k = d && (cd $p && pwd -P); echo $m; done; ",
    "exec rsync --version",
    "'"
);
/// More than this is no answer to a few names.
const MOST: usize = 4 << 20;
/// The oldest rsync here: older ones let a hostile server write where it likes.
const OLDEST_HERE: Version = Version(3, 2, 5);
/// The oldest rsync there: older ones cannot be told which digest to use.
const OLDEST_THERE: Version = Version(3, 1, 3);

/// The version of an rsync.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(pub u32, pub u32, pub u32);

impl Version {
    /// It can be told to flush files.
    pub const FSYNC: Self = Self(3, 2, 4);
    /// It can make all folders on the way to the destination.
    pub const MKPATH: Self = Self(3, 2, 3);

    /// Finds it in what `rsync --version` prints.
    fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        let after = text.lines().find_map(|line| {
            line.strip_prefix("rsync")?
                .trim_start()
                .strip_prefix("version ")
        })?;
        let mut numbers = after
            .trim_start_matches('v')
            .split(|c: char| !c.is_ascii_digit())
            .map(|part| part.parse().unwrap_or(0));
        Some(Self(
            numbers.next()?,
            numbers.next().unwrap_or(0),
            numbers.next().unwrap_or(0),
        ))
    }

    /// Refuses one that is too old.
    fn at_least(self, oldest: Self, place: &str) -> Result<Self> {
        if self >= oldest {
            return Ok(self);
        }
        let Self(a, b, c) = self;
        let Self(x, y, z) = oldest;
        let cause = format!("version {a}.{b}.{c} is too old; {x}.{y}.{z} or newer is needed");
        Err(Error::new(ErrorKind::Unsupported, USE, cause)
            .at(place)
            .hint("install a newer rsync, or choose another method"))
    }
}

/// What is under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing, or a link to nothing.
    Nothing,
    /// A folder, or a link to one.
    Folder,
    /// Anything else.
    Other,
}

/// One name, looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Looked {
    /// The name itself is a link.
    pub link: bool,
    /// What is there, links followed.
    pub kind: Kind,
    /// A folder's own path, without links.
    pub real: Vec<u8>,
}

/// The other side.
#[derive(Clone, Debug)]
pub(super) struct Far {
    /// Its rsync.
    pub version: Version,
    /// What is under each name asked for.
    pub looked: Vec<Looked>,
}

/// Returns a path as it is given to programs there: a relative one is below the home folder, and no
/// first letter of it means anything.
pub(super) fn given(path: &[u8]) -> Vec<u8> {
    match path {
        b"" => b".".to_vec(),
        [b'/', ..] => path.to_vec(),
        relative => [b"./", relative].concat(),
    }
}

/// Looks at the other side.
///
/// # Errors
/// What kept ssh from logging in; `Tool` when rsync is not there; `Unsupported` when it is too old,
/// or the account runs no commands or prints something before every one.
pub(super) fn look(host: &Host, ssh: &SshSettings, names: &[Vec<u8>], cx: &Cx<'_>) -> Result<Far> {
    let marker = format!("transload-{:016x}", random()?);
    let mut input = format!("{marker}\n");
    for name in names {
        escape(&given(name), &mut input);
        input.push_str("/.\n");
    }
    let output = ssh_program()?
        .args(ssh_argv(host, ssh, Mode::Command(COMMAND))?)
        .run(input.as_bytes(), MOST, login_limit(ssh)?, &|| {
            cx.cancel.is_set()
        })
        .map_err(|error| match error.kind {
            ErrorKind::Timeout => error.at(host.name.as_str()),
            _ => error,
        })?;
    let there = host.name.as_str();
    let code = output.status.code();
    if code.is_none_or(|code| code == 255) {
        return Err(login_failure("log in", host, output.stderr.as_bytes()));
    }
    let Some((looked, rest)) = answers(&output.stdout, marker.as_bytes(), names.len()) else {
        let cause: Untrusted = match last_line(output.stderr.as_bytes()) {
            Some(line) => line.into(),
            None => "the account there does not run commands".into(),
        };
        return Err(Error::new(ErrorKind::Unsupported, USE, cause)
            .at(there)
            .hint("use an account that may run commands, or choose sftp"));
    };
    let looked = looked?;
    match code {
        Some(0) => {}
        Some(126 | 127) => {
            return Err(Error::new(
                ErrorKind::Tool,
                USE,
                format!("rsync is not installed on {there}"),
            )
            .at(there)
            .hint("install rsync there, or choose sftp"));
        }
        _ => {
            let cause: Untrusted = match last_line(output.stderr.as_bytes()) {
                Some(line) => line.into(),
                None => "rsync there does not tell its version".into(),
            };
            return Err(Error::new(ErrorKind::Tool, USE, cause).at(there));
        }
    }
    let version = Version::parse(rest).ok_or_else(|| {
        Error::new(
            ErrorKind::Tool,
            USE,
            "the program called rsync there does not tell its version",
        )
        .at(there)
    })?;
    let version = version.at_least(OLDEST_THERE, there)?;
    Ok(Far { version, looked })
}

/// Finds rsync on this computer and checks its version.
///
/// # Errors
/// `Tool` when it is not installed, `Unsupported` when it is too old.
pub(super) fn here(cx: &Cx<'_>) -> Result<Version> {
    let output =
        program()?
            .arg("--version")
            .run(b"", MOST, std::time::Duration::from_secs(10), &|| {
                cx.cancel.is_set()
            })?;
    Version::parse(&output.stdout)
        .ok_or_else(|| {
            Error::new(ErrorKind::Tool, USE, "rsync does not tell its version")
                .at("this computer")
                .hint("reinstall the package rsync")
        })?
        .at_least(OLDEST_HERE, "this computer")
}

/// Returns the rsync of this computer; it prints messages in English and escapes every byte that is
/// not plain.
pub(super) fn program() -> Result<Program> {
    Ok(Program::named("rsync")
        .map_err(|e| e.hint("install the package rsync, or choose another method"))?
        .env("LC_ALL", "C"))
}

/// Returns 64 random bits.
pub(super) fn random() -> Result<u64> {
    getrandom::u64().map_err(|e| {
        Error::new(
            ErrorKind::Io,
            "get random bytes from the system",
            e.to_string(),
        )
    })
}

/// Takes the answers apart; `None` when there are none, an error within when something was printed
/// before them, which rsync would take for its own words.
fn answers<'a>(
    text: &'a [u8],
    marker: &[u8],
    count: usize,
) -> Option<(Result<Vec<Looked>>, &'a [u8])> {
    let end = [marker, b"\n"].concat();
    let split = |text: &'a [u8]| {
        let at = text.windows(end.len()).position(|part| part == end)?;
        Some((&text[..at], &text[at + end.len()..]))
    };
    let (noise, mut rest) = split(text)?;
    let mut looked = Vec::with_capacity(count);
    for _ in 0..count {
        let (record, after) = split(rest)?;
        rest = after;
        let (word, path) = record.split_at_checked(3)?;
        looked.push(Looked {
            link: word[0] == b'l',
            kind: match word[1] {
                b'd' => Kind::Folder,
                b'f' => Kind::Other,
                _ => Kind::Nothing,
            },
            real: path.strip_suffix(b"\n").unwrap_or(path).to_vec(),
        });
    }
    if noise.is_empty() {
        return Some((Ok(looked), rest));
    }
    let error = Error::new(
        ErrorKind::Unsupported,
        USE,
        "the login shell there prints something before every command, which breaks rsync",
    )
    .at(noise)
    .hint("make its start-up file print only in a terminal, or choose raw TCP");
    Some((Err(error), rest))
}

/// Writes bytes for `printf %b`.
fn escape(bytes: &[u8], out: &mut String) {
    for &byte in bytes {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'_' => {
                out.push(char::from(byte));
            }
            // Writing to a String cannot fail.
            _ => drop(write!(out, "\\0{byte:03o}")),
        }
    }
}

fn last_line(text: &[u8]) -> Option<&[u8]> {
    text.split(|b| *b == b'\n')
        .map(<[u8]>::trim_ascii)
        .rfind(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_command_passes_unchanged_through_every_login_shell() {
        let inner = COMMAND.strip_prefix("exec /bin/sh -c '").unwrap();
        let inner = inner.strip_suffix('\'').unwrap();
        for bad in ['\'', '"', '\\', '!', '\n', '`'] {
            assert!(!inner.contains(bad), "{bad:?}");
        }
    }

    #[test]
    fn versions_are_read_and_compared() {
        for (text, want) in [
            (
                "rsync  version 3.2.7  protocol version 31\n",
                Some(Version(3, 2, 7)),
            ),
            ("rsync  version v3.4\n", Some(Version(3, 4, 0))),
            (
                "openrsync: protocol version 29\nrsync version 2.6.9 compatible\n",
                Some(Version(2, 6, 9)),
            ),
            ("hello", None),
        ] {
            assert_eq!(Version::parse(text.as_bytes()), want, "{text}");
        }
        let error = Version(2, 6, 9).at_least(OLDEST_THERE, "nas").unwrap_err();
        assert!(error.to_string().contains("2.6.9 is too old"), "{error}");
        assert!(Version(3, 10, 0) > Version(3, 9, 9));
    }

    #[test]
    fn answers_come_apart_and_noise_before_them_is_told() {
        let text = b"M\nod\n/a\nb\nM\nlf\nM\non\nM\nrsync  version";
        let (looked, rest) = answers(text, b"M", 3).unwrap();
        let looked = looked.unwrap();
        assert_eq!(looked[0].real, b"/a\nb");
        assert_eq!((looked[0].kind, looked[0].link), (Kind::Folder, false));
        assert_eq!((looked[1].kind, looked[1].link), (Kind::Other, true));
        assert_eq!(looked[2].kind, Kind::Nothing);
        assert_eq!(rest, b"rsync  version");
        assert!(answers(b"hello", b"M", 0).is_none());
        assert!(answers(b"hello\nM\n", b"M", 0).unwrap().0.is_err());
    }

    #[test]
    fn odd_names_are_written_for_the_shell() {
        let mut out = String::new();
        escape(b"a b\n\xff-", &mut out);
        assert_eq!(out, "a\\0040b\\0012\\0377\\0055");
        assert_eq!(given(b"~x"), b"./~x");
        assert_eq!(given(b""), b".");
    }
}
