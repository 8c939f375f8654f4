//! Starts the agent on a host: one constant remote command, everything else on its standard
//! input, one answer awaited before the next thing is sent.
//!
//! | we send (a line each)      | the far side answers, after the marker        |
//! |----------------------------|-----------------------------------------------|
//! | marker; `any` or `cache`   | `path` and becomes the agent, or `none LINUX MACHINE` |
//! | the agent's cache name     | `cache` and becomes the agent, or `absent`    |
//! | its size                   | `send`, or `fail`                             |
//! | its bytes                  | `sum SIZE SHA256` (or `-` for the digest)     |
//! | `ok`                       | `new` and becomes the agent                   |
//!
//! The agent's own first line is `agent`, after the same marker; from there on both directions
//! carry binary frames. An empty line instead of a name or size gives up. Nothing is ever sent
//! ahead of an answer: some `head` programs read more than they were asked to.

use std::fmt::Write as _;
use std::io::BufReader;
use std::time::Instant;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Host;
use crate::model::profile::SshSettings;
use crate::proc::{Child, ChildStdin, ChildStdout, Tail};
use crate::remote::agents::Agents;
use crate::remote::connection::login_limit;
use crate::remote::talk::Talk;

/// The remote command, the same for every host, job and file: it holds no quote, backslash, bang
/// or newline within its quotes, so every login shell passes it on unchanged. Globbing and word
/// splitting are off (`set -f`, empty `IFS`), which makes unquoted variables safe.
pub const COMMAND: &str = concat!(
    "exec /bin/sh -c '",
    "set -f; IFS=; read -r m; read -r w; p=; ",
    "case $w in any) p=$(command -v transload-agent);; esac; ",
    "case $p in /*) echo $m path; exec $p serve $m;; esac; ",
    "echo $m none $(uname -sm); ",
    "read -r f; case $f in agent-*) ;; *) exit 0;; esac; ",
    "case $HOME in /*) ;; *) echo $m fail; exit 1;; esac; ",
    "d=$HOME/.cache/transload; ",
    "if test -f $d/$f && test -x $d/$f; then echo $m cache; exec $d/$f serve $m; fi; ",
    "echo $m absent; ",
    "read -r n; case $n in [1-9]*) ;; *) exit 0;; esac; ",
    "t=$d/.new-$m; z() { rm -f $t; exit 1; }; trap z 1 13 15; set -C; ",
    "u=$(umask); umask 077; mkdir -p $d && chmod 700 $d || { echo $m fail; exit 1; }; ",
    "echo $m send; ",
    "head -c $n > $t || { echo $m fail; z; }; ",
    "echo $m sum $(wc -c < $t) $(sha256sum < $t 2>/dev/null || echo -); ",
    "read -r g; case $g in ok) ;; *) z;; esac; ",
    "chmod 700 $t && mv -f $t $d/$f || { echo $m fail; z; }; umask $u; ",
    "echo $m new; exec $d/$f serve $m",
    "'"
);

/// Where the agent came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFound {
    /// It is installed there, in the login shell's `PATH`.
    InPath,
    /// An earlier job copied it to the cache folder.
    Cached,
    /// It was copied there just now.
    Uploaded,
}

/// A running agent and its control channel.
#[derive(Debug)]
pub struct AgentChannel {
    /// The ssh process; dropping it ends the session, and with it the agent.
    pub child: Child,
    /// To the agent.
    pub input: ChildStdin,
    /// From the agent, right after its first line.
    pub output: BufReader<ChildStdout>,
    /// Where the agent came from.
    pub found: AgentFound,
    /// The last words of ssh, the login shell and the agent.
    pub stderr: Tail,
}

/// How to start an agent on one host.
#[derive(Clone, Debug)]
pub struct Bootstrap<'a> {
    /// Where.
    pub host: &'a Host,
    /// How to log in.
    pub ssh: &'a SshSettings,
    /// Take one from the login shell's `PATH`; off when that one turned out to be too old.
    pub use_path: bool,
    /// What can be copied there.
    pub agents: &'a Agents,
}

