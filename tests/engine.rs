//! The engine on methods that tests script: order, limits, pause, cancel, retry, questions, and
//! what it does when a method or a listener behaves badly.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

#[path = "support/fake_methods.rs"]
mod fake_methods;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use fake_methods::{Bench, Fake, PATIENCE, conflict, hear, job, kept, lost, verified};
use transload::backend::cx::Cx;
use transload::engine::{Command, RowFilter};
use transload::model::error::{Error, ErrorKind, Result};
use transload::model::event::{Answer, EventKind, QuestionKind};
use transload::model::job::{Consent, JobId};
use transload::model::outcome::{Abort, Outcome, Tally};
use transload::model::plan::PlanTotals;
use transload::model::progress::{Phase, RunState};
use transload::model::rules::Conflict;
use transload::model::units::Rate;

/// Blocks until the test opens the gate or the job is cancelled.
fn wait_at(gate: &Receiver<()>, cx: &Cx<'_>) -> Result<()> {
    loop {
        cx.cancel.check()?;
        if gate.recv_timeout(Duration::from_millis(5)).is_ok() {
            return Ok(());
        }
    }
}

fn one_verified() -> Tally {
    Tally {
        verified: 1,
        ..Tally::default()
    }
}

#[test]
fn a_job_that_succeeds_tells_its_story_in_order_and_finished_once_and_last() {
    let bench = Bench::new(vec![Fake::new("tcp").run(|_, cx| {
        cx.counters.bytes_total.fetch_add(10, SeqCst);
        cx.counters.set_listed();
        cx.rows.rows(&mut vec![verified("a", 10)]);
        cx.counters.bytes_done.fetch_add(10, SeqCst);
        cx.people.note("hello".to_owned());
        Ok(one_verified())
    })]);
    let events = bench.engine.events();
    let id = bench.submit(job("nas"));
    let mut seen = Vec::new();
    let report = hear(&events, |_, kind| match kind {
        EventKind::Finished(outcome, report) => {
            // What an event says can be seen already.
            let view = &bench.engine.jobs()[0];
            assert_eq!(view.end, Some((outcome.clone(), report.clone())));
            assert_eq!(outcome, Outcome::Completed);
            ControlFlow::Break(report)
        }
        kind => {
            seen.push(kind);
            ControlFlow::Continue(())
        }
    });
    assert!(
        matches!(
            &seen[..],
            [
                EventKind::State(RunState::Queued),
                EventKind::State(RunState::Running),
                EventKind::Note(why),
                EventKind::Note(hello),
            ] if why == "raw TCP: the agent answered on nas" && hello == "hello"
        ),
        "{seen:?}"
    );
    assert_eq!(
        (report.files, report.bytes, report.tally.verified),
        (1, 10, 1)
    );
    assert_eq!(
        report.why,
        "raw TCP: the agent answered on nas; the port answered"
    );
    let page = bench
        .engine
        .fetch_rows(id, &RowFilter::default(), 0..10)
        .unwrap();
    assert_eq!(page.rows[0].path, b"a");
    bench.engine.shutdown();
    assert!(
        events.recv_timeout(PATIENCE).is_err(),
        "nothing comes after Finished"
    );
}

#[test]
fn jobs_start_in_order_and_never_more_than_the_limits_allow() {
    let (open, gate) = bounded(0);
    let (busy, most) = (
        Arc::new(Mutex::new(Vec::<String>::new())),
        Arc::new(AtomicUsize::new(0)),
    );
    let started = Arc::new(Mutex::new(Vec::new()));
    let (b, m, s) = (Arc::clone(&busy), Arc::clone(&most), Arc::clone(&started));
    let bench = Bench::new(vec![Fake::new("tcp").run(move |spec, cx| {
        {
            let mut busy = b.lock().unwrap();
            assert!(!busy.contains(&spec.host_key()), "two jobs on one host");
            busy.push(spec.host_key());
            m.fetch_max(busy.len(), SeqCst);
            s.lock().unwrap().push(spec.id);
        }
        wait_at(&gate, cx)?;
        b.lock().unwrap().retain(|host| *host != spec.host_key());
        Ok(Tally::default())
    })]);
    let ids: Vec<JobId> = ["a", "a", "b", "c", "a", "b"]
        .into_iter()
        .map(|host| bench.submit(job(host)))
        .collect();
    let running = |states: [usize; 2]| {
        bench.until("two run", |jobs| {
            let at_work: Vec<usize> = (0..jobs.len())
                .filter(|i| jobs[*i].state == RunState::Running)
                .collect();
            (at_work == states).then_some(())
        });
    };
    running([0, 2]);
    // The last one jumps the queue.
    bench.engine.send(Command::Move(ids[5], 0));
    bench.until("the move", |jobs| {
        (jobs.iter().position(|job| job.spec.id == ids[5]) == Some(1)).then_some(())
    });
    for _ in 0..6 {
        open.send_timeout((), PATIENCE).unwrap();
    }
    for id in &ids {
        assert_eq!(bench.end(*id).0, Outcome::Completed);
    }
    assert_eq!(most.load(SeqCst), 2);
    let started = started.lock().unwrap();
    let nth = |id: JobId| started.iter().position(|other| *other == id).unwrap();
    assert!(
        nth(ids[0]) < nth(ids[1]) && nth(ids[1]) < nth(ids[4]),
        "one host keeps its order"
    );
    let totals = bench.engine.totals();
    assert_eq!((totals.running, totals.queued), (0, 0));
}

