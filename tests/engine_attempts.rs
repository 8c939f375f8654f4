//! How the engine chooses, asks, plans, and tries again, on methods that tests script.

#![allow(clippy::unwrap_used)]

#[path = "support/fake_methods.rs"]
mod fake_methods;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use fake_methods::{Bench, Fake, conflict, hear, job, kept, lost, one_verified, verified};
use transload::engine::{Command, RowFilter};
use transload::model::error::{Error, ErrorKind};
use transload::model::event::{Answer, EventKind, QuestionKind};
use transload::model::job::{Consent, JobId};
use transload::model::outcome::{Abort, Outcome, Tally};
use transload::model::plan::PlanTotals;
use transload::model::progress::{Phase, RunState};
use transload::model::rules::Conflict;

#[test]
fn a_lost_connection_is_tried_again_with_resume_and_the_counters_start_anew() {
    let tries = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&tries);
    let bench = Bench::new(vec![Fake::new("tcp").run(move |spec, cx| {
        let mut tries = seen.lock().unwrap();
        tries.push((spec.resume, cx.counters.snapshot().bytes_done));
        cx.counters.set_phase(Phase::Transferring);
        if tries.len() == 1 {
            cx.rows
                .rows(&mut vec![verified("a", 10), verified("b", 20)]);
            cx.counters.bytes_total.fetch_add(60, SeqCst);
            cx.counters.bytes_done.fetch_add(30, SeqCst);
            return Err(lost());
        }
        cx.rows
            .rows(&mut vec![kept("a"), kept("b"), verified("c", 30)]);
        Ok(Tally {
            verified: 1,
            skipped: 2,
            ..Tally::default()
        })
    })]);
    let events = bench.engine.events();
    let id = bench.submit(job("nas"));
    let mut states = Vec::new();
    let report = hear(&events, |_, kind| match kind {
        EventKind::Finished(Outcome::Completed, report) => ControlFlow::Break(report),
        EventKind::State(state) => {
            states.push(state);
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Continue(()),
    });
    use RunState::{Queued, Reconnecting, Running};
    assert_eq!(states, [Queued, Running, Reconnecting, Running]);
    assert_eq!(*tries.lock().unwrap(), [(false, 0), (true, 0)]);
    assert_eq!((report.files, report.bytes), (3, 60));
    assert_eq!((report.tally.verified, report.tally.skipped), (3, 0));
    // The list says of each file once what became of it.
    let page = bench
        .engine
        .fetch_rows(id, &RowFilter::default(), 0..10)
        .unwrap();
    let names: Vec<_> = page
        .rows
        .iter()
        .map(|row| (row.path[0], row.verdict.name()))
        .collect();
    assert_eq!(
        names,
        [(b'a', "verified"), (b'b', "verified"), (b'c', "verified")]
    );
}

#[test]
fn other_errors_and_hosts_never_reached_end_the_job_at_once() {
    let tries = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&tries);
    let fake = Fake::new("tcp")
        .connect(move |spec, _| {
            count.fetch_add(1, SeqCst);
            match spec.host_key().as_str() {
                "away" => Err(Error::new(ErrorKind::Unreachable, "connect", "refused")),
                _ => Ok(()),
            }
        })
        .run(|_, _| Err(Error::new(ErrorKind::NoSpace, "write", "full")));
    let bench = Bench::new(vec![fake]);
    for (host, kind) in [
        ("away", ErrorKind::Unreachable),
        ("full", ErrorKind::NoSpace),
    ] {
        let id = bench.submit(job(host));
        let outcome = bench.end(id).0;
        assert!(
            matches!(&outcome, Outcome::Failed(e) if e.kind == kind),
            "{outcome:?}"
        );
    }
    assert_eq!(tries.load(SeqCst), 2);
}

#[test]
fn an_error_after_files_arrived_is_partial_and_the_error_is_told() {
    let full = || Error::new(ErrorKind::NoSpace, "write the file", "no space left");
    let bench = Bench::new(vec![Fake::new("tcp").run(move |_, cx| {
        cx.rows.rows(&mut vec![verified("a", 10)]);
        cx.counters.items_total.fetch_add(3, SeqCst);
        cx.counters.items_done.fetch_add(1, SeqCst);
        cx.counters.set_listed();
        Err(full())
    })]);
    let id = bench.submit(job("nas"));
    let (outcome, report) = bench.end(id);
    assert_eq!(outcome, Outcome::Partial(Some(full())));
    assert_eq!(report.tally, one_verified());
    assert_eq!(report.missing, Some(2));
}

#[test]
fn without_the_agent_the_next_method_takes_over_and_the_reason_is_kept() {
    let bench = Bench::new(vec![
        Fake::new("tcp")
            .connect(|_, _| Err(Error::new(ErrorKind::Tool, "start the agent", "none"))),
        Fake::new("rsync"),
    ]);
    let (outcome, report) = bench.end(bench.submit(job("nas")));
    assert_eq!(outcome, Outcome::Completed);
    assert_eq!(report.method, "rsync");
    assert_eq!(
        report.why,
        "rsync: raw TCP did not work: none; the port answered"
    );
    let mut named = job("nas");
    named.settings.method = "tcp".to_owned().into();
    let (outcome, _) = bench.end(bench.submit(named));
    assert!(matches!(outcome, Outcome::Failed(e) if e.kind == ErrorKind::Tool));
}

