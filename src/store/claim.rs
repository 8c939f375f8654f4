//! One run of a profile at a time, whoever starts it: two would write the same files and each
//! would find those of the other in its way.
//!
//! A claim is a lock on a file, which the kernel takes back when its process ends, however it
//! ends. The files stay: one that is removed could be claimed twice.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::profile::ProfileId;

/// Held while a profile runs.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "it is the lock")] File);

/// Claims a profile, with the claims of all being in this folder, which is made if need be. `None`
/// where no lock can be kept: that keeps no profile from running.
///
/// # Errors
/// `Exists` when it runs already.
pub fn claim(folder: &Path, profile: &ProfileId) -> Result<Option<Claim>> {
    let name = &profile.0;
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Ok(None);
    }
    let _ = DirBuilder::new().mode(0o700).create(folder);
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .mode(0o600)
        .custom_flags(flags.bits().cast_signed())
        .open(folder.join(name));
    let Ok(mut file) = opened else {
        return Ok(None);
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {
            // Who it is, for those who come later; without it they are told less.
            let _ = file.set_len(0);
            let _ = write!(file, "{}", me());
            Ok(Some(Claim(file)))
        }
        Err(Errno::WOULDBLOCK) => Err(running(&mut file)),
        Err(_) => Ok(None),
    }
}

/// Returns this process's number.
fn me() -> i32 {
    rustix::process::getpid().as_raw_pid()
}

/// Makes the error for a profile that another job has claimed.
fn running(file: &mut File) -> Error {
    let mut text = String::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(20).read_to_string(&mut text));
    let cause = match (read, text.parse::<i32>()) {
        (Ok(_), Ok(process)) if process != me() => {
            format!("it is running already, in process {process}")
        }
        _ => "it is running already".to_owned(),
    };
    Error::new(ErrorKind::Exists, "run the profile", cause)
        .hint("wait until that is through, or stop it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_claimed_once_and_free_again_when_the_claim_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("running");
        let (one, other) = (ProfileId("0a".into()), ProfileId("0b".into()));
        let first = claim(&folder, &one).unwrap();
        assert!(first.is_some());
        let error = claim(&folder, &one).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Exists);
        assert!(claim(&folder, &other).unwrap().is_some());
        drop(first);
        assert!(claim(&folder, &one).unwrap().is_some());
    }

    #[test]
    fn where_no_lock_can_be_kept_a_profile_runs_all_the_same() {
        let one = ProfileId("0a".into());
        assert!(claim(Path::new("/proc/none"), &one).unwrap().is_none());
        let dir = tempfile::tempdir().unwrap();
        let odd = ProfileId("../a".into());
        assert!(claim(dir.path(), &odd).unwrap().is_none());
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }
}
