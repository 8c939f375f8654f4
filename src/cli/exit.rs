//! Exit statuses: which number a run ends with, and which wins when several apply.
//!
//! 0 completed · 1 failed, nothing arrived · 2 usage · 3 could not connect or log in ·
//! 4 a digest differs · 5 refused for safety · 23 partial · 24 a source vanished or changed ·
//! 30 timeout · 130 stopped. 23, 24 and 30 are what rsync uses for the same things.

use crate::model::error::{Error, ErrorKind};
use crate::model::outcome::{Outcome, Report};

/// Everything arrived.
pub const COMPLETED: u8 = 0;
/// Nothing arrived.
pub const FAILED: u8 = 1;
/// The command could not be understood.
pub const USAGE: u8 = 2;
/// The other side could not be reached or did not let us in.
pub const CONNECT: u8 = 3;
/// A digest differs.
pub const DIFFERS: u8 = 4;
/// A guard forbade it; nothing was written.
pub const REFUSED: u8 = 5;
/// Some things arrived and some did not.
pub const PARTIAL: u8 = 23;
/// A source vanished, or changed while it was read.
pub const VANISHED: u8 = 24;
/// A deadline passed.
pub const TIMEOUT: u8 = 30;
/// Somebody stopped it.
pub const STOPPED: u8 = 130;

/// When several apply, the first of these wins.
const ORDER: [u8; 8] = [
    REFUSED, CONNECT, STOPPED, DIFFERS, TIMEOUT, FAILED, PARTIAL, VANISHED,
];

/// Returns the status that wins.
pub fn worst(codes: impl IntoIterator<Item = u8>) -> u8 {
    let rank = |code: u8| ORDER.iter().position(|o| *o == code).unwrap_or(ORDER.len());
    codes
        .into_iter()
        .filter(|code| *code != COMPLETED)
        .min_by_key(|code| rank(*code))
        .unwrap_or(COMPLETED)
}

/// Returns the status of a job; `errors` are the kinds of what went wrong while it went on.
pub fn exit_code(outcome: &Outcome, report: &Report, errors: &[ErrorKind]) -> u8 {
    let tally = &report.tally;
    let arrived = report.files > 0 || tally.verified + tally.unchecked > 0;
    let left_as_is = tally.skipped > 0;
    let mut codes = Vec::new();
    match outcome {
        Outcome::Completed => {}
        Outcome::Refused(_) => codes.push(REFUSED),
        Outcome::Aborted(_) => codes.push(STOPPED),
        Outcome::Failed(error) => codes.push(match of_kind(error.kind, report) {
            FAILED if arrived => PARTIAL,
            code => code,
        }),
        Outcome::Partial(why) => {
            if why.as_ref().is_some_and(|e| e.kind == ErrorKind::Timeout) {
                codes.push(TIMEOUT);
            }
            if tally.failed > 0 && !arrived && !left_as_is {
                codes.push(FAILED);
            } else if tally.failed > 0 || tally.vanished + tally.changed + tally.differs == 0 {
                codes.push(PARTIAL);
            }
        }
    }
    if tally.differs > 0 {
        codes.push(DIFFERS);
    }
    if tally.vanished + tally.changed > 0 {
        codes.push(VANISHED);
    }
    // A deadline that a later try made good is no reason to fail.
    if *outcome != Outcome::Completed && errors.contains(&ErrorKind::Timeout) {
        codes.push(TIMEOUT);
    }
    worst(codes)
}

/// Returns the status for an error that ended a command before or beside a job.
pub fn of_error(error: &Error) -> u8 {
    match error.kind {
        ErrorKind::Config | ErrorKind::Unsupported => USAGE,
        // No connection is made outside of a job: this was a lock or a disk.
        ErrorKind::Timeout => TIMEOUT,
        kind => of_kind(kind, &Report::default()),
    }
}

