//! What the history promises, tried on real files.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::model::digest::{Algorithm, Digest};
use crate::model::entry::{Action, EntryKind, Reason};
use crate::model::job::{Consent, JobId, JobSpec};
use crate::model::location::Location;
use crate::model::outcome::{Abort, Outcome, Report, Route, Tally};
use crate::model::plan::{PlanTotals, Step};
use crate::model::profile::Settings;
use crate::model::progress::RunState;
use crate::model::verdict::{Row, Verdict, When};

pub(super) const ID: JobId = JobId([7; 16]);

pub(super) fn record(id: JobId, state: RunState) -> JobRecord {
    let report = Report {
        files: 3,
        bytes: u64::MAX,
        seconds: 1.25,
        method: "tcp".into(),
        route: Route::Reversed,
        tally: Tally {
            verified: 3,
            ..Tally::default()
        },
        ..Report::default()
    };
    JobRecord {
        spec: Arc::new(JobSpec {
            id,
            title: "Photos → nas".into(),
            profile: None,
            sources: vec![Location::Local(b"/a \xff".to_vec())],
            destination: Location::parse(b"nas:/b").unwrap(),
            settings: Settings::default(),
            dry_run: false,
            attended: true,
            consent: Consent::default(),
            resume: false,
        }),
        state,
        plan: Some(PlanTotals {
            create: 3,
            ..PlanTotals::default()
        }),
        end: (state == RunState::Finished).then_some((Outcome::Partial(None), report)),
        owner: Owner {
            pid: 1,
            started: u64::MAX,
        },
    }
}

pub(super) fn open() -> (tempfile::TempDir, History) {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(&dir.path().join("history.sqlite")).unwrap();
    (dir, history)
}

fn row(path: &str, verdict: Verdict) -> Row {
    Row {
        path: path.into(),
        action: Action::Create,
        bytes: 10,
        verdict,
    }
}

fn verified() -> Verdict {
    let digest = Digest::new(Algorithm::Md5, &[3; 16]).unwrap();
    Verdict::Verified {
        digest,
        when: When::InFlight,
    }
}

/// One row of each verdict.
fn all_rows() -> Vec<Row> {
    let sha = |byte| Digest::new(Algorithm::Sha256, &[byte; 32]).unwrap();
    let error = Error::new(ErrorKind::Denied, "open", &b"\xff\n"[..])
        .at(&b"a\xfe"[..])
        .hint("x");
    [
        verified(),
        Verdict::Verified {
            digest: sha(9),
            when: When::ReadBack,
        },
        Verdict::Differs {
            here: sha(1),
            there: sha(2),
        },
        Verdict::SizeOnly,
        Verdict::Unverified("not asked for".into()),
        Verdict::SourceChanged,
        Verdict::Vanished,
        Verdict::Skipped("same".into()),
        Verdict::Failed(error),
    ]
    .into_iter()
    .map(|verdict| Row {
        path: b"dir/\xff\n".to_vec(),
        action: Action::Update,
        bytes: u64::MAX,
        verdict,
    })
    .collect()
}

#[test]
fn a_job_with_all_that_belongs_to_it_reads_back_as_it_was_kept() {
    let (dir, mut history) = open();
    let mode = fs::metadata(dir.path().join("history.sqlite"))
        .unwrap()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    for state in codes::STATES.map(|(state, _)| state) {
        let record = record(ID, state);
        history.save_job(&record).unwrap();
        assert_eq!(history.job(ID).unwrap().unwrap().record, record);
    }
    let rows = all_rows();
    history.append_rows(ID, 0, &rows[..4]).unwrap();
    history.append_rows(ID, 4, &rows[4..]).unwrap();
    let steps: Vec<_> = codes::REASONS
        .into_iter()
        .map(|reason| Step {
            path: b"\xff".to_vec(),
            kind: EntryKind::Symlink,
            action: Action::Touch,
            reason,
            bytes: 1,
        })
        .collect();
    history.append_steps(ID, 0, &steps).unwrap();
    let lines = [(0.5, "a".to_owned()), (f64::NAN, "b\n\0".to_owned())];
    history.append_log(ID, &lines[..1]).unwrap();
    history.append_log(ID, &lines[1..]).unwrap();
    history.save_series(ID, 0.5, &[1.0, 0.0, f32::MAX]).unwrap();

    let mut other = history.reader().unwrap();
    assert_eq!(other.rows(ID, None, "", 0..100).unwrap(), (rows.clone(), 9));
    assert_eq!(
        other.rows(ID, None, "", 2..4).unwrap(),
        (rows[2..4].to_vec(), 9)
    );
    assert_eq!(
        other.steps(ID, 1..3).unwrap(),
        (steps[1..3].to_vec(), steps.len())
    );
    assert_eq!(other.counts(ID).unwrap(), (9, steps.len() as u64));
    assert_eq!(
        other.log(ID).unwrap(),
        [(0.5, "a".to_owned()), (0.0, "b\n\0".to_owned())]
    );
    assert_eq!(other.series(ID).unwrap(), (0.5, vec![1.0, 0.0, f32::MAX]));
    history.clear_steps(ID).unwrap();
    assert_eq!(other.counts(ID).unwrap(), (9, 0));
    history.forget(ID).unwrap();
    assert_eq!(other.job(ID).unwrap(), None);
    assert_eq!(other.rows(ID, None, "", 0..100).unwrap(), (vec![], 0));
    assert_eq!(other.log(ID).unwrap(), []);
}

