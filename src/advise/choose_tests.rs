//! Proves which method is picked and what is said about it.

use super::*;
use crate::model::job::{Consent, JobId};
use crate::model::location::Host;
use crate::model::profile::Settings;

fn nas() -> Location {
    Location::Ssh {
        host: Host {
            name: "nas".to_owned(),
            ..Host::default()
        },
        path: b"in".to_vec(),
    }
}

fn spec(destination: Location, method: &str) -> JobSpec {
    JobSpec {
        id: JobId([1; 16]),
        title: String::new(),
        profile: None,
        sources: vec![Location::Local(b"/src".to_vec())],
        destination,
        settings: Settings {
            method: method.to_owned().into(),
            ..Settings::default()
        },
        dry_run: false,
        attended: false,
        consent: Consent::default(),
        resume: false,
    }
}

fn offers(ids: &[&'static str]) -> Vec<Offer> {
    ids.iter()
        .map(|id| Offer {
            id,
            supports: Ok(()),
        })
        .collect()
}

fn failed(id: &'static str, kind: ErrorKind) -> Tried {
    Tried {
        id,
        error: Error::new(kind, "start the agent", id),
    }
}

const ALL: [&str; 5] = ["ftp", "sftp", "rsync", "local", "tcp"];

#[test]
fn two_places_on_this_computer_use_local() {
    let spec = spec(Location::Local(b"/dst".to_vec()), "auto");
    let choice = choose(&spec, &offers(&ALL), &[]).unwrap();
    assert_eq!(choice.why, "local: both sides are on this computer");
}

#[test]
fn without_the_agent_rsync_is_next_then_sftp_then_the_first_error() {
    let (spec, offers) = (spec(nas(), "auto"), offers(&ALL));
    let first = choose(&spec, &offers, &[]).unwrap();
    assert_eq!(first.why, "raw TCP: the agent answered on nas");
    let mut tried = vec![failed("tcp", ErrorKind::Denied)];
    let second = choose(&spec, &offers, &tried).unwrap();
    assert_eq!(second.id, "rsync");
    assert_eq!(
        second.why,
        "rsync: raw TCP needs the agent, which is not on nas and may not be uploaded"
    );
    tried.push(failed("rsync", ErrorKind::Tool));
    let third = choose(&spec, &offers, &tried).unwrap();
    assert_eq!(
        third.why,
        "sftp: raw TCP needs the agent, which is not on nas and may not be uploaded; \
         rsync did not work: rsync"
    );
    tried.push(failed("sftp", ErrorKind::Unsupported));
    let error = choose(&spec, &offers, &tried).unwrap_err();
    assert_eq!(error.cause.to_string(), "tcp");
    assert_eq!(
        error.hint.unwrap(),
        "rsync did not work: rsync; sftp did not work: sftp"
    );
}

#[test]
fn an_error_that_another_method_would_not_cure_is_the_end() {
    let (spec, offers) = (spec(nas(), "auto"), offers(&ALL));
    for kind in ErrorKind::ALL {
        let next = choose(&spec, &offers, &[failed("tcp", kind)]);
        let goes_on = matches!(
            kind,
            ErrorKind::Tool | ErrorKind::Unsupported | ErrorKind::Denied
        );
        assert_eq!(next.is_ok(), goes_on, "{}", kind.name());
    }
}

#[test]
fn a_method_that_is_not_built_in_is_passed_over() {
    let spec = spec(nas(), "auto");
    let tried = [failed("tcp", ErrorKind::Tool)];
    assert_eq!(
        choose(&spec, &offers(&["tcp", "sftp"]), &tried).unwrap().id,
        "sftp"
    );
    assert!(choose(&spec, &offers(&["tcp", "local"]), &tried).is_err());
    let none = choose(&spec, &offers(&["local"]), &[]).unwrap_err();
    assert_eq!(none.kind, ErrorKind::Unsupported);
}

#[test]
fn what_a_method_does_not_support_is_said_with_the_one_that_does() {
    let spec = spec(nas(), "auto");
    let mut offers = offers(&["tcp", "rsync"]);
    offers[0].supports = Err(Error::new(
        ErrorKind::Unsupported,
        "use raw TCP",
        "two hosts",
    ));
    assert_eq!(
        choose(&spec, &offers, &[]).unwrap().why,
        "rsync: raw TCP cannot do this: two hosts"
    );
    let mut three = offers.clone();
    three[0].supports = Ok(());
    three[1].supports = Err(Error::new(ErrorKind::Unsupported, "use rsync", "no rule"));
    three.push(Offer {
        id: "sftp",
        supports: Ok(()),
    });
    let tried = [failed("tcp", ErrorKind::Tool)];
    assert_eq!(
        choose(&spec, &three, &tried).unwrap().why,
        "sftp: raw TCP did not work: tcp; rsync cannot do this: no rule"
    );
    let declined = [failed("tcp", ErrorKind::Denied)];
    assert_eq!(
        choose(&spec, &three, &declined).unwrap().why,
        "sftp: raw TCP needs the agent, which is not on nas and may not be uploaded; \
         rsync cannot do this: no rule"
    );
    let error = choose(&spec, &three[..2], &declined).unwrap_err();
    assert_eq!(error.hint.unwrap(), "rsync cannot do this: no rule");
    offers.truncate(1);
    let error = choose(&spec, &offers, &[]).unwrap_err();
    assert_eq!(error.cause.to_string(), "two hosts");
}

#[test]
fn a_named_method_is_that_one_or_an_error() {
    let mut offers = offers(&ALL);
    assert_eq!(
        choose(&spec(nas(), "rsync"), &offers, &[]).unwrap().id,
        "rsync"
    );
    let unknown = choose(&spec(nas(), "carrier\npigeon"), &offers, &[]).unwrap_err();
    assert_eq!(unknown.kind, ErrorKind::Config);
    assert!(unknown.cause.to_string().contains("carrier\\npigeon"));
    let tried = [failed("tcp", ErrorKind::Tool)];
    assert!(choose(&spec(nas(), "tcp"), &offers, &tried).is_err());
    offers[4].supports = Err(Error::new(ErrorKind::Unsupported, "use raw TCP", "no"));
    assert!(choose(&spec(nas(), "tcp"), &offers, &[]).is_err());
}

#[test]
fn a_place_without_ssh_takes_the_first_method_that_supports_it() {
    let ftp = Location::Ftp {
        host: Host::default(),
        path: Vec::new(),
        tls: false,
    };
    let mut offers = offers(&ALL);
    for offer in offers.iter_mut().skip(1) {
        offer.supports = Err(Error::new(ErrorKind::Unsupported, "reach it", "ftp only"));
    }
    assert_eq!(choose(&spec(ftp, "auto"), &offers, &[]).unwrap().id, "ftp");
}
