//! Lines of JSON for other programs: one object a line, the last one `summary`.

use serde::Serialize;

use crate::engine::JobView;
use crate::model::entry::Reason;
use crate::model::error::Error;
use crate::model::outcome::{Outcome, Report};
use crate::model::plan::{PlanTotals, Step};
use crate::model::progress::{Phase, RunState};
use crate::model::untrusted::{is_unsafe_to_show, shown};
use crate::model::verdict::{Row, Verdict, When};

/// One line.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line {
    /// The sums of a plan.
    Plan(PlanTotals),
    /// One item of a plan.
    Step {
        #[serde(flatten)]
        path: Path,
        action: &'static str,
        reason: Reason,
        bytes: u64,
    },
    /// How far the job is; once a second.
    Progress {
        state: RunState,
        phase: Phase,
        bytes_done: u64,
        bytes_total: u64,
        items_done: u64,
        items_total: u64,
        wire_bytes: u64,
        /// The totals are final.
        listed: bool,
        goodput: f64,
        eta: Option<f64>,
        #[serde(flatten)]
        current: Path,
    },
    /// One file and its verdict.
    Row {
        #[serde(flatten)]
        path: Path,
        verdict: &'static str,
        algorithm: Option<&'static str>,
        digest: Option<String>,
        when: Option<When>,
        why: Option<String>,
    },
    /// Something worth knowing.
    Note { text: String },
    /// What went wrong.
    Error {
        kind: &'static str,
        doing: String,
        place: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        path_b64: Option<String>,
        cause: String,
        hint: Option<String>,
    },
    /// How it ended; the last line.
    Summary {
        outcome: &'static str,
        method: String,
        route: &'static str,
        why: String,
        files: u64,
        bytes: u64,
        wire_bytes: u64,
        seconds: f64,
        connect_seconds: f64,
        goodput: f64,
        verified: u64,
        differs: u64,
        failed: u64,
        skipped: u64,
        vanished: u64,
        deleted: u64,
        missing: Option<u64>,
    },
    /// A saved profile, or a profile file that cannot be read.
    Profile {
        id: String,
        name: String,
        sources: Vec<String>,
        destinations: Vec<String>,
        method: String,
        fault: Option<String>,
    },
    /// A run of the history.
    Run {
        id: String,
        title: String,
        started: f64,
        dry_run: bool,
        outcome: Option<&'static str>,
        method: String,
        files: u64,
        bytes: u64,
        seconds: f64,
    },
}

/// A path: as text, and as base64 when it is not UTF-8.
#[derive(Serialize)]
pub struct Path {
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_b64: Option<String>,
}

impl Path {
    /// Makes the pair from a path's bytes.
    pub fn new(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self {
                path: text.to_owned(),
                path_b64: None,
            },
            Err(_) => Self {
                path: shown(bytes),
                path_b64: Some(base64(bytes)),
            },
        }
    }
}

impl Line {
    /// Makes the line of a planned step; `None` for what stays as it is.
    pub fn step(step: &Step) -> Option<Self> {
        use crate::model::entry::Action;
        let action = match step.action {
            Action::Create => "create",
            Action::Update => "update",
            Action::Touch => "touch",
            Action::Delete => "delete",
            Action::Skip => "skip",
            Action::Keep => return None,
        };
        let path = Path::new(&step.path);
        Some(Self::Step {
            path,
            action,
            reason: step.reason,
            bytes: step.bytes,
        })
    }

    /// Makes the line that says how far a job is.
    pub fn progress(view: &JobView) -> Self {
        let p = &view.progress;
        Self::Progress {
            state: view.state,
            phase: p.phase,
            bytes_done: p.bytes_done,
            bytes_total: p.bytes_total,
            items_done: p.items_done,
            items_total: p.items_total,
            wire_bytes: p.wire_bytes,
            listed: p.listed,
            goodput: view.goodput,
            eta: view.eta,
            current: Path::new(&p.current),
        }
    }

    /// Makes the line of a file that is settled.
    pub fn row(row: &Row) -> Self {
        let (mut algorithm, mut digest, mut when, mut why) = (None, None, None, None);
        match &row.verdict {
            Verdict::Verified {
                digest: value,
                when: taken,
            } => {
                algorithm = Some(value.algorithm().name());
                digest = Some(value.to_string());
                when = Some(*taken);
            }
            Verdict::Differs { here, there } => {
                algorithm = Some(here.algorithm().name());
                digest = Some(here.to_string());
                why = Some(format!("the destination holds {there}"));
            }
            Verdict::Unverified(text) | Verdict::Skipped(text) => {
                why = Some(shown(text.as_bytes()))
            }
            Verdict::Failed(error) => why = Some(error.to_string()),
            Verdict::SizeOnly | Verdict::SourceChanged | Verdict::Vanished => {}
        }
        let path = Path::new(&row.path);
        Self::Row {
            path,
            verdict: row.verdict.name(),
            algorithm,
            digest,
            when,
            why,
        }
    }

