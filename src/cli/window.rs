//! `transload` without a command: the window, where there is one and a display to show it on.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;

use clap::CommandFactory as _;

use crate::cli::args::Cli;
use crate::cli::exit;
use crate::cli::out::Out;
use crate::model::drop::DroppedItem;
use crate::model::error::Result;
use crate::service::jobs;

/// Opens the window with these items dropped on it, and returns when it is closed.
pub type Window = fn(Vec<DroppedItem>) -> Result<()>;

/// Opens the window and returns the exit status.
///
/// # Errors
/// When the window cannot be opened.
pub fn open(window: Option<Window>, paths: &[OsString], out: &Out) -> Result<u8> {
    let Some(window) = window else {
        return Ok(instead("This build has no window.", out));
    };
    if !has_display() {
        return Ok(instead("There is no display to open the window on.", out));
    }
    window(paths.iter().map(|path| dropped(path)).collect())?;
    Ok(exit::COMPLETED)
}

/// Makes of an argument what a drop of it would have brought.
fn dropped(word: &OsStr) -> DroppedItem {
    let refused = |why: String| DroppedItem::Refused {
        text: word.as_bytes().into(),
        why,
    };
    match jobs::place(word) {
        Err(error) => refused(error.cause.to_string()),
        Ok(place) => match jobs::local_path(&place) {
            None => refused("it is on another computer; make it the source of a profile".into()),
            Some(path) if path.symlink_metadata().is_err() => refused("it does not exist".into()),
            Some(path) => DroppedItem::Path(path),
        },
    }
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
