//! Sentences about jobs, verdicts, outcomes and places.
//!
//! Pure functions from nouns to plain English, so that window, command line and logs say the same.
//! Whatever came from elsewhere is shown escaped.

use crate::model::digest::Algorithm;
use crate::model::entry::{Action, Reason};
use crate::model::error::Error;
use crate::model::job::JobSpec;
use crate::model::location::Location;
use crate::model::outcome::{Abort, Outcome, Report, Route};
use crate::model::plan::PlanTotals;
use crate::model::profile::Profile;
use crate::model::progress::{Phase, Progress, RunState};
use crate::model::rules::Conflict;
use crate::model::untrusted::shown;
use crate::model::verdict::Verdict;
use crate::present::units::{bytes, count, counted, duration, percent};

/// Says where the first file will land, for example
/// `first file lands in nas:/volume1/photo/Pictures/…`; `None` while a side is empty.
pub fn landing(profile: &Profile) -> Option<String> {
    let first = profile.sources.first()?;
    let destination = profile.destinations.first()?;
    Some(landing_of(first, destination, profile.settings.contents))
}

/// Says where the first file of a source will land; `contents` leaves out the source's own name.
pub fn landing_of(source: &Location, destination: &Location, contents: bool) -> String {
    let mut place = destination.to_bytes();
    if matches!(destination, Location::Tcp { .. }) {
        return format!("first file goes to {}", shown(&place));
    }
    if !place.ends_with(b"/") && !place.ends_with(b":") {
        place.push(b'/');
    }
    if !contents {
        let name = own_name(source);
        if !name.is_empty() {
            place.extend_from_slice(name);
            if source.path().ends_with(b"/") {
                place.push(b'/');
            }
        }
    }
    let more = if place.ends_with(b"/") {
        "\u{2026}"
    } else {
        ""
    };
    format!("first file lands in {}{more}", shown(&place))
}

/// Returns the last name of a place; empty for a root, a home folder and what climbs (`..`).
fn own_name(place: &Location) -> &[u8] {
    let path = place.path();
    let end = path.iter().rposition(|b| *b != b'/').map_or(0, |i| i + 1);
    let start = path[..end]
        .iter()
        .rposition(|b| *b == b'/')
        .map_or(0, |i| i + 1);
    match &path[start..end] {
        b"." | b".." | b"~" => b"",
        name => name,
    }
}

/// Returns the title of a job that has no profile, for example `Photos → nas` or
/// `3 items → nas`.
pub fn title(sources: &[Location], destination: &Location) -> String {
    let from = match sources {
        [] => "Nothing".to_owned(),
        [one] => match own_name(one) {
            b"" => one.to_string(),
            name => shown(name),
        },
        many => counted(many.len() as u64, "item", "items"),
    };
    let to = match destination.host() {
        Some(host) => shown(host.name.as_bytes()),
        None => match own_name(destination) {
            b"" => destination.to_string(),
            name => shown(name),
        },
    };
    format!("{from} \u{2192} {to}")
}

/// Says what a job is busy with, for example `Connecting to nas`.
pub fn state(spec: &JobSpec, state: RunState, phase: Phase) -> String {
    let host = spec.host_key();
    let host = shown(host.as_bytes());
    match state {
        RunState::Queued => "Waiting for its turn".to_owned(),
        RunState::Paused => "Paused".to_owned(),
        RunState::Stopping => "Stopping".to_owned(),
        RunState::Finished => "Ended".to_owned(),
        RunState::Stalled => format!("No data for 10 s, waiting for {host}"),
        RunState::Reconnecting => format!("Connection lost, trying {host} again"),
        RunState::Running => match phase {
            Phase::Connecting if host == "local" => "Getting ready".to_owned(),
            Phase::Connecting => format!("Connecting to {host}"),
            Phase::Planning if spec.dry_run => {
                "Listing and comparing, nothing is written".to_owned()
            }
            Phase::Planning => "Listing and comparing".to_owned(),
            Phase::Transferring => "Transferring".to_owned(),
            Phase::Verifying => "Verifying".to_owned(),
        },
    }
}

/// Says how far a job is, for example `62 % · 1.2 GiB of 2.0 GiB · 12 of 40 items`, or
/// `1.2 GiB and 12 items so far` while the total is not known.
pub fn progress(p: &Progress) -> String {
    if p.listed {
        format!(
            "{} % \u{b7} {} of {} \u{b7} {} of {}",
            share(p),
            bytes(p.bytes_done),
            bytes(p.bytes_total),
            count(p.items_done),
            counted(p.items_total, "item", "items"),
        )
    } else {
        format!(
            "{} and {} so far",
            bytes(p.bytes_done),
            counted(p.items_done, "item", "items"),
        )
    }
}

/// Returns the share done in percent: by bytes, or by items where there are no bytes.
pub fn share(p: &Progress) -> u8 {
    if p.bytes_total > 0 {
        percent(p.bytes_done, p.bytes_total)
    } else {
        percent(p.items_done, p.items_total)
    }
}

