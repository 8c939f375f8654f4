//! Picks the method of a job, purely: from the job, from what each method says of it, and from what
//! was tried already.
//!
//! `auto` means for now: `local` when both sides are on this computer; for a host that is reached by
//! ssh raw TCP if its agent is there or may be uploaded, else rsync, else sftp; for other places the
//! first method that supports them.

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::location::Location;
use crate::model::profile::MethodChoice;
use crate::model::untrusted::shown;

/// What one method says of a job.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The method's registry name.
    pub id: &'static str,
    /// What it answered to the question whether it supports the job.
    pub supports: Result<()>,
}

/// A method that was picked before and could not connect.
#[derive(Clone, Debug)]
pub struct Tried {
    /// The method's registry name.
    pub id: &'static str,
    /// What kept it from connecting.
    pub error: Error,
}

/// The method to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The method's registry name.
    pub id: &'static str,
    /// Why, for people, for example "raw TCP: the agent answered on nas".
    pub why: String,
}

/// The order in which methods are tried for a host that is reached by ssh.
const BY_SSH: [&str; 3] = ["tcp", "rsync", "sftp"];

/// Picks the method. `offers` are in the order of the registry; `tried` are those that this
/// function picked before for the same job.
///
/// # Errors
/// When a method that was named is not there or does not support the job, when no method does, and
/// when what was tried last failed for a reason that another method would not cure: then with the
/// error of the first one, which tells how to make the best method work.
pub fn choose(spec: &JobSpec, offers: &[Offer], tried: &[Tried]) -> Result<Choice> {
    if let MethodChoice::Named(name) = &spec.settings.method {
        return named(name, offers, tried);
    }
    if let Some(last) = tried.last()
        && !another_may_help(&last.error)
    {
        return Err(last.error.clone());
    }
    let places = || spec.sources.iter().chain([&spec.destination]);
    let by_ssh = places().any(|place| matches!(place, Location::Ssh { .. }));
    let order: Vec<&str> = if places().all(Location::is_local) {
        vec!["local"]
    } else if by_ssh {
        BY_SSH.to_vec()
    } else {
        offers.iter().map(|offer| offer.id).collect()
    };
    let untried = order
        .iter()
        .filter(|id| tried.iter().all(|t| t.id != **id))
        .filter_map(|id| offers.iter().find(|offer| offer.id == *id));
    let mut refusals = Vec::new();
    for offer in untried {
        match &offer.supports {
            Ok(()) => {
                return Ok(Choice {
                    id: offer.id,
                    why: why(spec, offer.id, &order, &refusals, tried),
                });
            }
            Err(error) => refusals.push((offer.id, error)),
        }
    }
    Err(match (tried.first(), refusals.first()) {
        (Some(first), _) => with_others(&first.error, &tried[1..], &refusals),
        (None, Some((_, refusal))) => (*refusal).clone(),
        (None, None) => Error::new(
            ErrorKind::Unsupported,
            "choose a method",
            "no method in this program can reach both sides",
        )
        .at(spec.destination.to_string()),
    })
}

/// Returns the error of the best method, with what kept the others from taking its place.
fn with_others(error: &Error, tried: &[Tried], refusals: &[(&str, &Error)]) -> Error {
    let failed = tried
        .iter()
        .map(|t| format!("{} did not work: {}", title(t.id), t.error.cause));
    let refused = refusals
        .iter()
        .map(|(id, error)| format!("{} cannot do this: {}", title(id), error.cause));
    let words: Vec<String> = error
        .hint
        .iter()
        .cloned()
        .chain(failed)
        .chain(refused)
        .collect();
    let mut error = error.clone();
    if !words.is_empty() {
        error.hint = Some(words.join("; "));
    }
    error
}

/// Says whether another method may work where one could not connect for this error: only when the
/// other side lacks what the method needs, or nobody allowed it to be put there. A host that cannot
/// be reached stays so by any method.
pub fn another_may_help(error: &Error) -> bool {
    matches!(
        error.kind,
        ErrorKind::Tool | ErrorKind::Unsupported | ErrorKind::Denied
    )
}

fn named(name: &str, offers: &[Offer], tried: &[Tried]) -> Result<Choice> {
    if let Some(last) = tried.last() {
        return Err(last.error.clone());
    }
    let Some(offer) = offers.iter().find(|offer| offer.id == name) else {
        let known: Vec<_> = offers.iter().map(|offer| offer.id).collect();
        return Err(Error::new(
            ErrorKind::Config,
            "choose the method",
            format!("there is no method '{name}'"),
        )
        .hint(format!("use auto or one of {}", known.join(", "))));
    };
    offer.supports.clone()?;
    Ok(Choice {
        id: offer.id,
        why: format!("{}: named by you", title(offer.id)),
    })
}

/// Returns how a method is called in a reason.
fn title(id: &str) -> &str {
    match id {
        "tcp" => "raw TCP",
        other => other,
    }
}

/// Says why this one: what keeps each better one from being used, in the order of `before`.
fn why(
    spec: &JobSpec,
    id: &str,
    before: &[&str],
    refusals: &[(&str, &Error)],
    tried: &[Tried],
) -> String {
    let host = shown(spec.host_key().as_bytes());
    let against = |other: &&str| {
        let failed = tried.iter().find(|t| t.id == *other).map(|t| &t.error);
        let refused = || refusals.iter().find(|(refused, _)| refused == other);
        match (*other, failed) {
            ("tcp", Some(error)) if error.kind == ErrorKind::Denied => Some(format!(
                "raw TCP needs the agent, which is not on {host} and may not be uploaded"
            )),
            (_, Some(error)) => Some(format!("{} did not work: {}", title(other), error.cause)),
            (_, None) => refused()
                .map(|(_, error)| format!("{} cannot do this: {}", title(other), error.cause)),
        }
    };
    let mut reasons: Vec<String> = before.iter().filter_map(against).collect();
    if reasons.is_empty() {
        reasons.push(match id {
            "local" => "both sides are on this computer".to_owned(),
            "tcp" => format!("the agent answered on {host}"),
            _ => format!("the method for {host}"),
        });
    }
    format!("{}: {}", title(id), reasons.join("; "))
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;
