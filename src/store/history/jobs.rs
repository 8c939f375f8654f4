//! Jobs in the history: saved at each change of state, found again after a crash.

use std::sync::Arc;

use rusqlite::{OptionalExtension as _, Row as SqlRow, Transaction, named_params, params};

use super::{History, codes, now_ms};
use crate::model::error::Result;
use crate::model::job::{JobId, JobSpec};
use crate::model::outcome::{Abort, Outcome, Report};
use crate::model::plan::PlanTotals;
use crate::model::progress::RunState;
use crate::store::spec;

/// The process that runs a job. The start time tells it from a later process with its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Its process number.
    pub pid: u32,
    /// When it started, in a unit of the caller's.
    pub started: u64,
}

/// What is saved of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRecord {
    /// What it is to do.
    pub spec: Arc<JobSpec>,
    /// Where it is in its life.
    pub state: RunState,
    /// The counts of its plan, once known.
    pub plan: Option<PlanTotals>,
    /// How it ended; set exactly when the state is `Finished`.
    pub end: Option<(Outcome, Report)>,
    /// The process that runs it.
    pub owner: Owner,
}

/// A job as the history has it. Times are milliseconds since 1970, by the clock of their moment:
/// for people only, the order of jobs does not depend on them.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What was saved.
    pub record: JobRecord,
    /// When it was first saved.
    pub created_ms: i64,
    /// When its last attempt began.
    pub started_ms: Option<i64>,
    /// When it ended.
    pub ended_ms: Option<i64>,
    /// How often it was begun.
    pub attempts: u32,
}

const COLUMNS: &str = "id, spec, sum, state, plan, end, owner_pid, owner_started, created_ms, \
                       started_ms, ended_ms, attempts, num";

