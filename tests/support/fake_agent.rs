//! Agents of a few lines of shell, and the ways to start them over a test's own sshd.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;
use transload::model::error::{Error, Result};
use transload::model::location::Host;
use transload::model::profile::SshSettings;
use transload::remote::agents::Agents;
use transload::remote::bootstrap::{AgentChannel, Bootstrap};

use super::sshd::Sshd;
use super::temp_dir;

/// Keeps the contract of the real agent, then echoes.
pub const FAKE_AGENT: &str = "#!/bin/sh\n\
    test $1 = serve || exit 9\n\
    echo $$ > $HOME/agent-pid\n\
    echo ${SSH_AUTH_SOCK-none} > $HOME/agent-socket\n\
    echo $2 agent\n\
    exec cat\n";

/// A folder with one agent for this machine's type.
pub struct Shipped {
    /// Holds the agent's file.
    pub folder: TempDir,
    /// Where to look for it.
    pub agents: Agents,
}

impl Shipped {
    pub fn new(program: &str) -> Self {
        let folder = temp_dir();
        let uname = Command::new("uname").arg("-sm").output().unwrap();
        let machine = String::from_utf8(uname.stdout).unwrap();
        let machine = machine.trim().replacen("Linux ", "linux-", 1);
        let path = folder.path().join(format!("transload-agent-{machine}"));
        fs::write(path, program).unwrap();
        let agents = Agents {
            folders: vec![folder.path().into()],
            own: None,
        };
        Self { folder, agents }
    }

    pub fn fake() -> Self {
        Self::new(FAKE_AGENT)
    }
}

/// A fake agent as a program for the far side's `PATH`.
pub fn fake_program() -> (TempDir, PathBuf) {
    program(FAKE_AGENT)
}

pub fn program(script: &str) -> (TempDir, PathBuf) {
    let folder = temp_dir();
    let path = folder.path().join("agent");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    (folder, path)
}

pub fn no_agents() -> Agents {
    Agents::default()
}

pub fn start(server: &Sshd, agents: &Agents, allow: bool) -> Result<AgentChannel> {
    start_at(&server.host(), &server.settings(), agents, allow)
}

pub fn start_at(
    host: &Host,
    ssh: &SshSettings,
    agents: &Agents,
    allow: bool,
) -> Result<AgentChannel> {
    let bootstrap = Bootstrap {
        host,
        ssh,
        use_path: true,
        agents,
    };
    bootstrap.start(&mut |_| allow, &|| false)
}

pub fn fails(result: Result<AgentChannel>) -> Error {
    match result {
        Ok(channel) => panic!("an agent started: {:?}", channel.found),
        Err(error) => error,
    }
}

/// Sends every byte value both ways; the fake agent echoes.
pub fn echoes(mut channel: AgentChannel) {
    let sent: Vec<u8> = (0..=255).cycle().take(10_000).collect();
    channel.input.write_all(&sent).unwrap();
    drop(channel.input);
    let mut got = Vec::new();
    channel.output.read_to_end(&mut got).unwrap();
    assert!(got == sent, "the channel is not clean");
    let status = channel.child.wait_deadline(Duration::from_secs(10));
    assert_eq!(status.unwrap().and_then(|s| s.code()), Some(0));
}
