//! What the engine does when its history cannot be written.

#![allow(clippy::unwrap_used)]

#[path = "support/fake_methods.rs"]
mod fake_methods;

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use crossbeam_channel::bounded;
use fake_methods::{Bench, Fake, PATIENCE, hear, job, one_verified, verified};
use transload::engine::ledger::Ledger;
use transload::engine::memory::Memory;
use transload::engine::{Command, RowFilter};
use transload::model::error::{Error, ErrorKind, Result};
use transload::model::event::EventKind;
use transload::model::job::JobId;
use transload::model::outcome::Outcome;
use transload::model::plan::Step;
use transload::model::verdict::Row;
use transload::store::history::{JobRecord, Owner};

/// A ledger whose disk is full when the test says so.
struct Disk {
    ledger: Box<dyn Ledger>,
    full: Arc<AtomicBool>,
}

impl Disk {
    fn room(&self) -> Result<()> {
        match self.full.load(SeqCst) {
            true => Err(Error::new(
                ErrorKind::NoSpace,
                "keep the job",
                "the disk is full",
            )),
            false => Ok(()),
        }
    }
}

impl Ledger for Disk {
    fn reader(&self) -> Result<Box<dyn Ledger>> {
        self.ledger.reader()
    }

    fn notes(&mut self) -> Vec<String> {
        vec!["The history was damaged.".to_owned()]
    }

    fn save_job(&mut self, record: &JobRecord) -> Result<()> {
        self.room()?;
        self.ledger.save_job(record)
    }

    fn jobs(&mut self, limit: usize) -> Result<Vec<JobRecord>> {
        self.ledger.jobs(limit)
    }

    fn job(&mut self, id: JobId) -> Result<Option<JobRecord>> {
        self.ledger.job(id)
    }

    fn mark_left_running(&mut self, is_alive: &dyn Fn(Owner) -> bool) -> Result<Vec<JobId>> {
        self.ledger.mark_left_running(is_alive)
    }

    fn clear_steps(&mut self, job: JobId) -> Result<()> {
        self.ledger.clear_steps(job)
    }

    fn counts(&mut self, job: JobId) -> Result<(u64, u64)> {
        self.ledger.counts(job)
    }

    fn put_rows(&mut self, job: JobId, rows: &[(u64, Row)]) -> Result<()> {
        self.room()?;
        self.ledger.put_rows(job, rows)
    }

    fn append_steps(&mut self, job: JobId, first: u64, steps: &[Step]) -> Result<()> {
        self.ledger.append_steps(job, first, steps)
    }

    fn rows(
        &mut self,
        job: JobId,
        filter: &RowFilter,
        range: Range<usize>,
    ) -> Result<(Vec<Row>, usize)> {
        self.ledger.rows(job, filter, range)
    }

    fn steps(&mut self, job: JobId, range: Range<usize>) -> Result<(Vec<Step>, usize)> {
        self.ledger.steps(job, range)
    }

    fn append_log(&mut self, job: JobId, lines: &[(f64, String)]) -> Result<()> {
        self.ledger.append_log(job, lines)
    }

    fn log(&mut self, job: JobId) -> Result<Vec<(f64, String)>> {
        self.ledger.log(job)
    }

    fn save_series(&mut self, job: JobId, step: f32, values: &[f32]) -> Result<()> {
        self.ledger.save_series(job, step, values)
    }

    fn series(&mut self, job: JobId) -> Result<(f32, Vec<f32>)> {
        self.ledger.series(job)
    }
}

fn on_a_disk(full: &Arc<AtomicBool>, fake: Fake) -> Bench {
    let disk = Disk {
        ledger: Box::new(Memory::default()),
        full: Arc::clone(full),
    };
    Bench::on_ledger(Box::new(disk), vec![fake])
}

#[test]
fn a_job_that_cannot_be_put_on_disk_is_told_as_failed_and_never_begins() {
    let (full, runs) = (
        Arc::new(AtomicBool::new(true)),
        Arc::new(AtomicUsize::new(0)),
    );
    let count = Arc::clone(&runs);
    let bench = on_a_disk(
        &full,
        Fake::new("tcp").run(move |_, _| {
            count.fetch_add(1, SeqCst);
            Ok(one_verified())
        }),
    );
    assert_eq!(bench.engine.take_notices(), ["The history was damaged."]);
    let id = bench.submit(job("nas"));
    let outcome = bench.end(id).0;
    assert!(matches!(outcome, Outcome::Failed(e) if e.kind == ErrorKind::NoSpace));
    assert_eq!(runs.load(SeqCst), 0);
    full.store(false, SeqCst);
    bench.engine.send(Command::Retry(id));
    bench.until_job(id, "the end", |job| {
        matches!(job.end, Some((Outcome::Completed, _)))
    });
    // The same holds for a job that was there before and is begun again.
    full.store(true, SeqCst);
    bench.engine.send(Command::Retry(id));
    bench.until_job(id, "the refusal", |job| {
        matches!(job.end, Some((Outcome::Failed(_), _)))
    });
    assert_eq!(runs.load(SeqCst), 1);
}

#[test]
fn a_disk_that_fills_up_while_a_job_runs_costs_the_list_and_not_the_files() {
    let full = Arc::new(AtomicBool::new(false));
    let (open, gate) = bounded::<()>(0);
    let bench = on_a_disk(
        &full,
        Fake::new("tcp").run(move |_, cx| {
            gate.recv_timeout(PATIENCE).unwrap();
            for n in 0..5 {
                cx.rows.rows(&mut vec![verified(&n.to_string(), 1); 2000]);
            }
            Ok(one_verified())
        }),
    );
    let events = bench.engine.events();
    bench.submit(job("nas"));
    let mut warnings = Vec::new();
    let outcome = hear(&events, |_, kind| match kind {
        EventKind::State(transload::model::progress::RunState::Running) => {
            full.store(true, SeqCst);
            open.send_timeout((), PATIENCE).unwrap();
            ControlFlow::Continue(())
        }
        EventKind::Warned(error) => {
            warnings.push(error.kind);
            ControlFlow::Continue(())
        }
        EventKind::Finished(outcome, _) => ControlFlow::Break(outcome),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(outcome, Outcome::Completed);
    // Once for the rows, once for the end itself.
    assert_eq!(warnings, [ErrorKind::NoSpace, ErrorKind::NoSpace]);
}

#[test]
fn without_a_history_file_a_long_list_is_cut_and_that_is_said() {
    let bench = Bench::on_ledger(
        Box::new(Memory::default()),
        vec![Fake::new("tcp").run(|_, cx| {
            for n in 0..210 {
                cx.rows.rows(&mut vec![verified(&n.to_string(), 1); 1000]);
            }
            Ok(one_verified())
        })],
    );
    let id = bench.submit(job("nas"));
    assert_eq!(bench.end(id).0, Outcome::Completed);
    let view = bench.until_job(id, "the job", |_| true);
    assert!(
        view.log
            .iter()
            .any(|(_, line)| line.contains("only 200000 lines are kept"))
    );
    let page = bench
        .engine
        .fetch_rows(id, &RowFilter::default(), 0..1)
        .unwrap();
    assert_eq!(page.total, 200_000);
}
