//! `transload profiles`: the saved profiles.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::cli::args::{ProfileArgs, ProfilesCommand};
use crate::cli::copy;
use crate::cli::exit;
use crate::cli::json::Line;
use crate::cli::out::Out;
use crate::model::error::{Error, Result};
use crate::model::location::Location;
use crate::model::profile::Profile;
use crate::model::untrusted::shown;
use crate::service::jobs;
use crate::store::dirs::Dirs;
use crate::store::profiles::{self, Entry, Profiles};

/// Does what the command says and returns the exit status.
///
/// # Errors
/// When a profile cannot be found, read or saved.
pub fn run(command: &ProfilesCommand, out: &Out) -> Result<u8> {
    let dirs = Dirs::open()?;
    let mut saved = Profiles::open(&dirs)?;
    saved.ensure_samples()?;
    match command {
        ProfilesCommand::List { json: _ } => list(&mut saved, out)?,
        ProfilesCommand::Show { profile } => {
            out.print_text(&profiles::to_text(&saved.get(profile)?));
        }
        ProfilesCommand::New { name, edit } => {
            let mut profile = Profile {
                name: name.trim().to_owned(),
                ..Profile::default()
            };
            change(&mut profile, edit)?;
            tell_saved(&saved.add(&profile)?, out);
        }
        ProfilesCommand::Set { profile, edit } => {
            let mut profile = saved.get(profile)?;
            change(&mut profile, edit)?;
            saved.save(&profile)?;
            tell_saved(&profile, out);
        }
        ProfilesCommand::Rename { profile, name } => {
            let id = saved.get(profile)?.id;
            tell_saved(&saved.rename(&id, name.trim())?, out);
        }
        ProfilesCommand::Duplicate { profile, name } => {
            let id = saved.get(profile)?.id;
            if let Some(name) = name {
                saved.check_new_names(&[name])?;
            }
            let mut copy = saved.duplicate(&id)?;
            if let Some(name) = name {
                copy = saved.rename(&copy.id, name.trim())?;
            }
            tell_saved(&copy, out);
        }
        ProfilesCommand::Delete { profiles } => {
            // All are found before the first is deleted.
            let found = profiles
                .iter()
                .map(|name| saved.get(name))
                .collect::<Result<Vec<Profile>>>()?;
            for profile in found {
                saved.delete(&profile.id)?;
                out.say(&format!(
                    "Deleted {} ({})",
                    shown(profile.name.as_bytes()),
                    profile.id.0
                ));
            }
        }
        ProfilesCommand::Import { files } => {
            let read = files
                .iter()
                .map(|file| profiles::read_given(file))
                .collect::<Result<Vec<_>>>()?;
            let names: Vec<&str> = read.iter().map(|l| l.profile.name.as_str()).collect();
            saved.check_new_names(&names)?;
            for loaded in read {
                for key in &loaded.unknown {
                    out.say(&format!(
                        "This version does not know the key {key}; it is left out"
                    ));
                }
                tell_saved(&saved.add(&loaded.profile)?, out);
            }
        }
        ProfilesCommand::Export { profile, file } => {
            let text = profiles::to_text(&saved.get(profile)?);
            match file {
                None => out.print_data(&text),
                Some(file) => write_new(file, &text)?,
            }
        }
    }
    Ok(exit::COMPLETED)
}

fn tell_saved(profile: &Profile, out: &Out) {
    out.say(&format!(
        "Saved {} ({})",
        shown(profile.name.as_bytes()),
        profile.id.0
    ));
}

fn list(saved: &mut Profiles, out: &Out) -> Result<()> {
    for entry in saved.list()? {
        match entry {
            Entry::Good(profile) => {
                let places = |places: &[Location]| -> Vec<String> {
                    places.iter().map(Location::to_string).collect()
                };
                let (sources, destinations) =
                    (places(&profile.sources), places(&profile.destinations));
                out.print(&format!(
                    "{}  {}  {} → {}",
                    profile.id.0,
                    profile.name,
                    or_none(&sources),
                    or_none(&destinations)
                ));
                out.emit(|| Line::Profile {
                    id: profile.id.0,
                    name: profile.name,
                    sources,
                    destinations,
                    method: profile.settings.method.into(),
                    fault: None,
                });
            }
            Entry::Damaged(damaged) => {
                let error = damaged.to_error();
                let id = damaged.id.map(|id| id.0).unwrap_or_default();
                out.print(&format!("{id:<8}  damaged: {error}"));
                out.emit(|| Line::Profile {
                    id,
                    name: String::new(),
                    sources: Vec::new(),
                    destinations: Vec::new(),
                    method: String::new(),
                    fault: Some(error.to_string()),
                });
            }
        }
    }
    Ok(())
}

fn or_none(places: &[String]) -> String {
    if places.is_empty() {
        "nothing yet".to_owned()
    } else {
        places.join(", ")
    }
}

/// Changes a profile as the options say.
fn change(profile: &mut Profile, edit: &ProfileArgs) -> Result<()> {
    let ProfileArgs {
        sources,
        add_sources,
        destination,
        notes,
        transfer,
    } = edit;
    if !sources.is_empty() {
        profile.sources.clear();
    }
    for source in sources.iter().chain(add_sources) {
        profile.sources.push(jobs::place(source)?);
    }
    if let Some(destination) = destination {
        profile.destinations = vec![jobs::place(destination)?];
    }
    if let Some(notes) = notes {
        profile.notes.clone_from(notes);
    }
    transfer.apply(&mut profile.settings)?;
    if let Some(port) = transfer.port {
        let places = profile.sources.iter_mut().chain(&mut profile.destinations);
        copy::set_port(places, port)?;
    }
    if let Some(destination) = profile.destinations.first()
        && !profile.sources.is_empty()
    {
        jobs::check_sides(&profile.sources, destination)?;
    }
    Ok(())
}

/// Writes a file that must not be there yet; others may read it as little as a saved profile.
fn write_new(file: &Path, text: &str) -> Result<()> {
    let failed = |e: std::io::Error| {
        let error = Error::io("write the profile", &e).at(file);
        match e.kind() {
            std::io::ErrorKind::AlreadyExists => {
                error.hint("choose another name, or remove that file first")
            }
            _ => error,
        }
    };
    let mut new = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(file)
        .map_err(failed)?;
    new.write_all(text.as_bytes())
        .and_then(|()| new.sync_all())
        .map_err(failed)
}
