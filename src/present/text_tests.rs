//! Each sentence as people read it.

use super::*;
use crate::model::digest::Digest;
use crate::model::error::ErrorKind;
use crate::model::job::{Consent, JobId};
use crate::model::location::Host;
use crate::model::outcome::Tally;
use crate::model::profile::Settings;

fn local(path: &str) -> Location {
    Location::Local(path.into())
}

fn ssh(host: &str, path: &str) -> Location {
    Location::Ssh {
        host: Host {
            name: host.into(),
            ..Host::default()
        },
        path: path.into(),
    }
}

fn spec(destination: Location) -> JobSpec {
    JobSpec {
        id: JobId([1; 16]),
        title: "Photos".into(),
        profile: None,
        sources: vec![local("/home/me/Pictures")],
        destination,
        settings: Settings::default(),
        dry_run: false,
        attended: true,
        consent: Consent::default(),
        resume: false,
    }
}

#[test]
fn the_first_file_is_said_to_land_where_it_will() {
    let nas = ssh("nas", "/volume1/photo");
    for (source, destination, contents, text) in [
        (
            "/home/me/Pictures",
            &nas,
            false,
            "first file lands in nas:/volume1/photo/Pictures",
        ),
        (
            "/home/me/Pictures/",
            &nas,
            false,
            "first file lands in nas:/volume1/photo/Pictures/\u{2026}",
        ),
        (
            "/home/me/Pictures",
            &nas,
            true,
            "first file lands in nas:/volume1/photo/\u{2026}",
        ),
        (
            "/",
            &nas,
            false,
            "first file lands in nas:/volume1/photo/\u{2026}",
        ),
        (
            "~/a\nb",
            &local("/mnt/usb/"),
            false,
            "first file lands in /mnt/usb/a\\nb",
        ),
    ] {
        assert_eq!(landing_of(&local(source), destination, contents), text);
    }
    let mut profile = Profile::default();
    assert_eq!(landing(&profile), None);
    profile.sources.push(local("/a"));
    assert_eq!(landing(&profile), None);
    profile.destinations.push(nas);
    assert!(landing(&profile).is_some());
}

#[test]
fn a_job_without_a_profile_is_called_after_its_two_ends() {
    let nas = ssh("nas", "/volume1");
    assert_eq!(
        title(&[local("/home/me/Photos/")], &nas),
        "Photos \u{2192} nas"
    );
    assert_eq!(
        title(&[local("/a"), local("/b"), local("/c")], &local("/mnt/usb")),
        "3 items \u{2192} usb"
    );
}

#[test]
fn a_running_job_says_what_it_is_busy_with() {
    let far = spec(ssh("nas", "/x"));
    let near = spec(local("/x"));
    for (spec, run, phase, text) in [
        (
            &far,
            RunState::Queued,
            Phase::Connecting,
            "Waiting for its turn",
        ),
        (
            &far,
            RunState::Running,
            Phase::Connecting,
            "Connecting to nas",
        ),
        (&near, RunState::Running, Phase::Connecting, "Getting ready"),
        (
            &far,
            RunState::Running,
            Phase::Planning,
            "Listing and comparing",
        ),
        (&far, RunState::Running, Phase::Transferring, "Transferring"),
        (&far, RunState::Running, Phase::Verifying, "Verifying"),
        (
            &far,
            RunState::Stalled,
            Phase::Transferring,
            "No data for 10 s, waiting for nas",
        ),
        (
            &far,
            RunState::Reconnecting,
            Phase::Transferring,
            "Connection lost, trying nas again",
        ),
        (&far, RunState::Paused, Phase::Transferring, "Paused"),
        (&far, RunState::Stopping, Phase::Transferring, "Stopping"),
    ] {
        assert_eq!(state(spec, run, phase), text);
    }
}

#[test]
fn progress_claims_no_total_that_is_not_known() {
    let mut p = Progress {
        bytes_done: 1 << 30,
        bytes_total: 2 << 30,
        items_done: 12,
        items_total: 40,
        ..Progress::default()
    };
    assert_eq!(progress(&p), "1.00 GiB and 12 items so far");
    p.listed = true;
    assert_eq!(
        progress(&p),
        "50 % \u{b7} 1.00 GiB of 2.00 GiB \u{b7} 12 of 40 items"
    );
    p.bytes_total = 0;
    assert_eq!(share(&p), 30);
}