#[test]
fn a_queued_job_can_be_held_and_let_go() {
    let (open, gate) = bounded(0);
    let bench = Bench::new(vec![
        Fake::new("tcp").run(move |_, cx| wait_at(&gate, cx).map(|()| Tally::default())),
    ]);
    let first = bench.submit(job("nas"));
    let second = bench.submit(job("nas"));
    bench.engine.send(Command::Pause(second));
    bench.until_job(second, "held", |job| job.state == RunState::Paused);
    open.send_timeout((), PATIENCE).unwrap();
    bench.end(first);
    let third = bench.submit(job("nas"));
    open.send_timeout((), PATIENCE).unwrap();
    bench.end(third);
    bench.until_job(second, "still held", |job| job.state == RunState::Paused);
    bench.engine.send(Command::Resume(second));
    open.send_timeout((), PATIENCE).unwrap();
    assert_eq!(bench.end(second).0, Outcome::Completed);
}

#[test]
fn a_paused_job_keeps_its_connection_and_goes_on_when_resumed() {
    let connects = Arc::new(AtomicUsize::new(0));
    let (count, (open, gate)) = (Arc::clone(&connects), bounded(0));
    let fake = Fake::new("tcp")
        .connect(move |_, _| {
            count.fetch_add(1, SeqCst);
            Ok(())
        })
        .run(move |_, cx| {
            wait_at(&gate, cx)?;
            assert!(cx.paused.is_set());
            while cx.paused.is_set() {
                cx.cancel.check()?;
                std::thread::yield_now();
            }
            assert_eq!(cx.limit.0.load(SeqCst), 3 << 20);
            Ok(Tally::default())
        });
    let bench = Bench::new(vec![fake]);
    let id = bench.submit(job("nas"));
    bench.until_job(id, "running", |job| job.state == RunState::Running);
    bench.engine.send(Command::Pause(id));
    bench.until_job(id, "paused", |job| job.state == RunState::Paused);
    open.send_timeout((), PATIENCE).unwrap();
    bench.engine.send(Command::Limit(id, Some(Rate(3 << 20))));
    bench.engine.send(Command::Resume(id));
    assert_eq!(bench.end(id).0, Outcome::Completed);
    assert_eq!(connects.load(SeqCst), 1);
}

#[test]
fn a_cancelled_job_ends_within_two_seconds_and_says_who_stopped_it() {
    let bench = Bench::new(vec![Fake::new("tcp").run(|_, cx| {
        cx.rows.rows(&mut vec![verified("a", 5)]);
        let (_open, gate) = bounded(0);
        wait_at(&gate, cx).map(|()| Tally::default())
    })]);
    let id = bench.submit(job("nas"));
    let waiting = bench.submit(job("nas"));
    bench.until_job(id, "running", |job| job.state == RunState::Running);
    let began = Instant::now();
    bench.engine.send(Command::Cancel(waiting));
    bench.engine.send(Command::Cancel(id));
    for id in [waiting, id] {
        assert_eq!(bench.end(id).0, Outcome::Aborted(Abort::User));
    }
    assert!(began.elapsed() < Duration::from_secs(2));
    // What arrived before is in the list and in the figures.
    let (_, report) = bench.end(id);
    assert_eq!(report.tally.verified, 1);
}

