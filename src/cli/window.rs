//! `transload` without a command: the window, where there is one and a display to show it on.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::CommandFactory as _;

use crate::cli::args::Cli;
use crate::cli::exit;
use crate::cli::out::Out;
use crate::model::error::{Error, ErrorKind, Result};
use crate::service::jobs;

/// Opens the window with these paths dropped on it, and returns when it is closed.
pub type Window = fn(Vec<PathBuf>) -> Result<()>;

/// Opens the window and returns the exit status.
///
/// # Errors
/// When a word is no path of this computer, or the window cannot be opened.
pub fn open(window: Option<Window>, words: &[OsString], out: &Out) -> Result<u8> {
    let paths = words.iter().map(path_of).collect::<Result<Vec<_>>>()?;
    let Some(window) = window else {
        return Ok(instead("This build has no window.", out));
    };
    if !has_display() {
        return Ok(instead("There is no display to open the window on.", out));
    }
    window(paths)?;
    Ok(exit::COMPLETED)
}

/// Returns the path to drop; one that does not exist is told in the window, as after any drop.
fn path_of(word: &OsString) -> Result<PathBuf> {
    let place = jobs::place(word)?;
    jobs::local_path(&place).ok_or_else(|| {
        Error::new(
            ErrorKind::Unsupported,
            "drop it on the window",
            "it is on another computer",
        )
        .at(place.to_bytes())
        .hint("open the window and make it the source of a profile, or use 'transload copy'")
    })
}

fn has_display() -> bool {
    ["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DISPLAY"]
        .into_iter()
        .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

/// Says why there is no window and what can be done instead.
fn instead(why: &str, out: &Out) -> u8 {
    out.warn(why);
    out.warn("The command line does the same work:\n");
    out.warn(&Cli::command().render_help().to_string());
    exit::USAGE
}
