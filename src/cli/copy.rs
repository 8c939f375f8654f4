//! `transload copy`: a job from what was typed.

use std::ffi::OsString;
use std::path::Path;

use crate::cli::args::{CopyArgs, JobArgs};
use crate::cli::ask;
use crate::cli::drive::{Driver, Task};
use crate::cli::out::Out;
use crate::cli::resume;
use crate::engine::new_job_id;
use crate::model::entry::Action;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::{Consent, JobId, JobSpec};
use crate::model::location::Location;
use crate::model::profile::{Encrypt, MethodChoice, ProfileId, Settings};
use crate::model::rules::Conflict;
use crate::model::verdict::{Row, Verdict};
use crate::present::text;
use crate::service::jobs;
use crate::store::dirs::Dirs;
use crate::store::settings::AppSettings;

/// Copies and returns the exit status.
///
/// # Errors
/// What keeps the copy from being begun.
pub fn run(args: &CopyArgs, out: &Out) -> Result<u8> {
    let (sources, destination) = places(&args.places, args.transfer.port)?;
    let mut settings = Settings::default();
    args.transfer.apply(&mut settings)?;
    // Whoever names raw TCP by hand knows that it is plain.
    let plain_by_hand = settings.method == MethodChoice::Named("tcp".to_owned())
        || settings.encrypt == Encrypt::Never;
    let order = Order {
        title: None,
        profile: None,
        sources,
        destination,
        settings,
        plain_by_hand,
    };
    order.check(&args.job)?;
    let dirs = Dirs::open()?;
    let driver = Driver::start(&dirs, out)?;
    order.run(&args.job, &driver, out, &dirs)
}

/// What is to be moved, before it is a job.
pub struct Order {
    /// What the list shows; made from the places if missing.
    pub title: Option<String>,
    /// The profile it comes from.
    pub profile: Option<ProfileId>,
    /// What to move.
    pub sources: Vec<Location>,
    /// Where to.
    pub destination: Location,
    /// How.
    pub settings: Settings,
    /// The user chose plain TCP in this very command.
    pub plain_by_hand: bool,
}

impl Order {
    /// Refuses what can be known to be wrong before anything starts.
    ///
    /// # Errors
    /// `Config` or `Unsupported`, with what to change.
    pub fn check(&self, job: &JobArgs) -> Result<()> {
        check_save_list(job, &self.settings)?;
        jobs::check_rules(&self.settings.rules)?;
        jobs::check_ssh_options(&self.settings.ssh)?;
        jobs::check_method(&JobSpec {
            id: JobId([0; 16]),
            title: String::new(),
            profile: None,
            sources: self.sources.clone(),
            destination: self.destination.clone(),
            settings: self.settings.clone(),
            dry_run: job.dry_run,
            attended: false,
            consent: Consent::default(),
            resume: false,
        })
    }

    /// Makes the job, going on with one that was cut off, runs it, and returns the exit status.
    ///
    /// # Errors
    /// What keeps it from being begun.
    pub fn run(self, job: &JobArgs, driver: &Driver<'_>, out: &Out, dirs: &Dirs) -> Result<u8> {
        let Self {
            title,
            profile,
            sources,
            destination,
            settings,
            plain_by_hand,
        } = self;
        let (sources, missing) = split_missing(sources)?;
        let mut spec = JobSpec {
            id: new_job_id()?,
            title: title.unwrap_or_else(|| text::title(&sources, &destination)),
            profile,
            sources,
            destination,
            settings,
            dry_run: job.dry_run,
            attended: !job.yes && !out.json() && ask::somebody_is_there(),
            consent: Consent::default(),
            resume: false,
        };
        if spec.settings.conflict == Conflict::Ask && !spec.attended && !spec.dry_run {
            out.note(
                "Nobody can be asked here (--conflict ask): a file that is there already and \
                 differs stays as it is and counts as an error. To decide beforehand, use \
                 --conflict skip, overwrite, newer, larger or rename.",
            );
        }
        let (kept, warnings) = AppSettings::load(dirs);
        warnings.iter().for_each(|warning| out.note(warning));
        let kept = kept.consent(&spec.host_key());
        spec.consent = Consent {
            upload_agent: job.upload_agent || job.yes || kept.upload_agent,
            plain_tcp: job.yes || plain_by_hand || kept.plain_tcp,
        };
        resume::go_on(&mut spec, dirs, out)?;
        driver.run(Task {
            spec,
            missing,
            save_list: job.save_list.clone(),
        })
    }
}

/// Reads sources and destination; a port given apart belongs to the hosts that have none.
fn places(words: &[OsString], port: Option<u16>) -> Result<(Vec<Location>, Location)> {
    let mut places = words
        .iter()
        .map(|word| jobs::place(word))
        .collect::<Result<Vec<Location>>>()?;
    if let Some(port) = port {
        set_port(&mut places, port)?;
    }
    let destination = places.pop().ok_or_else(|| {
        Error::new(
            ErrorKind::Config,
            "read the command",
            "source and destination are missing",
        )
    })?;
    Ok((places, destination))
}

/// Sets the ssh port of places that have none.
///
/// # Errors
/// `Config` when no place is reached by ssh.
pub fn set_port<'a>(places: impl IntoIterator<Item = &'a mut Location>, port: u16) -> Result<()> {
    let mut used = false;
    for place in places {
        if let Location::Ssh { host, .. } = place {
            host.port.get_or_insert(port);
            used = true;
        }
    }
    if used {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Config,
        "read --port",
        "no place is reached by ssh",
    )
    .hint("write the port of other servers into the address, for example ftp://host:2121/"))
}

fn check_save_list(job: &JobArgs, settings: &Settings) -> Result<()> {
    if job.save_list.is_some() && !settings.verify.hashes() {
        let cause = format!("--verify {} takes no digests", settings.verify.name());
        return Err(Error::new(ErrorKind::Config, "read --save-list", cause)
            .hint("choose --verify md5, sha256, blake3 or xxh3"));
    }
    Ok(())
}

/// Takes out the local sources that do not exist, each with the row that says so.
///
/// # Errors
/// `NotFound` when none is left.
fn split_missing(sources: Vec<Location>) -> Result<(Vec<Location>, Vec<Row>)> {
    let mut missing = Vec::new();
    let mut last = None;
    let there = sources
        .into_iter()
        .filter(|source| {
            let Some(path) = jobs::local_path(source) else {
                return true;
            };
            let Err(cause) = path.symlink_metadata() else {
                return true;
            };
            let mut error = Error::io("find the source", &cause).at(&*path);
            let bare = path.components().as_path();
            if cause.kind() == std::io::ErrorKind::NotADirectory && bare.symlink_metadata().is_ok()
            {
                error.hint = Some("it is a file: leave out the slash at its end".to_owned());
            }
            missing.push(missing_row(&path, error.clone()));
            last = Some(error);
            false
        })
        .collect::<Vec<_>>();
    match last {
        Some(error) if there.is_empty() && missing.len() == 1 => Err(error),
        Some(error) if there.is_empty() => Err(error.hint(format!(
            "none of the {} sources can be found; check how they are spelt",
            missing.len()
        ))),
        _ => Ok((there, missing)),
    }
}

fn missing_row(path: &Path, error: Error) -> Row {
    use std::os::unix::ffi::OsStrExt as _;
    let name = path.file_name().unwrap_or(path.as_os_str());
    Row {
        path: name.as_bytes().to_vec(),
        action: Action::Skip,
        bytes: 0,
        verdict: Verdict::Failed(error),
    }
}