    /// Makes the line of an error.
    pub fn error(error: &Error) -> Self {
        let place = Path::new(error.place.as_bytes());
        Self::Error {
            kind: error.kind.name(),
            doing: error.doing.clone(),
            place: place.path,
            path_b64: place.path_b64,
            cause: error.cause.to_string(),
            hint: error.hint.clone(),
        }
    }

    /// Makes the line that ends a run.
    pub fn summary(outcome: &Outcome, report: &Report) -> Self {
        let tally = &report.tally;
        Self::Summary {
            outcome: outcome.name(),
            method: report.method.clone(),
            route: report.route.name(),
            why: report.why.clone(),
            files: report.files,
            bytes: report.bytes,
            wire_bytes: report.wire_bytes,
            seconds: report.seconds,
            connect_seconds: report.connect_seconds,
            goodput: report.goodput(),
            verified: tally.verified,
            differs: tally.differs,
            failed: tally.failed,
            skipped: tally.skipped,
            vanished: tally.vanished + tally.changed,
            deleted: tally.deleted,
            missing: report.missing,
        }
    }

    /// Returns the object on one line, in ASCII where a character could disturb a terminal.
    pub fn to_text(&self) -> String {
        let text = serde_json::to_string(self).expect("strings and numbers always serialise");
        let mut safe = String::with_capacity(text.len());
        for c in text.chars() {
            if is_unsafe_to_show(c) {
                // Such a character can only be inside a JSON string, where this means the same.
                for unit in c.encode_utf16(&mut [0; 2]) {
                    safe.push_str(&format!("\\u{unit:04x}"));
                }
            } else {
                safe.push(c);
            }
        }
        safe
    }
}

/// Encodes bytes as base64 with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let group = chunk
            .iter()
            .fold(0u32, |group, byte| group << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for i in 0..4 {
            if i <= chunk.len() {
                text.push(char::from(DIGITS[(group >> (18 - 6 * i)) as usize & 63]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::digest::{Algorithm, Digest};
    use crate::model::entry::{Action, EntryKind};
    use crate::model::error::ErrorKind;

    fn parsed(line: &Line) -> serde_json::Value {
        serde_json::from_str(&line.to_text()).unwrap()
    }

    #[test]
    fn base64_is_as_everybody_writes_it() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (b"\xff\xfe", "//4="),
        ] {
            assert_eq!(base64(bytes), text);
        }
    }

    #[test]
    fn a_name_in_json_never_disturbs_a_terminal_and_reads_back() {
        let name = "a\nb\x1b[31m\u{9b}x\u{202e}\u{e0001}é";
        let row = Row {
            path: name.as_bytes().to_vec(),
            action: Action::Create,
            bytes: 1,
            verdict: Verdict::SizeOnly,
        };
        let text = Line::row(&row).to_text();
        assert!(
            !text.chars().any(|c| c.is_control() || c == '\u{202e}'),
            "{text}"
        );
        assert_eq!(parsed(&Line::row(&row))["path"], name);
    }

    #[test]
    fn a_path_that_is_not_utf8_comes_also_as_base64() {
        let step = Step {
            path: b"a\xff".to_vec(),
            kind: EntryKind::File,
            action: Action::Create,
            reason: Reason::Missing,
            bytes: 5,
        };
        let line = Line::step(&step).unwrap().to_text();
        assert_eq!(
            line,
            r#"{"type":"step","path":"a\\xff","path_b64":"Yf8=","action":"create","reason":"missing","bytes":5}"#
        );
        let error = Error::new(ErrorKind::Denied, "read", "no").at(&b"\xff"[..]);
        assert_eq!(
            Line::error(&error).to_text(),
            r#"{"type":"error","kind":"denied","doing":"read","place":"\\xff","path_b64":"/w==","cause":"no","hint":null}"#
        );
    }

    #[test]
    fn a_row_has_the_fields_of_the_contract() {
        let digest = Digest::new(Algorithm::Md5, &[0xab; 16]).unwrap();
        let row = Row {
            path: b"x".to_vec(),
            action: Action::Create,
            bytes: 1,
            verdict: Verdict::Verified {
                digest,
                when: When::InFlight,
            },
        };
        assert_eq!(
            Line::row(&row).to_text(),
            format!(
                r#"{{"type":"row","path":"x","verdict":"verified","algorithm":"md5","digest":"{}","when":"in_flight","why":null}}"#,
                "ab".repeat(16)
            )
        );
    }

    #[test]
    fn the_summary_has_the_fields_of_the_contract_in_order() {
        let line = Line::summary(&Outcome::Completed, &Report::default()).to_text();
        let mut at = 0;
        for field in [
            "type",
            "outcome",
            "method",
            "route",
            "why",
            "files",
            "bytes",
            "wire_bytes",
            "seconds",
            "connect_seconds",
            "goodput",
            "verified",
            "differs",
            "failed",
            "skipped",
            "vanished",
            "deleted",
            "missing",
        ] {
            let found = line[at..].find(&format!("\"{field}\":"));
            at += found.unwrap_or_else(|| panic!("{field} is missing or out of order: {line}"));
        }
    }
}
