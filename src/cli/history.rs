//! `transload history`: former runs and their files.

use crate::cli::args::HistoryCommand;
use crate::cli::exit;
use crate::cli::json::Line;
use crate::cli::out::Out;
use crate::cli::resume::seconds_since;
use crate::cli::rows::row_text;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobId;
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
        &format!("{} ({})", utc(began), units::ago(seconds_since(began))),
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

/// Returns a moment as date and time, for example `2026-11-30 22:50:11 UTC`.
fn utc(ms: i64) -> String {
    let seconds = ms.div_euclid(1000);
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Eras of 400 years from 1 March of year 0, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC",
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_dates() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (1_709_251_199, "2024-02-29 23:59:59 UTC"),
            (1_735_689_600, "2025-01-01 00:00:00 UTC"),
            (-1, "1969-12-31 23:59:59 UTC"),
        ] {
            assert_eq!(utc(seconds * 1000), date);
        }
    }
}
