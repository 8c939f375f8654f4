//! What a host and a user may be called, so that no name can turn into an option or a command.
//!
//! A host or user from a URL, a profile or a drop ends up on ssh's command line and, by `%h` and
//! `%r`, in the user's own `ProxyCommand`, which a shell reads. OpenSSH refuses such characters
//! since 9.6 for this reason; this program refuses them whatever the ssh version is.

use super::Host;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::untrusted::shown;

/// The longest host or user name in bytes.
const MAX_NAME: usize = 255;

impl Host {
    /// Checks user, name and port; [`super::Location::parse`] gives no host that fails.
    ///
    /// # Errors
    /// `Config`, naming the field and the character.
    pub fn check(&self) -> Result<()> {
        let fault = match &self.user {
            Some(user) => user_fault(user).or_else(|| name_fault(&self.name)),
            None => name_fault(&self.name),
        };
        let fault = fault.or_else(|| {
            (self.port == Some(0)).then(|| "the port is 0; ports are 1 to 65535".to_owned())
        });
        match fault {
            None => Ok(()),
            Some(why) => Err(Error::new(ErrorKind::Config, "use this host", why)
                .at(self.name.as_str())
                .hint("correct the host, or give it a plain alias in ~/.ssh/config")),
        }
    }

    /// Says whether the name is an IPv6 address, which is written in brackets before a colon.
    pub fn is_v6(&self) -> bool {
        self.name.contains(':')
    }
}

/// Returns what is wrong with a host's name, if anything.
pub(super) fn name_fault(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("the host is missing".to_owned());
    }
    if let Some(fault) = common_fault("host", name) {
        return Some(fault);
    }
    if name.contains(':') {
        return v6_fault(name);
    }
    bad_char("host", name, |c| {
        matches!(c, '%' | '/' | '@' | '[' | ']' | '#' | '?' | '*' | '!')
    })
}

/// Returns what is wrong with a log-in name, if anything.
pub(super) fn user_fault(user: &str) -> Option<String> {
    if user.is_empty() {
        return Some("the user before the @ is missing".to_owned());
    }
    common_fault("user", user)
        .or_else(|| bad_char("user", user, |c| matches!(c, '%' | '/' | ':' | '[' | ']')))
}

fn v6_fault(name: &str) -> Option<String> {
    let (address, zone) = match name.split_once('%') {
        Some((address, zone)) => (address, Some(zone)),
        None => (name, None),
    };
    if address.parse::<std::net::Ipv6Addr>().is_err() {
        return Some("the host has a colon but is no IPv6 address".to_owned());
    }
    let zone_is_right = zone.is_none_or(|zone| {
        !zone.is_empty()
            && zone
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'))
    });
    (!zone_is_right).then(|| "what follows the % is no network interface's name".to_owned())
}

fn common_fault(what: &str, text: &str) -> Option<String> {
    if text.len() > MAX_NAME {
        return Some(format!("the {what} is longer than {MAX_NAME} bytes"));
    }
    if text.starts_with('-') {
        return Some(format!("the {what} starts with '-'"));
    }
    let fault = bad_char(what, text, |c| {
        matches!(
            c,
            '\'' | '"'
                | '`'
                | '$'
                | '\\'
                | ';'
                | '&'
                | '<'
                | '>'
                | '|'
                | '('
                | ')'
                | '{'
                | '}'
                | ','
        )
    });
    // Marks that turn the line or take no room make one name look like another.
    fault.or_else(|| {
        (shown(text.as_bytes()) != text).then(|| format!("the {what} holds an invisible character"))
    })
}

fn bad_char(what: &str, text: &str, bad: impl Fn(char) -> bool) -> Option<String> {
    text.chars().find_map(|c| {
        if c.is_control() {
            Some(format!("the {what} holds a control character"))
        } else if c.is_whitespace() {
            Some(format!("the {what} holds a blank"))
        } else if bad(c) {
            Some(format!("the {what} holds '{c}'"))
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_host_or_user_can_become_an_option_or_a_command() {
        for bad in [
            "",
            "-oProxyCommand=x",
            "a b",
            "a\nb",
            "a\u{a0}b",
            "a'b",
            "a\"b",
            "a`b",
            "a$b",
            "a\\b",
            "a;b",
            "a&b",
            "a<b",
            "a>b",
            "a|b",
            "a(b",
            "a)b",
            "a{b",
            "a}b",
            "a,b",
            "a%b",
            "a/b",
            "a\0b",
            "a\u{9b}b",
            "a\u{202e}b",
            "a\u{200b}b",
        ] {
            assert!(name_fault(bad).is_some(), "host {bad:?}");
            assert!(user_fault(bad).is_some(), "user {bad:?}");
        }
        for good in ["nas", "nas.example.org", "192.0.2.1", "my_nas-2", "büro"] {
            assert_eq!(name_fault(good), None, "{good}");
        }
        for good in [
            "me",
            "me@corp.example",
            "first.last",
            "svc$".trim_end_matches('$'),
        ] {
            assert_eq!(user_fault(good), None, "{good}");
        }
        assert!(name_fault(&"a".repeat(255)).is_none());
        assert!(name_fault(&"a".repeat(256)).is_some());
    }

    #[test]
    fn an_address_may_have_a_zone_and_nothing_else() {
        for good in ["::1", "2001:db8::1", "fe80::1%eth0", "fe80::1%wlp3s0.7"] {
            assert_eq!(name_fault(good), None, "{good}");
        }
        for bad in [
            "a:b",
            "fe80::1%",
            "fe80::1%e;x",
            "::g",
            "::1%a%b",
            "nas%eth0",
        ] {
            assert!(name_fault(bad).is_some(), "{bad}");
        }
    }

    #[test]
    fn port_zero_is_refused() {
        let host = Host {
            user: None,
            name: "nas".into(),
            port: Some(0),
        };
        assert_eq!(host.check().unwrap_err().kind, ErrorKind::Config);
    }
}
