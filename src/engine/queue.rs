//! Which queued jobs may start now, and where a moved one goes; pure.

use std::collections::HashMap;

/// The limits of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Jobs at once.
    pub parallel: usize,
    /// Jobs at once that use the same host.
    pub per_host: usize,
}

/// What the queue has to know of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It could start.
    Ready,
    /// It takes up room: a thread works on it, also while it is paused.
    Busy,
    /// It is held, over, or an earlier thread of it is not gone yet.
    Out,
}

/// Returns the indices of the jobs that may start now, in order.
///
/// A job whose host has no room left does not hold up those behind it that use other hosts. A
/// paused job keeps its connection and therefore its room.
pub fn next(jobs: &[(&str, Place)], limits: Limits) -> Vec<usize> {
    let mut hosts: HashMap<&str, usize> = HashMap::new();
    let mut busy = 0;
    for (host, _) in jobs.iter().filter(|(_, place)| *place == Place::Busy) {
        *hosts.entry(host).or_default() += 1;
        busy += 1;
    }
    let mut starts = Vec::new();
    for (index, (host, _)) in jobs
        .iter()
        .enumerate()
        .filter(|(_, (_, place))| *place == Place::Ready)
    {
        if busy >= limits.parallel.max(1) {
            break;
        }
        let on_host = hosts.entry(host).or_default();
        if *on_host < limits.per_host.max(1) {
            *on_host += 1;
            busy += 1;
            starts.push(index);
        }
    }
    starts
}

/// Moves the job at `from` so that it is number `place` (0 is next) among those that wait; a place
/// behind the last is the end. Does nothing to a job that does not wait.
pub fn move_to<T>(list: &mut Vec<T>, from: usize, place: usize, waits: impl Fn(&T) -> bool) {
    if from >= list.len() || !waits(&list[from]) {
        return;
    }
    let job = list.remove(from);
    let waiting: Vec<usize> = (0..list.len()).filter(|i| waits(&list[*i])).collect();
    let to = match (waiting.get(place), waiting.last()) {
        (Some(index), _) => *index,
        (None, Some(last)) => last + 1,
        (None, None) => from,
    };
    list.insert(to, job);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TWO: Limits = Limits {
        parallel: 2,
        per_host: 1,
    };

    #[test]
    fn a_busy_host_does_not_hold_up_the_others() {
        let jobs = [
            ("nas", Place::Busy),
            ("nas", Place::Ready),
            ("vps", Place::Ready),
            ("box", Place::Ready),
        ];
        assert_eq!(next(&jobs, TWO), [2]);
    }

    #[test]
    fn jobs_start_in_the_order_of_the_list() {
        let jobs = [
            ("a", Place::Out),
            ("b", Place::Ready),
            ("a", Place::Ready),
            ("c", Place::Ready),
        ];
        assert_eq!(next(&jobs, TWO), [1, 2]);
    }

    #[test]
    fn a_moved_job_gets_its_place_among_those_that_wait() {
        let waits = |job: &&str| job.starts_with('w');
        let mut list = vec!["run", "w1", "w2", "over", "w3"];
        move_to(&mut list, 4, 0, waits);
        assert_eq!(list, ["run", "w3", "w1", "w2", "over"]);
        move_to(&mut list, 1, 99, waits);
        assert_eq!(list, ["run", "w1", "w2", "w3", "over"]);
        move_to(&mut list, 1, 1, waits);
        assert_eq!(list, ["run", "w2", "w1", "w3", "over"]);
        move_to(&mut list, 0, 2, waits);
        assert_eq!(list, ["run", "w2", "w1", "w3", "over"]);
    }

    proptest! {
        #[test]
        fn limits_hold_and_no_room_is_left_unused(
            jobs in proptest::collection::vec((0..3usize, 0..3usize), 0..20),
            parallel in 1..5usize,
            per_host in 1..3usize,
        ) {
            let places = [Place::Ready, Place::Busy, Place::Out];
            let mut jobs: Vec<_> = jobs
                .iter()
                .map(|(host, place)| (["a", "b", "c"][*host], places[*place]))
                .collect();
            let limits = Limits { parallel, per_host };
            let was_busy = jobs.iter().filter(|(_, p)| *p == Place::Busy).count();
            let starts = next(&jobs, limits);
            prop_assert!(starts.is_sorted());
            for index in &starts {
                jobs[*index].1 = Place::Busy;
            }
            let busy = jobs.iter().filter(|(_, p)| *p == Place::Busy).count();
            prop_assert!(busy <= parallel.max(was_busy));
            prop_assert!(next(&jobs, limits).is_empty());
            for index in starts {
                let host = jobs[index].0;
                let here = jobs.iter().filter(|j| **j == (host, Place::Busy)).count();
                prop_assert!(here <= per_host);
            }
        }
    }
}
