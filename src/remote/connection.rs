//! ssh's argument vector: options that keep a session quiet and safe first, because ssh takes the
//! first value it meets; then what the profile says; then one checked host.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::location::Host;
use crate::model::profile::SshSettings;
use crate::proc::Program;
use crate::remote::options;

/// Names another ssh program, by its absolute path.
pub const PROGRAM_VARIABLE: &str = "TRANSLOAD_SSH";
/// Names a configuration file for ssh when the settings name none.
pub const CONFIG_VARIABLE: &str = "TRANSLOAD_SSH_CONFIG";

/// How long ssh may take for one address, in seconds, unless the user says otherwise.
const CONNECT_TIMEOUT: u16 = 10;

/// No terminal, no forwarding, no local or configured remote command, no silently accepted host
/// key, whatever the user's configuration file says. An existing shared connection is used, but
/// none is left behind.
const FIXED: [&str; 21] = [
    "-T",
    "-a",
    "-x",
    "-o",
    "RequestTTY=no",
    "-o",
    "RemoteCommand=none",
    "-o",
    "PermitLocalCommand=no",
    "-o",
    "ForwardAgent=no",
    "-o",
    "ForwardX11=no",
    "-o",
    "ClearAllForwardings=yes",
    "-o",
    "EscapeChar=none",
    "-o",
    "ControlMaster=no",
    "-o",
    "BatchMode=yes",
];

