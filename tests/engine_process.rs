//! What can only be seen of a whole process: that it idles, stays small, and may be killed.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

#[path = "support/fake_methods.rs"]
mod fake_methods;

use std::time::{Duration, Instant};

use fake_methods::{Bench, Fake, PATIENCE, job};

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
