//! The queue and every run, in one SQLite file that survives being killed at any moment.
//!
//! WAL with `synchronous=FULL`: what a call has written is durable when it returns. A
//! [`History`] belongs to one thread; [`History::reader`] opens the file again for another one, and
//! several programs may use it at once. [`jobs`] holds the jobs, [`rows`] what happened to each
//! file, [`extra`] logs and curves, [`schema`] the tables and how older files become newer ones.
//!
//! A file that is damaged is moved aside and a new one made ([`History::notes`] says so); a single
//! job whose record does not match its checksum is left out and never acted on.

mod codes;
#[cfg(test)]
mod damage_tests;
mod extra;
mod jobs;
mod rows;
mod schema;
#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::OFlags;

use crate::model::error::{Error, ErrorKind, Result};
use crate::store::file as disk;

pub use jobs::{Job, JobRecord, Owner};
pub use rows::VerifiedPaths;

/// How long a call waits for another program that writes.
const BUSY: Duration = Duration::from_secs(5);

/// SQLite's codes of a failed fsync (of a file, of a folder): what was written may be lost, and
/// asking again would not tell.
const FSYNC_FAILED: [i32; 2] = [1034, 1290];

/// The history of one user. Blocks; belongs to one thread at a time.
#[derive(Debug)]
pub struct History {
    db: Connection,
    path: PathBuf,
    /// What the last filtered look found.
    filter: Option<rows::Filtered>,
    /// Set when the disk lost a write; nothing is promised any more then.
    broken: Option<Error>,
    notes: Vec<String>,
}

impl History {
    /// Opens the file, made readable by its owner alone if it is missing. One that is damaged is
    /// moved aside, see [`History::notes`].
    ///
    /// # Errors
    /// `Denied` when it cannot be written or is not ours, `Version` when a newer program made it,
    /// `NoSpace`, `Timeout` when another program holds it.
    pub fn open(path: &Path) -> Result<Self> {
        make_file(path)?;
        match Self::connect(path) {
            Ok(history) => Ok(history),
            Err(error) if error.kind == ErrorKind::Corrupt => {
                let aside = set_aside(path)?;
                make_file(path)?;
                let mut history = Self::connect(path)?;
                history.notes.push(format!(
                    "The history was damaged ({}); it was moved to {} and a new one begun.",
                    error.cause,
                    crate::model::untrusted::shown(aside.as_os_str().as_encoded_bytes()),
                ));
                Ok(history)
            }
            Err(error) => Err(error),
        }
    }

    fn connect(path: &Path) -> Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let failed = |e: rusqlite::Error| sql_error("open the history", &e, path);
        let mut db = Connection::open_with_flags(path, flags).map_err(failed)?;
        schema::prepare(&mut db).map_err(failed)?.map_err(|why| {
            Error::new(ErrorKind::Version, "open the history", why)
                .at(path)
                .hint("use that newer Transload, or set TRANSLOAD_HOME to another folder")
        })?;
        if let Some(why) = schema::damage(&db).map_err(failed)? {
            return Err(Error::new(ErrorKind::Corrupt, "open the history", why).at(path));
        }
        Ok(Self {
            db,
            path: path.to_owned(),
            filter: None,
            broken: None,
            notes: Vec::new(),
        })
    }

    /// Opens the same file again, for reading beside the writing.
    ///
    /// # Errors
    /// As [`History::open`].
    pub fn reader(&self) -> Result<Self> {
        Self::connect(&self.path)
    }

    /// Takes what a person has to know: that the file was moved aside, that a job was left out.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Runs one transaction. Durable when it returns.
    fn write<T>(
        &mut self,
        doing: &str,
        act: impl FnOnce(&Transaction<'_>) -> std::result::Result<T, Fail>,
    ) -> Result<T> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        // IMMEDIATE: waits for other writers here, where waiting is allowed, not at the commit.
        let run = |db: &mut Connection| {
            let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = act(&transaction)?;
            transaction.commit()?;
            Ok(value)
        };
        let error = match run(&mut self.db) {
            Ok(value) => return Ok(value),
            Err(Fail::Rule(why)) => return Err(Error::new(ErrorKind::Bug, doing, why)),
            Err(Fail::Sql(error)) => error,
        };
        let code = error.sqlite_error().map(|e| e.extended_code);
        let mut error = sql_error(doing, &error, &self.path);
        if code.is_some_and(|code| FSYNC_FAILED.contains(&code)) {
            error.hint = Some(LOST_HINT.to_owned());
            self.broken = Some(error.clone());
        }
        Err(error)
    }

    /// Runs one look at a consistent state.
    fn look<T>(
        &mut self,
        doing: &str,
        act: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        let run = |db: &mut Connection| {
            let transaction = db.transaction()?;
            act(&transaction)
        };
        run(&mut self.db).map_err(|e| sql_error(doing, &e, &self.path))
    }
}

