//! Whether the desktop has dialogs for files: asked on the session bus before one is opened.

use std::time::Duration;

use zbus::blocking::connection::Builder;
use zbus::blocking::fdo::DBusProxy;

/// How long the bus has to answer.
const ANSWER: Duration = Duration::from_secs(2);
const PORTAL: &str = "org.freedesktop.portal.Desktop";

/// Says whether a portal runs or can be started. Blocks for at most a few seconds.
pub fn has_file_dialog() -> bool {
    // Without an address zbus would look for a bus at a guessed place.
    if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none() {
        return false;
    }
    ask().unwrap_or(false)
}

fn ask() -> zbus::Result<bool> {
    let bus = Builder::session()?.method_timeout(ANSWER).build()?;
    let names = DBusProxy::new(&bus)?;
    if names.name_has_owner(PORTAL.try_into()?)? {
        return Ok(true);
    }
    Ok(names
        .list_activatable_names()?
        .iter()
        .any(|name| name.as_str() == PORTAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computer_without_a_session_bus_has_no_file_dialog() {
        if std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_none() {
            assert!(!has_file_dialog());
        }
    }
}
