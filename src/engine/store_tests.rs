//! Proves that the list says of each path once what became of it, however often a job begins again.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::engine::memory::Memory;
use crate::model::digest::{Algorithm, Digest};
use crate::model::entry::Action;
use crate::model::error::ErrorKind;
use crate::model::verdict::When;

const JOB: JobId = JobId([9; 16]);

fn row(path: u8, kind: u8) -> Row {
    let verdict = match kind {
        0 => Verdict::Skipped("the same already".to_owned()),
        1 => Verdict::Failed(Error::new(ErrorKind::Io, "read", "x")),
        n => Verdict::Verified {
            digest: Digest::new(Algorithm::Md5, &[n; 16]).unwrap(),
            when: When::InFlight,
        },
    };
    Row {
        path: vec![path],
        action: Action::Create,
        bytes: 1,
        verdict,
    }
}

/// Writes attempts through a store thread and returns what the ledger then holds.
fn written(attempts: &[Vec<Vec<Row>>]) -> Vec<Row> {
    let mut ledger = Memory::default();
    let (alive, ended) = crossbeam_channel::bounded(0);
    let tell = |told| assert!(!matches!(told, Told::Lost(..)));
    let pages = Arc::default();
    let store = Store::start(Box::new(ledger.clone()), pages, tell, alive).unwrap();
    for (n, batches) in attempts.iter().enumerate() {
        if n > 0 {
            store.write(Write::Again(JOB));
        }
        for batch in batches {
            store.rows(JOB, batch.clone(), &Cancel::default());
        }
    }
    drop(store);
    assert!(ended.recv().is_err());
    let all = RowFilter::default();
    ledger.rows(JOB, &all, 0..usize::MAX).unwrap().0
}

proptest! {
    #[test]
    fn a_path_has_one_row_the_last_that_says_something_new(
        attempts in proptest::collection::vec(
            // Within one attempt a method reports a path once.
            proptest::collection::btree_map(0u8..30, 0u8..5, 0..30),
            1..5,
        ),
        cut in 1usize..10,
    ) {
        let mut model: BTreeMap<u8, Row> = BTreeMap::new();
        for attempt in &attempts {
            for (path, kind) in attempt {
                let new = row(*path, *kind);
                match model.get_mut(path) {
                    Some(old) if arrived(old) && *kind == 0 => {}
                    Some(old) => *old = new,
                    None => drop(model.insert(*path, new)),
                }
            }
        }
        let batches: Vec<Vec<Vec<Row>>> = attempts
            .iter()
            .map(|attempt| {
                let rows: Vec<Row> = attempt.iter().map(|(p, k)| row(*p, *k)).collect();
                rows.chunks(cut).map(<[Row]>::to_vec).collect()
            })
            .collect();
        let mut rows = written(&batches);
        rows.sort_by(|a, b| a.path.cmp(&b.path));
        prop_assert_eq!(rows, model.into_values().collect::<Vec<_>>());
    }
}

#[test]
fn rows_on_their_way_are_bounded_and_a_cancelled_job_does_not_wait() {
    let room = Arc::new(Room::default());
    let cancel = Cancel::default();
    room.take(ROOM, &cancel);
    let (waiting, cells) = (Arc::clone(&room), cancel.clone());
    let taker = std::thread::Builder::new()
        .spawn(move || waiting.take(1, &cells))
        .unwrap();
    room.give(1);
    taker.join().unwrap();
    assert_eq!(*room.used.lock().unwrap(), ROOM);
    cancel.set();
    room.take(5, &cancel);
    assert_eq!(*room.used.lock().unwrap(), ROOM + 5);
}