/// Why a transaction was rolled back.
enum Fail {
    /// SQLite said so.
    Sql(rusqlite::Error),
    /// The caller broke a rule.
    Rule(&'static str),
}

impl From<rusqlite::Error> for Fail {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

const NEVER_SAVED: Fail = Fail::Rule("the job was never saved");

const LOST_HINT: &str = "the disk could not keep what was written, so nothing more is kept; \
                         check the disk, then start Transload again";

/// Makes the file if it is missing, so that it is private from its first moment.
fn make_file(path: &Path) -> Result<()> {
    let failed = |e: &std::io::Error| {
        let mut error = Error::io("open the history", e).at(path);
        error.hint.get_or_insert_with(|| {
            "make its folder writable, or set TRANSLOAD_HOME to a folder that is".to_owned()
        });
        error
    };
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed())
        .open(path)
        .map_err(|e| failed(&e))?;
    let meta = file.metadata().map_err(|e| failed(&e))?;
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(Error::new(
            ErrorKind::Denied,
            "open the history",
            "it is no regular file of your own",
        )
        .at(path)
        .hint("move it away"));
    }
    Ok(())
}

/// Moves a damaged file and what belongs to it to a free name; returns that name.
fn set_aside(path: &Path) -> Result<PathBuf> {
    let named = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let mut number = 1;
    let aside = loop {
        let aside = named(&format!(".damaged-{number}"));
        match disk::rename_new(path, &aside) {
            Ok(()) => break aside,
            Err(error) if error.kind == ErrorKind::Exists => number += 1,
            Err(error) => return Err(error),
        }
    };
    // SQLite would play an old log into the new file.
    for suffix in ["-wal", "-shm"] {
        match disk::rename_new(
            &named(suffix),
            &named(&format!(".damaged-{number}{suffix}")),
        ) {
            Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}

/// Says in words what SQLite says in codes.
fn sql_error(doing: &str, source: &rusqlite::Error, path: &Path) -> Error {
    let text = source.to_string();
    let Some(code) = source.sqlite_error_code() else {
        // A value of the wrong kind or range: the file holds what no version writes.
        return Error::new(ErrorKind::Corrupt, doing, text)
            .at(path)
            .hint(DAMAGED_HINT);
    };
    let (kind, cause, hint) = match code {
        ErrorCode::DiskFull => (
            ErrorKind::NoSpace,
            "no space left on device",
            "free some space there",
        ),
        ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied => (
            ErrorKind::Denied,
            text.as_str(),
            "make its folder writable, or set TRANSLOAD_HOME to a folder that is",
        ),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => (
            ErrorKind::Timeout,
            "another program has held it for 5 seconds",
            "close other windows of Transload, then try again",
        ),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => {
            (ErrorKind::Corrupt, "the file is damaged", DAMAGED_HINT)
        }
        ErrorCode::SystemIoFailure => (ErrorKind::Io, text.as_str(), "check the disk"),
        _ => (ErrorKind::Bug, text.as_str(), "please report this"),
    };
    Error::new(kind, doing, cause).at(path).hint(hint)
}

const DAMAGED_HINT: &str = "move the file away; a new history is begun at the next start";

/// Returns milliseconds since 1970; only shown, order comes from numbers.
fn now_ms() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| i64::try_from(now.as_millis()).unwrap_or(i64::MAX))
}
