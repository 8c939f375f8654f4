//! The agent starts over a real sshd, whatever the login shell, its start-up files and the far
//! side's programs do; and when it cannot, the error says why and what to do.

#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

mod support;

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use support::fake_agent::{
    FAKE_AGENT, Shipped, echoes, fails, fake_program, no_agents, program, start,
};
use support::sshd::{Sshd, children_of};
use support::{tool, wait_until};
use transload::model::error::ErrorKind;
use transload::remote::bootstrap::{AgentFound, Bootstrap, COMMAND};
use transload::remote::failure::why_ended;

fn cached_files(server: &Sshd) -> Vec<PathBuf> {
    let folder = server.home().join(".cache/transload");
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| entry.unwrap().path()).collect(),
        Err(_) => Vec::new(),
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn an_agent_in_path_is_used_at_once_and_nothing_is_asked_or_written() {
    let (_folder, agent) = fake_program();
    let server = Sshd::setup().agent_in_path(agent).start();
    let (host, ssh, agents) = (server.host(), server.settings(), no_agents());
    let bootstrap = Bootstrap {
        host: &host,
        ssh: &ssh,
        use_path: true,
        agents: &agents,
    };
    let mut ask = |_| panic!("asked for an upload");
    let channel = bootstrap.start(&mut ask, &|| false).unwrap();
    assert_eq!(channel.found, AgentFound::InPath);
    echoes(channel);
    assert!(!server.home().join(".cache").exists());
}

#[test]
fn a_copy_is_asked_for_once_checked_private_and_found_the_next_time() {
    let server = Sshd::start();
    // Looks at the copy while it is being checked.
    server.add_program(
        "sha256sum",
        "#!/bin/sh\nstat -Lc %a /proc/self/fd/0 > $HOME/mode\nexec /usr/bin/sha256sum\n",
    );
    let shipped = Shipped::fake();
    let (host, ssh) = (server.host(), server.settings());
    let bootstrap = Bootstrap {
        host: &host,
        ssh: &ssh,
        use_path: true,
        agents: &shipped.agents,
    };
    let mut asked = Vec::new();
    let mut ask = |size| {
        asked.push(size);
        true
    };
    let channel = bootstrap.start(&mut ask, &|| false).unwrap();
    assert_eq!(channel.found, AgentFound::Uploaded);
    echoes(channel);
    assert_eq!(asked, [FAKE_AGENT.len() as u64]);

    assert_eq!(
        fs::read_to_string(server.home().join("mode")).unwrap(),
        "600\n"
    );
    let files = cached_files(&server);
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(fs::read_to_string(&files[0]).unwrap(), FAKE_AGENT);
    assert_eq!(mode(&files[0]), 0o700);
    assert_eq!(mode(files[0].parent().unwrap()), 0o700);
    let hash = blake3::hash(FAKE_AGENT.as_bytes()).to_hex();
    let name = format!("agent-{}-{}", env!("CARGO_PKG_VERSION"), &hash[..16]);
    assert_eq!(files[0].file_name().unwrap(), name.as_str());

    let channel = bootstrap
        .start(&mut |_| panic!("asked again"), &|| false)
        .unwrap();
    assert_eq!(channel.found, AgentFound::Cached);
    echoes(channel);
}

#[test]
fn an_agent_in_path_that_is_too_old_can_be_passed_over() {
    let (_folder, old) = program("#!/bin/sh\necho $2 agent\nexec echo old\n");
    let server = Sshd::setup().agent_in_path(old).start();
    let shipped = Shipped::fake();
    let (host, ssh) = (server.host(), server.settings());
    let bootstrap = Bootstrap {
        host: &host,
        ssh: &ssh,
        use_path: false,
        agents: &shipped.agents,
    };
    let channel = bootstrap.start(&mut |_| true, &|| false).unwrap();
    assert_eq!(channel.found, AgentFound::Uploaded);
    echoes(channel);
}

#[test]
fn a_refused_copy_leaves_nothing_and_says_how_to_go_on() {
    let server = Sshd::start();
    let error = fails(start(&server, &Shipped::fake().agents, false));
    assert_eq!(error.kind, ErrorKind::Denied);
    assert!(error.hint.unwrap().contains("--upload-agent"));
    assert!(!server.home().join(".cache").exists());
}

#[test]
fn a_machine_type_without_an_agent_is_named() {
    let server = Sshd::start();
    server.add_program("uname", "#!/bin/sh\necho Linux mips\n");
    let error = fails(start(&server, &Shipped::fake().agents, true));
    assert_eq!(error.kind, ErrorKind::Unsupported);
    assert!(error.to_string().contains("Linux mips"), "{error}");
}

