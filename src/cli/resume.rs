//! Goes on with a copy that was stopped: finds the run in the history that the same command left
//! unfinished.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cli::out::Out;
use crate::model::error::Result;
use crate::model::job::JobSpec;
use crate::model::outcome::{Abort, Outcome};
use crate::model::profile::Settings;
use crate::present::units;
use crate::store::dirs::Dirs;
use crate::store::history::{History, Job};

/// Former runs that are looked at, newest first.
const LOOK_BACK: usize = 1000;

/// Gives the job the id of the newest run of the same work, if that one did not get to its end:
/// under that id the receiver finds the parts that had arrived.
///
/// # Errors
/// When the history cannot be read.
pub fn go_on(spec: &mut JobSpec, dirs: &Dirs, out: &Out) -> Result<()> {
    if spec.dry_run || dirs.read_only().is_some() {
        return Ok(());
    }
    let mut history = History::open(&dirs.database())?;
    let jobs = history.jobs(LOOK_BACK)?;
    history.notes().iter().for_each(|note| out.note(note));
    let Some(job) = unfinished(&jobs, spec) else {
        return Ok(());
    };
    spec.id = job.record.spec.id;
    spec.resume = true;
    if left_something(job) {
        let when = job.ended_ms.map(|ms| units::ago(seconds_since(ms)));
        let when = when.unwrap_or_else(|| "earlier".to_owned());
        out.note(&format!("Going on with the copy that stopped {when}."));
    }
    Ok(())
}

/// Says whether a run left anything to go on from. Of one that was killed it is not known.
fn left_something(job: &Job) -> bool {
    match &job.record.end {
        Some((Outcome::Aborted(Abort::LeftRunning), _)) => true,
        Some((_, report)) => report.files > 0 || report.kept > 0,
        None => false,
    }
}

/// Returns the newest run of the same work, unless it got to its end.
fn unfinished<'a>(jobs: &'a [Job], spec: &JobSpec) -> Option<&'a Job> {
    let job = jobs
        .iter()
        .rev()
        .filter(|job| is_same_work(&job.record.spec, spec))
        // One that was refused changed nothing about what an earlier one left.
        .find(|job| !matches!(&job.record.end, Some((Outcome::Refused(_), _))))?;
    match &job.record.end {
        Some((Outcome::Aborted(_) | Outcome::Failed(_) | Outcome::Partial(Some(_)), _)) => {
            Some(job)
        }
        // Done; or another process is at it right now.
        _ => None,
    }
}

fn is_same_work(a: &JobSpec, b: &JobSpec) -> bool {
    // How fast and how to log in says nothing about what is there already.
    let rest = |settings: &Settings| Settings {
        limit: None,
        ssh: Default::default(),
        ..settings.clone()
    };
    !a.dry_run
        && a.sources == b.sources
        && a.destination == b.destination
        && rest(&a.settings) == rest(&b.settings)
}

/// Returns seconds since a moment; 0 when the clock was set back.
pub fn seconds_since(ms: i64) -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |now| now.as_millis());
    let then = u128::try_from(ms).unwrap_or_default();
    u64::try_from(now.saturating_sub(then) / 1000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::error::Error;
    use crate::model::job::{Consent, JobId};
    use crate::model::location::Location;
    use crate::model::outcome::Report;
    use crate::model::progress::RunState;
    use crate::model::units::Rate;
    use crate::store::history::{JobRecord, Owner};

    fn spec(id: u8, source: &str) -> JobSpec {
        JobSpec {
            id: JobId([id; 16]),
            title: String::new(),
            profile: None,
            sources: vec![Location::Local(source.into())],
            destination: Location::Local("/to".into()),
            settings: Settings::default(),
            dry_run: false,
            attended: false,
            consent: Consent::default(),
            resume: false,
        }
    }

    fn job(spec: JobSpec, outcome: Option<Outcome>) -> Job {
        let state = if outcome.is_some() {
            RunState::Finished
        } else {
            RunState::Running
        };
        let end = outcome.map(|outcome| (outcome, Report::default()));
        let owner = Owner::default();
        let record = JobRecord {
            spec: Arc::new(spec),
            state,
            plan: None,
            end,
            owner,
        };
        Job {
            record,
            created_ms: 0,
            started_ms: None,
            ended_ms: Some(5),
            attempts: 1,
        }
    }

    #[test]
    fn the_same_command_goes_on_with_what_was_cut_off() {
        for outcome in [
            Outcome::Aborted(Abort::LeftRunning),
            Outcome::Aborted(Abort::User),
            Outcome::Failed(Error::cancelled()),
            Outcome::Partial(Some(Error::cancelled())),
        ] {
            let refused = Outcome::Refused(Error::cancelled());
            let jobs = [
                job(spec(1, "/a"), Some(outcome)),
                job(spec(2, "/b"), None),
                job(spec(4, "/a"), Some(refused)),
            ];
            let mut again = spec(3, "/a");
            again.settings.limit = Some(Rate(5));
            let found = unfinished(&jobs, &again).unwrap();
            assert_eq!(found.record.spec.id, JobId([1; 16]));
        }
    }

    #[test]
    fn other_work_finished_work_and_running_work_is_left_alone() {
        let cut = || Some(Outcome::Aborted(Abort::User));
        let other = [job(spec(1, "/a/"), cut())];
        assert!(unfinished(&other, &spec(3, "/a")).is_none());
        let mut setting = spec(1, "/a");
        setting.settings.contents = true;
        assert!(unfinished(&[job(setting, cut())], &spec(3, "/a")).is_none());
        let done = [
            job(spec(1, "/a"), cut()),
            job(spec(2, "/a"), Some(Outcome::Completed)),
        ];
        assert!(unfinished(&done, &spec(3, "/a")).is_none());
        assert!(unfinished(&[job(spec(1, "/a"), None)], &spec(3, "/a")).is_none());
        let mut plan = spec(1, "/a");
        plan.dry_run = true;
        assert!(unfinished(&[job(plan, cut())], &spec(3, "/a")).is_none());
    }

    #[test]
    fn going_on_is_told_only_where_something_was_kept() {
        let ended = |outcome, files, kept| {
            let mut job = job(spec(1, "/a"), Some(outcome));
            if let Some((_, report)) = &mut job.record.end {
                (report.files, report.kept) = (files, kept);
            }
            left_something(&job)
        };
        let unreachable = || Outcome::Failed(Error::cancelled());
        assert!(!ended(unreachable(), 0, 0));
        assert!(!ended(Outcome::Aborted(Abort::User), 0, 0));
        assert!(ended(Outcome::Aborted(Abort::User), 0, 7));
        assert!(ended(unreachable(), 1, 0));
        assert!(ended(Outcome::Aborted(Abort::LeftRunning), 0, 0));
    }
}
