//! Which `-o` options a profile or the command line may hand to ssh.
//!
//! A profile may come from somebody else, so options given here can neither run programs nor
//! weaken the check of the host's key. The user's own ssh configuration file may hold anything:
//! ssh reads it as it always does.

use std::path::Path;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::untrusted::shown;
use crate::remote::target::{check_jump, check_name, check_user, port_number};

/// The longest value, in bytes.
const LONGEST: usize = 1024;

/// What may be given, as ssh spells it.
const ALLOWED: [&str; 36] = [
    "AddressFamily",
    "BindAddress",
    "BindInterface",
    "CASignatureAlgorithms",
    "CertificateFile",
    "Ciphers",
    "Compression",
    "ConnectTimeout",
    "ConnectionAttempts",
    "GSSAPIAuthentication",
    "GSSAPIKeyExchange",
    "HostKeyAlgorithms",
    "HostKeyAlias",
    "HostName",
    "HostbasedAuthentication",
    "IPQoS",
    "IdentitiesOnly",
    "IdentityFile",
    "KbdInteractiveAuthentication",
    "KexAlgorithms",
    "LogLevel",
    "MACs",
    "NumberOfPasswordPrompts",
    "PasswordAuthentication",
    "Port",
    "PreferredAuthentications",
    "ProxyJump",
    "PubkeyAcceptedAlgorithms",
    "PubkeyAcceptedKeyTypes",
    "PubkeyAuthentication",
    "RekeyLimit",
    "RequiredRSASize",
    "ServerAliveCountMax",
    "ServerAliveInterval",
    "TCPKeepAlive",
    "User",
];

/// Options that run or load a program, or read more options from elsewhere.
const RUNS: [&str; 13] = [
    "ProxyCommand",
    "LocalCommand",
    "PermitLocalCommand",
    "KnownHostsCommand",
    "RemoteCommand",
    "Match",
    "Include",
    "Host",
    "XAuthLocation",
    "PKCS11Provider",
    "SecurityKeyProvider",
    "SmartcardDevice",
    "ProxyUseFdpass",
];

/// Options by which another machine could pass for the host.
const WEAKENS: [&str; 6] = [
    "UserKnownHostsFile",
    "GlobalKnownHostsFile",
    "NoHostAuthenticationForLocalhost",
    "VerifyHostKeyDNS",
    "UpdateHostKeys",
    "CheckHostIP",
];

/// What a list of options says, checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// `Name=value`, in the order they were given.
    pub options: Vec<String>,
    /// `StrictHostKeyChecking=yes` was asked for.
    pub strict: bool,
    /// Seconds, when `ConnectTimeout` was given.
    pub connect_timeout: Option<u16>,
}

/// Checks options written as `Name=value` (or, as ssh also takes it, `Name value`).
///
/// # Errors
/// `Config` for the first one that may not be given here, with the reason.
pub fn check<S: AsRef<str>>(options: &[S]) -> Result<Checked> {
    let mut checked = Checked::default();
    for option in options {
        let whole = option.as_ref().trim();
        let refuse = |cause: String, hint: &str| {
            Error::new(ErrorKind::Config, "use this ssh option", cause)
                .at(whole)
                .hint(hint)
        };
        let end = whole
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(whole.len());
        let (name, rest) = whole.split_at(end);
        let value = rest.trim_start();
        let value = value.strip_prefix('=').unwrap_or(value).trim();
        let is = |other: &&str| other.eq_ignore_ascii_case(name);
        let own_file = "put it in your own ssh configuration file, where ssh reads it as usual";
        if name.is_empty() || value.is_empty() {
            return Err(refuse(
                "it is not written as Name=value".into(),
                "for example Compression=yes",
            ));
        }
        if value.len() > LONGEST || shown(value.as_bytes()) != value {
            return Err(refuse(
                "its value is too long or holds an invisible or control character".into(),
                "write it again by hand",
            ));
        }
        if RUNS.iter().any(is) {
            return Err(refuse(
                format!("{name} can run a program or read more options"),
                own_file,
            ));
        }
        if is(&"StrictHostKeyChecking") {
            match value {
                "yes" => checked.strict = true,
                "ask" => {}
                _ => return Err(weakens(&refuse, name)),
            }
            continue;
        }
        if WEAKENS.iter().any(is) {
            return Err(weakens(&refuse, name));
        }
        let Some(name) = ALLOWED.iter().copied().find(is) else {
            return Err(refuse(
                format!("{name} is not an option that may be given here"),
                own_file,
            ));
        };
        match name {
            "HostName" => check_name(value)?,
            "User" => check_user(value)?,
            "ProxyJump" => check_jump(value)?,
            "Port" if port_number(value).is_none() => {
                return Err(refuse(
                    "a port is a number from 1 to 65535".into(),
                    "correct it",
                ));
            }
            "ConnectTimeout" => match value.parse() {
                Ok(seconds) if (1..=600).contains(&seconds) => {
                    checked.connect_timeout = checked.connect_timeout.or(Some(seconds));
                }
                _ => {
                    let cause = "it takes 1 to 600 seconds".to_owned();
                    return Err(refuse(cause, "for example ConnectTimeout=30"));
                }
            },
            "IdentityFile" | "CertificateFile"
                if !Path::new(value).is_absolute() && !value.starts_with("~/") =>
            {
                let cause = "the path is neither absolute nor below ~/".to_owned();
                return Err(refuse(cause, "give the full path of the key"));
            }
            _ => {}
        }
        checked.options.push(format!("{name}={value}"));
    }
    Ok(checked)
}