#[test]
fn every_value_of_the_model_has_its_number() {
    for verdict in all_rows().iter().map(|row| row.verdict.name()) {
        assert!(codes::VERDICTS.contains(&verdict));
    }
    for reason in codes::REASONS {
        // A new one makes this match fail to compile; give it the next number.
        match reason {
            Reason::Missing | Reason::Size | Reason::Time | Reason::Digest | Reason::Content => {}
            Reason::Mode | Reason::Extra | Reason::Same | Reason::Excluded => {}
            Reason::Conflict | Reason::Special => {}
        }
    }
    for action in codes::ACTIONS {
        match action {
            Action::Create | Action::Update | Action::Touch => {}
            Action::Delete | Action::Keep | Action::Skip => {}
        }
    }
}

#[test]
fn attempts_and_times_follow_the_states() {
    let (_dir, mut history) = open();
    let job = |history: &mut History| history.job(ID).unwrap().unwrap();
    history.save_job(&record(ID, RunState::Queued)).unwrap();
    let queued = job(&mut history);
    assert_eq!(
        (queued.attempts, queued.started_ms, queued.ended_ms),
        (0, None, None)
    );
    for state in [RunState::Running, RunState::Stalled, RunState::Running] {
        history.save_job(&record(ID, state)).unwrap();
    }
    assert_eq!(job(&mut history).attempts, 1);
    history.save_job(&record(ID, RunState::Finished)).unwrap();
    let ended = job(&mut history);
    assert!(ended.started_ms >= Some(ended.created_ms) && ended.ended_ms >= ended.started_ms);
    history.save_job(&record(ID, RunState::Finished)).unwrap();
    assert_eq!(job(&mut history), ended);
    history.save_job(&record(ID, RunState::Queued)).unwrap();
    assert_eq!(job(&mut history).ended_ms, None);
    history.save_job(&record(ID, RunState::Running)).unwrap();
    assert_eq!(job(&mut history).attempts, 2);
}

#[test]
fn only_jobs_whose_owner_is_gone_are_marked_with_what_their_rows_prove() {
    let (_dir, mut history) = open();
    let ids = [1, 2, 3].map(|n| JobId([n; 16]));
    let states = [RunState::Running, RunState::Finished, RunState::Paused];
    for (id, state) in ids.into_iter().zip(states) {
        history.save_job(&record(id, state)).unwrap();
    }
    let alive = JobRecord {
        owner: Owner { pid: 2, started: 5 },
        ..record(ID, RunState::Running)
    };
    history.save_job(&alive).unwrap();
    history
        .append_rows(
            ids[0],
            0,
            &[row("a", verified()), row("b", Verdict::Vanished)],
        )
        .unwrap();
    let marked = history.mark_left_running(&|owner| owner.pid == 2).unwrap();
    assert_eq!(marked, [ids[0], ids[2]]);
    let job = history.job(ids[0]).unwrap().unwrap();
    let (outcome, report) = job.record.end.unwrap();
    assert_eq!(outcome, Outcome::Aborted(Abort::LeftRunning));
    assert_eq!(
        (report.files, report.bytes, report.tally.vanished),
        (1, 10, 1)
    );
    assert_eq!(history.job(ID).unwrap().unwrap().record, alive);
    assert_eq!(
        history.mark_left_running(&|owner| owner.pid == 2).unwrap(),
        []
    );
    let order: Vec<_> = history
        .jobs(2)
        .unwrap()
        .iter()
        .map(|job| job.record.spec.id)
        .collect();
    assert_eq!(order, [ids[2], ID], "the newest two, oldest first");
}