fn of_kind(kind: ErrorKind, report: &Report) -> u8 {
    match kind {
        ErrorKind::Unreachable | ErrorKind::Login | ErrorKind::HostKey => CONNECT,
        // Before data could flow it was the connection that did not come about.
        ErrorKind::Timeout if report.connect_seconds == 0.0 => CONNECT,
        ErrorKind::Timeout => TIMEOUT,
        ErrorKind::Cancelled => STOPPED,
        // What ssh itself did not understand of the command's options.
        ErrorKind::Config if report.connect_seconds == 0.0 => USAGE,
        _ => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::outcome::{Abort, Tally};

    fn report(files: u64, tally: Tally) -> Report {
        Report {
            files,
            tally,
            connect_seconds: 0.1,
            ..Report::default()
        }
    }

    fn failed(kind: ErrorKind) -> Outcome {
        Outcome::Failed(Error::new(kind, "test", "because"))
    }

    #[test]
    fn completed_is_0_also_when_a_try_timed_out_on_the_way() {
        let report = report(
            3,
            Tally {
                verified: 3,
                ..Tally::default()
            },
        );
        assert_eq!(exit_code(&Outcome::Completed, &report, &[]), 0);
        assert_eq!(
            exit_code(&Outcome::Completed, &report, &[ErrorKind::Timeout]),
            0
        );
    }

    #[test]
    fn failed_is_1_when_nothing_arrived_and_23_otherwise() {
        let outcome = failed(ErrorKind::NoSpace);
        assert_eq!(exit_code(&outcome, &report(0, Tally::default()), &[]), 1);
        assert_eq!(exit_code(&outcome, &report(2, Tally::default()), &[]), 23);
    }

    #[test]
    fn no_connection_and_no_log_in_are_3() {
        for kind in [ErrorKind::Unreachable, ErrorKind::Login, ErrorKind::HostKey] {
            assert_eq!(exit_code(&failed(kind), &Report::default(), &[]), 3);
        }
        assert_eq!(
            exit_code(&failed(ErrorKind::Timeout), &Report::default(), &[]),
            3
        );
    }

    #[test]
    fn a_digest_that_differs_is_4() {
        let tally = Tally {
            differs: 1,
            verified: 5,
            failed: 1,
            ..Tally::default()
        };
        assert_eq!(
            exit_code(&Outcome::Partial(None), &report(5, tally), &[]),
            4
        );
    }

    #[test]
    fn refused_is_5_and_wins_over_all() {
        let outcome = Outcome::Refused(Error::new(ErrorKind::Config, "test", "because"));
        assert_eq!(
            exit_code(&outcome, &Report::default(), &[ErrorKind::Timeout]),
            5
        );
        assert_eq!(worst([24, 23, 1, 30, 4, 130, 3, 5, 0]), 5);
    }

    #[test]
    fn partial_is_23_when_something_arrived_or_was_there_and_1_when_nothing() {
        let failed = Tally {
            failed: 1,
            ..Tally::default()
        };
        assert_eq!(
            exit_code(&Outcome::Partial(None), &report(1, failed), &[]),
            23
        );
        let there = Tally {
            skipped: 4,
            ..failed
        };
        assert_eq!(
            exit_code(&Outcome::Partial(None), &report(0, there), &[]),
            23
        );
        assert_eq!(
            exit_code(&Outcome::Partial(None), &report(0, failed), &[]),
            1
        );
        assert_eq!(
            exit_code(&Outcome::Partial(None), &report(1, Tally::default()), &[]),
            23
        );
    }

    #[test]
    fn vanished_or_changed_alone_is_24() {
        for tally in [
            Tally {
                vanished: 1,
                ..Tally::default()
            },
            Tally {
                changed: 1,
                ..Tally::default()
            },
        ] {
            assert_eq!(
                exit_code(&Outcome::Partial(None), &report(9, tally), &[]),
                24
            );
            let both = Tally { failed: 1, ..tally };
            assert_eq!(
                exit_code(&Outcome::Partial(None), &report(9, both), &[]),
                23
            );
        }
    }

    #[test]
    fn a_deadline_that_passed_with_data_flowing_is_30() {
        assert_eq!(
            exit_code(
                &failed(ErrorKind::Timeout),
                &report(3, Tally::default()),
                &[]
            ),
            30
        );
        let tally = Tally {
            failed: 1,
            ..Tally::default()
        };
        assert_eq!(
            exit_code(
                &Outcome::Partial(None),
                &report(0, tally),
                &[ErrorKind::Timeout]
            ),
            30
        );
    }

    #[test]
    fn what_ends_a_command_before_a_job_is_usage_when_the_user_can_write_it_better() {
        for (kind, code) in [
            (ErrorKind::Config, 2),
            (ErrorKind::Unsupported, 2),
            (ErrorKind::NotFound, 1),
            (ErrorKind::Denied, 1),
            (ErrorKind::Timeout, 30),
        ] {
            assert_eq!(of_error(&Error::new(kind, "test", "because")), code);
        }
    }

    #[test]
    fn stopped_is_130() {
        let outcome = Outcome::Aborted(Abort::User);
        let tally = Tally {
            differs: 1,
            ..Tally::default()
        };
        assert_eq!(exit_code(&outcome, &report(0, tally), &[]), 130);
    }

    #[test]
    fn the_order_of_the_contract_holds() {
        let mut left = vec![24, 23, 1, 30, 4, 130, 3, 5];
        for expected in [5, 3, 130, 4, 30, 1, 23, 24] {
            assert_eq!(worst(left.clone()), expected);
            left.retain(|code| *code != expected);
        }
        assert_eq!(worst([0, 0]), 0);
        assert_eq!(worst([0, 2]), 2);
    }
}
