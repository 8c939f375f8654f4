//! The program's own settings: tolerant to read, since a wrong window size must stop nobody.
//!
//! ```toml
//! parallel = 2          # jobs at once
//! per_host = 1          # of them with the same host
//! theme = "system"      # light dark
//! text_scale = 1.0
//! last_profile = "0123abcd"
//!
//! [window]
//! width = 1100.0
//! height = 720.0
//! x = 10.0              # left out until the window was moved
//! y = 10.0
//!
//! [hosts."nas"]         # what the user allowed for good
//! upload_agent = true
//! plain_tcp = true
//! ```
//!
//! A field that cannot be used gets its default and a warning; unknown keys and comments are kept.
//! A file that is no TOML at all is moved aside when settings are next saved.

use std::collections::BTreeMap;
use std::path::PathBuf;

use toml_edit::{DocumentMut, Table};

use crate::model::error::{ErrorKind, Result};
use crate::model::job::Consent;
use crate::model::profile::ProfileId;
use crate::store::dirs::Dirs;
use crate::store::file as disk;
use crate::store::toml::{self, Fault, Read, Reader, put, sub_table};

/// Most jobs at once that can be set.
const MAX_PARALLEL: i64 = 64;

/// Which colours the window has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// As the desktop has it.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl Theme {
    /// Returns the name used in the file.
    pub fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }
}

impl std::str::FromStr for Theme {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        [Self::System, Self::Light, Self::Dark]
            .into_iter()
            .find(|theme| theme.name() == text)
            .ok_or_else(|| format!("'{text}' is none of system, light, dark"))
    }
}

/// Where the window was, in points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// Width.
    pub width: f32,
    /// Height.
    pub height: f32,
    /// Left and top edge; `None` where the desktop does not tell.
    pub position: Option<(f32, f32)>,
}

/// The program's own settings.
#[derive(Clone, Debug, PartialEq)]
pub struct AppSettings {
    /// Jobs at once, 1 to 64.
    pub parallel: usize,
    /// Jobs at once with the same host, 1 to 64.
    pub per_host: usize,
    /// Which colours the window has.
    pub theme: Theme,
    /// Size of text, 1.0 is the usual one; 0.5 to 4.
    pub text_scale: f32,
    /// Where the window was.
    pub window: Option<Window>,
    /// The profile that was selected last.
    pub last_profile: Option<ProfileId>,
    /// What the user allowed for good, by host name.
    pub hosts: BTreeMap<String, Consent>,
}

impl Default for AppSettings {
    fn default() -> Self {
        Self {
            parallel: 2,
            per_host: 1,
            theme: Theme::default(),
            text_scale: 1.0,
            window: None,
            last_profile: None,
            hosts: BTreeMap::new(),
        }
    }
}

impl AppSettings {
    /// Returns what the user allowed for a host.
    pub fn consent(&self, host: &str) -> Consent {
        self.hosts.get(host).copied().unwrap_or_default()
    }

    /// Reads the settings; what cannot be used has its default and a warning for people.
    pub fn load(dirs: &Dirs) -> (Self, Vec<String>) {
        let path = path(dirs);
        let mut warnings = Vec::new();
        let mut settings = Self::default();
        match disk::read_own(&path) {
            Ok(bytes) => match toml::parse(&bytes) {
                Ok(document) => settings.read(&Reader::top(&document), &mut warnings),
                Err(fault) => warnings.push(warning(&fault)),
            },
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => warnings.push(format!("{error}; usual settings are used")),
        }
        (settings, warnings)
    }

    fn read(&mut self, top: &Reader<'_>, warnings: &mut Vec<String>) {
        // Takes a value if it can be used, else leaves the default.
        fn take<T>(field: &mut T, value: Read<Option<T>>, warnings: &mut Vec<String>) {
            match value {
                Ok(Some(value)) => *field = value,
                Ok(None) => {}
                Err(fault) => warnings.push(warning(&fault)),
            }
        }
        let Self {
            parallel,
            per_host,
            theme,
            text_scale,
            window,
            last_profile,
            hosts,
        } = self;
        take(parallel, count(top, "parallel"), warnings);
        take(per_host, count(top, "per_host"), warnings);
        take(theme, top.word("theme"), warnings);
        take(text_scale, within(top, "text_scale", 0.5, 4.0), warnings);
        let mut id = None;
        take(
            &mut id,
            top.text("last_profile").map(|id| id.map(Some)),
            warnings,
        );
        *last_profile = id.map(ProfileId);
        let mut place = None;
        take(
            &mut place,
            read_window(top).map(|place| place.map(Some)),
            warnings,
        );
        *window = place;
        let table = top.table("hosts", "hosts.").unwrap_or_else(|fault| {
            warnings.push(warning(&fault));
            None
        });
        for (host, _) in table.iter().flat_map(Reader::items) {
            let mut consent = Consent::default();
            match table.as_ref().map(|table| table.table(host, "hosts.")) {
                Some(Ok(Some(table))) => {
                    take(
                        &mut consent.upload_agent,
                        table.flag("upload_agent"),
                        warnings,
                    );
                    take(&mut consent.plain_tcp, table.flag("plain_tcp"), warnings);
                }
                Some(Err(fault)) => warnings.push(warning(&fault)),
                _ => {}
            }
            hosts.insert(host.to_owned(), consent);
        }
    }

