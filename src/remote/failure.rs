//! Turns ssh's exit status and last words into an error that says what to do next.
//!
//! That a session failed is known from the exit status and from our own marker, never from text.
//! Text only chooses the words and the kind: the lines are read from the last one up, because ssh
//! speaks last and a server's banner could say anything before it.

use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Host;
use crate::model::untrusted::Untrusted;
use crate::proc::{Child, ExitStatus, Tail};
use crate::remote::target::{command, label};

/// The status with which ssh itself fails; others come from the far side.
const SSH_FAILED: i32 = 255;
/// How long a session that has closed its output may take to end.
const END_LIMIT: Duration = Duration::from_secs(2);

/// What a line of ssh's is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    HostKey,
    Login,
    TooManyKeys,
    KeyFileOpen,
    NoName,
    Refused,
    NoRoute,
    TimedOut,
    Algorithms,
    Configuration,
    ClosedEarly,
    Silent,
    Closed,
}

/// Parts of ssh's sentences, in small letters, most telling first.
const SENTENCES: [(&str, Topic); 36] = [
    ("host key verification failed", Topic::HostKey),
    ("remote host identification has changed", Topic::HostKey),
    ("revoked host key", Topic::HostKey),
    ("host key is known for", Topic::HostKey),
    ("too many authentication failures", Topic::TooManyKeys),
    ("unprotected private key file", Topic::KeyFileOpen),
    ("this private key will be ignored", Topic::KeyFileOpen),
    ("permission denied (", Topic::Login),
    ("permission denied, please try again", Topic::Login),
    ("no supported authentication methods", Topic::Login),
    ("authentication failed", Topic::Login),
    ("could not resolve hostname", Topic::NoName),
    ("name or service not known", Topic::NoName),
    ("no address associated with", Topic::NoName),
    ("connection refused", Topic::Refused),
    ("no route to host", Topic::NoRoute),
    ("network is unreachable", Topic::NoRoute),
    ("cannot assign requested address", Topic::NoRoute),
    ("connection timed out", Topic::TimedOut),
    ("operation timed out", Topic::TimedOut),
    ("unable to negotiate", Topic::Algorithms),
    ("no matching", Topic::Algorithms),
    ("invalid key length", Topic::Algorithms),
    ("bad configuration option", Topic::Configuration),
    ("bad configuration options", Topic::Configuration),
    ("bad owner or permissions on", Topic::Configuration),
    ("can't open user config file", Topic::Configuration),
    ("command-line line", Topic::Configuration),
    ("missing argument", Topic::Configuration),
    ("kex_exchange_identification", Topic::ClosedEarly),
    ("ssh_exchange_identification", Topic::ClosedEarly),
    ("banner exchange", Topic::ClosedEarly),
    ("not responding", Topic::Silent),
    ("closed by", Topic::Closed),
    ("connection reset", Topic::Closed),
    ("broken pipe", Topic::Closed),
];

/// Waits a moment for a session that worked and has closed its output, and says why it ended:
/// always `Disconnected`, because the log-in was good.
///
/// `doing` completes "Failed to ...".
pub fn why_ended(child: &mut Child, stderr: &Tail, host: &Host, doing: &str) -> Error {
    match ended(child, stderr) {
        Ok((status, stderr)) => broken(doing, host, status, stderr.as_bytes()),
        Err(error) => error,
    }
}

/// Waits a moment for a session that has closed its output. No status means that it still runs.
pub(super) fn ended(child: &mut Child, stderr: &Tail) -> Result<(Option<ExitStatus>, Untrusted)> {
    let status = child.wait_deadline(END_LIMIT)?;
    Ok((status, stderr.finish()))
}

/// Says whether it was ssh that failed, or that it was ended; another status comes from the far
/// side.
pub(super) fn is_sshs_own(status: Option<ExitStatus>) -> bool {
    status
        .and_then(|status| status.code())
        .is_none_or(|code| code == SSH_FAILED)
}

fn broken(doing: &str, host: &Host, status: Option<ExitStatus>, stderr: &[u8]) -> Error {
    let signal = status.and_then(|status| status.signal());
    let code = status.and_then(|status| status.code());
    let last = lines(stderr).rev();
    // The agent speaks on the same pipe; a sentence of ssh's own tells more.
    let mut told = last.clone().filter(|line| topic(line).is_some());
    let line = told.next().filter(|_| is_sshs_own(status));
    let line = line.or_else(|| last.clone().next());
    let cause: Untrusted = match (signal, line, code) {
        (Some(signal), _, _) => format!("ssh was ended by signal {signal}").into(),
        (None, Some(line), _) => line.into(),
        (None, None, Some(code)) => format!("the far side ended with status {code}").into(),
        (None, None, None) => "the connection was closed".into(),
    };
    Error::new(ErrorKind::Disconnected, doing, cause)
        .at(label(host))
        .hint("the connection broke; try again, or resume")
}