/// Says how a job ended in one line, for example
/// `Done: 7105 files, 58.2 MiB in 0.9 s, all verified`.
pub fn outcome(outcome: &Outcome, report: &Report) -> String {
    let moved = format!(
        "{}, {} in {}",
        counted(report.files, "file", "files"),
        bytes(report.bytes),
        duration(report.seconds)
    );
    match outcome {
        Outcome::Completed => match checks(report) {
            Some(checks) => format!("Done: {moved}, {checks}"),
            None => format!("Done: {moved}"),
        },
        Outcome::Partial(None) => format!("Partly done: {moved}; {}", troubles(report, false)),
        Outcome::Partial(Some(error)) => {
            format!(
                "Partly done: {moved}; {}; {}{}",
                troubles(report, true),
                error.cause,
                kept(report)
            )
        }
        Outcome::Aborted(Abort::User) => format!("Stopped: {moved}{}", kept(report)),
        Outcome::Aborted(Abort::Shutdown) => {
            format!(
                "Stopped when the program ended: {moved}{}; it can go on",
                kept(report)
            )
        }
        Outcome::Aborted(Abort::LeftRunning) => {
            "Cut off when the program was killed; it can go on".to_owned()
        }
        Outcome::Aborted(Abort::Unanswered) => {
            "Stopped: a question had nobody to answer it".to_owned()
        }
        Outcome::Refused(error) => format!("Refused, nothing was written: {}", error.cause),
        Outcome::Failed(error) => error.to_string(),
    }
}

/// Says what is there of files that were under way, for a run that goes on.
fn kept(report: &Report) -> String {
    match report.kept {
        0 => String::new(),
        kept => format!("; about {} of unfinished files is kept", bytes(kept)),
    }
}

/// Returns how a run ended in two or three words, for lists: `ok`, `12 differ`, `stopped`.
pub fn outcome_short(outcome: &Outcome, report: &Report) -> String {
    let t = &report.tally;
    match outcome {
        Outcome::Completed => "ok".to_owned(),
        Outcome::Partial(_) if t.differs > 0 => counted(t.differs, "differs", "differ"),
        Outcome::Partial(_) if t.failed > 0 => format!("{} failed", count(t.failed)),
        Outcome::Partial(_) => "partly done".to_owned(),
        Outcome::Aborted(Abort::LeftRunning) => "cut off".to_owned(),
        Outcome::Aborted(_) => "stopped".to_owned(),
        Outcome::Refused(_) => "refused".to_owned(),
        Outcome::Failed(_) => "failed".to_owned(),
    }
}

fn checks(report: &Report) -> Option<String> {
    let t = &report.tally;
    let skipped = (t.skipped > 0).then(|| format!("{} left alone", count(t.skipped)));
    let deleted = (t.deleted > 0).then(|| format!("{} deleted", count(t.deleted)));
    let checked = if t.verified > 0 && t.unchecked == 0 {
        Some("all verified".to_owned())
    } else if t.verified > 0 {
        Some(format!(
            "{} verified, {} not compared by digest",
            count(t.verified),
            count(t.unchecked)
        ))
    } else if t.unchecked > 0 {
        Some("contents not compared".to_owned())
    } else {
        None
    };
    join([checked, skipped, deleted])
}

/// Names what went wrong with single items, and with those that a run which ended early never got
/// to.
fn troubles(report: &Report, cut_short: bool) -> String {
    let t = &report.tally;
    let say = |n: u64, what: &str| (n > 0).then(|| format!("{} {what}", count(n)));
    let missing = match report.missing {
        Some(missing) => say(missing, "did not arrive"),
        None => cut_short.then(|| "the rest did not arrive".to_owned()),
    };
    join([
        say(t.differs, if t.differs == 1 { "differs" } else { "differ" }),
        say(t.failed, "failed"),
        say(t.changed, "changed while being read"),
        say(t.vanished, "vanished"),
        missing,
        say(t.verified, "verified"),
    ])
    .unwrap_or_else(|| "some items did not arrive".to_owned())
}

fn join<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Says which way the data goes, for people.
pub fn route(route: Route) -> &'static str {
    match route {
        Route::Direct => "straight to the other side's port",
        Route::Reversed => "from the other side to a port here",
        Route::Ssh => "through ssh",
        Route::Local => "on this computer",
    }
}

/// Returns a verdict's word for people and, where there is one, its explanation.
pub fn verdict(verdict: &Verdict) -> (&'static str, Option<String>) {
    let word = verdict_word(verdict.name());
    let why = match verdict {
        Verdict::Verified { .. } => None,
        Verdict::Differs { here, there } => {
            Some(format!("{here} was sent, {there} is at the destination"))
        }
        Verdict::SizeOnly => Some("lengths agree; contents were not compared".to_owned()),
        Verdict::Unverified(why) | Verdict::Skipped(why) => {
            (!why.is_empty()).then(|| shown(why.as_bytes()))
        }
        Verdict::SourceChanged => {
            Some("it was edited while it was read; the destination is untouched".to_owned())
        }
        Verdict::Vanished => Some("it went away before it was read".to_owned()),
        Verdict::Failed(error) => Some(error.to_string()),
    };
    (word, why)
}

