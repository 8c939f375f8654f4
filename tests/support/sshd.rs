//! A real sshd for one test: own configuration, own keys, loopback, a free port, and a home
//! folder of its own on the far side. Nothing outside its folder is read or written.
//!
//! The client side gets a configuration file with one alias, `nas`. On the far side a small
//! script stands before the login shell: it sets `HOME`, `PATH` and the working folder, prints
//! what a noisy start-up file would print, and hands the command to the chosen login shell.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tempfile::TempDir;
use transload::model::location::{Host, Location};
use transload::model::profile::SshSettings;
use transload::proc::{Child, Pipe, Program};

use super::{temp_dir, tool};

/// The name by which the client's configuration knows this server.
pub const ALIAS: &str = "nas";

/// Which key of the server the client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Right,
    Wrong,
    None,
}

/// What a server is to be like, before it starts.
pub struct Setup {
    banner: Option<String>,
    noise: Vec<u8>,
    login_shell: PathBuf,
    home_name: String,
    known: Known,
    password_only: bool,
    agent: Option<PathBuf>,
    missing_tools: Vec<String>,
    sftp_server: Option<String>,
    server_lines: String,
    client_lines: String,
}

/// A running server; dropping it ends it and every session.
pub struct Sshd {
    folder: TempDir,
    home: PathBuf,
    port: u16,
    log: Arc<Mutex<String>>,
    process: Child,
}

impl Setup {
    /// Sends this text before the log-in.
    pub fn banner(mut self, text: &str) -> Self {
        self.banner = Some(text.into());
        self
    }

    /// Prints these bytes before every command, as a careless start-up file does.
    pub fn noise(mut self, bytes: &[u8]) -> Self {
        self.noise = bytes.to_vec();
        self
    }

    /// Hands commands to this program with `-c`.
    pub fn login_shell(mut self, shell: impl Into<PathBuf>) -> Self {
        self.login_shell = shell.into();
        self
    }

    /// Names the home folder on the far side; any characters but slash and zero.
    pub fn home_name(mut self, name: &str) -> Self {
        self.home_name = name.into();
        self
    }

    /// Lets the client know another key for this server than it has.
    pub fn changed_host_key(mut self) -> Self {
        self.known = Known::Wrong;
        self
    }

    /// Lets the client know no key for this server.
    pub fn unknown_host_key(mut self) -> Self {
        self.known = Known::None;
        self
    }

    /// Takes passwords only.
    pub fn password_only(mut self) -> Self {
        self.password_only = true;
        self
    }

    /// Puts this program into the far side's `PATH` as `transload-agent`.
    pub fn agent_in_path(mut self, program: impl Into<PathBuf>) -> Self {
        self.agent = Some(program.into());
        self
    }

    /// Leaves this program out of the far side's `PATH`.
    pub fn without_tool(mut self, name: &str) -> Self {
        self.missing_tools.push(name.into());
        self
    }

    /// Allows this many sessions on one connection.
    pub fn max_sessions(self, count: u32) -> Self {
        self.server_line(&format!("MaxSessions {count}"))
    }

    /// Starts this command as the sftp server; none for an empty one.
    pub fn sftp_server(mut self, command: &str) -> Self {
        self.sftp_server = Some(command.into());
        self
    }

    /// Adds a line to the server's configuration; it wins over the usual ones.
    pub fn server_line(mut self, line: &str) -> Self {
        self.server_lines += &format!("{line}\n");
        self
    }

    /// Adds a line to the client's configuration for the alias; it wins over the usual ones.
    pub fn client_line(mut self, line: &str) -> Self {
        self.client_lines += &format!("  {line}\n");
        self
    }

    /// Starts the server and returns when it takes connections.
    ///
    /// # Panics
    /// When OpenSSH is not installed or does not start, with its words.
    pub fn start(self) -> Sshd {
        let folder = temp_dir();
        let at = |name: &str| folder.path().join(name);
        let home = at("homes").join(&self.home_name);
        for private in [at("bin"), at("tools"), home.clone()] {
            make_private(&private);
        }
        for key in ["host_key", "other_key", "user_key"] {
            make_key(&at(key));
        }
        if let Some(agent) = &self.agent {
            symlink(agent, at("bin/transload-agent")).expect("a link to the agent");
        }
        self.write_login(folder.path(), &home);
        self.write_authorized_keys(folder.path());

        // Somebody else may take the free port before sshd does.
        for _ in 0..20 {
            let port = free_port();
            self.write_server_config(folder.path(), port);
            let log = Arc::new(Mutex::new(String::new()));
            if let Some(process) = run_sshd(&at("sshd_config"), &log) {
                self.write_client_config(folder.path(), port);
                return Sshd {
                    folder,
                    home,
                    port,
                    log,
                    process,
                };
            }
            let words = log.lock().unwrap().clone();
            assert!(words.contains("Address already in use"), "sshd: {words}");
        }
        panic!("no free port for sshd");
    }