#[test]
fn a_method_that_ignores_cancel_is_left_behind_and_its_job_cannot_start_twice() {
    let (open, gate) = bounded::<()>(0);
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let bench = Bench::new(vec![Fake::new("tcp").run(move |_, cx| {
        if count.fetch_add(1, SeqCst) == 0 {
            gate.recv().unwrap();
            cx.rows.rows(&mut vec![verified("late", 1)]);
        }
        Ok(Tally::default())
    })]);
    let id = bench.submit(job("nas"));
    bench.until_job(id, "running", |_| runs.load(SeqCst) == 1);
    let began = Instant::now();
    bench.engine.send(Command::Cancel(id));
    assert_eq!(bench.end(id).0, Outcome::Aborted(Abort::User));
    assert!(began.elapsed() < Duration::from_millis(2500));
    bench.engine.send(Command::Retry(id));
    bench.until_job(id, "queued", |job| job.state == RunState::Queued);
    // Another host's job goes through in the meantime.
    let other = bench.submit(job("vps"));
    assert_eq!(bench.end(other).0, Outcome::Completed);
    bench.until_job(id, "still queued", |job| job.state == RunState::Queued);
    open.send(()).unwrap();
    assert_eq!(bench.end(id).0, Outcome::Completed);
    let page = bench
        .engine
        .fetch_rows(id, &RowFilter::default(), 0..10)
        .unwrap();
    assert_eq!(page.total, 0, "what the left thread said late is dropped");
}

#[test]
fn a_panic_ends_its_own_job_as_a_fault_and_others_go_on() {
    let bench = Bench::new(vec![Fake::new("tcp").run(|spec, _| {
        assert!(spec.host_key() != "bad", "index out of bounds");
        Ok(Tally::default())
    })]);
    let bad = bench.submit(job("bad"));
    let good = bench.submit(job("good"));
    assert_eq!(bench.end(good).0, Outcome::Completed);
    let (outcome, report) = bench.end(bad);
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(error.kind, ErrorKind::Bug);
    assert_eq!(
        error.to_string(),
        "Failed to run the method tcp: index out of bounds"
    );
    assert_eq!(report.method, "tcp");
    let again = bench.submit(job("good"));
    assert_eq!(bench.end(again).0, Outcome::Completed);
}