fn weakens(refuse: &dyn Fn(String, &str) -> Error, name: &str) -> Error {
    refuse(
        format!("{name} would weaken the check that this is the right computer"),
        "leave it out; to accept a new host key, log in once with ssh in a terminal",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_run_commands_or_weaken_host_keys_are_refused() {
        for bad in [
            "ProxyCommand=touch PWN",
            "proxycommand touch PWN",
            "PROXYCOMMAND = x",
            "LocalCommand=x",
            "KnownHostsCommand=x",
            "Match=exec x",
            "Include=/tmp/x",
            "PermitLocalCommand=yes",
            "PKCS11Provider=/tmp/x.so",
            "SecurityKeyProvider=/tmp/x.so",
            "StrictHostKeyChecking=no",
            "StrictHostKeyChecking=off",
            "stricthostkeychecking accept-new",
            "UserKnownHostsFile=/dev/null",
            "GlobalKnownHostsFile=/dev/null",
            "UpdateHostKeys=yes",
            "BatchMode=no",
            "ForwardAgent=yes",
            "RequestTTY=force",
            "ControlPath=/tmp/x",
            "IdentityAgent=/tmp/x",
            "NoSuchOption=1",
            "Compression=yes\nProxyCommand=x",
            "Compression",
            "Compression=",
            "=yes",
            "",
            "-oProxyCommand=x",
            "HostName=-x",
            "HostName=$(id)",
            "User=-l",
            "Port=0",
            "Port=22; id",
            "ProxyJump=-x",
            "ProxyJump=a;id",
            "ConnectTimeout=0",
            "ConnectTimeout=x",
            "IdentityFile=key",
        ] {
            let error = check(&[bad]).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Config, "{bad}");
            assert!(error.hint.is_some(), "{bad}");
        }
    }

    #[test]
    fn ordinary_options_pass_in_the_order_they_were_given() {
        let good = [
            "Compression=yes",
            "ciphers = aes128-gcm@openssh.com",
            "ProxyJump=me@gate:22",
            "IdentityFile=~/.ssh/id_nas",
            "ConnectTimeout=30",
            "StrictHostKeyChecking=ask",
        ];
        let checked = check(&good).unwrap();
        assert_eq!(
            checked.options,
            [
                "Compression=yes",
                "Ciphers=aes128-gcm@openssh.com",
                "ProxyJump=me@gate:22",
                "IdentityFile=~/.ssh/id_nas",
                "ConnectTimeout=30",
            ]
        );
        assert_eq!(checked.connect_timeout, Some(30));
        assert!(!checked.strict);
        assert!(check(&["StrictHostKeyChecking=yes"]).unwrap().strict);
    }

    #[test]
    fn a_refusal_says_why_and_where_the_option_may_stand() {
        let error = check(&["ProxyCommand=nc %h %p"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Failed to use this ssh option: ProxyCommand can run a program or read more options \
             \u{2014} ProxyCommand=nc %h %p"
        );
        assert!(
            error
                .hint
                .unwrap()
                .contains("your own ssh configuration file")
        );
    }
}