#[test]
fn a_copy_that_arrived_changed_never_runs_and_is_removed() {
    for (name, script) in [
        ("sha256sum", "#!/bin/sh\nhead -c 1 | /usr/bin/sha256sum\n"),
        // Reads everything, stores half.
        (
            "head",
            "#!/bin/sh\n/usr/bin/head \"$@\" | /usr/bin/head -c 99\n",
        ),
    ] {
        let server = Sshd::start();
        server.add_program(name, script);
        let error = fails(start(&server, &Shipped::fake().agents, true));
        assert_eq!(error.kind, ErrorKind::Corrupt, "{name}: {error}");
        wait_until("the copy is gone", || cached_files(&server).is_empty());
        assert!(!server.home().join("agent-pid").exists());
    }
}

#[test]
fn a_full_disk_there_is_told_in_its_own_words() {
    let server = Sshd::start();
    server.add_program(
        "head",
        "#!/bin/sh\n/usr/bin/head \"$@\" > /dev/null\n\
         echo head: error writing: No space left on device >&2\nexit 1\n",
    );
    let error = fails(start(&server, &Shipped::fake().agents, true));
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.to_string().contains("No space left"), "{error}");
    wait_until("the copy is gone", || cached_files(&server).is_empty());
}

#[test]
fn a_home_folder_that_cannot_be_written_is_told_in_the_systems_words() {
    let server = Sshd::start();
    fs::write(server.home().join(".cache"), "a file in the way").unwrap();
    let error = fails(start(&server, &Shipped::fake().agents, true));
    assert_eq!(error.kind, ErrorKind::Io);
    assert!(error.to_string().contains(".cache"), "{error}");
}

#[test]
fn without_a_digest_program_there_the_size_is_checked() {
    let server = Sshd::setup().without_tool("sha256sum").start();
    let channel = start(&server, &Shipped::fake().agents, true).unwrap();
    assert_eq!(channel.found, AgentFound::Uploaded);
    echoes(channel);
}

#[test]
fn every_login_shell_starts_the_agent_below_a_home_folder_of_any_name() {
    let shells = [
        ("sh", "dash", "sh"),
        ("bash", "bash", "bash"),
        ("dash", "dash", "dash"),
        ("zsh", "zsh", "zsh"),
        ("busybox", "busybox", "busybox sh"),
        ("fish", "fish", "fish"),
        ("tcsh", "tcsh", "tcsh"),
    ];
    let odd = "it's a \"home\" \\ $HOME `id` ! * ü;&|<>";
    for (name, package, line) in shells {
        let program = tool(name, package);
        let shell = program.to_str().unwrap().replacen(name, line, 1);
        let server = Sshd::setup().login_shell(shell).home_name(odd).start();
        let shipped = Shipped::fake();
        for found in [AgentFound::Uploaded, AgentFound::Cached] {
            let channel = start(&server, &shipped.agents, true)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(channel.found, found, "{name}");
            echoes(channel);
        }
    }
}

#[test]
fn the_constant_command_works_when_busybox_is_every_program() {
    // busybox head reads ahead of what it was asked for; nothing is sent ahead of an answer.
    let busybox = tool("busybox", "busybox");
    let server = Sshd::start();
    for name in [
        "head",
        "wc",
        "sha256sum",
        "mkdir",
        "chmod",
        "mv",
        "rm",
        "uname",
    ] {
        let script = format!("#!/bin/sh\nexec {} {name} \"$@\"\n", busybox.display());
        server.add_program(name, &script);
    }
    // Larger than any pipe or buffer on the way.
    let large = format!("{FAKE_AGENT}{}", "# padding\n".repeat(200_000));
    let channel = start(&server, &Shipped::new(&large).agents, true).unwrap();
    assert_eq!(channel.found, AgentFound::Uploaded);
    echoes(channel);
}

#[test]
fn text_from_start_up_files_is_skipped_whatever_it_looks_like() {
    let binary: Vec<u8> = (0..=255).cycle().take(5000).collect();
    let large = b"a line of a motd\n".repeat(60 * 1024 / 17);
    let fake = b"0123456789abcdef0123456789abcdef agent\n0123456789abcdef0123456789abcdef path\n";
    let unfinished = b"no line end";
    let escapes = b"\x1b]0;title\x07\x1b[2J\r\n";
    let noises: [&[u8]; 6] = [b"0123456789", &binary, &large, fake, unfinished, escapes];
    let (_folder, agent) = fake_program();
    for noise in noises {
        let server = Sshd::setup().noise(noise).agent_in_path(&agent).start();
        let channel = start(&server, &no_agents(), false).unwrap();
        echoes(channel);
    }
}

#[test]
fn a_noisy_start_up_file_does_not_disturb_a_copy_either() {
    let server = Sshd::setup().noise(b"Welcome to the box!").start();
    let channel = start(&server, &Shipped::fake().agents, true).unwrap();
    echoes(channel);
}

