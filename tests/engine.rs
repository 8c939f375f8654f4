//! The engine on methods that tests script: order, limits, pause, cancel, events, rows, and what it
//! does when a method or a listener behaves badly.

#![allow(clippy::unwrap_used)]

#[path = "support/fake_methods.rs"]
mod fake_methods;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use fake_methods::{Bench, Fake, PATIENCE, hear, job, one_verified, verified};
use transload::backend::cx::Cx;
use transload::engine::{Command, RowFilter, RowPage};
use transload::model::error::{Error, ErrorKind, Result};
use transload::model::event::{Event, EventKind};
use transload::model::job::JobId;
use transload::model::outcome::{Abort, Outcome, Tally};
use transload::model::progress::RunState;
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
    let (held, is_held) = bounded(0);
    let fake = Fake::new("tcp")
        .connect(move |_, _| {
            count.fetch_add(1, SeqCst);
            Ok(())
        })
        .run(move |_, cx| {
            wait_at(&gate, cx)?;
            assert!(cx.paused.is_set());
            held.send_timeout((), PATIENCE).unwrap();
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
    is_held.recv_timeout(PATIENCE).unwrap();
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
fn whoever_is_woken_finds_what_there_is_to_see() {
    let bench = Bench::new(vec![Fake::new("tcp").run(|_, _| Ok(one_verified()))]);
    let events = bench.engine.events();
    for _ in 0..200 {
        let id = bench.submit(job("nas"));
        // Only ever looks when woken: an event that comes after its call would never be seen.
        let ended = |event: Event| event.job == id && matches!(event.kind, EventKind::Finished(..));
        while !events.try_iter().any(ended) {
            bench.woken();
        }
    }
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
    let first =
        |page: &RowPage, at: usize| page.rows.get(at - page.start).map(|row| row.path.clone());
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
