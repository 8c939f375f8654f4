//! What a host is called on ssh's command line and in front of people: jump hosts checked hop by
//! hop, and a host's label and command.
//!
//! [`Host::check`] says which names may stand there at all.

use crate::model::error::Result;
use crate::model::location::Host;
use crate::model::untrusted::shown;

/// Checks a list of hosts to go through, as `ProxyJump` takes it: `[user@]host[:port]`, by commas;
/// `none` switches a configured jump off.
///
/// # Errors
/// As [`Host::check`], for the first hop that may not stand there.
pub fn check_jump(list: &str) -> Result<()> {
    for hop in list.split(',') {
        let (user, rest) = match hop.rsplit_once('@') {
            Some((user, rest)) => (Some(user.to_owned()), rest),
            None => (None, hop),
        };
        let (name, port) = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
            Some((name, "")) => (name, None),
            Some((name, port)) => (name, Some(port.strip_prefix(':').unwrap_or(""))),
            None if rest.matches(':').count() == 1 => {
                let (name, port) = rest.split_once(':').unwrap_or((rest, ""));
                (name, Some(port))
            }
            None => (rest, None),
        };
        let host = Host {
            user,
            name: name.to_owned(),
            port: port.map(|port| port_number(port).unwrap_or(0)),
        };
        host.check()?;
    }
    Ok(())
}

/// Checks a host's name where no user or port stands beside it.
///
/// # Errors
/// As [`Host::check`].
pub fn check_name(name: &str) -> Result<()> {
    let name = name.to_owned();
    let host = Host {
        user: None,
        name,
        port: None,
    };
    host.check()
}

/// Checks a log-in name where no host stands beside it.
///
/// # Errors
/// As [`Host::check`].
pub fn check_user(user: &str) -> Result<()> {
    let user = Some(user.to_owned());
    let host = Host {
        user,
        name: "host".into(),
        port: None,
    };
    host.check()
        .map_err(|error| error.at(host.user.as_deref().unwrap_or_default()))
}

/// Reads a port number, 1 to 65535.
pub fn port_number(text: &str) -> Option<u16> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|&port| digits && port > 0)
}

/// Returns a host as a person writes it, escaped: `user@name:port`.
pub fn label(host: &Host) -> String {
    let Host { user, name, port } = host;
    let mut text = String::new();
    if let Some(user) = user {
        text += &format!("{}@", shown(user.as_bytes()));
    }
    let name = shown(name.as_bytes());
    match port {
        Some(port) if name.contains(':') => text += &format!("[{name}]:{port}"),
        Some(port) => text += &format!("{name}:{port}"),
        None => text += &name,
    }
    text
}

/// Returns the ssh command that a person can type to reach a host.
pub fn command(host: &Host) -> String {
    let Host { user, name, port } = host;
    let mut text = "ssh ".to_owned();
    if let Some(port) = port {
        text += &format!("-p {port} ");
    }
    if let Some(user) = user {
        text += &format!("{}@", shown(user.as_bytes()));
    }
    text + &shown(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hop_of_a_jump_list_is_checked() {
        for good in [
            "none",
            "a",
            "me@a:22,b",
            "u@[2001:db8::1]:2222",
            "[::1]",
            "::1",
        ] {
            assert!(check_jump(good).is_ok(), "{good}");
        }
        for bad in [
            "a,", ",a", "a,-x", "a:0", "a:", "a:65536", "a:22x", "[::1]x", "-l@a", "@a",
        ] {
            assert!(check_jump(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_is_shown_as_it_is_written() {
        let mut host = Host {
            user: Some("me".into()),
            name: "::1".into(),
            port: Some(22),
        };
        assert_eq!(label(&host), "me@[::1]:22");
        assert_eq!(command(&host), "ssh -p 22 me@::1");
        host.port = None;
        assert_eq!(label(&host), "me@::1");
        host.user = None;
        assert_eq!(command(&host), "ssh ::1");
    }
}
