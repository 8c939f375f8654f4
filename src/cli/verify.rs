//! `transload verify`: a folder against a list of digests.

use std::time::Instant;

use crate::cli::args::VerifyArgs;
use crate::cli::exit;
use crate::cli::json::Line;
use crate::cli::out::Out;
use crate::cli::rows::row_text;
use crate::cli::signals::Stop;
use crate::model::control::Cancel;
use crate::model::digest::Algorithm;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Location;
use crate::model::outcome::{Abort, Outcome, Report};
use crate::model::relpath::RelPath;
use crate::model::untrusted::shown;
use crate::model::verdict::{Row, Verdict};
use crate::present::{text, units};
use crate::service::check_list::{self, Checked, Checks};
use crate::service::jobs;

/// Checks and returns the exit status.
///
/// # Errors
/// When list or folder cannot be read.
pub fn run(args: &VerifyArgs, out: &Out) -> Result<u8> {
    let root = jobs::place(&args.root)?;
    let Some(path) = jobs::local_path(&root) else {
        return Err(far_root(&root));
    };
    let algorithm = args
        .algorithm
        .as_deref()
        .map(str::parse::<Algorithm>)
        .transpose();
    let algorithm =
        algorithm.map_err(|why| Error::new(ErrorKind::Config, "read --algorithm", why))?;
    let cancel = Cancel::default();
    let mut teller = Teller {
        out,
        stop: Stop::listen()?,
        cancel: &cancel,
        bytes: 0,
        files: 0,
    };
    let started = Instant::now();
    let checked = check_list::check(&args.list, &path, algorithm, &cancel, &mut |told| {
        teller.tell(told)
    });
    out.clear();
    let (outcome, checks) = match checked {
        Ok(checks) => (ending(&checks), checks),
        Err(error) if error.kind == ErrorKind::Cancelled => {
            (Outcome::Aborted(Abort::User), Checks::default())
        }
        Err(error) => return Err(error),
    };
    let report = Report {
        files: checks.tally.verified,
        bytes: checks.bytes,
        seconds: started.elapsed().as_secs_f64(),
        tally: checks.tally,
        ..Report::default()
    };
    out.say(&in_words(&outcome, &checks, &report));
    out.emit(|| Line::summary(&outcome, &report));
    Ok(exit::exit_code(&outcome, &report, &[]))
}

fn far_root(root: &Location) -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "check files on another computer",
        "every file would have to come here to be read, so only folders of this computer are checked",
    )
    .at(root.to_bytes())
    .hint("log in there and run md5sum -c with the list in that folder")
}

fn ending(checks: &Checks) -> Outcome {
    let tally = &checks.tally;
    let bad = tally.differs + tally.failed + checks.bad_lines;
    if tally.verified + bad == 0 {
        let cause = "there is no line with a digest and a name in it";
        let error = Error::new(ErrorKind::Config, "read the list", cause);
        return Outcome::Failed(error.hint("give a list as md5sum writes it"));
    }
    match bad {
        0 => Outcome::Completed,
        _ => Outcome::Partial(None),
    }
}

fn in_words(outcome: &Outcome, checks: &Checks, report: &Report) -> String {
    if let Outcome::Aborted(_) = outcome {
        return "Stopped; not all files were checked".to_owned();
    }
    if let Outcome::Failed(error) = outcome {
        return text::error_block(error);
    }
    let tally = &checks.tally;
    let mut parts = vec![format!(
        "{} verified",
        units::counted(tally.verified, "file", "files")
    )];
    let mut add = |n: u64, one: &str, many: &str| {
        if n > 0 {
            parts.push(units::counted(n, one, many));
        }
    };
    add(tally.differs, "differs", "differ");
    add(tally.failed, "could not be checked", "could not be checked");
    add(
        checks.bad_lines,
        "line of the list could not be read",
        "lines of the list could not be read",
    );
    format!(
        "{}; {} read in {}",
        parts.join(", "),
        units::bytes(report.bytes),
        units::duration(report.seconds)
    )
}

/// Passes on what the check tells.
struct Teller<'a> {
    out: &'a Out,
    stop: Stop,
    cancel: &'a Cancel,
    bytes: u64,
    files: u64,
}

impl Teller<'_> {
    fn tell(&mut self, told: Checked<'_>) {
        match told {
            Checked::Reading(path, bytes) => self.reading(path, bytes),
            Checked::Row(row) => self.row(&row),
            Checked::BadLine(error) => self.out.error(&error),
        }
        if self.stop.is_set() || self.out.is_closed() {
            self.cancel.set();
        }
    }

    fn reading(&mut self, path: &RelPath, bytes: u64) {
        self.bytes += bytes;
        let files = units::counted(self.files, "file", "files");
        self.out
            .draw(0, format!("{files}  {}  {path}", units::bytes(self.bytes)));
    }

    fn row(&mut self, row: &Row) {
        self.files += 1;
        self.out.emit(|| Line::row(row));
        match &row.verdict {
            Verdict::Differs { here, there } => {
                let (word, name) = (text::verdict(&row.verdict).0, shown(&row.path));
                self.out.warn(&format!(
                    "{word:<14} {name}  (the list says {here}, the file has {there})"
                ));
            }
            Verdict::Verified { .. } if self.out.verbose() => self.out.say(&row_text(row)),
            Verdict::Verified { .. } => {}
            Verdict::Failed(error) => self.out.warn(&text::error_block(error)),
            _ => self.out.warn(&row_text(row)),
        }
    }
}
