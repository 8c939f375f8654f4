//! `transload run`: saved profiles and profile files, one after the other.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::cli::args::{JobArgs, RunArgs};
use crate::cli::copy::Order;
use crate::cli::drive::Driver;
use crate::cli::exit;
use crate::cli::out::Out;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::profile::Profile;
use crate::model::untrusted::shown;
use crate::service::jobs;
use crate::store::dirs::Dirs;
use crate::store::profiles::{self, Profiles};

/// Runs the profiles and returns the worst exit status.
///
/// # Errors
/// When one of them cannot be read; then nothing runs.
pub fn run(args: &RunArgs, out: &Out) -> Result<u8> {
    let dirs = Dirs::open()?;
    let mut saved = Profiles::open(&dirs)?;
    saved.ensure_samples()?;
    let mut orders = Vec::new();
    for word in &args.profiles {
        orders.extend(orders_of(find(word, &mut saved)?, &args.job)?);
    }
    let driver = Driver::start(&dirs, out)?;
    let several = orders.len() > 1;
    let mut codes = Vec::new();
    for order in orders {
        if driver.is_stopped() {
            codes.push(exit::STOPPED);
            break;
        }
        if several {
            let name = order.title.as_deref().unwrap_or_default();
            out.note(&format!("Running {}", shown(name.as_bytes())));
        }
        codes.push(match order.run(&args.job, &driver, out, &dirs) {
            Ok(code) => code,
            Err(error) => {
                let code = exit::of_error(&error);
                out.not_begun(error);
                code
            }
        });
    }
    Ok(exit::worst(codes))
}

/// Reads a profile file, or finds a saved profile. What holds a slash or ends in `.toml` is a
/// file, unless a profile has that very name.
fn find(word: &OsStr, saved: &mut Profiles) -> Result<Profile> {
    let bytes = word.as_bytes();
    let is_file = bytes.contains(&b'/') || bytes.ends_with(b".toml");
    let by_name = match word.to_str() {
        Some(name) => saved.get(name),
        None => Err(Error::new(
            ErrorKind::NotFound,
            "find the profile",
            "its name is not UTF-8",
        )
        .at(bytes)),
    };
    match by_name {
        Err(error) if error.kind == ErrorKind::NotFound && is_file => {
            Ok(profiles::read_given(Path::new(word))?.profile)
        }
        found => found,
    }
}

/// Makes one order a destination.
fn orders_of(profile: Profile, job: &JobArgs) -> Result<Vec<Order>> {
    let Profile {
        id,
        name,
        notes: _,
        sources,
        destinations,
        settings,
    } = profile;
    let lacks = |what: &str| {
        Error::new(
            ErrorKind::Config,
            "run the profile",
            format!("it has no {what}"),
        )
        .at(name.as_str())
        .hint("add it with 'transload profiles set', or in the window")
    };
    if sources.is_empty() {
        return Err(lacks("source"));
    }
    if destinations.is_empty() {
        return Err(lacks("destination"));
    }
    let sources = sources
        .into_iter()
        .map(jobs::absolute_place)
        .collect::<Result<Vec<_>>>()?;
    destinations
        .into_iter()
        .map(|destination| {
            let order = Order {
                title: Some(name.clone()),
                profile: Some(id.clone()).filter(|id| !id.0.is_empty()),
                sources: sources.clone(),
                destination: jobs::absolute_place(destination)?,
                settings: settings.clone(),
                plain_by_hand: false,
            };
            order.check(job)?;
            Ok(order)
        })
        .collect()
}
