//! The tables, and how the file of an older version becomes one of this version.

use rusqlite::config::DbConfig;
use rusqlite::{Connection, TransactionBehavior};

/// One step a version: `STEPS[n]` takes a file from version n to n + 1. Released steps never
/// change; a new version appends one.
const STEPS: [&str; 1] = [
    // jobs.sum is a checksum of id and spec. Numbers of verdicts, actions and the like are in
    // `codes`. rows.rewrites counts changes of rows that were there already.
    "CREATE TABLE jobs (
        num INTEGER PRIMARY KEY AUTOINCREMENT,
        id BLOB NOT NULL UNIQUE,
        spec TEXT NOT NULL,
        sum INTEGER NOT NULL,
        state TEXT NOT NULL,
        plan TEXT,
        outcome TEXT,
        end TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        created_ms INTEGER NOT NULL,
        started_ms INTEGER,
        ended_ms INTEGER,
        owner_pid INTEGER NOT NULL,
        owner_started INTEGER NOT NULL,
        rewrites INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE rows (
        job INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        path BLOB NOT NULL,
        action INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        verdict INTEGER NOT NULL,
        algorithm INTEGER,
        digest BLOB,
        other BLOB,
        taken INTEGER,
        why TEXT,
        error TEXT,
        PRIMARY KEY (job, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX rows_by_verdict ON rows (job, verdict, seq);
    CREATE TABLE steps (
        job INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        path BLOB NOT NULL,
        kind INTEGER NOT NULL,
        action INTEGER NOT NULL,
        reason INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        PRIMARY KEY (job, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE log (
        job INTEGER NOT NULL,
        seq INTEGER NOT NULL,
        at REAL NOT NULL,
        text TEXT NOT NULL,
        PRIMARY KEY (job, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE series (
        job INTEGER PRIMARY KEY,
        step REAL NOT NULL,
        samples BLOB NOT NULL
    ) STRICT;",
];

/// Sets a connection up and brings the file to this version; the inner error says that a newer
/// program made it.
pub(super) fn prepare(db: &mut Connection) -> rusqlite::Result<Result<(), String>> {
    db.busy_timeout(super::BUSY)?;
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let newest = i64::try_from(STEPS.len()).unwrap_or(i64::MAX);
    if version > newest {
        return Ok(Err(format!(
            "a newer Transload made it (version {version}, this one knows {newest})"
        )));
    }
    if version == 0 {
        // Room of what is pruned goes back to the disk; can only be chosen before the first table.
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // Some network file systems cannot do WAL; SQLite then stays with its older journal, which is
    // as safe and slower.
    db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    db.pragma_update(None, "synchronous", "FULL")?;
    db.pragma_update(None, "cell_size_check", true)?;
    db.pragma_update(None, "journal_size_limit", 64 << 20)?;
    db.pragma_update(None, "cache_size", -16_384)?;
    // The file is ours, but may have been changed by others: nothing in it is run.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    db.pragma_update(None, "trusted_schema", false)?;
    db.set_prepared_statement_cache_capacity(64);
    if version < newest {
        let transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another program may have done it meanwhile.
        let version: i64 =
            transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
        for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
            transaction.execute_batch(step)?;
        }
        transaction.pragma_update(None, "user_version", newest)?;
        transaction.commit()?;
    }
    Ok(Ok(()))
}

/// Looks through the small table that jobs are started from; the large ones are checked page by
/// page as they are read. Returns what is wrong.
pub(super) fn damage(db: &Connection) -> rusqlite::Result<Option<String>> {
    let answer: String = db.query_row("PRAGMA quick_check('jobs')", [], |row| row.get(0))?;
    Ok((answer != "ok").then_some(answer))
}
