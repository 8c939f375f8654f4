//! How a job ended, decided by one pure function from what it has to show.

use crate::model::entry::Action;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::outcome::{Abort, Outcome, Tally};
use crate::model::verdict::{Row, Verdict};

/// What rows said, counted as they pass.
#[derive(Clone, Debug, Default)]
pub struct Arrived {
    /// Files of each verdict.
    pub tally: Tally,
    /// Bytes of the files that were sent and are right as far as they were checked.
    pub bytes: u64,
    /// The first single failure, to be told when nothing arrived.
    pub first_error: Option<Error>,
}

impl Arrived {
    /// Counts one row.
    pub fn add(&mut self, row: &Row) {
        let tally = &mut self.tally;
        let mut right = false;
        match &row.verdict {
            Verdict::Failed(error) => {
                tally.failed += 1;
                self.first_error.get_or_insert_with(|| error.clone());
            }
            Verdict::Differs { .. } => tally.differs += 1,
            Verdict::SourceChanged => tally.changed += 1,
            Verdict::Vanished => tally.vanished += 1,
            Verdict::Skipped(_) => tally.skipped += 1,
            _ if row.action == Action::Delete => tally.deleted += 1,
            _ if matches!(row.action, Action::Keep | Action::Skip) => tally.skipped += 1,
            Verdict::Verified { .. } => {
                tally.verified += 1;
                right = true;
            }
            Verdict::SizeOnly | Verdict::Unverified(_) => {
                tally.unchecked += 1;
                right = true;
            }
        }
        if right && row.action != Action::Touch {
            self.bytes += row.bytes;
        }
    }

    /// Returns the number of files that arrived.
    pub fn files(&self) -> u64 {
        self.tally.verified + self.tally.unchecked
    }

    /// Returns the counts of an attempt that ended early, merged with those of earlier ones.
    pub fn merged(&self, earlier: &Self) -> Tally {
        let (all, old) = (&self.tally, &earlier.tally);
        let last = Tally {
            verified: all.verified - old.verified,
            differs: all.differs - old.differs,
            failed: all.failed - old.failed,
            skipped: all.skipped - old.skipped,
            vanished: all.vanished - old.vanished,
            changed: all.changed - old.changed,
            unchecked: all.unchecked - old.unchecked,
            deleted: all.deleted - old.deleted,
        };
        merge(last, earlier)
    }
}

/// What the end of a job is judged by.
#[derive(Debug)]
pub struct Facts<'a> {
    /// Why it had to stop, when somebody stopped it.
    pub stop: Option<Abort>,
    /// What the last attempt returned.
    pub result: &'a Result<Tally>,
    /// What arrived in all attempts.
    pub arrived: &'a Arrived,
    /// Every item that was listed is settled.
    pub settled: bool,
    /// Nothing was to be written.
    pub dry_run: bool,
}

/// Says how a job ended.
///
/// Stopped beats all but a job that was through already. An error ends a job as failed when nothing
/// arrived and as partial otherwise; `Exists` with nothing written means that the conflict rule
/// forbade it. Without an error the verdicts decide.
pub fn decide(facts: &Facts<'_>) -> Outcome {
    match (facts.stop, facts.result) {
        (Some(_), Ok(tally)) if facts.settled => by_verdicts(tally, facts),
        (Some(why), _) => Outcome::Aborted(why),
        (None, Err(error)) => match error.kind {
            ErrorKind::Cancelled => Outcome::Aborted(Abort::User),
            ErrorKind::Bug => Outcome::Failed(error.clone()),
            _ if facts.arrived.files() > 0 => Outcome::Partial(Some(error.clone())),
            ErrorKind::Exists => Outcome::Refused(error.clone()),
            _ => Outcome::Failed(error.clone()),
        },
        (None, Ok(tally)) => by_verdicts(tally, facts),
    }
}

fn by_verdicts(tally: &Tally, facts: &Facts<'_>) -> Outcome {
    let bad = tally.failed + tally.differs + tally.changed + tally.vanished;
    let good = tally.verified + tally.unchecked + tally.skipped + tally.deleted;
    if facts.dry_run || bad == 0 {
        Outcome::Completed
    } else if good > 0 || tally.differs + tally.changed > 0 || facts.arrived.files() > 0 {
        // A file that is written to all the time is no failure of the job.
        Outcome::Partial(None)
    } else {
        let error = facts.arrived.first_error.clone();
        let error = error.unwrap_or_else(|| nothing(tally));
        match error.kind {
            ErrorKind::Exists => Outcome::Refused(error),
            _ => Outcome::Failed(error),
        }
    }
}

/// Makes the error of a job of which no file arrived and no row says why.
fn nothing(tally: &Tally) -> Error {
    let (kind, cause) = if tally.failed > 0 {
        (ErrorKind::Io, "no file arrived")
    } else if tally.changed > 0 {
        (
            ErrorKind::SourceChanged,
            "every file was edited while it was read",
        )
    } else {
        (
            ErrorKind::NotFound,
            "every file went away before it was read",
        )
    };
    Error::new(kind, "transfer the files", cause)
        .hint("the verification list has the reason for each file")
}

