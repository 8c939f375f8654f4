//! `transload history`: former runs and their files.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::cli::args::HistoryCommand;
use crate::cli::exit;
use crate::cli::json::Line;
use crate::cli::out::Out;
use crate::cli::resume::seconds_since;
use crate::cli::rows::row_text;
use crate::engine::recover;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobId;
use crate::model::progress::RunState;
use crate::model::untrusted::shown;
use crate::present::{text, units};
use crate::store::dirs::Dirs;
use crate::store::history::{History, Job};

/// Rows are read so many at a time.
const CHUNK: usize = 4096;
/// So many runs are searched for the first digits of an id.
const SEARCHED: usize = 100_000;
/// So many digits of an id are shown in lists.
const SHORT_ID: usize = 8;

/// Does what the command says and returns the exit status.
///
/// # Errors
/// When the history cannot be read or there is no such run.
pub fn run(command: &HistoryCommand, out: &Out) -> Result<u8> {
    let mut history = History::open(&Dirs::open()?.database())?;
    // Runs whose process was killed are over; a history that cannot be written is shown as it is.
    let _ = history.mark_left_running(&recover::is_alive);
    match command {
        HistoryCommand::List { limit, json: _ } => {
            for job in history.jobs(*limit)?.iter().rev() {
                list_one(job, out);
            }
        }
        HistoryCommand::Show { id, json: _ } => {
            let job = find(&mut history, id)?;
            let log = history.log(job.record.spec.id)?;
            show(&job, &log, out);
        }
        HistoryCommand::Rows {
            id,
            verdict,
            json: _,
        } => {
            let id = find(&mut history, id)?.record.spec.id;
            rows(&mut history, id, verdict.as_deref(), out)?;
        }
    }
    history.notes().iter().for_each(|note| out.say(note));
    Ok(exit::COMPLETED)
}

/// Finds a run by its id or the first digits of it.
fn find(history: &mut History, wanted: &str) -> Result<Job> {
    let doing = "find the run";
    let wanted = wanted.to_ascii_lowercase();
    if let Some(id) = JobId::parse(&wanted)
        && let Some(job) = history.job(id)?
    {
        return Ok(job);
    }
    let mut found: Vec<Job> = history
        .jobs(SEARCHED)?
        .into_iter()
        .filter(|job| job.record.spec.id.to_string().starts_with(&wanted))
        .collect();
    match (found.len(), found.pop()) {
        (1, Some(job)) => Ok(job),
        (0, _) => Err(
            Error::new(ErrorKind::NotFound, doing, "there is none of that id")
                .at(wanted)
                .hint("see 'transload history list'"),
        ),
        (several, _) => {
            let why = format!("{several} runs begin with that");
            Err(Error::new(ErrorKind::Config, doing, why)
                .at(wanted)
                .hint("write more digits of the id"))
        }
    }
}

fn began_ms(job: &Job) -> i64 {
    job.started_ms.unwrap_or(job.created_ms)
}

fn ending(job: &Job) -> String {
    match &job.record.end {
        Some((outcome, report)) => text::outcome_short(outcome, report),
        // How far the run of another process is, only that one knows.
        None if job.record.state == RunState::Running => "running".to_owned(),
        None => text::state(&job.record.spec, job.record.state, Default::default()),
    }
}

fn list_one(job: &Job, out: &Out) {
    let id = job.record.spec.id.to_string();
    let plan = if job.record.spec.dry_run {
        " (dry run)"
    } else {
        ""
    };
    out.print(&format!(
        "{}  {:>10}  {:<12}  {}{plan}",
        &id[..SHORT_ID],
        units::ago(seconds_since(began_ms(job))),
        ending(job),
        shown(job.record.spec.title.as_bytes()),
    ));
    out.emit(|| run_line(job));
}

fn run_line(job: &Job) -> Line {
    let report = job
        .record
        .end
        .as_ref()
        .map(|(_, report)| report.clone())
        .unwrap_or_default();
    Line::Run {
        id: job.record.spec.id.to_string(),
        title: job.record.spec.title.clone(),
        started: began_ms(job) as f64 / 1000.0,
        dry_run: job.record.spec.dry_run,
        outcome: job.record.end.as_ref().map(|(outcome, _)| outcome.name()),
        method: report.method,
        files: report.files,
        bytes: report.bytes,
        seconds: report.seconds,
    }
}

fn show(job: &Job, log: &[(f64, String)], out: &Out) {
    let spec = &job.record.spec;
    out.emit(|| run_line(job));
    out.print(&shown(spec.title.as_bytes()));
    let field = |name: &str, value: &str| out.print(&format!("  {name:<9} {value}"));
    field("id", &spec.id.to_string());
    let began = began_ms(job);
    field(
        "began",
        &format!(
            "{} ({})",
            clock(began, TimeZone::system()),
            units::ago(seconds_since(began))
        ),
    );
    for source in &spec.sources {
        field("from", &source.to_string());
    }
    field("to", &spec.destination.to_string());
    if let Some(plan) = &job.record.plan {
        field("plan", &text::plan(plan));
    }
    match &job.record.end {
        None => field("now", &ending(job)),
        Some((outcome, report)) => {
            match (report.method.as_str(), report.why.as_str()) {
                ("", _) => {}
                (method, "") => field("method", method),
                (method, why) => field("method", &format!("{method} ({why})")),
            }
            field("ended", &text::outcome(outcome, report));
            if report.bytes > 0 {
                field("speed", &units::rate(report.goodput()));
            }
            out.emit(|| Line::summary(outcome, report));
        }
    }
    for (at, line) in log {
        out.print(&format!("  {:>9} {line}", units::duration(*at)));
    }
}

fn rows(history: &mut History, id: JobId, verdict: Option<&str>, out: &Out) -> Result<()> {
    let mut have = 0;
    loop {
        let (rows, total) = history.rows(id, verdict, "", have..have + CHUNK)?;
        for row in &rows {
            out.print(&row_text(row));
            out.emit(|| Line::row(row));
        }
        have += rows.len();
        if rows.is_empty() || have >= total || out.is_closed() {
            return Ok(());
        }
    }
}

/// Returns a moment as the clocks of that place show it, for example `2026-11-30 23:50:11 CET`.
fn clock(ms: i64, zone: TimeZone) -> String {
    let Ok(moment) = Timestamp::from_millisecond(ms) else {
        // A database can hold any number; no clock ever showed this one.
        return "at an unknown time".to_owned();
    };
    let shown = moment
        .to_zoned_datetime(zone)
        .strftime("%Y-%m-%d %H:%M:%S %Z");
    shown.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_shown_as_the_clock_on_the_wall_does() {
        for (seconds, zone, date) in [
            (0, "UTC0", "1970-01-01 00:00:00 UTC"),
            (951_782_400, "UTC0", "2000-02-29 00:00:00 UTC"),
            (
                1_709_251_199,
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2024-03-01 00:59:59 CET",
            ),
            (
                1_719_792_000,
                "CET-1CEST,M3.5.0,M10.5.0/3",
                "2024-07-01 02:00:00 CEST",
            ),
            (-1, "EST5", "1969-12-31 18:59:59 EST"),
        ] {
            let zone = TimeZone::posix(zone).unwrap();
            assert_eq!(clock(seconds * 1000, zone), date);
        }
        assert_eq!(clock(i64::MAX, TimeZone::UTC), "at an unknown time");
    }
}