/// Returns the word for people of a verdict's name as [`Verdict::name`] gives it.
pub fn verdict_word(name: &str) -> &'static str {
    match name {
        "verified" => "Verified",
        "differs" => "Differs",
        "size_only" => "Size only",
        "unverified" => "Not compared",
        "source_changed" => "Source changed",
        "vanished" => "Vanished",
        "skipped" => "Left alone",
        "failed" => "Failed",
        _ => "Unknown",
    }
}

/// Every verdict name, in the order in which filters offer them: worst first.
pub const VERDICTS: [&str; 8] = [
    "differs",
    "failed",
    "source_changed",
    "vanished",
    "verified",
    "size_only",
    "unverified",
    "skipped",
];

/// Returns the word for what is done with an item.
pub fn action(action: Action) -> &'static str {
    match action {
        Action::Create => "Create",
        Action::Update => "Update",
        Action::Touch => "Metadata only",
        Action::Delete => "Delete",
        Action::Keep => "Keep",
        Action::Skip => "Leave out",
    }
}

/// Says why that action was chosen.
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Missing => "not at the destination yet",
        Reason::Size => "sizes differ",
        Reason::Time => "times differ",
        Reason::Digest => "digests differ",
        Reason::Content => "contents are replaced",
        Reason::Mode => "permissions differ",
        Reason::Extra => "only at the destination",
        Reason::Same => "both sides are the same",
        Reason::Excluded => "a rule leaves it out",
        Reason::Conflict => "the conflict rule leaves it alone",
        Reason::Special => "not a file, folder or link",
    }
}

/// Sums up a plan, for example `12 to create, 3 to update, 1.2 GiB to send`.
pub fn plan(totals: &PlanTotals) -> String {
    let say = |n: u64, what: &str| (n > 0).then(|| format!("{} {what}", count(n)));
    let parts = join([
        say(totals.create, "to create"),
        say(totals.update, "to update"),
        say(totals.touch, "with new metadata"),
        say(totals.delete, "to delete"),
        say(totals.skip, "left out"),
        say(totals.keep, "the same already"),
    ]);
    match parts {
        None => "Nothing there to do".to_owned(),
        Some(parts) => format!("{parts}; {} to send", bytes(totals.bytes)),
    }
}

/// Returns a conflict rule's name for people and what it does.
pub fn conflict(rule: Conflict) -> (&'static str, &'static str) {
    match rule {
        Conflict::Differs => ("Update", "replace a file when size or time differs"),
        Conflict::Overwrite => ("Overwrite", "replace every file that is there"),
        Conflict::Skip => ("Skip", "leave what is there alone"),
        Conflict::Newer => ("Newer wins", "replace a file when the source is newer"),
        Conflict::Larger => ("Larger wins", "replace a file when the source is larger"),
        Conflict::Rename => ("Keep both", "give the new file a number"),
        Conflict::Resume => ("Finish", "complete what is there, send only the rest"),
        Conflict::Fail => ("Fail", "treat a file that is there as an error"),
        Conflict::Ask => ("Ask", "ask once before the first file is written"),
    }
}

/// Returns a verification's name for people and what it promises.
pub fn algorithm(algorithm: Algorithm) -> (&'static str, &'static str) {
    match algorithm {
        Algorithm::None => ("None", "nothing is compared"),
        Algorithm::Size => ("Size", "lengths are compared, contents are not"),
        Algorithm::Md5 => ("MD5", "finds accidental damage"),
        Algorithm::Sha256 => ("SHA-256", "finds any change"),
        Algorithm::Blake3 => ("BLAKE3", "finds any change, and fast"),
        Algorithm::Xxh3 => ("XXH3", "finds accidental damage, fastest"),
    }
}

/// Returns an error as a block of lines for a terminal or a dialog: the sentence, then the hint.
pub fn error_block(error: &Error) -> String {
    match &error.hint {
        None => error.to_string(),
        Some(hint) => format!("{error}\n{}", sentence(hint)),
    }
}

/// Returns a hint or reason as a sentence: with a capital first letter and a full stop.
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut chars = text.chars();
    let Some(first) = chars.next() else {
        return String::new();
    };
    // A name, an address or an option keeps its case.
    let word = text.split(' ').next().unwrap_or_default();
    let is_word = word
        .trim_end_matches([',', '.', ':', ';'])
        .chars()
        .all(char::is_alphabetic);
    let mut sentence: String = if is_word {
        first.to_uppercase().chain(chars).collect()
    } else {
        text.to_owned()
    };
    if !sentence.ends_with(['.', '!', '?', '\u{2026}']) {
        sentence.push('.');
    }
    sentence
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