/// Returns the error for a log-in that ssh itself gave up with these words.
pub fn login_failure(doing: &str, host: &Host, stderr: &[u8]) -> Error {
    from_words(doing, host, stderr).at(label(host))
}

fn from_words(doing: &str, host: &Host, stderr: &[u8]) -> Error {
    let lines: Vec<&[u8]> = lines(stderr).collect();
    let told = lines
        .iter()
        .rev()
        .find_map(|line| topic(line).map(|topic| (*line, topic)));
    let Some((line, topic)) = told else {
        let cause = lines.last().copied();
        let cause = cause.map_or_else(|| "ssh gave no reason".into(), Untrusted::from);
        return Error::new(ErrorKind::Disconnected, doing, cause).hint(format!(
            "try \"{}\" in a terminal to see more",
            command(host)
        ));
    };
    let said = |topics: &[&str]| {
        lines.iter().any(|line| {
            let line = line.to_ascii_lowercase();
            topics.iter().any(|part| contains(&line, part.as_bytes()))
        })
    };
    let by_hand = command(host);
    let cause = Untrusted::from(line);
    match topic {
        Topic::HostKey if said(&["revoked host key"]) => Error::new(
            ErrorKind::HostKey,
            doing,
            "the computer's host key has been revoked",
        )
        .hint("do not log in; ask whoever runs that computer"),
        Topic::HostKey if said(&["identification has changed"]) => Error::new(
            ErrorKind::HostKey,
            doing,
            "the computer answers with another host key than before",
        )
        .hint(
            "somebody may be listening in, or the computer was set up anew: ask whoever runs it; \
             only when they confirm the new key, remove the old one from your known_hosts file",
        ),
        Topic::HostKey => Error::new(ErrorKind::HostKey, doing, "its host key is not known yet")
            .hint(format!(
                "run \"{by_hand}\" once in a terminal, compare the fingerprint and accept it"
            )),
        Topic::KeyFileOpen => Error::new(ErrorKind::Login, doing, cause)
            .hint("other users can read your private key: run chmod 600 on it"),
        Topic::TooManyKeys => Error::new(ErrorKind::Login, doing, cause).hint(
            "your ssh-agent offers more keys than the server tries: choose the key for this host \
             and add the ssh option IdentitiesOnly=yes",
        ),
        Topic::Login if said(&["unprotected private key file"]) => {
            Error::new(ErrorKind::Login, doing, cause)
                .hint("other users can read your private key: run chmod 600 on it")
        }
        Topic::Login => Error::new(ErrorKind::Login, doing, cause).hint(format!(
            "set up a key with \"{}\", or load yours with ssh-add; check the user name",
            by_hand.replacen("ssh", "ssh-copy-id", 1)
        )),
        Topic::NoName => Error::new(ErrorKind::Unreachable, doing, cause)
            .hint("check the spelling of the host name, or use its address"),
        Topic::Refused => Error::new(ErrorKind::Unreachable, doing, cause)
            .hint("check that ssh is switched on there and that the port is right"),
        Topic::NoRoute => Error::new(ErrorKind::Unreachable, doing, cause)
            .hint("check that both computers are on the network"),
        Topic::TimedOut => Error::new(ErrorKind::Unreachable, doing, cause)
            .hint("check that it is switched on and that no firewall drops the port"),
        Topic::Algorithms => Error::new(ErrorKind::Unsupported, doing, cause).hint(
            "the server's ssh is too old or too new for yours; allow what it offers for this \
             host, for example with the ssh option HostKeyAlgorithms=+ssh-rsa",
        ),
        Topic::Configuration => Error::new(ErrorKind::Config, doing, cause)
            .hint("correct your ssh configuration or the ssh options of this profile"),
        Topic::Closed | Topic::ClosedEarly
            if said(&["exchange_identification", "banner exchange"]) =>
        {
            Error::new(ErrorKind::Disconnected, doing, cause).hint(
                "the server hung up before the log-in; it may be limiting new connections: wait \
                 a minute, then try again",
            )
        }
        Topic::Silent | Topic::Closed | Topic::ClosedEarly => {
            Error::new(ErrorKind::Disconnected, doing, cause)
                .hint("the connection broke; try again, or resume")
        }
    }
}

fn topic(line: &[u8]) -> Option<Topic> {
    let line = line.to_ascii_lowercase();
    SENTENCES
        .iter()
        .find(|(part, _)| contains(&line, part.as_bytes()))
        .map(|(_, topic)| *topic)
}

fn contains(line: &[u8], part: &[u8]) -> bool {
    line.windows(part.len()).any(|window| window == part)
}

fn lines(text: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
    text.split(|&b| b == b'\n')
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
}

