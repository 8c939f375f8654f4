//! Small files: read whole with checks, and replaced whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use crate::model::error::{Error, ErrorKind, Result};

/// The largest profile or settings file that is read, in bytes.
pub const MAX_FILE: u64 = 1 << 20;

/// How files are called while they are written.
const NEW_PREFIX: &str = ".new-";

/// Reads a file of ours: regular, owned by this user, no symbolic link, at most [`MAX_FILE`].
///
/// # Errors
/// Those of the system; `Denied` when the file breaks one of these rules.
pub fn read_own(path: &Path) -> Result<Vec<u8>> {
    read(path, OFlags::NOFOLLOW, true)
}

/// Reads a file that the user named: regular, at most [`MAX_FILE`]; links are followed.
///
/// # Errors
/// Those of the system; `Denied` when the file is no regular file or too large.
pub fn read_given(path: &Path) -> Result<Vec<u8>> {
    read(path, OFlags::empty(), false)
}

fn read(path: &Path, flags: OFlags, must_be_own: bool) -> Result<Vec<u8>> {
    let refuse = |why: &str, hint: &str| {
        Error::new(ErrorKind::Denied, "read the file", why)
            .at(path)
            .hint(hint)
    };
    // NONBLOCK: a FIFO in its place must not hold the program up.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((flags | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)
        .map_err(|e| {
            if rustix::io::Errno::from_io_error(&e) == Some(rustix::io::Errno::LOOP) {
                refuse("it is a symbolic link", "put the file itself there")
            } else {
                Error::io("read the file", &e).at(path)
            }
        })?;
    let meta = file
        .metadata()
        .map_err(|e| Error::io("read the file", &e).at(path))?;
    if !meta.is_file() {
        return Err(refuse("it is no regular file", "name a file"));
    }
    if must_be_own && meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(refuse(
            "it belongs to another user",
            "copy it as your own file",
        ));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::io("read the file", &e).at(path))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(refuse(
            "it is larger than 1 MiB",
            "this is no file of Transload's",
        ));
    }
    Ok(bytes)
}

/// Replaces a file of ours, or makes it, readable by its owner alone. At every moment, also when
/// power fails, the name has either the old contents or all of the new ones. Returns whether the
/// contents changed; nothing is written when they did not.
///
/// # Errors
/// Those of the system; `Denied` when what is there is a link or somebody else's. The old file is
/// untouched then, except that an error of the very last step (making the folder durable) can
/// leave the new one.
pub fn save(path: &Path, bytes: &[u8]) -> Result<bool> {
    match read_own(path) {
        Ok(old) if old == bytes => return Ok(false),
        Ok(_) => {}
        Err(error) if error.kind == ErrorKind::NotFound => {}
        Err(mut error) => {
            error.doing = "replace the file".to_owned();
            return Err(error);
        }
    }
    let dir = parent(path);
    let new = dir.join(format!("{NEW_PREFIX}{}", random_hex()?));
    let written = write_new(&new, bytes).and_then(|()| fs::rename(&new, path));
    if let Err(error) = written {
        // Best effort: what is left is removed at a later start.
        let _ = fs::remove_file(&new);
        return Err(Error::io("save the file", &error).at(path));
    }
    sync_dir(dir)?;
    Ok(true)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Moves a file within one file system, never over another one, and makes that durable.
///
/// # Errors
/// Those of the system; `Exists` when the new name is taken.
pub fn rename_new(from: &Path, to: &Path) -> Result<()> {
    let failed = |e: &io::Error| Error::io("move the file", e).at(to);
    let flags = rustix::fs::RenameFlags::NOREPLACE;
    let (here, there) = (rustix::fs::CWD, rustix::fs::CWD);
    match rustix::fs::renameat_with(here, from, there, to, flags) {
        Ok(()) => {}
        // Some file systems (NFS, old FUSE ones) cannot promise it; look first there.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(failed(&io::ErrorKind::AlreadyExists.into()));
            }
            fs::rename(from, to).map_err(|e| failed(&e))?;
        }
        Err(error) => return Err(failed(&error.into())),
    }
    sync_dir(parent(to))?;
    if parent(from) != parent(to) {
        sync_dir(parent(from))?;
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
    path.parent()
        .filter(|dir| !dir.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Makes the names in a folder durable.
///
/// # Errors
/// Those of the system.
pub fn sync_dir(dir: &Path) -> Result<()> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|e| Error::io("make the folder durable", &e).at(dir))
}

/// Removes what saves that were cut off have left in a folder. Younger ones than an hour stay,
/// since another window may be writing them.
pub fn remove_left_over(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    for entry in entries.flatten() {
        let is_new = entry.file_name().to_string_lossy().starts_with(NEW_PREFIX);
        let is_old = entry
            .metadata()
            .and_then(|m| m.modified())
            .is_ok_and(|at| at < hour_ago);
        if is_new && is_old {
            // It only takes room; the next start tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns 8 random lower-case hexadecimal digits.
///
/// # Errors
/// When the system has no random numbers.
pub fn random_hex() -> Result<String> {
    let mut bytes = [0; 4];
    getrandom::fill(&mut bytes).map_err(|e| {
        Error::new(
            ErrorKind::Io,
            "get random numbers from the system",
            e.to_string(),
        )
    })?;
    Ok(format!("{:08x}", u32::from_be_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_only_when_it_changes_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert!(save(&path, b"1").unwrap());
        let before = fs::metadata(&path).unwrap();
        assert_eq!(before.mode() & 0o777, 0o600);
        assert!(!save(&path, b"1").unwrap());
        assert_eq!(fs::metadata(&path).unwrap().ino(), before.ino());
        assert!(save(&path, b"2").unwrap());
        assert_eq!(read_own(&path).unwrap(), b"2");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_folders_and_pipes_are_refused_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        fs::write(&real, "x").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(
            read_own(&link)
                .unwrap_err()
                .to_string()
                .contains("symbolic link")
        );
        assert!(save(&link, b"y").is_err());
        assert_eq!(fs::read(&real).unwrap(), b"x");
        assert_eq!(read_given(&link).unwrap(), b"x");
        for path in [fifo.as_path(), dir.path(), Path::new("/dev/zero")] {
            assert!(
                read_given(path)
                    .unwrap_err()
                    .to_string()
                    .contains("no regular file")
            );
        }
    }

    #[test]
    fn a_move_never_replaces_another_file() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b, c) = (
            dir.path().join("a"),
            dir.path().join("b"),
            dir.path().join("c"),
        );
        fs::write(&a, "a").unwrap();
        fs::write(&b, "b").unwrap();
        assert_eq!(rename_new(&a, &b).unwrap_err().kind, ErrorKind::Exists);
        rename_new(&a, &c).unwrap();
        assert_eq!(fs::read(&c).unwrap(), b"a");
        assert_eq!(fs::read(&b).unwrap(), b"b");
    }
}
