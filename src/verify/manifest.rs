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

#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;
    use crate::verify::hash;

    const HEX: &str = "d41d8cd98f00b204e9800998ecf8427e";

    fn digest(algorithm: Algorithm, bytes: &[u8]) -> Digest {
        hash::one(algorithm, bytes).unwrap()
    }

    fn all(list: &[u8], algorithm: Option<Algorithm>) -> Vec<Result<(Digest, Vec<u8>)>> {
        read(&mut &*list, algorithm).collect()
    }

    /// Names that lists have gone wrong on.
    const ODD: [&[u8]; 12] = [
        b"plain",
        b"a\nb",
        b"back\\slash",
        b"\\n",
        b"\xff\xfe.bin",
        b"-rf",
        b"  two  spaces ",
        b"*star",
        b"#hash",
        b"cr\r",
        b"\xe2\x80\xae.txt",
        b"sub/x\\\ny",
    ];

    #[test]
    fn md5sum_accepts_our_list_of_odd_names_and_we_accept_its() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::create_dir(tmp.path().join("sub")).unwrap();
        let mut list = Vec::new();
        for name in ODD {
            std::fs::write(tmp.path().join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
            write_line(&mut list, &digest(Algorithm::Md5, name), name).unwrap();
        }
        let path = tmp.path().join("list");
        std::fs::write(&path, &list).unwrap();
        for flag in ["--strict", "--quiet"] {
            let run = Command::new("md5sum")
                .args(["-c", "--warn", "--strict", flag, "list"])
                .current_dir(tmp.path())
                .output()
                .expect("md5sum is missing: apt-get install coreutils");
            assert!(
                run.status.success(),
                "{}",
                String::from_utf8_lossy(&run.stderr)
            );
        }
        for form in ["--text", "--binary", "--tag"] {
            let run = Command::new("md5sum")
                .args([form, "--"])
                .args(ODD.iter().map(|n| std::ffi::OsStr::from_bytes(n)))
                .current_dir(tmp.path())
                .output()
                .unwrap();
            let lines = all(&run.stdout, None);
            assert_eq!(lines.len(), ODD.len());
            for (line, name) in lines.into_iter().zip(ODD) {
                let (value, path) = line.unwrap();
                assert_eq!(path, name, "{form}");
                assert_eq!(value, digest(Algorithm::Md5, name));
            }
        }
    }

    #[test]
    fn a_file_that_differs_is_found_by_md5sum() {
        let tmp = tempfile::tempdir().unwrap();
        std::fs::write(tmp.path().join("f"), "changed").unwrap();
        let mut list = Vec::new();
        write_line(&mut list, &digest(Algorithm::Md5, b"as it was"), b"f").unwrap();
        std::fs::write(tmp.path().join("list"), &list).unwrap();
        let run = Command::new("md5sum")
            .args(["-c", "list"])
            .current_dir(tmp.path())
            .output()
            .expect("md5sum is missing: apt-get install coreutils");
        assert_eq!(run.status.code(), Some(1));
    }

    #[test]
    fn each_programs_lines_are_understood() {
        let long = "ab".repeat(32);
        let cases = [
            (format!("{HEX}  a b"), None, Algorithm::Md5),
            (format!("{HEX} *a b"), None, Algorithm::Md5),
            (format!("{HEX}  a b\r"), None, Algorithm::Md5),
            (HEX.to_uppercase() + "  a b", None, Algorithm::Md5),
            (
                format!("{HEX}  a b"),
                Some(Algorithm::Xxh3),
                Algorithm::Xxh3,
            ),
            (format!("{long}  a b"), None, Algorithm::Sha256),
            (
                format!("{long}  a b"),
                Some(Algorithm::Blake3),
                Algorithm::Blake3,
            ),
            (format!("MD5 (a b) = {HEX}"), None, Algorithm::Md5),
            (format!("XXH128 (a b) = {HEX}"), None, Algorithm::Xxh3),
            (format!("SHA256 (a b) = {long}"), None, Algorithm::Sha256),
            (
                format!("BLAKE3 (a b) = {long}"),
                Some(Algorithm::Blake3),
                Algorithm::Blake3,
            ),
        ];
        for (line, algorithm, wanted) in cases {
            for end in ["\n", ""] {
                let list = format!("# made by hand\n\n{line}{end}");
                let lines = all(list.as_bytes(), algorithm);
                assert_eq!(lines.len(), 1, "{line}");
                let (value, path) = lines[0].clone().unwrap();
                // Without a newline a carriage return is part of the name.
                assert_eq!(
                    path,
                    if line.ends_with('\r') && end.is_empty() {
                        &b"a b\r"[..]
                    } else {
                        b"a b"
                    }
                );
                assert_eq!(value.algorithm(), wanted);
            }
        }
    }

    #[test]
    fn a_wrong_line_is_told_with_its_number_and_the_rest_is_read() {
        let list = format!("{HEX}  a\nnonsense\n{HEX} b\n{HEX}  \n\\{HEX}  c\\d\n{HEX}  e\n");
        let lines = all(list.as_bytes(), None);
        let good: Vec<bool> = lines.iter().map(Result::is_ok).collect();
        assert_eq!(good, [true, false, false, false, false, true]);
        assert_eq!(
            lines[1].clone().unwrap_err().to_string(),
            "Failed to read the digest list: it does not begin with 32 or 64 hexadecimal digits \
             \u{2014} line 2"
        );
        assert_eq!(lines[4].clone().unwrap_err().place.as_bytes(), b"line 5");
        let tag = format!("SHA256 (a) = {HEX}{HEX}");
        assert!(all(tag.as_bytes(), Some(Algorithm::Md5))[0].is_err());
        assert!(all(format!("{HEX}  a").as_bytes(), Some(Algorithm::Size))[0].is_err());
    }

    #[test]
    fn a_line_without_end_takes_no_memory() {
        let list = vec![b'a'; 1 << 20];
        let lines = all(&list, None);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].clone().unwrap_err().kind, ErrorKind::Config);
        let name = vec![b'n'; 65536 - HEX.len() - 2];
        let mut list = Vec::new();
        write_line(&mut list, &digest(Algorithm::Md5, b""), &name).unwrap();
        assert_eq!(all(&list, None), [Ok((digest(Algorithm::Md5, b""), name))]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(
            path in prop::collection::vec(1_u8.., 1..40),
            odd in prop::collection::vec(prop::sample::select(&b"\\\n\r *() ="[..]), 1..20),
            which in 2_usize..6,
        ) {
            let algorithm = Algorithm::ALL[which];
            let mut list = Vec::new();
            let value = digest(algorithm, &path);
            write_line(&mut list, &value, &path).unwrap();
            write_line(&mut list, &value, &odd).unwrap();
            prop_assert_eq!(all(&list, Some(algorithm)), [Ok((value, path)), Ok((value, odd))]);
        }

        #[test]
        fn no_line_panics(line in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = parse_line(&line, None);
            for tag in ["MD5 (", "\\SHA256 (", "XXH128 ("] {
                let _ = parse_line(&[tag.as_bytes(), &line].concat(), None);
            }
        }
    }
}