/// What the session is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode<'a> {
    /// Runs this constant text in the login shell there.
    Command(&'a str),
    /// Starts a subsystem there, such as `sftp`.
    Subsystem(&'a str),
    /// Options only; the program that is given this vector adds host and command (`rsync -e`).
    Transport,
}

/// Returns the ssh program, with messages in English.
///
/// # Errors
/// `Tool` when it is not installed, `Config` when [`PROGRAM_VARIABLE`] does not name one.
pub fn ssh_program() -> Result<Program> {
    let program = match std::env::var_os(PROGRAM_VARIABLE) {
        Some(path) if !path.is_empty() => Program::chosen(Path::new(&path)).map_err(|e| {
            e.hint(format!(
                "set {PROGRAM_VARIABLE} to an ssh program's full path"
            ))
        }),
        _ => Program::named("ssh").map_err(|e| e.hint("install the package openssh-client")),
    }?;
    // Its words are read for the hints in `failure`.
    Ok(program.env("LC_ALL", "C"))
}

/// Returns ssh's arguments for a session with a host.
///
/// # Errors
/// `Config` when a name, path or option may not stand there.
pub fn ssh_argv(host: &Host, settings: &SshSettings, mode: Mode<'_>) -> Result<Vec<OsString>> {
    let SshSettings {
        identity,
        config,
        options: given,
    } = settings;
    host.check()?;
    let Host { user, name, port } = host;
    let given = options::check(given)?;

    let mut argv: Vec<OsString> = FIXED.iter().map(OsString::from).collect();
    let strict = if given.strict { "yes" } else { "ask" };
    let mut option = |text: String| argv.extend(["-o".into(), text.into()]);
    option(format!("StrictHostKeyChecking={strict}"));
    given.options.into_iter().for_each(&mut option);
    option(format!("ConnectTimeout={CONNECT_TIMEOUT}"));
    option("ServerAliveInterval=5".into());
    option("ServerAliveCountMax=3".into());
    if let Some(port) = port {
        argv.extend(["-p".into(), port.to_string().into()]);
    }
    if let Some(user) = user {
        argv.extend(["-l".into(), user.into()]);
    }
    if let Some(identity) = identity {
        argv.extend(["-i".into(), identity_argument(identity)?]);
    }
    let variable = std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
    if let Some(config) = config.as_ref().map(OsString::from).or(variable) {
        argv.extend(["-F".into(), config_argument(config)?]);
    }
    match mode {
        Mode::Command(text) => {
            argv.extend(["--".into(), name.into(), text.into()]);
        }
        Mode::Subsystem(text) => {
            argv.extend(["-s".into(), "--".into(), name.into(), text.into()]);
        }
        Mode::Transport => {}
    }
    Ok(argv)
}

/// Returns how long a log-in may take before the session is given up: what ssh itself allows for
/// two addresses (a broken IPv6 one and a good one), then time for keys and a slow shell.
///
/// # Errors
/// As [`ssh_argv`].
pub fn login_limit(settings: &SshSettings) -> Result<Duration> {
    let seconds = options::check(&settings.options)?
        .connect_timeout
        .unwrap_or(CONNECT_TIMEOUT);
    Ok(Duration::from_secs(2 * u64::from(seconds) + 10))
}

fn identity_argument(identity: &str) -> Result<OsString> {
    let path = absolute("use this key file", identity.into())?;
    if !path.is_file() {
        return Err(Error::new(
            ErrorKind::Config,
            "use this key file",
            "there is no such file",
        )
        .at(path.as_path())
        .hint("choose the private key, for example ~/.ssh/id_ed25519"));
    }
    let bytes = path.as_os_str().as_bytes();
    if bytes.windows(2).any(|pair| pair == b"${") {
        let cause = "ssh would read ${ in its name as a variable";
        return Err(Error::new(ErrorKind::Config, "use this key file", cause)
            .at(path.as_path())
            .hint("rename the file"));
    }
    // ssh expands % in the names of key files.
    let mut escaped = Vec::with_capacity(bytes.len());
    for &byte in bytes {
        escaped.push(byte);
        if byte == b'%' {
            escaped.push(b'%');
        }
    }
    Ok(OsString::from_vec(escaped))
}

fn config_argument(config: OsString) -> Result<OsString> {
    if config == "none" {
        return Ok(config);
    }
    let path = absolute("use this ssh configuration file", config)?;
    match std::fs::File::open(&path) {
        Ok(_) => Ok(path.into_os_string()),
        Err(source) => {
            let mut error =
                Error::io("use this ssh configuration file", &source).at(path.as_path());
            error.kind = ErrorKind::Config;
            Err(error.hint("choose a file that you can read"))
        }
    }
}

/// ssh runs in `/`, so a path is made absolute here; `~/` is the user's home folder.
fn absolute(doing: &str, path: OsString) -> Result<PathBuf> {
    let refuse = |cause: &str| Error::new(ErrorKind::Config, doing, cause);
    if let Some(below) = path.as_bytes().strip_prefix(b"~/") {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let home = home.ok_or_else(|| refuse("the variable HOME is not set"))?;
        return Ok(Path::new(&home).join(std::ffi::OsStr::from_bytes(below)));
    }
    if path.as_bytes().contains(&0) {
        return Err(refuse("its name holds a zero byte"));
    }
    std::path::absolute(&path).map_err(|source| {
        let mut error = Error::io(doing, &source).at(path.as_bytes());
        error.kind = ErrorKind::Config;
        error
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str) -> Host {
        Host {
            name: name.into(),
            ..Host::default()
        }
    }

    fn text(argv: &[OsString]) -> String {
        let words: Vec<_> = argv.iter().map(|a| a.to_str().unwrap()).collect();
        words.join(" ")
    }

    #[test]
    fn the_safe_options_come_first_and_the_host_follows_two_dashes() {
        let host = Host {
            user: Some("me".into()),
            name: "nas".into(),
            port: Some(2222),
        };
        let settings = SshSettings {
            identity: Some("/etc/passwd".into()),
            config: Some("/dev/null".into()),
            options: vec!["Compression=yes".into(), "ConnectTimeout=30".into()],
        };
        assert_eq!(
            text(&ssh_argv(&host, &settings, Mode::Command("true")).unwrap()),
            "-T -a -x -o RequestTTY=no -o RemoteCommand=none -o PermitLocalCommand=no \
             -o ForwardAgent=no -o ForwardX11=no -o ClearAllForwardings=yes -o EscapeChar=none \
             -o ControlMaster=no -o BatchMode=yes -o StrictHostKeyChecking=ask \
             -o Compression=yes -o ConnectTimeout=30 -o ConnectTimeout=10 \
             -o ServerAliveInterval=5 -o ServerAliveCountMax=3 -p 2222 -l me -i /etc/passwd \
             -F /dev/null -- nas true"
        );
        assert_eq!(login_limit(&settings).unwrap(), Duration::from_secs(70));
    }

    #[test]
    fn a_subsystem_and_a_transport_have_their_own_ends() {
        let settings = SshSettings {
            config: Some("none".into()),
            ..SshSettings::default()
        };
        let argv = ssh_argv(&host("nas"), &settings, Mode::Subsystem("sftp")).unwrap();
        assert!(text(&argv).ends_with("-F none -s -- nas sftp"));
        let argv = ssh_argv(&host("nas"), &settings, Mode::Transport).unwrap();
        assert!(text(&argv).ends_with("-F none"));
    }

    #[test]
    fn hostile_names_never_reach_the_command_line() {
        let settings = SshSettings::default();
        for bad in ["-oProxyCommand=touch PWN", "-Fx@h", " -x", "a;b", "a\nb"] {
            let error = ssh_argv(&host(bad), &settings, Mode::Transport).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Config, "{bad}");
            let host = Host {
                user: Some(bad.into()),
                ..host("nas")
            };
            let error = ssh_argv(&host, &settings, Mode::Transport).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Config, "{bad}");
        }
    }

    #[test]
    fn key_files_are_passed_so_that_ssh_reads_them_as_they_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let odd = folder.path().join("my key 100%h");
        std::fs::write(&odd, "").unwrap();
        let argument = identity_argument(odd.to_str().unwrap()).unwrap();
        assert!(argument.to_str().unwrap().ends_with("my key 100%%h"));
        let variable = folder.path().join("${HOME}");
        std::fs::write(&variable, "").unwrap();
        assert!(identity_argument(variable.to_str().unwrap()).is_err());
        let missing = identity_argument("/no/such/key").unwrap_err();
        assert_eq!(missing.kind, ErrorKind::Config);
    }

    #[test]
    fn a_missing_configuration_file_is_told_before_ssh_runs() {
        let error = config_argument("/no/such/file".into()).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Config);
        assert!(error.to_string().contains("/no/such/file"));
    }
}