/// A method that finds 300 files in the way and notes the rule it is given.
fn in_the_way(rules: &Arc<Mutex<Vec<Conflict>>>) -> Fake {
    let (planned, ran) = (Arc::clone(rules), Arc::clone(rules));
    Fake::new("tcp")
        .plan(move |_, cx| {
            planned.lock().unwrap().push(cx.conflict);
            cx.counters.bytes_total.fetch_add(300, SeqCst);
            cx.rows
                .steps(&mut (0..300).map(|n| conflict(format!("f{n}"))).collect());
            Ok(PlanTotals {
                skip: 300,
                conflicts: 300,
                ..PlanTotals::default()
            })
        })
        .run(move |_, cx| {
            assert_eq!(cx.counters.snapshot().bytes_total, 0);
            ran.lock().unwrap().push(cx.conflict);
            Ok(Tally::default())
        })
}

#[test]
fn asking_about_conflicts_happens_once_before_the_first_write() {
    let rules = Arc::default();
    let bench = Bench::new(vec![in_the_way(&rules)]);
    let mut spec = job("nas");
    spec.settings.conflict = Conflict::Ask;
    let id = bench.submit(spec.clone());
    let view = bench.until_job(id, "the question", |job| job.question.is_some());
    let question = view.question.unwrap();
    let QuestionKind::Conflicts { count, examples } = question.kind else {
        panic!()
    };
    assert_eq!((count, examples.len()), (300, 100));
    assert_eq!(view.plan.unwrap().conflicts, 300);
    bench
        .engine
        .send(Command::Answer(id, question.id + 1, Answer::Cancel));
    bench.engine.send(Command::Answer(
        id,
        question.id,
        Answer::Rule(Conflict::Newer),
    ));
    assert_eq!(bench.end(id).0, Outcome::Completed);
    assert_eq!(*rules.lock().unwrap(), [Conflict::Fail, Conflict::Newer]);
    let (steps, total) = bench.engine.fetch_steps(id, 290..300).unwrap();
    assert_eq!((steps.len(), total), (10, 300));

    spec.id = JobId([1; 16]);
    let cancelled = bench.submit(spec.clone());
    bench.until_job(cancelled, "the question", |job| job.question.is_some());
    bench.engine.send(Command::Cancel(cancelled));
    assert_eq!(bench.end(cancelled).0, Outcome::Aborted(Abort::User));

    rules.lock().unwrap().clear();
    spec.id = JobId([2; 16]);
    spec.attended = false;
    bench.end(bench.submit(spec));
    assert_eq!(*rules.lock().unwrap(), [Conflict::Fail]);
}

#[test]
fn a_dry_run_plans_and_never_runs() {
    let rules = Arc::default();
    let bench = Bench::new(vec![in_the_way(&rules)]);
    let mut spec = job("nas");
    spec.dry_run = true;
    spec.settings.conflict = Conflict::Skip;
    let id = bench.submit(spec);
    let (outcome, report) = bench.end(id);
    assert_eq!((outcome, report.files), (Outcome::Completed, 0));
    assert_eq!(*rules.lock().unwrap(), [Conflict::Skip]);
    assert_eq!(bench.engine.fetch_steps(id, 0..1000).unwrap().1, 300);
    assert_eq!(bench.engine.jobs()[0].plan.unwrap().skip, 300);
}

#[test]
fn consent_answers_for_those_who_gave_it_and_no_for_those_who_are_away() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let given = Arc::clone(&answers);
    let bench = Bench::new(vec![Fake::new("tcp").connect(move |spec, cx| {
        let host = spec.host_key();
        let upload = QuestionKind::UploadAgent {
            host: host.clone(),
            bytes: 1,
        };
        let mut given = given.lock().unwrap();
        given.push(cx.people.ask(upload.clone()));
        given.push(cx.people.ask(QuestionKind::PlainTcp { host }));
        // Asked again in the same run it is not put to anybody.
        given.push(cx.people.ask(upload));
        Ok(())
    })]);
    let mut away = job("a");
    away.attended = false;
    away.consent = Consent {
        upload_agent: true,
        plain_tcp: false,
    };
    bench.end(bench.submit(away));
    let (yes, no) = (Answer::Yes(true), Answer::Yes(false));
    assert_eq!(*answers.lock().unwrap(), [yes, no, yes]);
    answers.lock().unwrap().clear();
    let id = bench.submit(job("b"));
    for answer in [no, yes] {
        let view = bench.until_job(id, "a question", |job| job.question.is_some());
        let question = view.question.unwrap();
        bench.engine.send(Command::Answer(id, question.id, answer));
        bench.until_job(id, "the next", |job| job.question != Some(question.clone()));
    }
    bench.end(id);
    assert_eq!(*answers.lock().unwrap(), [no, yes, no]);
}
