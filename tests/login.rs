//! Logging in by the user's own ssh: what is refused, what is never accepted silently, and what a
//! person reads when it fails.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

mod support;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use support::fake_agent::{echoes, fails, fake_program, no_agents, start, start_at};
use support::sshd::Sshd;
use support::tool;
use transload::model::error::ErrorKind;
use transload::model::location::Host;

#[test]
fn an_unknown_host_key_is_never_accepted_silently() {
    // Not even when the user's own configuration says so.
    let (_folder, agent) = fake_program();
    for line in [
        "StrictHostKeyChecking ask",
        "StrictHostKeyChecking no",
        "StrictHostKeyChecking accept-new",
    ] {
        let server = Sshd::setup()
            .unknown_host_key()
            .client_line(line)
            .agent_in_path(&agent)
            .start();
        let begun = Instant::now();
        let error = fails(start(&server, &no_agents(), false));
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(error.kind, ErrorKind::HostKey, "{error}");
        assert!(error.hint.unwrap().contains("run \"ssh nas\" once"));
        assert_eq!(fs::read_to_string(server.known_hosts()).unwrap(), "");
    }
}

#[test]
fn a_changed_host_key_stops_with_an_explanation() {
    let server = Sshd::setup().changed_host_key().start();
    let begun = Instant::now();
    let error = fails(start(&server, &no_agents(), false));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(error.kind, ErrorKind::HostKey);
    assert!(error.to_string().contains("another host key"), "{error}");
    assert!(error.hint.unwrap().contains("ask whoever runs it"));
}

#[test]
fn a_log_in_that_needs_a_password_ends_soon_and_says_what_to_do() {
    let server = Sshd::setup()
        .password_only()
        .banner("Mind the gap.\n")
        .start();
    let begun = Instant::now();
    let error = fails(start(&server, &no_agents(), false));
    assert!(begun.elapsed() < Duration::from_secs(10));
    assert_eq!(error.kind, ErrorKind::Login, "{error}");
    assert!(error.to_string().contains("Permission denied"), "{error}");
    let hint = error.hint.unwrap();
    assert!(
        hint.contains("ssh-copy-id nas") && hint.contains("ssh-add"),
        "{hint}"
    );
}

#[test]
fn a_wrong_port_or_name_is_told_as_unreachable() {
    let mut server = Sshd::start();
    server.crash();
    let begun = Instant::now();
    let error = fails(start(&server, &no_agents(), false));
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    let host = Host {
        name: "no-such-host.invalid".into(),
        ..Host::default()
    };
    let error = fails(start_at(&host, &server.settings(), &no_agents(), false));
    assert_eq!(error.kind, ErrorKind::Unreachable, "{error}");
    assert!(error.hint.unwrap().contains("spelling"));
    assert!(begun.elapsed() < Duration::from_secs(20));
}

#[test]
fn hostile_settings_in_the_users_own_configuration_do_not_disturb_the_session() {
    let (folder, agent) = fake_program();
    let pwned = folder.path().join("PWN");
    let server = Sshd::setup()
        .agent_in_path(agent)
        .client_line("RemoteCommand echo no")
        .client_line("RequestTTY force")
        .client_line("ForwardAgent yes")
        .client_line("ForwardX11 yes")
        .client_line("PermitLocalCommand yes")
        .client_line(&format!("LocalCommand touch {}", pwned.display()))
        .client_line("LocalForward 127.0.0.1:1 127.0.0.1:1")
        .client_line("ExitOnForwardFailure yes")
        .client_line("EscapeChar ~")
        .client_line("LogLevel DEBUG3")
        .start();
    let channel = start(&server, &no_agents(), false).unwrap();
    echoes(channel);
    assert!(!pwned.exists());
    let socket = fs::read_to_string(server.home().join("agent-socket")).unwrap();
    assert_eq!(socket, "none\n");
}

#[test]
fn a_shared_connection_of_the_users_own_is_used_and_left_as_it_was() {
    let (_folder, agent) = fake_program();
    let sockets = tempfile::tempdir().unwrap(); // a socket's path must be short
    let socket = sockets.path().join("shared");
    let server = Sshd::setup()
        .agent_in_path(agent)
        .client_line("ControlMaster auto")
        .client_line("ControlPersist 60")
        .client_line(&format!("ControlPath {}", socket.display()))
        .start();
    // Without one, none is left behind.
    echoes(start(&server, &no_agents(), false).unwrap());
    assert!(!socket.exists());

    let ssh = |args: &[&str]| {
        let mut command = Command::new(tool("ssh", "openssh-client"));
        command.arg("-F").arg(server.config()).args(args);
        command.status().unwrap()
    };
    assert!(ssh(&["-M", "-N", "-f", "nas"]).success());
    let logins = || server.log().matches("Accepted publickey").count();
    let before = logins();
    echoes(start(&server, &no_agents(), false).unwrap());
    drop(start(&server, &no_agents(), false).unwrap());
    assert_eq!(logins(), before);
    assert!(ssh(&["-O", "check", "nas"]).success());
    assert!(ssh(&["-O", "exit", "nas"]).success());
    // A socket that nobody answers at does not matter.
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    echoes(start(&server, &no_agents(), false).unwrap());
}

#[test]
fn a_quiet_ssh_still_gives_a_kind_and_a_way_to_see_more() {
    let server = Sshd::setup()
        .password_only()
        .client_line("LogLevel QUIET")
        .start();
    let error = fails(start(&server, &no_agents(), false));
    assert!(error.hint.unwrap().contains("ssh nas"));
}

#[test]
fn options_that_run_programs_never_reach_ssh() {
    let server = Sshd::start();
    let pwned = server.home().join("PWN");
    for option in [
        "ProxyCommand=touch ",
        "KnownHostsCommand=touch ",
        "LocalCommand=touch ",
    ] {
        let mut ssh = server.settings();
        ssh.options = vec![format!("{option}{}", pwned.display())];
        let error = fails(start_at(&server.host(), &ssh, &no_agents(), true));
        assert_eq!(error.kind, ErrorKind::Config, "{option}");
    }
    let host = Host {
        name: format!("-oProxyCommand=touch {}", pwned.display()),
        ..Host::default()
    };
    let error = fails(start_at(&host, &server.settings(), &no_agents(), true));
    assert_eq!(error.kind, ErrorKind::Config);
    assert!(!pwned.exists());
}

#[test]
fn an_account_that_runs_no_commands_is_told_as_that() {
    let (_folder, agent) = fake_program();
    for (shell, words) in [
        ("/usr/sbin/nologin", "not available"),
        ("/bin/rbash", "restricted"),
        ("/bin/echo", "-c exec"),
        ("/bin/false", "ended at once"),
    ] {
        let server = Sshd::setup()
            .login_shell(shell)
            .agent_in_path(&agent)
            .start();
        let error = fails(start(&server, &no_agents(), false));
        assert_eq!(error.kind, ErrorKind::Unsupported, "{shell}: {error}");
        assert!(error.to_string().contains(words), "{shell}: {error}");
        assert!(error.hint.unwrap().contains("sftp"));
    }
}