/// Starts the agent on a host: from its `PATH`, else from its cache folder, else copied there
/// when `ask_upload` (given the size in bytes) says so.
///
/// # Errors
/// What [`Bootstrap::start`] returns.
pub fn start_agent(
    host: &Host,
    ssh: &SshSettings,
    ask_upload: &mut dyn FnMut(u64) -> bool,
    cancel: &dyn Fn() -> bool,
) -> Result<AgentChannel> {
    let agents = Agents::usual();
    let bootstrap = Bootstrap {
        host,
        ssh,
        use_path: true,
        agents: &agents,
    };
    bootstrap.start(ask_upload, cancel)
}

/// Starts exactly our own version of the agent: as [`start_agent`], but not from `PATH`.
///
/// # Errors
/// What [`Bootstrap::start`] returns.
pub fn start_own_agent(
    host: &Host,
    ssh: &SshSettings,
    ask_upload: &mut dyn FnMut(u64) -> bool,
    cancel: &dyn Fn() -> bool,
) -> Result<AgentChannel> {
    let agents = Agents::usual();
    let bootstrap = Bootstrap {
        host,
        ssh,
        use_path: false,
        agents: &agents,
    };
    bootstrap.start(ask_upload, cancel)
}

impl Bootstrap<'_> {
    /// Logs in and starts the agent.
    ///
    /// # Errors
    /// `Config` for a name or option that may not be used, `Tool` without ssh, the kinds of
    /// [`login_failure`](crate::remote::failure::login_failure), `Unsupported` when there is no
    /// agent for that machine or the account may not run commands, `Denied` when the copy was not
    /// allowed, `Protocol` for a shell that prints too much, `Corrupt` when the copy arrived
    /// changed, `Tool` when the agent cannot run there, `Timeout`, `Cancelled`.
    pub fn start(
        &self,
        ask_upload: &mut dyn FnMut(u64) -> bool,
        cancel: &dyn Fn() -> bool,
    ) -> Result<AgentChannel> {
        let marker = random_marker()?;
        let mut talk = Talk::open(self, &marker, cancel)?;
        let which = if self.use_path { "any" } else { "cache" };
        talk.send(format!("{marker}\n{which}\n").as_bytes())?;

        let login = Instant::now() + login_limit(self.ssh)?;
        let answer = talk.answer("log in", login)?;
        if answer == b"path" {
            return talk.agent(AgentFound::InPath);
        }
        let machine = match answer.strip_prefix(b"none ") {
            Some(machine) => String::from_utf8_lossy(machine).into_owned(),
            None => return Err(talk.odd(&answer)),
        };
        let image = match self.agents.load(&machine) {
            Ok(Some(image)) => image,
            Ok(None) => return Err(talk.no_agent(&machine)),
            Err(error) => return Err(error),
        };
        let answer = talk.ask(&format!("{}\n", image.cache_name))?;
        match answer.as_slice() {
            b"cache" => return talk.agent(AgentFound::Cached),
            b"absent" => {}
            b"fail" => return Err(talk.refused_by_system("find its home folder")),
            _ => return Err(talk.odd(&answer)),
        }
        if !ask_upload(image.bytes.len() as u64) {
            return Err(talk.not_allowed());
        }
        talk.upload(&image)?;
        talk.agent(AgentFound::Uploaded)
    }
}

/// Returns 32 random hexadecimal digits. It is no secret: it only tells our answers from noise.
fn random_marker() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| {
        Error::new(
            ErrorKind::Io,
            "get random bytes from the system",
            e.to_string(),
        )
    })?;
    let mut marker = String::with_capacity(32);
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(marker, "{byte:02x}");
    }
    Ok(marker)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constant_command_passes_unchanged_through_every_login_shell() {
        let inner = COMMAND.strip_prefix("exec /bin/sh -c '").unwrap();
        let inner = inner.strip_suffix('\'').unwrap();
        for bad in ['\'', '"', '\\', '!', '\n', '`'] {
            assert!(!inner.contains(bad), "{bad:?}");
        }
        assert!(inner.bytes().all(|b| (b' '..=b'~').contains(&b)));
    }

    #[test]
    fn markers_are_32_digits_and_never_the_same() {
        let (a, b) = (random_marker().unwrap(), random_marker().unwrap());
        assert_eq!(a.len(), 32);
        assert!(a.bytes().all(|c| c.is_ascii_hexdigit()));
        assert_ne!(a, b);
    }
}
