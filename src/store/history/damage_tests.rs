//! What becomes of a history that was damaged, cut off, or is none of ours.

use std::fs;

use super::tests::{ID, open, record};
use super::*;
use crate::model::job::JobId;
use crate::model::progress::RunState;

#[test]
fn a_damaged_file_is_moved_aside_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.sqlite");
    for (number, spoil) in [
        |path: &Path| fs::write(path, "no database at all, and longer than its head").unwrap(),
        |path: &Path| {
            let mut bytes = fs::read(path).unwrap();
            // Page 3 and after hold the tables' roots.
            bytes[8192..].fill(0x55);
            fs::write(path, bytes).unwrap();
        },
    ]
    .iter()
    .enumerate()
    {
        let mut history = History::open(&path).unwrap();
        assert!(history.notes().is_empty());
        history.save_job(&record(ID, RunState::Queued)).unwrap();
        drop(history);
        spoil(&path);
        let spoilt = fs::read(&path).unwrap();
        let mut history = History::open(&path).unwrap();
        let notes = history.notes();
        assert!(
            notes[0].contains(&format!("history.sqlite.damaged-{}", number + 1)),
            "{notes:?}"
        );
        assert_eq!(history.jobs(9).unwrap(), []);
        let aside = dir
            .path()
            .join(format!("history.sqlite.damaged-{}", number + 1));
        assert_eq!(fs::read(aside).unwrap(), spoilt);
    }
}

#[test]
fn a_job_with_a_changed_destination_is_left_out_and_told() {
    let (_dir, mut history) = open();
    let other = JobId([1; 16]);
    history.save_job(&record(ID, RunState::Queued)).unwrap();
    history.save_job(&record(other, RunState::Queued)).unwrap();
    history
        .db
        .execute(
            "UPDATE jobs SET spec = replace(spec, 'nas:/b', 'nas:/c') WHERE num = 1",
            [],
        )
        .unwrap();
    let jobs = history.jobs(9).unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0].record.spec.id, other);
    assert!(history.notes()[0].contains("Job number 1"));
    assert_eq!(history.job(ID).unwrap(), None);
}

#[test]
fn a_torn_log_loses_at_most_what_was_not_acknowledged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("history.sqlite");
    let wal = dir.path().join("history.sqlite-wal");
    let mut history = History::open(&path).unwrap();
    history
        .db
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let mut ends = Vec::new();
    for n in 1..=3 {
        history
            .save_job(&record(JobId([n; 16]), RunState::Queued))
            .unwrap();
        ends.push(fs::metadata(&wal).unwrap().len());
    }
    let (file, log) = (fs::read(&path).unwrap(), fs::read(&wal).unwrap());
    drop(history);
    for len in (0..=log.len())
        .step_by(97)
        .chain(ends.iter().map(|end| *end as usize))
    {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("history.sqlite");
        fs::write(&path, &file).unwrap();
        fs::write(dir.path().join("history.sqlite-wal"), &log[..len]).unwrap();
        let mut history = History::open(&path).unwrap();
        let acknowledged = ends.iter().filter(|end| **end <= len as u64).count();
        assert_eq!(history.jobs(9).unwrap().len(), acknowledged, "cut at {len}");
        assert!(history.notes().is_empty());
    }
}

#[test]
fn a_newer_file_is_refused_and_left_alone() {
    let (dir, history) = open();
    history.db.pragma_update(None, "user_version", 99).unwrap();
    drop(history);
    let path = dir.path().join("history.sqlite");
    let error = History::open(&path).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Version);
    assert!(error.hint.is_some());
    assert!(path.exists());
}

#[test]
fn a_folder_that_cannot_be_written_is_told_with_what_to_do() {
    let error = History::open(Path::new("/proc/history.sqlite")).unwrap_err();
    assert!(error.hint.is_some(), "{error:?}");
    let dir = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.path().join("history.sqlite")).unwrap();
    assert!(History::open(&dir.path().join("history.sqlite")).is_err());
}
