//! Proves the meter with a clock that the tests own.

use proptest::prelude::*;

use super::*;

const MIB: u64 = 1 << 20;

fn listed(done: u64, total: u64) -> Progress {
    Progress {
        bytes_done: done,
        bytes_total: total,
        listed: true,
        phase: Phase::Transferring,
        ..Progress::default()
    }
}

/// Looks every 100 ms while `rate(now)` bytes a second move, until `until`.
fn run(
    meter: &mut Meter,
    done: &mut f64,
    total: u64,
    (from, until): (f64, f64),
    rate: impl Fn(f64) -> f64,
    mut look: impl FnMut(f64, f64, Reading),
) {
    let first = (from * 10.0).round() as u64 + 1;
    for tick in first..=(until * 10.0).round() as u64 {
        let now = tick as f64 / 10.0;
        *done += rate(now) * 0.1;
        let reading = meter.sample(now, &listed(*done as u64, total), false);
        look(now, *done, reading);
    }
}

#[test]
fn time_left_appears_after_three_seconds_and_is_right_on_a_steady_line() {
    let mut meter = Meter::default();
    let (total, rate) = (1000 * MIB, (10 * MIB) as f64);
    meter.sample(0.0, &listed(0, total), false);
    run(
        &mut meter,
        &mut 0.0,
        total,
        (0.0, 99.0),
        |_| rate,
        |now, done, reading| {
            assert_eq!(reading.eta.is_some(), now >= 3.0, "at {now}");
            if let Some(eta) = reading.eta {
                let truth = (total as f64 - done) / rate;
                assert!((eta - truth).abs() <= 1.0, "at {now}: {eta} for {truth}");
            }
            if now > 1.0 {
                assert!((reading.goodput - rate).abs() < rate / 50.0);
            }
        },
    );
}

#[test]
fn when_one_slow_file_is_left_the_time_left_is_within_twice_after_30_s() {
    for (fast, slow) in [(100.0, 10.0), (100.0, 1.0), (1.0, 1.2)] {
        let (fast, slow) = (fast * MIB as f64, slow * MIB as f64);
        let total = (fast * 120.0 + slow * 600.0) as u64;
        let mut meter = Meter::default();
        let mut done = 0.0;
        let speed = |now: f64| if now <= 120.0 { fast } else { slow };
        run(
            &mut meter,
            &mut done,
            total,
            (0.0, 400.0),
            speed,
            |now, done, reading| {
                if now >= 150.0 {
                    let truth = (total as f64 - done) / slow;
                    let eta = reading.eta.unwrap();
                    assert!(
                        (0.5..2.0).contains(&(eta / truth)),
                        "at {now}: {eta} for {truth}"
                    );
                }
            },
        );
    }
}

#[test]
fn nothing_is_said_while_the_total_still_grows() {
    let mut meter = Meter::default();
    for tick in 0..200u64 {
        let progress = Progress {
            listed: false,
            ..listed(tick * MIB, tick * 2 * MIB)
        };
        assert_eq!(meter.sample(tick as f64 / 10.0, &progress, false).eta, None);
    }
}

#[test]
fn ten_seconds_without_movement_are_a_stall_without_time_left() {
    let mut meter = Meter::default();
    let mut done = 0.0;
    run(
        &mut meter,
        &mut done,
        1000 * MIB,
        (0.0, 20.0),
        |_| 1e6,
        |_, _, reading| {
            assert!(!reading.quiet);
        },
    );
    run(
        &mut meter,
        &mut done,
        1000 * MIB,
        (20.0, 40.0),
        |_| 0.0,
        |now, _, reading| {
            assert_eq!(reading.quiet, now >= 30.0, "at {now}");
            assert!(!reading.quiet || (reading.eta.is_none() && reading.goodput == 0.0));
        },
    );
    run(
        &mut meter,
        &mut done,
        1000 * MIB,
        (40.0, 41.0),
        |_| 1e6,
        |_, _, reading| {
            assert!(!reading.quiet);
        },
    );
}

#[test]
fn a_job_that_is_connecting_held_or_only_making_things_durable_is_not_stalled() {
    for (phase, held) in [
        (Phase::Connecting, false),
        (Phase::Verifying, false),
        (Phase::Transferring, true),
    ] {
        let mut meter = Meter::default();
        for second in 0..100 {
            let progress = Progress {
                phase,
                ..listed(5, 10)
            };
            assert!(!meter.sample(f64::from(second), &progress, held).quiet);
        }
    }
}

#[test]
fn a_new_attempt_starts_at_zero_without_a_negative_rate() {
    let mut meter = Meter::default();
    let mut done = 0.0;
    run(
        &mut meter,
        &mut done,
        100 * MIB,
        (0.0, 30.0),
        |_| 2e6,
        |_, _, _| {},
    );
    let mut done = 0.0;
    run(
        &mut meter,
        &mut done,
        100 * MIB,
        (30.0, 60.0),
        |_| 1e6,
        |now, _, reading| {
            assert!((0.0..=1.2e6).contains(&reading.goodput));
            assert!(reading.eta.is_none() || now > 33.0);
        },
    );
}