    /// Saves the settings; comments and unknown keys stay.
    ///
    /// # Errors
    /// Those of the system; the old file is whole then.
    pub fn save(&self, dirs: &Dirs) -> Result<()> {
        let path = path(dirs);
        let bytes = match disk::read_own(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut document = match toml::parse(&bytes) {
            Ok(document) => document.into_mut(),
            Err(_) => {
                set_aside(&path)?;
                DocumentMut::new()
            }
        };
        self.write(document.as_table_mut());
        disk::save(&path, document.to_string().as_bytes()).map(drop)
    }

    fn write(&self, top: &mut Table) {
        let Self {
            parallel,
            per_host,
            theme,
            text_scale,
            window,
            last_profile,
            hosts,
        } = self;
        // Settings of a few are well below the limits of TOML's whole numbers.
        put(
            top,
            "parallel",
            i64::try_from(*parallel).unwrap_or(MAX_PARALLEL),
        );
        put(
            top,
            "per_host",
            i64::try_from(*per_host).unwrap_or(MAX_PARALLEL),
        );
        put(top, "theme", theme.name());
        put(top, "text_scale", round(*text_scale));
        match last_profile {
            Some(id) => put(top, "last_profile", &id.0),
            None => {
                top.remove("last_profile");
            }
        }
        match window {
            Some(Window {
                width,
                height,
                position,
            }) => {
                let table = sub_table(top, "window");
                put(table, "width", round(*width));
                put(table, "height", round(*height));
                if let Some((x, y)) = position {
                    put(table, "x", round(*x));
                    put(table, "y", round(*y));
                } else {
                    table.remove("x");
                    table.remove("y");
                }
            }
            None => {
                top.remove("window");
            }
        }
        let table = sub_table(top, "hosts");
        table.set_implicit(true);
        let gone: Vec<_> = table
            .iter()
            .filter(|(host, _)| !hosts.contains_key(*host))
            .map(|(host, _)| host.to_owned())
            .collect();
        for host in gone {
            table.remove(&host);
        }
        for (
            host,
            Consent {
                upload_agent,
                plain_tcp,
            },
        ) in hosts
        {
            let table = sub_table(table, host);
            put(table, "upload_agent", *upload_agent);
            put(table, "plain_tcp", *plain_tcp);
        }
        if table.is_empty() {
            top.remove("hosts");
        }
    }
}

fn path(dirs: &Dirs) -> PathBuf {
    dirs.config().join("settings.toml")
}

fn warning(fault: &Fault) -> String {
    let Fault {
        line,
        column,
        reason,
    } = fault;
    format!("settings.toml:{line}:{column}: {reason}; the usual value is used")
}

fn count(top: &Reader<'_>, key: &str) -> Read<Option<usize>> {
    top.number(key)?
        .map(|(number, span)| {
            usize::try_from(number)
                .ok()
                .filter(|_| (1..=MAX_PARALLEL).contains(&number))
                .ok_or_else(|| top.fault(span, format!("{key} is 1 to {MAX_PARALLEL}")))
        })
        .transpose()
}

fn within(top: &Reader<'_>, key: &str, min: f32, max: f32) -> Read<Option<f32>> {
    top.real(key)?
        .map(|number| {
            let number = number as f32;
            if (min..=max).contains(&number) {
                Ok(number)
            } else {
                Err(top.fault_at_key(key, format!("{key} is {min} to {max}")))
            }
        })
        .transpose()
}

fn read_window(top: &Reader<'_>) -> Read<Option<Window>> {
    let Some(table) = top.table("window", "window.")? else {
        return Ok(None);
    };
    let width = within(&table, "width", 100.0, 32_000.0)?;
    let height = within(&table, "height", 100.0, 32_000.0)?;
    let x = within(&table, "x", -32_000.0, 32_000.0)?;
    let y = within(&table, "y", -32_000.0, 32_000.0)?;
    Ok(width.zip(height).map(|(width, height)| Window {
        width,
        height,
        position: x.zip(y),
    }))
}

/// Returns the number without the digits that a float of 32 bits does not have.
fn round(number: f32) -> f64 {
    (f64::from(number) * 1000.0).round() / 1000.0
}

/// Moves a file that is no TOML out of the way, so that nothing of it is lost.
fn set_aside(path: &std::path::Path) -> Result<()> {
    for number in 1u32.. {
        let aside = path.with_extension(format!("toml.damaged-{number}"));
        match disk::rename_new(path, &aside) {
            Err(error) if error.kind == ErrorKind::Exists => {}
            other => return other,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dirs() -> (tempfile::TempDir, Dirs) {
        let top = tempfile::tempdir().unwrap();
        let dirs = Dirs::below(top.path()).unwrap();
        (top, dirs)
    }

    fn full() -> AppSettings {
        let mut hosts = BTreeMap::new();
        hosts.insert(
            "nas.local".to_owned(),
            Consent {
                upload_agent: true,
                plain_tcp: false,
            },
        );
        hosts.insert(
            "fe80::1%eth0".to_owned(),
            Consent {
                upload_agent: true,
                plain_tcp: true,
            },
        );
        AppSettings {
            parallel: 3,
            per_host: 2,
            theme: Theme::Dark,
            text_scale: 1.1,
            window: Some(Window {
                width: 800.5,
                height: 600.0,
                position: Some((-3.0, 7.0)),
            }),
            last_profile: Some(ProfileId("0123abcd".into())),
            hosts,
        }
    }

    #[test]
    fn settings_read_back_as_saved_with_comments_kept() {
        let (_top, dirs) = dirs();
        assert_eq!(AppSettings::load(&dirs), (AppSettings::default(), vec![]));
        full().save(&dirs).unwrap();
        assert_eq!(AppSettings::load(&dirs), (full(), vec![]));
        let text = std::fs::read_to_string(path(&dirs)).unwrap();
        let text = format!("# mine\nfuture = [1]\n{text}");
        std::fs::write(path(&dirs), text).unwrap();
        AppSettings::default().save(&dirs).unwrap();
        assert_eq!(AppSettings::load(&dirs), (AppSettings::default(), vec![]));
        let text = std::fs::read_to_string(path(&dirs)).unwrap();
        assert!(text.starts_with("# mine\nfuture = [1]\n"), "{text}");
    }

    #[test]
    fn a_bad_field_gets_its_default_and_a_warning_and_the_rest_counts() {
        let (_top, dirs) = dirs();
        let text = "parallel = 0\nper_host = \"x\"\ntheme = \"blue\"\ntext_scale = 99\n\
                    last_profile = \"0123abcd\"\nwindow = 3\nhosts.nas.plain_tcp = 1\n\
                    hosts.nas.upload_agent = true\nhosts.x = 1\n";
        std::fs::write(path(&dirs), text).unwrap();
        let (settings, warnings) = AppSettings::load(&dirs);
        assert_eq!(settings.parallel, 2);
        assert_eq!(settings.last_profile, Some(ProfileId("0123abcd".into())));
        assert_eq!(
            settings.consent("nas"),
            Consent {
                upload_agent: true,
                plain_tcp: false
            }
        );
        assert_eq!(settings.consent("x"), Consent::default());
        assert_eq!(warnings.len(), 7, "{warnings:#?}");
        assert!(
            warnings[0].starts_with("settings.toml:1:12: parallel is 1 to 64"),
            "{warnings:?}"
        );
    }

    #[test]
    fn a_file_that_is_no_toml_is_told_and_kept_aside() {
        let (_top, dirs) = dirs();
        std::fs::write(path(&dirs), "parallel = = 3\n").unwrap();
        let (settings, warnings) = AppSettings::load(&dirs);
        assert_eq!(settings, AppSettings::default());
        assert_eq!(warnings.len(), 1);
        settings.save(&dirs).unwrap();
        assert_eq!(AppSettings::load(&dirs), (settings, vec![]));
        let aside = dirs.config().join("settings.toml.damaged-1");
        assert_eq!(std::fs::read(aside).unwrap(), b"parallel = = 3\n");
    }
}
