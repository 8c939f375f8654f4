//! Names that may stand on ssh's command line: host, user, and jump hosts, checked once.
//!
//! ssh hands host and user names on to shells (`ProxyCommand`, `Match exec`) and reads a leading
//! `-` as an option, so names with characters that mean something there are refused whatever
//! version of ssh is installed.

use std::ffi::OsStr;
use std::fmt;
use std::net::Ipv6Addr;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Host;
use crate::model::untrusted::shown;

/// The longest name, in bytes.
pub const LONGEST: usize = 255;

/// Characters that a shell, ssh's own configuration or its `%` expansion would act on.
const REFUSED: &str = "'\"`$\\;&<>|(){},%";

/// A host name, alias or address that ssh takes as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostName(String);

impl HostName {
    /// Checks a name; a link-local IPv6 address may carry its zone (`fe80::1%eth0`).
    ///
    /// # Errors
    /// `Config` that names the fault.
    pub fn new(name: &str) -> Result<Self> {
        let plain = match name.split_once('%') {
            Some((ip, zone)) if ip.parse::<Ipv6Addr>().is_ok() && is_zone(zone) => ip,
            _ => name,
        };
        check("host", plain, name)?;
        for (odd, why) in [('@', "a second @"), ('/', "a slash")] {
            if plain.contains(odd) {
                return Err(refused("host", name, &format!("it holds {why}")));
            }
        }
        Ok(Self(name.to_owned()))
    }
}

/// A log-in name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserName(String);

impl UserName {
    /// Checks a name.
    ///
    /// # Errors
    /// `Config` that names the fault.
    pub fn new(name: &str) -> Result<Self> {
        check("user", name, name)?;
        Ok(Self(name.to_owned()))
    }
}

/// A list of hosts to go through, as `ProxyJump` takes it: `[user@]host[:port]`, by commas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jump(String);

impl Jump {
    /// Checks every hop; `none` switches a configured jump off.
    ///
    /// # Errors
    /// `Config` that names the fault.
    pub fn new(list: &str) -> Result<Self> {
        for hop in list.split(',') {
            let (user, rest) = match hop.rsplit_once('@') {
                Some((user, rest)) => (Some(user), rest),
                None => (None, hop),
            };
            if let Some(user) = user {
                UserName::new(user)?;
            }
            let (name, port) = match rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
                Some((name, "")) => (name, None),
                Some((name, port)) => (name, Some(port.strip_prefix(':').unwrap_or(""))),
                None if rest.matches(':').count() == 1 => {
                    let (name, port) = rest.split_once(':').unwrap_or((rest, ""));
                    (name, Some(port))
                }
                None => (rest, None),
            };
            HostName::new(name)?;
            if port.is_some_and(|port| !is_port(port)) {
                return Err(refused("jump host", hop, "its port is not 1 to 65535"));
            }
        }
        Ok(Self(list.to_owned()))
    }
}

/// Says whether a text is a port number.
pub(super) fn is_port(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

macro_rules! text {
    ($($name:ident)*) => {$(
        impl $name {
            /// Returns the checked text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        impl AsRef<OsStr> for $name {
            fn as_ref(&self) -> &OsStr {
                self.0.as_ref()
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    )*};
}
text!(HostName UserName Jump);

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

fn is_zone(zone: &str) -> bool {
    !zone.is_empty()
        && zone
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
}

fn check(what: &str, name: &str, whole: &str) -> Result<()> {
    let fault = if name.is_empty() {
        "it is empty".to_owned()
    } else if whole.len() > LONGEST {
        format!("it is longer than {LONGEST} bytes")
    } else if name.starts_with('-') {
        "it begins with -".to_owned()
    } else if name.chars().any(char::is_whitespace) {
        "it holds a blank".to_owned()
    } else if shown(name.as_bytes()) != name {
        "it holds an invisible or control character".to_owned()
    } else if let Some(bad) = name.chars().find(|&c| REFUSED.contains(c)) {
        format!("it holds the character {bad}")
    } else {
        return Ok(());
    };
    Err(refused(what, whole, &fault))
}

fn refused(what: &str, name: &str, why: &str) -> Error {
    Error::new(ErrorKind::Config, format!("use this {what} name"), why)
        .at(name)
        .hint(format!(
            "for an unusual {what} name write a Host entry with a plain alias in your ssh \
             configuration, and use the alias here"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: [&str; 30] = [
        "",
        "-oProxyCommand=touch PWN",
        "-Fx",
        "-lroot",
        "-",
        " -x",
        "a b",
        "a\tb",
        "a\nb",
        "a\0b",
        "a;id",
        "a`id`",
        "$(id)",
        "a'b",
        "a\"b",
        "a\\b",
        "a&b",
        "a<b",
        "a>b",
        "a|b",
        "(a)",
        "{a}",
        "a,b",
        "a%h",
        "a\u{202e}b",
        "a\u{200b}b",
        "a\x1b[31m",
        "a\u{a0}b",
        "a\u{2028}b",
        "a\u{7f}b",
    ];

    #[test]
    fn names_that_ssh_or_a_shell_would_act_on_are_refused() {
        let long = "a".repeat(LONGEST + 1);
        for bad in HOSTILE.iter().copied().chain([long.as_str()]) {
            for error in [HostName::new(bad).err(), UserName::new(bad).err()] {
                assert_eq!(error.map(|e| e.kind), Some(ErrorKind::Config), "{bad:?}");
            }
            if bad != "a,b" {
                assert!(Jump::new(bad).is_err(), "{bad:?}");
            }
        }
        for bad in [
            "a@b",
            "ssh://a",
            "a/b",
            "fe80::1%",
            "fe80::1%$(id)",
            "host%eth0",
        ] {
            assert!(HostName::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ordinary_names_pass() {
        let long = "a".repeat(LONGEST);
        for good in [
            "nas",
            "nas.local",
            "10.0.0.1",
            "::1",
            "2001:db8::1",
            "fe80::1%eth0",
            "my_box",
            "büro",
            &long,
        ] {
            assert_eq!(HostName::new(good).unwrap().as_str(), good);
        }
        for good in [
            "me",
            "me@example.org",
            "first.last",
            "user+tag",
            "büro",
            "_svc",
        ] {
            assert_eq!(UserName::new(good).unwrap().as_str(), good);
        }
    }

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
            assert!(Jump::new(good).is_ok(), "{good}");
        }
        for bad in [
            "a,", ",a", "a,-x", "a:0", "a:", "a:65536", "a:22x", "[::1]x", "-l@a", "@a",
        ] {
            assert!(Jump::new(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_names_the_fault_and_a_way_out() {
        let error = HostName::new("-x").unwrap_err();
        assert_eq!(
            error.to_string(),
            "Failed to use this host name: it begins with - \u{2014} -x"
        );
        assert!(error.hint.unwrap().contains("alias"));
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