#[test]
fn empty_files_have_a_time_left_too() {
    let mut meter = Meter::default();
    for tick in 0..100u64 {
        let progress = Progress {
            items_done: tick * 100,
            items_total: 200_000,
            ..listed(0, 0)
        };
        let reading = meter.sample(tick as f64 / 10.0, &progress, false);
        if tick == 99 {
            let truth = (200_000.0 - 9900.0) / 1000.0;
            assert!((reading.eta.unwrap() / truth - 1.0).abs() < 0.05);
        }
    }
}

#[test]
fn a_program_that_was_frozen_for_ten_minutes_shows_no_false_rate() {
    let mut meter = Meter::default();
    let mut done = 0.0;
    run(
        &mut meter,
        &mut done,
        1000 * MIB,
        (0.0, 10.0),
        |_| 1e6,
        |_, _, _| {},
    );
    let reading = meter.sample(610.0, &listed(done as u64 + 500_000, 1000 * MIB), false);
    assert!(reading.goodput < 2000.0);
    assert!(
        meter
            .series
            .values
            .iter()
            .all(|v| (0.0..=1.01e6).contains(v))
    );
    assert_eq!(meter.series.values.len() as f64 * meter.series.step, 610.0);
}

#[test]
fn the_curve_keeps_its_area_and_its_length() {
    let mut series = Series::default();
    let mut sum = 0;
    for tick in 1..=50_000u64 {
        let bytes = tick % 7 * 1000;
        sum += bytes;
        series.add(tick as f64 / 10.0, bytes);
        assert!(series.values.len() <= SERIES_VALUES);
    }
    let area: f64 = series.values.iter().map(|v| f64::from(*v)).sum::<f64>() * series.step;
    assert_eq!(series.step, 8.0);
    assert!((area / sum as f64 - 1.0).abs() < 0.01, "{area} of {sum}");
}

proptest! {
    #[test]
    fn rates_are_never_negative_and_the_time_left_never_jumps(
        looks in proptest::collection::vec((-2.0f64..5.0, 0u64..50 * MIB, 0u8..30), 1..400)
    ) {
        let mut meter = Meter::default();
        let (mut latest, mut done, mut shown) = (0.0f64, 0u64, None::<f64>);
        for (elapsed, bytes, odd) in looks {
            // The clock may be read out of order by threads; it is never allowed to run back.
            let before = latest;
            let now = (latest + elapsed).max(0.0);
            latest = latest.max(now);
            done = if odd == 0 { bytes } else { done + bytes };
            let mut progress = listed(done, 100_000 * MIB);
            progress.listed = odd != 1;
            let reading = meter.sample(now, &progress, odd == 2);
            prop_assert!(reading.goodput >= 0.0 && reading.goodput.is_finite());
            prop_assert!(meter.series.values.iter().all(|v| *v >= 0.0 && v.is_finite()));
            if let (Some(was), Some(is)) = (shown, reading.eta) {
                let dt = latest - before;
                let expected = (was - dt).max(0.5);
                let factor = (0.5 * dt + 1e-9).exp();
                let most = (expected * factor).max(expected + 3.0 * dt + 1e-6);
                prop_assert!(is <= most && is >= expected / factor);
            }
            if let Some(eta) = reading.eta {
                prop_assert!(eta >= 0.0 && eta.is_finite());
            }
            shown = reading.eta;
        }
    }
}

#[test]
fn a_pause_counts_neither_for_the_rate_nor_for_the_time_left() {
    let mut meter = Meter::default();
    let at = |seconds: f64| Progress {
        bytes_done: (seconds * 1e6) as u64,
        bytes_total: 100_000_000,
        items_total: 1,
        listed: true,
        phase: Phase::Transferring,
        ..Progress::default()
    };
    let tick = |n: u32| f64::from(n) * 0.1;
    for n in 0..=100 {
        meter.sample(tick(n), &at(tick(n)), false);
    }
    // Ten minutes in which nobody looks, as nothing moves.
    meter.sample(10.1, &at(10.0), true);
    const PAUSE: f64 = 600.0;
    let mut last = Reading::default();
    for n in 1..=100 {
        last = meter.sample(PAUSE + 10.1 + tick(n), &at(10.0 + tick(n)), false);
        let shown = last.eta.is_some();
        assert!(!shown || n >= 30, "time left {n} samples after the pause");
    }
    assert!((last.goodput - 1e6).abs() < 2e4, "{last:?}");
    let left = last.eta.unwrap();
    assert!((left - 80.0).abs() < 4.0, "{left} s");
}

#[test]
fn only_the_time_in_which_people_are_waited_for_is_taken_off() {
    let mut waits = Waits::default();
    let at = Duration::from_secs;
    waits.look(at(1), false);
    waits.look(at(5), true);
    waits.look(at(20), true);
    waits.look(at(30), false);
    waits.look(at(40), false);
    assert_eq!(waits.total(), at(25));
    waits.look(at(41), true);
    assert_eq!(waits.total(), at(25), "up to the last look");
    waits.look(at(42), false);
    assert_eq!(waits.total(), at(26));
}