/// Returns the verdict counts of the whole run: what earlier attempts delivered is found in place
/// by the last one, which skips it.
pub fn merge(last: Tally, earlier: &Arrived) -> Tally {
    Tally {
        verified: last.verified + earlier.tally.verified,
        unchecked: last.unchecked + earlier.tally.unchecked,
        deleted: last.deleted + earlier.tally.deleted,
        skipped: last.skipped.saturating_sub(earlier.files()),
        ..last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: ErrorKind) -> Error {
        Error::new(kind, "write", "x")
    }

    fn ends(stop: Option<Abort>, result: Result<Tally>, files: u64, settled: bool) -> Outcome {
        let arrived = Arrived {
            tally: tally(files, 0, 0, 0),
            ..Arrived::default()
        };
        decide(&Facts {
            stop,
            result: &result,
            arrived: &arrived,
            settled,
            dry_run: false,
        })
    }

    fn tally(verified: u64, failed: u64, skipped: u64, vanished: u64) -> Tally {
        Tally {
            verified,
            failed,
            skipped,
            vanished,
            ..Tally::default()
        }
    }

    #[test]
    fn verdicts_decide_when_there_is_no_error() {
        assert_eq!(
            ends(None, Ok(tally(5, 0, 0, 0)), 5, true),
            Outcome::Completed
        );
        assert_eq!(
            ends(None, Ok(tally(0, 0, 9, 0)), 0, true),
            Outcome::Completed
        );
        assert_eq!(
            ends(None, Ok(tally(0, 0, 0, 0)), 0, true),
            Outcome::Completed
        );
        assert_eq!(
            ends(None, Ok(tally(5, 1, 0, 0)), 5, true),
            Outcome::Partial(None)
        );
        assert_eq!(
            ends(None, Ok(tally(0, 1, 9, 0)), 0, true),
            Outcome::Partial(None)
        );
        assert_eq!(
            ends(None, Ok(tally(5, 0, 0, 1)), 5, true),
            Outcome::Partial(None)
        );
        let none = ends(None, Ok(tally(0, 0, 0, 1)), 0, true);
        assert!(matches!(none, Outcome::Failed(e) if e.kind == ErrorKind::NotFound));
    }

    #[test]
    fn a_rule_that_kept_every_file_away_is_a_refusal_not_a_failure() {
        let mut arrived = Arrived::default();
        arrived.add(&Row {
            path: b"a".to_vec(),
            action: Action::Skip,
            bytes: 1,
            verdict: Verdict::Failed(error(ErrorKind::Exists)),
        });
        let outcome = decide(&Facts {
            stop: None,
            result: &Ok(arrived.tally),
            arrived: &arrived,
            settled: true,
            dry_run: false,
        });
        assert_eq!(outcome, Outcome::Refused(error(ErrorKind::Exists)));
    }

    #[test]
    fn a_file_that_grows_while_it_is_read_is_no_failure_of_the_job() {
        let tally = Tally {
            changed: 1,
            ..Tally::default()
        };
        assert_eq!(ends(None, Ok(tally), 0, true), Outcome::Partial(None));
    }

    #[test]
    fn a_file_that_differs_on_read_back_is_partial_even_alone() {
        let tally = Tally {
            differs: 1,
            ..Tally::default()
        };
        assert_eq!(ends(None, Ok(tally), 0, true), Outcome::Partial(None));
    }

    #[test]
    fn an_error_fails_a_job_only_when_nothing_arrived() {
        let full = || Err(error(ErrorKind::NoSpace));
        assert_eq!(
            ends(None, full(), 3, false),
            Outcome::Partial(Some(error(ErrorKind::NoSpace)))
        );
        assert_eq!(
            ends(None, full(), 0, false),
            Outcome::Failed(error(ErrorKind::NoSpace))
        );
        assert_eq!(
            ends(None, Err(error(ErrorKind::Bug)), 3, false),
            Outcome::Failed(error(ErrorKind::Bug))
        );
        assert_eq!(
            ends(None, Err(error(ErrorKind::Exists)), 0, false),
            Outcome::Refused(error(ErrorKind::Exists))
        );
    }

    #[test]
    fn stopped_is_an_ending_of_its_own_unless_everything_was_done() {
        let user = Some(Abort::User);
        let aborted = Outcome::Aborted(Abort::User);
        assert_eq!(ends(user, Err(Error::cancelled()), 3, false), aborted);
        assert_eq!(
            ends(user, Err(error(ErrorKind::Disconnected)), 3, false),
            aborted
        );
        assert_eq!(ends(user, Ok(tally(3, 0, 0, 0)), 3, false), aborted);
        assert_eq!(
            ends(user, Ok(tally(3, 0, 0, 0)), 3, true),
            Outcome::Completed
        );
        assert_eq!(ends(None, Err(Error::cancelled()), 0, false), aborted);
    }

    #[test]
    fn what_earlier_attempts_delivered_counts_as_delivered_not_as_skipped() {
        let earlier = Arrived {
            tally: Tally {
                verified: 400,
                unchecked: 2,
                ..Tally::default()
            },
            ..Arrived::default()
        };
        let whole = merge(tally(600, 0, 410, 0), &earlier);
        assert_eq!(
            (whole.verified, whole.unchecked, whole.skipped),
            (1000, 2, 8)
        );
    }
}
