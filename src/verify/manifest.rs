//! Digest lists as `md5sum` and its kin write and check them.

use std::io::{self, BufRead, Read as _};

use crate::model::digest::{Algorithm, Digest};
use crate::model::error::{Error, ErrorKind, Result};

/// The longest line that is read, in bytes: a path of 4096 bytes, each escaped, fits many times.
const LONGEST_LINE: u64 = 64 * 1024;

/// Writes one line that `md5sum -c` reads back, names with backslash or newline escaped as
/// coreutils does.
///
/// # Errors
/// Those of the writer.
pub fn write_line(out: &mut dyn io::Write, digest: &Digest, path: &[u8]) -> io::Result<()> {
    let escape = path.iter().any(|b| matches!(b, b'\\' | b'\n' | b'\r'));
    let mut line = Vec::with_capacity(path.len() + 80);
    if escape {
        line.push(b'\\');
    }
    io::Write::write_fmt(&mut line, format_args!("{digest}  "))?;
    for byte in path {
        match byte {
            b'\\' => line.extend_from_slice(b"\\\\"),
            b'\n' => line.extend_from_slice(b"\\n"),
            b'\r' => line.extend_from_slice(b"\\r"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\n');
    out.write_all(&line)
}

/// Reads a list line by line.
///
/// The lines of md5sum, sha256sum, b3sum and `xxhsum -H2` look alike; without an algorithm 32
/// hexadecimal digits mean md5 and 64 mean sha256. The form with the algorithm's name in front
/// (`--tag`) says it itself. Empty lines and those that begin with `#` are passed over.
pub fn read(input: &mut dyn BufRead, algorithm: Option<Algorithm>) -> Lines<'_> {
    Lines {
        input,
        algorithm,
        number: 0,
        ended: false,
    }
}

/// The lines of a list: digest and path, or what is wrong with a line. A wrong line does not end
/// it; a failure to read does.
pub struct Lines<'a> {
    input: &'a mut dyn BufRead,
    algorithm: Option<Algorithm>,
    number: u64,
    ended: bool,
}

impl Lines<'_> {
    /// Returns the next line without its end; `None` at the end of the list.
    fn line(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        let mut part = self.input.take(LONGEST_LINE + 1);
        part.read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        }
        Ok(Some(line))
    }

    fn error(&self, kind: ErrorKind, cause: impl Into<String>) -> Error {
        Error::new(kind, "read the digest list", cause.into()).at(format!("line {}", self.number))
    }
}

impl Iterator for Lines<'_> {
    type Item = Result<(Digest, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            let line = match self.line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(source) => {
                    self.ended = true;
                    let error = Error::io("read the digest list", &source);
                    return Some(Err(error.at(format!("line {}", self.number + 1))));
                }
            };
            if line.len() as u64 > LONGEST_LINE {
                // What follows belongs to it and means nothing by itself.
                self.ended = true;
                let cause = "it is longer than 65536 bytes, so this is not a digest list";
                return Some(Err(self.error(ErrorKind::Config, cause)));
            }
            if line.is_empty() || line[0] == b'#' {
                continue;
            }
            let parsed = parse_line(&line, self.algorithm);
            return Some(parsed.map_err(|why| self.error(ErrorKind::Config, why)));
        }
        None
    }
}

/// Takes one line apart; the error says what is wrong with it. Never panics, whatever it is given.
pub fn parse_line(
    line: &[u8],
    algorithm: Option<Algorithm>,
) -> std::result::Result<(Digest, Vec<u8>), &'static str> {
    let (escaped, line) = match line.strip_prefix(b"\\") {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (digest, path) = match tagged(line) {
        Some((tag, hex, path)) => {
            if algorithm.is_some_and(|a| a != tag) {
                return Err("it names another algorithm than the list is read for");
            }
            (value(hex, tag)?, path)
        }
        None => plain(line, algorithm)?,
    };
    let path = if escaped {
        unescape(path)?
    } else {
        path.to_vec()
    };
    if path.is_empty() {
        return Err("it has no file name");
    }
    if path.contains(&0) {
        return Err("the file name holds a NUL byte");
    }
    Ok((digest, path))
}

/// Takes `hex  path` or `hex *path` apart.
fn plain(
    line: &[u8],
    algorithm: Option<Algorithm>,
) -> std::result::Result<(Digest, &[u8]), &'static str> {
    let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let algorithm = match (algorithm, digits) {
        (Some(algorithm), _) => algorithm,
        (None, 32) => Algorithm::Md5,
        (None, 64) => Algorithm::Sha256,
        (None, _) => return Err("it does not begin with 32 or 64 hexadecimal digits"),
    };
    let (hex, rest) = line.split_at(digits);
    let digest = value(hex, algorithm)?;
    match rest {
        [b' ', b' ' | b'*', path @ ..] => Ok((digest, path)),
        _ => Err("two spaces, or a space and a star, have to follow the digest"),
    }
}

/// Takes `MD5 (path) = hex` apart.
fn tagged(line: &[u8]) -> Option<(Algorithm, &[u8], &[u8])> {
    let names: [(&[u8], Algorithm); 4] = [
        (b"MD5 (", Algorithm::Md5),
        (b"SHA256 (", Algorithm::Sha256),
        (b"BLAKE3 (", Algorithm::Blake3),
        (b"XXH128 (", Algorithm::Xxh3),
    ];
    for (name, algorithm) in names {
        let Some(rest) = line.strip_prefix(name) else {
            continue;
        };
        // The name may hold anything, so the digest is taken off the end.
        let at = rest.len().checked_sub(algorithm.digest_len() * 2 + 4)?;
        let (path, end) = rest.split_at(at);
        return Some((algorithm, end.strip_prefix(b") = ")?, path));
    }
    None
}

fn value(hex: &[u8], algorithm: Algorithm) -> std::result::Result<Digest, &'static str> {
    const WRONG: &str = "the digest does not have the length of its algorithm";
    if !algorithm.hashes() || hex.len() != algorithm.digest_len() * 2 {
        return Err(WRONG);
    }
    let digit = |b: u8| (b as char).to_digit(16).and_then(|d| u8::try_from(d).ok());
    let mut bytes = Vec::with_capacity(32);
    for pair in hex.chunks_exact(2) {
        match (digit(pair[0]), digit(pair[1])) {
            (Some(high), Some(low)) => bytes.push(high << 4 | low),
            _ => return Err("the digest has something else than hexadecimal digits"),
        }
    }
    Digest::new(algorithm, &bytes).ok_or(WRONG)
}

fn unescape(path: &[u8]) -> std::result::Result<Vec<u8>, &'static str> {
    let mut plain = Vec::with_capacity(path.len());
    let mut bytes = path.iter();
    while let Some(byte) = bytes.next() {
        plain.push(match byte {
            b'\\' => match bytes.next() {
                Some(b'\\') => b'\\',
                Some(b'n') => b'\n',
                Some(b'r') => b'\r',
                _ => return Err("the file name has a backslash that escapes nothing"),
            },
            byte => *byte,
        });
    }
    Ok(plain)
}