impl History {
    /// Keeps a job as it is now; durable when this returns.
    ///
    /// # Errors
    /// When it could not be made durable: then nobody may be told that the job is kept.
    pub fn save_job(&mut self, record: &JobRecord) -> Result<()> {
        let JobRecord {
            spec: job,
            state,
            plan,
            end,
            owner,
        } = record;
        let text = spec::to_json(job);
        let sum = checksum(job.id, &text);
        let plan = plan.as_ref().map(spec::encode);
        let outcome = end.as_ref().map(|(outcome, _)| outcome.name());
        let end = end
            .as_ref()
            .map(|(outcome, report)| spec::end_to_json(outcome, report));
        let now = now_ms();
        let is_active = !matches!(state, RunState::Queued | RunState::Finished);
        self.write("keep the job", |transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO jobs (id, spec, sum, state, plan, outcome, end, attempts,
                        created_ms, started_ms, ended_ms, owner_pid, owner_started)
                     VALUES (:id, :spec, :sum, :state, :plan, :outcome, :end, :active, :now,
                        CASE WHEN :active THEN :now END,
                        CASE WHEN :end IS NOT NULL THEN :now END, :pid, :started)
                     ON CONFLICT (id) DO UPDATE SET
                        spec = :spec, sum = :sum, state = :state, plan = :plan,
                        outcome = :outcome, end = :end, owner_pid = :pid,
                        owner_started = :started,
                        attempts = attempts
                            + (:active AND jobs.state IN ('queued', 'finished')),
                        started_ms = CASE
                            WHEN :active AND jobs.state IN ('queued', 'finished') THEN :now
                            ELSE started_ms END,
                        ended_ms = CASE
                            WHEN :end IS NULL THEN NULL
                            WHEN jobs.end IS NULL THEN :now
                            ELSE ended_ms END",
                )?
                .execute(named_params! {
                    ":id": job.id.0,
                    ":spec": text,
                    ":sum": sum,
                    ":state": codes::state_name(*state),
                    ":plan": plan,
                    ":outcome": outcome,
                    ":end": end,
                    ":active": is_active,
                    ":now": now,
                    ":pid": owner.pid,
                    ":started": owner.started.cast_signed(),
                })?;
            Ok(())
        })
    }

    /// Returns the newest jobs, oldest first, at most `limit`. One that does not match its
    /// checksum or cannot be understood is left out and told in [`History::notes`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn jobs(&mut self, limit: usize) -> Result<Vec<Job>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut found = self.look("read the history", |transaction| {
            let sql = format!("SELECT {COLUMNS} FROM jobs ORDER BY num DESC LIMIT ?1");
            let mut statement = transaction.prepare_cached(&sql)?;
            let rows = statement.query_map([limit], raw)?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        })?;
        found.reverse();
        let mut jobs = Vec::with_capacity(found.len());
        for raw in found {
            let number = raw.number;
            match raw.into_job() {
                Ok(job) => jobs.push(job),
                Err(why) => self.notes.push(format!(
                    "Job number {number} of the history is damaged and was left out: {why}."
                )),
            }
        }
        Ok(jobs)
    }

    /// Returns one job; `None` when there is none of that id or it is damaged, see
    /// [`History::jobs`].
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn job(&mut self, id: JobId) -> Result<Option<Job>> {
        let raw = self.look("read the history", |transaction| {
            let sql = format!("SELECT {COLUMNS} FROM jobs WHERE id = ?1");
            transaction
                .prepare_cached(&sql)?
                .query_row([id.0], raw)
                .optional()
        })?;
        Ok(raw.and_then(|raw| {
            raw.into_job()
                .map_err(|why| self.notes.push(format!("Job {id} is damaged: {why}.")))
                .ok()
        }))
    }

    /// Marks every job that is not over and whose owner is gone as `Aborted(LeftRunning)`, with
    /// figures from its rows; returns them, oldest first.
    ///
    /// # Errors
    /// When the file cannot be read or written.
    pub fn mark_left_running(&mut self, is_alive: &dyn Fn(Owner) -> bool) -> Result<Vec<JobId>> {
        let now = now_ms();
        self.write("mark jobs that were cut off", |transaction| {
            let open = transaction
                .prepare_cached(
                    "SELECT num, id, owner_pid, owner_started FROM jobs
                     WHERE state <> 'finished' ORDER BY num",
                )?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, owner(row, 2)?)))?
                .collect::<rusqlite::Result<Vec<(i64, [u8; 16], Owner)>>>()?;
            let mut marked = Vec::new();
            for (num, id, owner) in open {
                if is_alive(owner) {
                    continue;
                }
                let report = report_of_rows(transaction, num)?;
                let outcome = Outcome::Aborted(Abort::LeftRunning);
                transaction
                    .prepare_cached(
                        "UPDATE jobs SET state = 'finished', outcome = ?2, end = ?3, ended_ms = ?4
                         WHERE num = ?1",
                    )?
                    .execute(params![
                        num,
                        outcome.name(),
                        spec::end_to_json(&outcome, &report),
                        now
                    ])?;
                marked.push(JobId(id));
            }
            Ok(marked)
        })
    }

    /// Forgets a job and all that belongs to it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn forget(&mut self, id: JobId) -> Result<()> {
        self.write("forget a job", |transaction| {
            if let Some(num) = number(transaction, id)? {
                forget(transaction, num)?;
            }
            Ok(())
        })
    }

    /// Forgets jobs that ended more than this many days ago, and gives their room back to the
    /// disk; returns how many.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn prune(&mut self, older_than_days: u32) -> Result<usize> {
        let limit = now_ms() - i64::from(older_than_days) * 86_400_000;
        let old = self.write("forget old jobs", |transaction| {
            let old: Vec<i64> = transaction
                .prepare_cached("SELECT num FROM jobs WHERE state = 'finished' AND ended_ms < ?1")?
                .query_map([limit], |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            for num in &old {
                forget(transaction, *num)?;
            }
            Ok(old.len())
        })?;
        if old > 0 {
            // Best effort: the room is used again in any case.
            let _ = self.give_room_back();
        }
        Ok(old)
    }
}

impl History {
    fn give_room_back(&self) -> rusqlite::Result<()> {
        // Each step of this statement frees one page.
        let mut statement = self.db.prepare("PRAGMA incremental_vacuum")?;
        let mut steps = statement.query([])?;
        while steps.next()?.is_some() {}
        Ok(())
    }
}

/// Returns the number that the other tables know a job by.
pub(super) fn number(transaction: &Transaction<'_>, id: JobId) -> rusqlite::Result<Option<i64>> {
    transaction
        .prepare_cached("SELECT num FROM jobs WHERE id = ?1")?
        .query_row([id.0], |row| row.get(0))
        .optional()
}