    /// Writes the script that stands before the login shell.
    fn write_login(&self, folder: &Path, home: &Path) {
        let path = if self.missing_tools.is_empty() {
            format!(
                "{}:/usr/bin:/bin:/usr/sbin:/sbin",
                folder.join("bin").display()
            )
        } else {
            link_tools(&folder.join("tools"), &self.missing_tools);
            let (bin, tools) = (folder.join("bin"), folder.join("tools"));
            format!("{}:{}", bin.display(), tools.display())
        };
        fs::write(folder.join("noise"), &self.noise).unwrap();
        let script = format!(
            "#!/bin/sh\n\
             export HOME={home} PATH={path}\n\
             cd \"$HOME\" || exit 1\n\
             /bin/cat {noise}\n\
             exec {shell} -c \"$SSH_ORIGINAL_COMMAND\"\n",
            home = quoted(home),
            path = quoted(Path::new(&path)),
            noise = quoted(&folder.join("noise")),
            shell = self.login_shell.display(),
        );
        write_program(&folder.join("login"), &script);
    }

    /// The account's own shell runs first; it too must find its start-up files in our folder.
    fn write_authorized_keys(&self, folder: &Path) {
        let key = fs::read_to_string(folder.join("user_key.pub")).unwrap();
        let line = format!("environment=\"HOME={}\" {key}", folder.display());
        fs::write(folder.join("authorized_keys"), line).unwrap();
    }

    fn write_server_config(&self, folder: &Path, port: u16) {
        let at = |name: &str| format!("\"{}\"", folder.join(name).display());
        let mut text = self.server_lines.clone();
        let _ = write!(
            text,
            "ListenAddress 127.0.0.1:{port}\n\
             HostKey {host_key}\n\
             PidFile none\n\
             AuthorizedKeysFile {authorized}\n\
             PermitUserEnvironment yes\n\
             ForceCommand '{login}'\n\
             PermitRootLogin yes\n\
             StrictModes no\n\
             UsePAM no\n\
             UseDNS no\n\
             PrintMotd no\n\
             PrintLastLog no\n\
             MaxStartups 100\n\
             KbdInteractiveAuthentication no\n\
             PasswordAuthentication {password}\n\
             PubkeyAuthentication {key}\n\
             LogLevel VERBOSE\n",
            host_key = at("host_key"),
            authorized = at("authorized_keys"),
            login = folder.join("login").display(),
            password = yes_no(self.password_only),
            key = yes_no(!self.password_only),
        );
        match self.sftp_server.as_deref() {
            None => text += "Subsystem sftp /usr/lib/openssh/sftp-server\n",
            Some("") => {}
            Some(command) => text += &format!("Subsystem sftp {command}\n"),
        }
        if let Some(banner) = &self.banner {
            fs::write(folder.join("banner"), banner).unwrap();
            let _ = writeln!(text, "Banner {}", at("banner"));
        }
        fs::write(folder.join("sshd_config"), text).unwrap();
    }

    fn write_client_config(&self, folder: &Path, port: u16) {
        let known = match self.known {
            Known::Right => Some("host_key.pub"),
            Known::Wrong => Some("other_key.pub"),
            Known::None => None,
        };
        let known = known.map_or_else(String::new, |name| {
            let key = fs::read_to_string(folder.join(name)).unwrap();
            format!("[127.0.0.1]:{port} {key}")
        });
        fs::write(folder.join("known_hosts"), known).unwrap();
        let at = |name: &str| format!("\"{}\"", folder.join(name).display());
        let text = format!(
            "Host {ALIAS}\n{lines}\
             \x20 HostName 127.0.0.1\n\
             \x20 Port {port}\n\
             \x20 User {user}\n\
             \x20 IdentityFile {key}\n\
             \x20 IdentitiesOnly yes\n\
             \x20 IdentityAgent none\n\
             \x20 ControlMaster no\n\
             \x20 ControlPath none\n\
             Host *\n\
             \x20 UserKnownHostsFile {known}\n\
             \x20 GlobalKnownHostsFile /dev/null\n",
            lines = self.client_lines,
            user = user(),
            key = at("user_key"),
            known = at("known_hosts"),
        );
        fs::write(folder.join("ssh_config"), text).unwrap();
    }
}

impl Sshd {
    /// Starts a plain server: bash, no agent in `PATH`, everything else as it should be.
    pub fn start() -> Self {
        Self::setup().start()
    }

    /// Describes a server before it starts.
    pub fn setup() -> Setup {
        Setup {
            banner: None,
            noise: Vec::new(),
            login_shell: "/bin/bash".into(),
            home_name: "me".into(),
            known: Known::Right,
            password_only: false,
            agent: None,
            missing_tools: Vec::new(),
            sftp_server: None,
            server_lines: String::new(),
            client_lines: String::new(),
        }
    }

