//! Lists of digests: saved beside a copy, and checked against a folder.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::fs::root::Root;
use crate::model::control::Cancel;
use crate::model::digest::{Algorithm, Digest};
use crate::model::entry::Action;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::outcome::Tally;
use crate::model::relpath::RelPath;
use crate::model::verdict::{Row, Verdict, When};
use crate::verify::hash::Hasher;
use crate::verify::manifest;

/// Files are read so many bytes at a time.
const CHUNK: usize = 1 << 20;

/// Writes a list that `md5sum -c` and its kin read; it has its name only when it is complete.
pub struct ListWriter {
    file: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
}

impl ListWriter {
    /// Starts a list; a former one stays until the new one is complete.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn create(path: &Path) -> Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{:08x}.part", random()?));
        let part = PathBuf::from(part);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&part)
            .map_err(|e| failed(path, &e))?;
        Ok(Self {
            file: BufWriter::new(file),
            part,
            path: path.to_owned(),
        })
    }

    /// Adds a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, digest: &Digest, path: &[u8]) -> Result<()> {
        manifest::write_line(&mut self.file, digest, path).map_err(|e| failed(&self.path, &e))
    }

    /// Makes the list durable and gives it its name.
    ///
    /// # Errors
    /// When it cannot be written or renamed.
    pub fn finish(mut self) -> Result<()> {
        let done = self
            .file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .and_then(|()| std::fs::rename(&self.part, &self.path));
        done.map_err(|e| failed(&self.path, &e))
    }
}

impl Drop for ListWriter {
    fn drop(&mut self) {
        // After `finish` there is nothing of that name any more.
        let _ = std::fs::remove_file(&self.part);
    }
}

fn random() -> Result<u32> {
    getrandom::u32().map_err(|e| {
        Error::new(
            ErrorKind::Io,
            "get random bytes from the system",
            e.to_string(),
        )
    })
}

fn failed(path: &Path, source: &std::io::Error) -> Error {
    Error::io("save the list of digests", source).at(path)
}

/// What a check has to tell, in the order of the list.
pub enum Checked<'a> {
    /// A file is being read; so many more bytes of it were.
    Reading(&'a RelPath, u64),
    /// A file is settled.
    Row(Row),
    /// A line of the list cannot be used.
    BadLine(Error),
}

/// How a check ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Files of each verdict.
    pub tally: Tally,
    /// Bytes that were read.
    pub bytes: u64,
    /// Lines of the list that could not be used.
    pub bad_lines: u64,
}