fn forget(transaction: &Transaction<'_>, num: i64) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM rows WHERE job = ?1",
        "DELETE FROM steps WHERE job = ?1",
        "DELETE FROM log WHERE job = ?1",
        "DELETE FROM series WHERE job = ?1",
        "DELETE FROM jobs WHERE num = ?1",
    ] {
        transaction.prepare_cached(sql)?.execute([num])?;
    }
    Ok(())
}

/// Returns the figures of a job that was cut off: what its rows prove.
fn report_of_rows(transaction: &Transaction<'_>, num: i64) -> rusqlite::Result<Report> {
    let mut report = Report {
        why: "the program was killed while this job ran".to_owned(),
        ..Report::default()
    };
    let mut statement = transaction.prepare_cached(
        "SELECT verdict, count(*), sum(bytes) FROM rows WHERE job = ?1 GROUP BY 1",
    )?;
    let mut found = statement.query([num])?;
    while let Some(row) = found.next()? {
        let (count, bytes): (i64, i64) = (row.get(1)?, row.get(2)?);
        let count = count.cast_unsigned();
        let tally = &mut report.tally;
        let (sum, has_arrived) =
            match codes::value(&codes::VERDICTS, row.get(0)?).unwrap_or_default() {
                "verified" => (&mut tally.verified, true),
                "differs" => (&mut tally.differs, false),
                "size_only" | "unverified" => (&mut tally.unchecked, true),
                "source_changed" => (&mut tally.changed, false),
                "vanished" => (&mut tally.vanished, false),
                "skipped" => (&mut tally.skipped, false),
                _ => (&mut tally.failed, false),
            };
        *sum += count;
        if has_arrived {
            report.files += count;
            report.bytes += bytes.cast_unsigned();
        }
    }
    Ok(report)
}

/// A job as the table has it.
struct Raw {
    id: [u8; 16],
    spec: String,
    sum: i64,
    state: String,
    plan: Option<String>,
    end: Option<String>,
    owner: Owner,
    created_ms: i64,
    started_ms: Option<i64>,
    ended_ms: Option<i64>,
    attempts: u32,
    number: i64,
}

fn raw(row: &SqlRow<'_>) -> rusqlite::Result<Raw> {
    Ok(Raw {
        id: row.get(0)?,
        spec: row.get(1)?,
        sum: row.get(2)?,
        state: row.get(3)?,
        plan: row.get(4)?,
        end: row.get(5)?,
        owner: owner(row, 6)?,
        created_ms: row.get(8)?,
        started_ms: row.get(9)?,
        ended_ms: row.get(10)?,
        attempts: row.get(11)?,
        number: row.get(12)?,
    })
}

fn owner(row: &SqlRow<'_>, first: usize) -> rusqlite::Result<Owner> {
    let started: i64 = row.get(first + 1)?;
    Ok(Owner {
        pid: row.get(first)?,
        started: started.cast_unsigned(),
    })
}

impl Raw {
    fn into_job(self) -> std::result::Result<Job, String> {
        let id = JobId(self.id);
        if checksum(id, &self.spec) != self.sum {
            return Err("its checksum is wrong".to_owned());
        }
        let spec = spec::from_json(&self.spec).map_err(|e| e.to_string())?;
        if spec.id != id {
            return Err("its id is wrong".to_owned());
        }
        let state = codes::state(&self.state).ok_or("its state is unknown")?;
        let plan = self
            .plan
            .map(|text| spec::decode("a plan", &text))
            .transpose();
        let end = self.end.map(|text| spec::end_from_json(&text)).transpose();
        let record = JobRecord {
            spec: Arc::new(spec),
            state,
            plan: plan.map_err(|e| e.to_string())?,
            end: end.map_err(|e| e.to_string())?,
            owner: self.owner,
        };
        if record.end.is_some() != (state == RunState::Finished) {
            return Err("its state and its end do not agree".to_owned());
        }
        Ok(Job {
            record,
            created_ms: self.created_ms,
            started_ms: self.started_ms,
            ended_ms: self.ended_ms,
            attempts: self.attempts,
        })
    }
}

/// Returns a checksum (FNV-1a, 64 bits) against bits that the disk changed: a destination that
/// reads differently than it was written must not be used. It is no protection from people.
fn checksum(id: JobId, spec: &str) -> i64 {
    let bytes = id.0.iter().chain(spec.as_bytes());
    let sum = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    sum.cast_signed()
}