#[test]
fn filters_find_rows_that_came_or_changed_since_the_last_look() {
    let (_dir, mut history) = open();
    history.save_job(&record(ID, RunState::Running)).unwrap();
    let mut reader = history.reader().unwrap();
    let names = |reader: &mut History, verdict, text: &str, range| {
        let (rows, total) = reader.rows(ID, verdict, text, range).unwrap();
        let names: Vec<_> = rows
            .into_iter()
            .map(|row| String::from_utf8(row.path).unwrap())
            .collect();
        (names.join(" "), total)
    };
    let batch = |from: u32| -> Vec<Row> {
        (from..from + 10)
            .map(|n| {
                let verdict = if n % 5 == 0 {
                    Verdict::Vanished
                } else {
                    verified()
                };
                row(&format!("f{n:02}%_"), verdict)
            })
            .collect()
    };
    history.append_rows(ID, 0, &batch(0)).unwrap();
    let vanished = Some("vanished");
    assert_eq!(
        names(&mut reader, vanished, "", 0..9),
        ("f00%_ f05%_".into(), 2)
    );
    history.append_rows(ID, 10, &batch(10)).unwrap();
    assert_eq!(
        names(&mut reader, vanished, "", 1..3),
        ("f05%_ f10%_".into(), 4)
    );
    assert_eq!(
        names(&mut reader, vanished, "f1", 0..9),
        ("f10%_ f15%_".into(), 2)
    );
    assert_eq!(
        names(&mut reader, None, "5%_", 0..9),
        ("f05%_ f15%_".into(), 2)
    );
    assert_eq!(
        names(&mut reader, None, "", 18..99),
        ("f18%_ f19%_".into(), 20)
    );
    #[expect(clippy::reversed_empty_ranges)] // That is what is asked.
    let backwards = 9..5;
    assert_eq!(
        names(&mut reader, vanished, "", backwards),
        (String::new(), 4)
    );
    history
        .put_rows(ID, [(5, &row("again", verified()))])
        .unwrap();
    assert_eq!(
        names(&mut reader, vanished, "", 0..9),
        ("f00%_ f10%_ f15%_".into(), 3)
    );
    assert_eq!(names(&mut reader, None, "ag", 0..9), ("again".into(), 1));
    let paths: Vec<_> = reader
        .verified_paths(ID)
        .map(|path| path.unwrap())
        .collect();
    assert_eq!(paths.len(), 17);
    assert_eq!(paths[4], b"again");
}

#[test]
fn rows_have_no_gaps_and_a_refused_batch_leaves_none_behind() {
    let (_dir, mut history) = open();
    let rows = [row("a", verified()), row("b", verified())];
    assert_eq!(
        history.append_rows(ID, 0, &rows).unwrap_err().kind,
        ErrorKind::Bug
    );
    history.save_job(&record(ID, RunState::Running)).unwrap();
    assert_eq!(
        history.append_rows(ID, 1, &rows).unwrap_err().kind,
        ErrorKind::Bug
    );
    let gap = [(0, &rows[0]), (2, &rows[1])];
    assert_eq!(history.put_rows(ID, gap).unwrap_err().kind, ErrorKind::Bug);
    assert_eq!(history.counts(ID).unwrap(), (0, 0));
}

#[test]
fn old_jobs_go_with_all_that_belongs_to_them_and_give_room_back() {
    let (dir, mut history) = open();
    history.save_job(&record(ID, RunState::Finished)).unwrap();
    let rows: Vec<_> = (0..20_000)
        .map(|n| row(&format!("file {n}"), verified()))
        .collect();
    history.append_rows(ID, 0, &rows).unwrap();
    assert_eq!(history.prune(1).unwrap(), 0);
    history
        .db
        .execute("UPDATE jobs SET ended_ms = 0", [])
        .unwrap();
    history
        .db
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let before = fs::metadata(dir.path().join("history.sqlite"))
        .unwrap()
        .len();
    assert_eq!(history.prune(1).unwrap(), 1);
    history
        .db
        .execute_batch("PRAGMA wal_checkpoint(TRUNCATE)")
        .unwrap();
    let after = fs::metadata(dir.path().join("history.sqlite"))
        .unwrap()
        .len();
    assert!(after < before / 10, "{before} then {after}");
}

#[test]
fn ten_thousand_rows_a_second_are_kept_and_any_range_is_fetched_at_once() {
    let (_dir, mut history) = open();
    history.save_job(&record(ID, RunState::Running)).unwrap();
    let rows: Vec<_> = (0..10_000)
        .map(|n| row(&format!("some/folder/{n}.jpg"), verified()))
        .collect();
    let start = Instant::now();
    for batch in 0..10 {
        history.append_rows(ID, batch * 10_000, &rows).unwrap();
    }
    let rate = 100_000.0 / start.elapsed().as_secs_f64();
    println!("{rate:.0} rows a second");
    assert!(rate > 10_000.0, "{rate:.0} rows a second");
    let start = Instant::now();
    for page in 0..100 {
        let from = page * 997;
        assert_eq!(
            history
                .rows(ID, None, "", from..from + 100)
                .unwrap()
                .0
                .len(),
            100
        );
    }
    println!("{:?} for a page of all", start.elapsed() / 100);
    for (verdict, text) in [
        (Some("verified"), ""),
        (None, "99.jpg"),
        (Some("verified"), "1"),
    ] {
        let start = Instant::now();
        let (_, total) = history.rows(ID, verdict, text, 10..110).unwrap();
        let first = start.elapsed();
        let start = Instant::now();
        history.rows(ID, verdict, text, total - 100..total).unwrap();
        println!(
            "{verdict:?} {text:?}: {total} found in {first:?}, then {:?}",
            start.elapsed()
        );
    }
    let start = Instant::now();
    assert_eq!(history.verified_paths(ID).count(), 100_000);
    println!("{:?} for all verified paths", start.elapsed());
}