    /// Returns the host to give to the program under test.
    pub fn host(&self) -> Host {
        Host {
            user: None,
            name: ALIAS.into(),
            port: None,
        }
    }

    /// Returns a place on the far side.
    pub fn location(&self, path: impl AsRef<Path>) -> Location {
        use std::os::unix::ffi::OsStrExt as _;
        Location::Ssh {
            host: self.host(),
            path: path.as_ref().as_os_str().as_bytes().to_vec(),
        }
    }

    /// Returns the settings with which the program under test reaches this server.
    pub fn settings(&self) -> SshSettings {
        SshSettings {
            config: Some(self.config().to_str().unwrap().into()),
            ..SshSettings::default()
        }
    }

    /// Returns the client's configuration file, for `TRANSLOAD_SSH_CONFIG` or `ssh -F`.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("ssh_config")
    }

    /// Returns the client's file of known host keys.
    pub fn known_hosts(&self) -> PathBuf {
        self.folder.path().join("known_hosts")
    }

    /// Returns the home folder on the far side.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// Returns the folder that comes first in the far side's `PATH`.
    pub fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    /// Puts a script into the far side's `PATH`, before the real program of that name.
    pub fn add_program(&self, name: &str, script: &str) {
        write_program(&self.bin().join(name), script);
    }

    /// Returns the port that the server listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's own log so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Returns the process id of the listening server.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Ends the server and every session, as a crash of that machine would.
    pub fn crash(&mut self) {
        // Sessions leave the server's process group, so its descendants are looked up.
        let mut all = vec![self.process.id()];
        let mut next = 0;
        while next < all.len() {
            all.extend(children_of(all[next]));
            next += 1;
        }
        self.process.kill();
        for pid in all.into_iter().skip(1) {
            let pid = i32::try_from(pid)
                .ok()
                .and_then(rustix::process::Pid::from_raw);
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("sshd said:\n{}", self.log());
        }
        self.crash();
    }
}

/// Runs sshd and waits until it listens; `None` when it ended instead.
fn run_sshd(config: &Path, log: &Arc<Mutex<String>>) -> Option<Child> {
    let sshd = tool("sshd", "openssh-server");
    if rustix::process::geteuid().is_root() {
        // Debian makes it when the service starts; sshd itself insists on it.
        let _ = fs::DirBuilder::new().mode(0o755).create("/run/sshd");
    }
    let mut process = Program::chosen(&sshd)
        .unwrap()
        .args(["-D", "-e", "-f"])
        .arg(config)
        .stderr(Pipe::Piped)
        .spawn()
        .unwrap();
    let stderr = BufReader::new(process.take_stderr().unwrap());
    let (says, heard) = sync_channel(1); // one word: it listens
    let log = Arc::clone(log);
    std::thread::Builder::new()
        .name("sshd-log".into())
        .spawn(move || {
            for line in stderr.split(b'\n') {
                let Ok(line) = line else { break };
                let line = String::from_utf8_lossy(&line).into_owned();
                let listens = line.starts_with("Server listening on");
                *log.lock().unwrap() += &(line + "\n");
                if listens {
                    let _ = says.send(());
                }
            }
        })
        .unwrap();
    match heard.recv_timeout(Duration::from_secs(20)) {
        Ok(()) => Some(process),
        Err(RecvTimeoutError::Disconnected) => None,
        Err(RecvTimeoutError::Timeout) => panic!("sshd does not listen within 20 s"),
    }
}

fn make_key(path: &Path) {
    let status = Command::new(tool("ssh-keygen", "openssh-client"))
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(path)
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "ssh-keygen: {status}");
}

fn make_private(folder: &Path) {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700).create(folder).unwrap();
}

fn write_program(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Links every program of the system into a folder, but for some.
fn link_tools(folder: &Path, missing: &[String]) {
    for from in ["/usr/bin", "/bin", "/usr/sbin", "/sbin"] {
        for entry in fs::read_dir(from).unwrap().flatten() {
            let name = entry.file_name();
            if !missing.iter().any(|m| name == m.as_str()) {
                // The first folder wins, as in a real PATH.
                let _ = symlink(entry.path(), folder.join(name));
            }
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().unwrap().port()
}

fn user() -> String {
    let out = Command::new(tool("id", "coreutils")).arg("-un").output();
    String::from_utf8(out.unwrap().stdout)
        .unwrap()
        .trim()
        .into()
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_str().unwrap().replace('\'', "'\\''"))
}

fn yes_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

/// Returns the processes whose parent this is.
pub fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The name in brackets may hold anything, blanks and brackets too.
        let after = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        after.split_ascii_whitespace().nth(1) == Some(&parent.to_string())
    })
    .collect()
}