#[test]
fn a_window_that_never_listens_cannot_slow_a_job() {
    let bench = Bench::new(vec![Fake::new("tcp").run(|_, cx| {
        for n in 0..50_000 {
            cx.people
                .warn(Error::new(ErrorKind::Denied, "read", format!("{n}")));
            cx.people.note(format!("{n}"));
        }
        Ok(one_verified())
    })]);
    let deaf = bench.engine.events();
    let events = bench.engine.events();
    let began = Instant::now();
    let ids: Vec<_> = (0..25).map(|_| bench.submit(job("nas"))).collect();
    let (mut ended, mut notes, mut warnings) = (0, 0, 0);
    hear(&events, |id, kind| {
        match kind {
            EventKind::Finished(..) => ended += 1,
            EventKind::Note(_) if id == ids[0] => notes += 1,
            EventKind::Warned(_) if id == ids[0] => warnings += 1,
            _ => {}
        }
        if ended < ids.len() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    // The cap, and the two lines that say how many more there were.
    assert_eq!((notes, warnings), (102, 100));
    assert!(began.elapsed() < Duration::from_secs(10));
    let view = bench.until_job(ids[0], "the end", |job| job.end.is_some());
    assert_eq!(view.progress.warnings, 50_000);
    assert!(
        view.log
            .iter()
            .any(|(_, line)| line == "And 49900 more warnings")
    );
    // The deaf one gets what fits and is then told by the end of its channel.
    assert_eq!(deaf.iter().count(), 4096);
}

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
    let bench = Bench::new(vec![Fake::new("tcp").run(|_, cx| {
        cx.rows.rows(&mut vec![verified("a", 10)]);
        Err(Error::new(ErrorKind::NoSpace, "write the file", "no space left").hint("free some"))
    })]);
    let events = bench.engine.events();
    bench.submit(job("nas"));
    let mut told = None;
    let outcome = hear(&events, |_, kind| match kind {
        EventKind::Finished(outcome, report) => ControlFlow::Break((outcome, report.tally)),
        EventKind::Warned(error) => {
            told = Some(error.kind);
            ControlFlow::Continue(())
        }
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(outcome, (Outcome::Partial, one_verified()));
    assert_eq!(told, Some(ErrorKind::NoSpace));
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
        "rsync: the agent is not on nas and may not be uploaded; the port answered"
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

#[test]
fn shutting_down_marks_all_jobs_and_ends_the_listeners() {
    let bench = Bench::new(vec![Fake::new("tcp").run(|_, cx| {
        let (_open, gate) = bounded(0);
        wait_at(&gate, cx).map(|()| Tally::default())
    })]);
    let events = bench.engine.events();
    let ids: Vec<_> = (0..3).map(|_| bench.submit(job("nas"))).collect();
    bench.until_job(ids[0], "running", |job| job.state == RunState::Running);
    bench.engine.send(Command::Pause(ids[1]));
    bench.engine.shutdown();
    for view in bench.engine.jobs().iter() {
        let end = view.end.as_ref().map(|(outcome, _)| outcome.clone());
        assert_eq!(end, Some(Outcome::Aborted(Abort::Shutdown)));
    }
    let finished = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Finished(..)))
        .count();
    assert_eq!(finished, 3);
    // Later orders are ignored.
    bench.engine.send(Command::Retry(ids[0]));
    bench.engine.shutdown();
}

#[test]
fn a_removed_job_leaves_the_list_and_its_rows_stay() {
    let bench = Bench::new(vec![Fake::new("tcp").run(|_, cx| {
        cx.rows.rows(&mut vec![verified("a", 1)]);
        Ok(one_verified())
    })]);
    let id = bench.submit(job("nas"));
    bench.end(id);
    bench.engine.send(Command::Remove(id));
    bench.until("an empty list", |jobs| jobs.is_empty().then_some(()));
    assert_eq!(
        bench
            .engine
            .fetch_rows(id, &RowFilter::default(), 0..1)
            .unwrap()
            .total,
        1
    );
}

#[test]
fn looking_at_rows_never_waits_and_what_is_missing_comes_with_the_waker() {
    let bench = Bench::new(vec![Fake::new("tcp").run(|_, cx| {
        cx.rows
            .rows(&mut (0..5000).map(|n| verified(&format!("{n:04}"), 1)).collect());
        Ok(one_verified())
    })]);
    let id = bench.submit(job("nas"));
    bench.end(id);
    let first = |page: &transload::engine::RowPage, at: usize| {
        page.rows.get(at - page.start).map(|row| row.path.clone())
    };
    let all = RowFilter::default();
    for at in [0, 255, 256, 4990, 1000] {
        bench.until("the rows", |_| {
            let page = bench.engine.rows(id, &all, at..at + 40);
            assert!(page.start <= at);
            (first(&page, at)? == format!("{at:04}").as_bytes() && page.total == 5000).then_some(())
        });
    }
    let some = RowFilter {
        verdict: Some("verified"),
        text: "499".to_owned(),
    };
    bench.until("the filtered rows", |_| {
        let page = bench.engine.rows(id, &some, 0..40);
        // 0499, 1499 ... 3499, 4499, and 4990 to 4999.
        (page.total == 15 && page.rows.len() == 15).then_some(())
    });
    let none = RowFilter {
        verdict: Some("failed"),
        text: String::new(),
    };
    assert_eq!(bench.engine.fetch_rows(id, &none, 0..9).unwrap().total, 0);
}

/// Runs one test of this file in a process of its own, told by a variable what to do there.
fn child(test: &str, role: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role);
    command
}

/// Names what a process that a test started is for.
const ROLE: &str = "TRANSLOAD_ENGINE_TEST_ROLE";

/// Returns how often the engine's threads gave up or were given the processor.
fn switches() -> Vec<(String, u64)> {
    let mut all = Vec::new();
    for task in std::fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap().path();
        let name = std::fs::read_to_string(task.join("comm")).unwrap();
        let status = std::fs::read_to_string(task.join("status")).unwrap();
        let count = |key: &str| -> u64 {
            let line = status.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        if ["engine", "store", "store-read"].contains(&name.trim()) {
            all.push((
                name.trim().to_owned(),
                count("voluntary_ctxt") + count("nonvoluntary_ctxt"),
            ));
        }
    }
    all.sort();
    all
}

#[test]
fn an_idle_engine_uses_no_processor_time() {
    if std::env::var_os(ROLE).is_none() {
        let done = child("an_idle_engine_uses_no_processor_time", "idle")
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stdout)
        );
        return;
    }
    let bench = Bench::new(vec![Fake::new("tcp")]);
    bench.end(bench.submit(job("nas")));
    let deadline = Instant::now() + PATIENCE;
    // Nothing is awaited here: the time is what is measured.
    let still = || {
        let before = switches();
        std::thread::sleep(Duration::from_millis(1500));
        before.len() == 3 && before == switches()
    };
    while !still() {
        assert!(Instant::now() < deadline, "{:?}", switches());
    }
}