#[test]
fn endless_text_from_start_up_files_ends_with_a_clear_error() {
    let (_folder, agent) = fake_program();
    for noise in [b"Hello! ".repeat(150_000), b"Hello!\n".repeat(10_000)] {
        let server = Sshd::setup().noise(&noise).agent_in_path(&agent).start();
        let begun = Instant::now();
        let error = fails(start(&server, &no_agents(), false));
        assert!(begun.elapsed() < Duration::from_secs(10));
        assert_eq!(error.kind, ErrorKind::Protocol);
        assert!(
            error.to_string().contains("prints too much text"),
            "{error}"
        );
        assert!(error.to_string().contains("Hello!"), "{error}");
        assert!(error.hint.unwrap().contains(".bashrc"));
    }
}

#[test]
fn an_agent_that_does_not_run_is_told_with_its_last_words() {
    let (_folder, broken) = program("#!/bin/sh\necho wrong kernel >&2\nexit 3\n");
    let server = Sshd::setup().agent_in_path(broken).start();
    let error = fails(start(&server, &no_agents(), false));
    assert_eq!(error.kind, ErrorKind::Tool);
    assert!(error.to_string().contains("wrong kernel"), "{error}");
    assert!(error.hint.unwrap().contains("install it again"));

    // A program for another machine: an ELF header and nothing more.
    let foreign = Shipped::new("\u{7f}ELF\u{2}\u{1}\u{1}\0\0\0\0\0\0\0\0\0\u{2}\0\u{8}\0");
    let server = Sshd::start();
    let error = fails(start(&server, &foreign.agents, true));
    assert_eq!(error.kind, ErrorKind::Tool, "{error}");
    drop(foreign.folder);
}

#[test]
fn our_side_of_the_command_line_never_changes_and_holds_no_secret_or_path() {
    let (_folder, agent) = fake_program();
    let server = Sshd::setup().agent_in_path(agent).start();
    let channel = start(&server, &no_agents(), false).unwrap();
    let line = fs::read(format!("/proc/{}/cmdline", channel.child.id())).unwrap();
    let words: Vec<_> = line.split(|&b| b == 0).collect();
    let end: Vec<&[u8]> = vec![b"--", b"nas", COMMAND.as_bytes(), b""];
    assert!(words.ends_with(&end));
    let config = server.config();
    let own = [b"-F".as_slice(), config.to_str().unwrap().as_bytes()];
    let rest = &words[..words.len() - end.len()];
    assert!(rest.ends_with(&own));
    // The first word is ssh's own path.
    let fixed = &rest[1..rest.len() - own.len()];
    assert!(fixed.iter().all(|word| !word.contains(&b'/')));
}

#[test]
fn dropping_the_channel_ends_ssh_and_the_agent() {
    let (_folder, agent) = fake_program();
    let server = Sshd::setup().agent_in_path(agent).start();
    let channel = start(&server, &no_agents(), false).unwrap();
    let pid = fs::read_to_string(server.home().join("agent-pid")).unwrap();
    let agent = PathBuf::from(format!("/proc/{}", pid.trim()));
    let ssh = PathBuf::from(format!("/proc/{}", channel.child.id()));
    assert!(agent.exists() && ssh.exists());
    drop(channel);
    assert!(!ssh.exists());
    wait_until("the agent has ended", || !agent.exists());
}

#[test]
fn a_session_that_breaks_says_so() {
    let (_folder, agent) = fake_program();
    let mut server = Sshd::setup().agent_in_path(agent).start();
    let host = server.host();
    let mut channel = start(&server, &no_agents(), false).unwrap();
    server.crash();
    assert_eq!(channel.output.read(&mut [0]).unwrap(), 0);
    let error = why_ended(&mut channel.child, &channel.stderr, &host, "copy the file");
    assert_eq!(error.kind, ErrorKind::Disconnected, "{error}");
    assert!(
        error.to_string().starts_with("Failed to copy the file: "),
        "{error}"
    );
}

#[test]
fn a_cancel_ends_a_hanging_start_and_leaves_no_process() {
    let (_folder, agent) = program("#!/bin/sh\necho $$ > $HOME/agent-pid\nexec cat > /dev/null\n");
    let server = Sshd::setup().agent_in_path(agent).start();
    let (host, ssh, agents) = (server.host(), server.settings(), no_agents());
    let bootstrap = Bootstrap {
        host: &host,
        ssh: &ssh,
        use_path: true,
        agents: &agents,
    };
    let started = server.home().join("agent-pid");
    let error = fails(bootstrap.start(&mut |_| false, &|| started.exists()));
    assert_eq!(error.kind, ErrorKind::Cancelled);
    wait_until("the session has ended", || {
        children_of(server.pid()).is_empty()
    });
}