#[test]
fn every_ending_has_its_own_sentence() {
    let mut report = Report {
        files: 7105,
        bytes: 61_027_123,
        seconds: 0.9,
        tally: Tally {
            verified: 7105,
            ..Tally::default()
        },
        ..Report::default()
    };
    assert_eq!(
        outcome(&Outcome::Completed, &report),
        "Done: 7105 files, 58.2 MiB in 0.9 s, all verified"
    );
    report.tally.unchecked = 3;
    assert_eq!(
        outcome(&Outcome::Completed, &report),
        "Done: 7105 files, 58.2 MiB in 0.9 s, 7105 verified, 3 not compared by digest"
    );
    report.tally.differs = 2;
    report.tally.vanished = 1;
    assert_eq!(
        outcome(&Outcome::Partial(None), &report),
        "Partly done: 7105 files, 58.2 MiB in 0.9 s; 2 differ, 1 vanished, 7105 verified"
    );
    assert_eq!(outcome_short(&Outcome::Partial(None), &report), "2 differ");
    let full = Error::new(ErrorKind::NoSpace, "write the file", "no space left");
    let cut_short = Outcome::Partial(Some(full));
    report.tally.differs = 0;
    report.tally.vanished = 0;
    assert_eq!(
        outcome(&cut_short, &report),
        "Partly done: 7105 files, 58.2 MiB in 0.9 s; the rest did not arrive, 7105 verified; \
         no space left"
    );
    report.missing = Some(12);
    assert_eq!(
        outcome(&cut_short, &report),
        "Partly done: 7105 files, 58.2 MiB in 0.9 s; 12 did not arrive, 7105 verified; \
         no space left"
    );
    assert_eq!(
        outcome(&Outcome::Aborted(Abort::User), &report),
        "Stopped: 7105 files, 58.2 MiB in 0.9 s"
    );
    assert_eq!(
        outcome(&Outcome::Aborted(Abort::LeftRunning), &report),
        "Cut off when the program was killed; it can go on"
    );
    let error = Error::new(ErrorKind::Unreachable, "connect", "connection refused")
        .at("nas")
        .hint("check that the host is on");
    assert_eq!(
        outcome(&Outcome::Failed(error.clone()), &report),
        "Failed to connect: connection refused \u{2014} nas"
    );
    assert_eq!(
        error_block(&error),
        "Failed to connect: connection refused \u{2014} nas\nCheck that the host is on."
    );
    assert_eq!(
        outcome(&Outcome::Refused(error), &report),
        "Refused, nothing was written: connection refused"
    );
}

#[test]
fn a_verdict_has_a_word_and_says_why() {
    let one = Digest::new(Algorithm::Md5, &[1; 16]).unwrap();
    let two = Digest::new(Algorithm::Md5, &[2; 16]).unwrap();
    let differs = Verdict::Differs {
        here: one,
        there: two,
    };
    let (word, why) = verdict(&differs);
    assert_eq!(word, "Differs");
    assert_eq!(
        why.unwrap(),
        format!("{one} was sent, {two} is at the destination")
    );
    assert_eq!(
        verdict(&Verdict::Skipped("same\u{1b}".into())).1.unwrap(),
        "same\\x1b"
    );
    for name in VERDICTS {
        assert_ne!(verdict_word(name), "Unknown");
    }
}

#[test]
fn a_plan_is_summed_up() {
    assert_eq!(plan(&PlanTotals::default()), "Nothing there to do");
    assert_eq!(
        plan(&PlanTotals {
            create: 12,
            update: 3,
            keep: 10_000,
            bytes: 1 << 30,
            ..PlanTotals::default()
        }),
        "12 to create, 3 to update, 10\u{202f}000 the same already; 1.00 GiB to send"
    );
}

#[test]
fn every_rule_and_digest_is_explained() {
    for rule in Conflict::ALL {
        assert!(!conflict(rule).1.is_empty());
    }
    for algorithm_ in Algorithm::ALL {
        assert!(!algorithm(algorithm_).1.is_empty());
    }
    assert_eq!(sentence("free some space"), "Free some space.");
    assert_eq!(sentence("smb:// is not for us"), "smb:// is not for us.");
    assert_eq!(sentence(""), "");
}

#[test]
fn a_stopped_run_says_what_it_left_for_the_next_one() {
    let report = Report {
        kept: 120 << 20,
        seconds: 3.2,
        ..Report::default()
    };
    let stopped = Outcome::Aborted(Abort::User);
    assert_eq!(
        outcome(&stopped, &report),
        "Stopped: 0 files, 0 B in 3.2 s; about 120 MiB of unfinished files is kept"
    );
    let nothing = Report { kept: 0, ..report };
    assert_eq!(
        outcome(&stopped, &nothing),
        "Stopped: 0 files, 0 B in 3.2 s"
    );
    let differs = Report {
        tally: Tally {
            differs: 1,
            ..Tally::default()
        },
        ..nothing
    };
    assert_eq!(
        outcome_short(&Outcome::Partial(None), &differs),
        "1 differs"
    );
}