pub(super) fn last_line(text: &[u8]) -> Option<&[u8]> {
    lines(text).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(stderr: &str) -> Error {
        let host = Host {
            user: None,
            name: "nas".into(),
            port: Some(2222),
        };
        login_failure("log in", &host, stderr.as_bytes())
    }

    #[test]
    fn every_usual_ending_has_its_kind_and_says_what_to_do() {
        for (stderr, kind, hint) in [
            (
                "ssh: Could not resolve hostname nas: Name or service not known\r\n",
                ErrorKind::Unreachable,
                "spelling",
            ),
            (
                "ssh: connect to host nas port 2222: Connection refused\r\n",
                ErrorKind::Unreachable,
                "switched on",
            ),
            (
                "ssh: connect to host nas port 22: No route to host",
                ErrorKind::Unreachable,
                "network",
            ),
            (
                "ssh: connect to host nas port 22: Connection timed out",
                ErrorKind::Unreachable,
                "firewall",
            ),
            (
                "Connection timed out during banner exchange\r\nConnection to 10.0.0.2 port 22 timed out",
                ErrorKind::Unreachable,
                "firewall",
            ),
            (
                "root@nas: Permission denied (publickey,password).\r\n",
                ErrorKind::Login,
                "ssh-copy-id -p 2222 nas",
            ),
            (
                "Received disconnect from 10.0.0.2 port 22:2: Too many authentication failures\r\n\
                 Disconnected from 10.0.0.2 port 22",
                ErrorKind::Login,
                "IdentitiesOnly",
            ),
            (
                "@ WARNING: UNPROTECTED PRIVATE KEY FILE! @\nLoad key \"k\": bad permissions\n\
                 nas: Permission denied (publickey).",
                ErrorKind::Login,
                "chmod 600",
            ),
            (
                "Host key verification failed.\r\n",
                ErrorKind::HostKey,
                "ssh -p 2222 nas",
            ),
            (
                "@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nIT IS POSSIBLE\n\
                 Host key verification failed.",
                ErrorKind::HostKey,
                "ask whoever runs it",
            ),
            (
                "@ WARNING: REVOKED HOST KEY DETECTED! @\nHost key verification failed.",
                ErrorKind::HostKey,
                "do not log in",
            ),
            (
                "Unable to negotiate with 10.0.0.2 port 22: no matching host key type found. \
                 Their offer: ssh-rsa",
                ErrorKind::Unsupported,
                "HostKeyAlgorithms",
            ),
            (
                "/x/config: line 3: Bad configuration option: foo\r\n\
                 /x/config: terminating, 1 bad configuration options",
                ErrorKind::Config,
                "configuration",
            ),
            (
                "kex_exchange_identification: Connection closed by remote host\r\n\
                 Connection closed by 10.0.0.2 port 22",
                ErrorKind::Disconnected,
                "limiting new connections",
            ),
            (
                "Timeout, server nas not responding.",
                ErrorKind::Disconnected,
                "resume",
            ),
            ("", ErrorKind::Disconnected, "ssh -p 2222 nas"),
        ] {
            let error = fail(stderr);
            assert_eq!(error.kind, kind, "{stderr}");
            assert!(error.hint.unwrap().contains(hint), "{stderr}");
        }
    }

    #[test]
    fn a_changed_key_is_explained_and_never_offered_to_be_ignored() {
        let error = fail("REMOTE HOST IDENTIFICATION HAS CHANGED!\nHost key verification failed.");
        assert_eq!(
            error.to_string(),
            "Failed to log in: the computer answers with another host key than before \
             \u{2014} nas:2222"
        );
        assert!(!error.hint.unwrap().contains("ssh nas"));
    }

    #[test]
    fn a_banner_cannot_hide_what_ssh_said_last() {
        let error = fail(
            "Welcome! Host key verification failed. Connection refused.\n\
             nas: Permission denied (publickey).",
        );
        assert_eq!(error.kind, ErrorKind::Login);
        assert_eq!(
            error.to_string(),
            "Failed to log in: nas: Permission denied (publickey). \u{2014} nas:2222"
        );
    }

    #[test]
    fn a_session_that_worked_is_never_called_a_failed_log_in() {
        let host = Host::default();
        let end = |status: i32, words: &str| {
            let status = Some(ExitStatus::from_raw(status));
            let error = broken("copy", &host, status, words.as_bytes());
            assert_eq!(error.kind, ErrorKind::Disconnected);
            error.cause.to_string()
        };
        let ssh = SSH_FAILED << 8;
        // What the agent says last does not hide what ssh said.
        let words = "Connection to nas closed by remote host.\r\nagent: input ended\n";
        assert_eq!(end(ssh, words), "Connection to nas closed by remote host.");
        assert_eq!(
            end(ssh, "permission denied (os error 13)"),
            "permission denied (os error 13)"
        );
        assert_eq!(
            end(1 << 8, "banner\nagent: out of memory\n"),
            "agent: out of memory"
        );
        assert_eq!(end(1 << 8, ""), "the far side ended with status 1");
        assert_eq!(end(9, "words"), "ssh was ended by signal 9");
        let open = broken("copy", &host, None, b"");
        assert_eq!(open.cause.to_string(), "the connection was closed");
    }
}
