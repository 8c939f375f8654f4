//! What can only be seen of a whole process: that it idles, stays small, and may be killed.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

#[path = "support/fake_methods.rs"]
mod fake_methods;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use fake_methods::{Bench, Fake, PATIENCE, job, kept, one_verified, verified};
use transload::engine::{Command, RowFilter};
use transload::model::job::{JobId, JobSpec};
use transload::model::outcome::{Abort, Outcome, Tally};
use transload::model::progress::RunState;

/// Names what a process that a test started is for, and where its database is.
const ROLE: &str = "TRANSLOAD_ENGINE_TEST_DATABASE";

/// Returns the database of a process that a test started; `None` in the test itself.
fn role() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

/// A process that runs one test of this file once more.
fn child(test: &str, database: &Path) -> Program {
    let mut command = Program::new(std::env::current_exe().unwrap());
    command
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, database);
    command
}

/// Runs one test of this file in a process of its own, to its end.
fn alone(test: &str) {
    let home = tempfile::tempdir().unwrap();
    let done = child(test, &home.path().join("history.sqlite"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        done.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Starts a process and waits until it says that it is ready.
fn until_ready(mut command: Program) -> Child {
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let said = BufReader::new(child.stdout.take().unwrap());
    assert!(said.lines().any(|line| line.unwrap().contains("ready")));
    child
}

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
    let Some(database) = role() else {
        return alone("an_idle_engine_uses_no_processor_time");
    };
    let bench = Bench::on(&database, vec![Fake::new("tcp")], |_| {});
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

/// The job that is cut off, the same in both processes.
fn cut_off() -> JobSpec {
    JobSpec {
        id: JobId([0xc0; 16]),
        ..job("nas")
    }
}

#[test]
fn a_job_of_a_killed_process_says_so_and_goes_on_where_it_stopped() {
    if let Some(database) = role() {
        let hangs = Fake::new("tcp").run(|_, cx| {
            cx.rows.rows(&mut vec![verified("a", 10)]);
            loop {
                std::thread::park();
            }
        });
        let bench = Bench::on(&database, vec![hangs], |_| {});
        let id = bench.submit(cut_off());
        bench.submit(job("nas"));
        let all = RowFilter::default();
        bench.until("the first row on disk", |_| {
            (bench.engine.rows(id, &all, 0..1).total == 1).then_some(())
        });
        println!("ready");
        loop {
            std::thread::park();
        }
    }
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("history.sqlite");
    let test = "a_job_of_a_killed_process_says_so_and_goes_on_where_it_stopped";
    let mut child = until_ready(child(test, &database));

    let restore = |fake: Fake| Bench::on(&database, vec![fake], |config| config.restore = true);
    // While it lives its jobs are its own.
    let bench = restore(Fake::new("tcp"));
    bench.end(bench.submit(job("vps")));
    assert_eq!(bench.engine.jobs().len(), 1);
    // Nor can they be started a second time.
    let (outcome, _) = bench.end(bench.submit(cut_off()));
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(
        error.to_string(),
        format!(
            "Failed to start the job: it runs in another Transload (process {})",
            child.id()
        )
    );
    drop(bench);

    child.kill().unwrap();
    child.wait().unwrap();
    let bench = restore(Fake::new("tcp").run(|spec, cx| {
        assert!(spec.resume);
        cx.rows.rows(&mut vec![kept("a"), verified("b", 20)]);
        Ok(Tally {
            skipped: 1,
            ..one_verified()
        })
    }));
    let ends = |jobs: &[transload::engine::JobView]| -> Vec<Outcome> {
        jobs.iter().map(|job| job.end.clone().unwrap().0).collect()
    };
    let left = || Outcome::Aborted(Abort::LeftRunning);
    let jobs = bench.until("the restored jobs", |jobs| {
        (jobs.len() == 3).then(|| jobs.to_vec())
    });
    assert_eq!(ends(&jobs), [left(), left(), Outcome::Completed]);
    let (_, report) = jobs[0].end.clone().unwrap();
    assert_eq!((report.files, report.bytes), (1, 10));
    assert_eq!(jobs[0].state, RunState::Finished);

    let id = cut_off().id;
    bench.engine.send(Command::Retry(id));
    let view = bench.until_job(id, "the end", |job| {
        matches!(job.end, Some((Outcome::Completed, _)))
    });
    assert!(view.spec.resume);
    let page = bench
        .engine
        .fetch_rows(id, &RowFilter::default(), 0..10)
        .unwrap();
    let rows: Vec<_> = page
        .rows
        .iter()
        .map(|r| (r.path[0], r.verdict.name()))
        .collect();
    assert_eq!(rows, [(b'a', "verified"), (b'b', "verified")]);
}

#[test]
fn what_a_job_said_and_how_fast_it_was_is_there_after_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let database = home.path().join("history.sqlite");
    let bench = Bench::on(
        &database,
        vec![Fake::new("tcp").run(|_, cx| {
            cx.people.note("hello".to_owned());
            // Long enough for one value of the curve.
            let until = Instant::now() + Duration::from_millis(700);
            while Instant::now() < until {
                cx.counters.bytes_done.fetch_add(1000, SeqCst);
                std::thread::park_timeout(Duration::from_millis(10));
            }
            Ok(Tally::default())
        })],
        |_| {},
    );
    let id = bench.submit(job("nas"));
    bench.end(id);
    let before = bench.engine.jobs()[0].clone();
    drop(bench);
    let bench = Bench::on(&database, vec![], |config| config.restore = true);
    let after = bench.until_job(id, "the job", |_| true);
    assert_eq!(after.end, before.end);
    assert_eq!(after.spec, before.spec);
    assert_eq!(after.log, before.log);
    assert!(!after.series.is_empty() && after.series.iter().any(|v| *v > 0.0));
    assert_eq!(
        (after.series, after.series_step),
        (before.series, before.series_step)
    );
}

/// Returns the most memory that this process ever used, in MiB.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

#[test]
fn a_million_rows_take_less_than_300_mib_also_when_the_job_begins_again() {
    const MILLION: usize = 1_000_000;
    let Some(database) = role() else {
        return alone("a_million_rows_take_less_than_300_mib_also_when_the_job_begins_again");
    };
    let name = |n: usize| format!("folder {:03}/a name of usual length {n:07}.jpeg", n / 1000);
    let fake = Fake::new("tcp").run(move |spec, cx| {
        let mut batch = Vec::new();
        for n in 0..MILLION {
            batch.push(match spec.resume {
                false => verified(&name(n), n as u64),
                true => kept(&name(n)),
            });
            if batch.len() == 1000 {
                cx.rows.rows(&mut batch);
                cx.counters.items_done.fetch_add(1000, SeqCst);
            }
        }
        Ok(Tally {
            verified: if spec.resume { 0 } else { MILLION as u64 },
            skipped: if spec.resume { MILLION as u64 } else { 0 },
            ..Tally::default()
        })
    });
    let bench = Bench::on(&database, vec![fake], |_| {});
    let id = bench.submit(job("nas"));
    // A window looks here and there all the time.
    let over = Arc::new(AtomicBool::new(false));
    let (engine, stop) = (bench.engine.clone(), Arc::clone(&over));
    let window = std::thread::Builder::new()
        .spawn(move || {
            let filter = RowFilter {
                verdict: Some("verified"),
                text: "7.jpeg".to_owned(),
            };
            for look in 0.. {
                let at = look * 7919 % MILLION;
                engine.rows(id, &RowFilter::default(), at..at + 50);
                engine.rows(id, &filter, at / 10..at / 10 + 50);
                if stop.load(SeqCst) {
                    return look;
                }
                std::thread::park_timeout(Duration::from_millis(16));
            }
            0
        })
        .unwrap();
    let long = Duration::from_secs(300);
    let began = Instant::now();
    let end = |what| bench.until_within(long, what, |jobs| jobs[0].end.clone());
    bench.until("the job", |jobs| (!jobs.is_empty()).then_some(()));
    assert_eq!(end("the first run").0, Outcome::Completed);
    let first = began.elapsed();
    bench.engine.send(Command::Retry(id));
    bench.until_within(long, "the second run", |jobs| {
        let job = &jobs[0];
        (job.spec.resume && job.end.is_some()).then_some(())
    });
    over.store(true, SeqCst);
    let looks = window.join().unwrap();
    for (at, verdict) in [(0, "verified"), (MILLION - 1, "verified")] {
        let page = bench
            .engine
            .fetch_rows(id, &RowFilter::default(), at..at + 1)
            .unwrap();
        assert_eq!(page.total, MILLION);
        assert_eq!(page.rows[0].path, name(at).as_bytes());
        assert_eq!(page.rows[0].verdict.name(), verdict);
    }
    println!(
        "{first:?}, again {:?}, {looks} looks, {} MiB",
        began.elapsed() - first,
        peak_mib()
    );
    assert!(peak_mib() < 300, "{} MiB", peak_mib());
}