/// Checks the files below `root` against a list (`-` is standard input); without an algorithm it is
/// told from the list's name, from what its lines say and from the length of the digests.
///
/// What the list names is confined to `root` and no link is followed there, so that a list from
/// elsewhere cannot lead out of it. A whole path, from `/`, means just that file, as for `md5sum
/// -c`: whoever wrote it did not mean a file below some folder.
///
/// # Errors
/// When list or folder cannot be opened or no line of the list can be used; `Cancelled`.
pub fn check(
    list: &Path,
    root: &Path,
    algorithm: Option<Algorithm>,
    cancel: &Cancel,
    tell: &mut dyn FnMut(Checked<'_>),
) -> Result<Checks> {
    let failed = |e| Error::io("open the list of digests", &e).at(list);
    let input: Box<dyn Read> = match list.as_os_str().as_bytes() {
        b"-" => Box::new(std::io::stdin()),
        _ => Box::new(File::open(list).map_err(failed)?),
    };
    let root = Root::open(root)?;
    let mut checks = Checks::default();
    let mut buffer = vec![0; CHUNK];
    let algorithm = algorithm.or_else(|| named_after(list));
    let mut last_bad = None;
    for line in manifest::read(&mut BufReader::new(input), algorithm) {
        cancel.check()?;
        let (digest, path) = match line {
            Ok(line) => line,
            Err(error) if error.kind == ErrorKind::Config => {
                checks.bad_lines += 1;
                last_bad = Some(error.clone());
                tell(Checked::BadLine(error));
                continue;
            }
            Err(error) => return Err(error.at(list)),
        };
        let verdict = match check_file(&root, &digest, &path, &mut buffer, cancel, tell) {
            Ok((verdict, bytes)) => {
                checks.bytes += bytes;
                tell(Checked::Row(Row {
                    path,
                    action: Action::Keep,
                    bytes,
                    verdict: verdict.clone(),
                }));
                verdict
            }
            Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
            Err(error) => {
                let verdict = Verdict::Failed(error);
                tell(Checked::Row(Row {
                    path,
                    action: Action::Keep,
                    bytes: 0,
                    verdict: verdict.clone(),
                }));
                verdict
            }
        };
        match verdict {
            Verdict::Verified { .. } => checks.tally.verified += 1,
            Verdict::Differs { .. } => checks.tally.differs += 1,
            _ => checks.tally.failed += 1,
        }
    }
    match last_bad {
        Some(error) if checks.tally == Tally::default() => Err(Error::new(
            ErrorKind::Config,
            "read the list of digests",
            "none of its lines is a digest and a name",
        )
        .at(list)
        .hint(format!("the last one: {}", error.cause))),
        _ => Ok(checks),
    }
}

/// Returns the algorithm that a list's name tells and the length of a digest does not.
fn named_after(list: &Path) -> Option<Algorithm> {
    let name = list.file_name()?.to_string_lossy().to_ascii_lowercase();
    match () {
        () if name.contains("b3") || name.contains("blake3") => Some(Algorithm::Blake3),
        () if name.contains("xxh") => Some(Algorithm::Xxh3),
        () => None,
    }
}

fn check_file(
    root: &Root,
    listed: &Digest,
    path: &[u8],
    buffer: &mut [u8],
    cancel: &Cancel,
    tell: &mut dyn FnMut(Checked<'_>),
) -> Result<(Verdict, u64)> {
    let doing = "check the file";
    let written = path;
    let failed = |error: Error| {
        Error {
            doing: doing.to_owned(),
            ..error
        }
        .at(written)
    };
    let whole = match written.first() {
        Some(b'/') => Some(whole_path(written).map_err(failed)?),
        _ => None,
    };
    let (root, path) = match &whole {
        Some((top, path)) => (top, path.clone()),
        None => {
            let mut plain = written;
            while let Some(rest) = plain.strip_prefix(b"./") {
                plain = rest;
            }
            let path = RelPath::new(plain).map_err(|error| {
                Error::new(ErrorKind::Config, doing, error.cause)
                    .at(written)
                    .hint(
                        "names in the list must be below the folder that is checked; change the \
                         folder with --root",
                    )
            })?;
            (root, path)
        }
    };
    let (mut file, _) = root
        .dir(path.parent().as_ref())
        .and_then(|dir| dir.open_read(path.name()))
        .map_err(failed)?;
    let mut hasher = Hasher::new(listed.algorithm());
    let mut size = 0;
    loop {
        cancel.check()?;
        let count = match file.read(buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(failed(Error::io(doing, &e))),
        };
        hasher.update(&buffer[..count]);
        size += count as u64;
        tell(Checked::Reading(&path, count as u64));
    }
    let verdict = match hasher.finish() {
        Some(found) if found == *listed => Verdict::Verified {
            digest: found,
            when: When::ReadBack,
        },
        Some(found) => Verdict::Differs {
            here: *listed,
            there: found,
        },
        None => Verdict::Unverified("the list has no digest for it".to_owned()),
    };
    Ok((verdict, size))
}

/// Returns the root of all files and the path from there, with links and `..` resolved.
fn whole_path(written: &[u8]) -> Result<(Root, RelPath)> {
    let real = std::fs::canonicalize(Path::new(OsStr::from_bytes(written)))
        .map_err(|e| Error::io("find the file", &e))?;
    let below = real.as_os_str().as_bytes();
    let path = RelPath::new(below.strip_prefix(b"/").unwrap_or(below))?;
    Ok((Root::open(Path::new("/"))?, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::hash;

    fn verdicts(list: &Path, root: &Path) -> (Vec<(Vec<u8>, &'static str)>, Result<Checks>) {
        let mut rows = Vec::new();
        let checks = check(list, root, None, &Cancel::default(), &mut |told| {
            if let Checked::Row(row) = told {
                rows.push((row.path, row.verdict.name()));
            }
        });
        (rows, checks)
    }

    #[test]
    fn a_saved_list_checks_odd_names_a_flipped_byte_and_a_missing_file() {
        let top = tempfile::tempdir().unwrap();
        let names: [&[u8]; 6] = [
            b"qq q.txt",
            b"a  (b)",
            b"100%s",
            b"x\\ny\n",
            b"\xff\x1b",
            b"q [2019]",
        ];
        let list = top.path().join("list.b3");
        let mut writer = ListWriter::create(&list).unwrap();
        for name in names {
            let path = top.path().join(OsStr::from_bytes(name));
            std::fs::write(path, name).unwrap();
            writer
                .add(&hash::one(Algorithm::Blake3, name).unwrap(), name)
                .unwrap();
        }
        assert!(
            !list.exists(),
            "a list has its name only when it is complete"
        );
        writer.finish().unwrap();
        let (rows, checks) = verdicts(&list, top.path());
        assert!(
            rows.iter().all(|(_, verdict)| *verdict == "verified"),
            "{rows:?}"
        );
        assert_eq!(checks.unwrap().tally.verified, 6);

        std::fs::write(top.path().join("100%s"), b"100%S").unwrap();
        std::fs::remove_file(top.path().join("q [2019]")).unwrap();
        let (rows, checks) = verdicts(&list, top.path());
        assert_eq!(rows[2], (b"100%s".to_vec(), "differs"));
        assert_eq!(rows[5], (b"q [2019]".to_vec(), "failed"));
        let tally = checks.unwrap().tally;
        assert_eq!((tally.verified, tally.differs, tally.failed), (4, 1, 1));
    }

    #[test]
    fn names_outside_the_folder_and_links_are_not_followed() {
        let top = tempfile::tempdir().unwrap();
        let inside = top.path().join("in");
        std::fs::create_dir(&inside).unwrap();
        std::fs::write(top.path().join("secret"), b"s").unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("link")).unwrap();
        let digest = hash::one(Algorithm::Md5, b"s").unwrap();
        let list = top.path().join("list");
        std::fs::write(
            &list,
            format!("{digest}  ../secret\n{digest}  link\n{digest}  a/../../secret\n"),
        )
        .unwrap();
        let (rows, checks) = verdicts(&list, &inside);
        assert!(
            rows.iter().all(|(_, verdict)| *verdict == "failed"),
            "{rows:?}"
        );
        assert_eq!(checks.unwrap().tally.failed, 3);
    }

    #[test]
    fn a_whole_path_means_that_file_wherever_the_folder_is() {
        let top = tempfile::tempdir().unwrap();
        let (here, there) = (top.path().join("here"), top.path().join("there"));
        std::fs::create_dir(&here).unwrap();
        std::fs::create_dir(&there).unwrap();
        std::fs::write(there.join("a"), b"s").unwrap();
        std::os::unix::fs::symlink("a", there.join("link")).unwrap();
        let digest = hash::one(Algorithm::Md5, b"s").unwrap();
        let base = there.display();
        let lines: String = ["a", "link", "../there/a", "gone", "."]
            .iter()
            .map(|name| format!("{digest}  {base}/{name}\n"))
            .collect();
        let list = top.path().join("list");
        std::fs::write(&list, lines + &format!("{digest}  /dev/zero\n")).unwrap();
        let (rows, checks) = verdicts(&list, &here);
        let verdicts: Vec<_> = rows.iter().map(|(_, verdict)| *verdict).collect();
        assert_eq!(
            verdicts,
            [
                "verified", "verified", "verified", "failed", "failed", "failed"
            ]
        );
        assert_eq!(rows[2].0, format!("{base}/../there/a").into_bytes());
        assert_eq!(checks.unwrap().tally.failed, 3);
    }

    #[test]
    fn what_is_no_list_is_an_error_and_single_bad_lines_are_told() {
        let top = tempfile::tempdir().unwrap();
        let list = top.path().join("list");
        std::fs::write(&list, "hello\n").unwrap();
        assert_eq!(
            verdicts(&list, top.path()).1.unwrap_err().kind,
            ErrorKind::Config
        );
        std::fs::write(top.path().join("a"), "").unwrap();
        let digest = hash::one(Algorithm::Md5, b"").unwrap();
        std::fs::write(&list, format!("hello\n{digest}  ./a\n")).unwrap();
        let checks = verdicts(&list, top.path()).1.unwrap();
        assert_eq!((checks.bad_lines, checks.tally.verified), (1, 1));
    }
}
