//! What to run: a program by absolute path, an argument vector, and an environment built from an
//! allow-list.

use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::model::error::{Error, ErrorKind, Result};
use crate::model::untrusted::Untrusted;
use crate::proc::child::Child;
use crate::proc::lines::Tail;
use crate::proc::ready::{self, For};
use crate::proc::spawn;

/// The only folders that a program is looked up in. Neither the working folder nor the user's own
/// `PATH` is searched: a planted `./rsync` or `~/bin/ssh` is never run by accident.
pub const FOLDERS: [&str; 6] = [
    "/usr/local/bin",
    "/usr/bin",
    "/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/sbin",
];

/// Variables that children inherit, beside every `LC_*`; `PATH` is set to [`FOLDERS`].
const INHERITED: [&str; 14] = [
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TZ",
    "TERM",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
    "DBUS_SESSION_BUS_ADDRESS",
    "XAUTHORITY",
];

/// Where one of a child's three standard streams goes.
#[derive(Debug, Default)]
pub enum Pipe {
    /// Nowhere: `/dev/null`.
    #[default]
    Nothing,
    /// A pipe, taken from the [`Child`].
    Piped,
    /// This open file or socket.
    Given(OwnedFd),
}

impl From<Pipe> for Stdio {
    fn from(pipe: Pipe) -> Self {
        match pipe {
            Pipe::Nothing => Self::null(),
            Pipe::Piped => Self::piped(),
            Pipe::Given(fd) => fd.into(),
        }
    }
}

/// A program with its arguments, not yet running.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    args: Vec<OsString>,
    added: Vec<(OsString, OsString)>,
    folder: PathBuf,
    streams: [Pipe; 3],
}

/// What a short-lived helper left behind.
#[derive(Debug)]
pub struct Output {
    /// How it ended.
    pub status: ExitStatus,
    /// What it printed.
    pub stdout: Vec<u8>,
    /// The end of its error output.
    pub stderr: Untrusted,
}

impl Program {
    /// Finds a program by its name in [`FOLDERS`].
    ///
    /// # Errors
    /// `Tool` when it is in none of them; the caller adds the hint that names its package.
    pub fn named(name: &str) -> Result<Self> {
        find(name).map(Self::at).ok_or_else(|| {
            Error::new(
                ErrorKind::Tool,
                format!("find the program {name}"),
                "it is not installed",
            )
            .at(FOLDERS.join(":"))
            .hint(format!(
                "install the package that has {name}, then try again"
            ))
        })
    }

    /// Takes a program that the user chose by its absolute path.
    ///
    /// # Errors
    /// `Config` when the path is relative or not an executable file.
    pub fn chosen(path: &Path) -> Result<Self> {
        let refuse = |cause: &str| {
            Error::new(ErrorKind::Config, "use the chosen program", cause)
                .at(path)
                .hint("give the full path of an executable file")
        };
        if !path.is_absolute() {
            return Err(refuse("the path is not absolute"));
        }
        if !is_executable(path) {
            return Err(refuse("it is not an executable file"));
        }
        Ok(Self::at(path.to_path_buf()))
    }

    fn at(path: PathBuf) -> Self {
        Self {
            path,
            args: Vec::new(),
            added: Vec::new(),
            folder: PathBuf::from("/"),
            streams: [Pipe::Nothing, Pipe::Nothing, Pipe::Nothing],
        }
    }

    /// Returns the program's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the arguments so far, as they would be passed.
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// Adds one argument, passed as it is.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments, each passed as it is.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable beside the inherited ones. Never for secrets: other processes of the same
    /// user can read it.
    #[must_use]
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.added
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets the working folder instead of `/`.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// Sets where input comes from.
    #[must_use]
    pub fn stdin(mut self, pipe: Pipe) -> Self {
        self.streams[0] = pipe;
        self
    }

    /// Sets where output goes.
    #[must_use]
    pub fn stdout(mut self, pipe: Pipe) -> Self {
        self.streams[1] = pipe;
        self
    }

    /// Sets where error output goes.
    #[must_use]
    pub fn stderr(mut self, pipe: Pipe) -> Self {
        self.streams[2] = pipe;
        self
    }

    /// Starts the program.
    ///
    /// # Errors
    /// `Tool` when it cannot be started, with the system's reason.
    pub fn spawn(self) -> Result<Child> {
        let Self {
            path,
            args,
            added,
            folder,
            streams: [stdin, stdout, stderr],
        } = self;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        #[allow(clippy::disallowed_methods)] // the one place that is allowed to
        let mut command = Command::new(&path);
        command
            .args(args)
            .current_dir(folder)
            .env_clear()
            .envs(inherited(std::env::vars_os()))
            .env("PATH", FOLDERS.join(":"))
            .envs(added)
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
        match spawn::spawn(command) {
            Ok(child) => Ok(Child::new(child, name.into_owned())),
            Err(source) => {
                let mut error = Error::io(format!("start {name}"), &source).at(path.as_path());
                error.kind = ErrorKind::Tool;
                Err(error)
            }
        }
    }

    /// Runs a helper to its end and returns what it printed, at most `most` bytes of it.
    ///
    /// # Errors
    /// `Tool` when it cannot be started or prints more than `most` bytes, `Timeout` when it runs
    /// longer than `limit`, `Cancelled`. A failing exit status is not an error here.
    pub fn run(
        self,
        input: &[u8],
        most: usize,
        limit: Duration,
        cancel: &dyn Fn() -> bool,
    ) -> Result<Output> {
        let until = Instant::now() + limit;
        let doing = format!("run {}", self.path.display());
        let mut child = self
            .stdin(Pipe::Piped)
            .stdout(Pipe::Piped)
            .stderr(Pipe::Piped)
            .spawn()?;
        let tail = Tail::of(&mut child)?;
        let failed = |source: &std::io::Error| Error::io(doing.clone(), source);
        let waited = |waited: ready::Waited| match waited {
            ready::Waited::Ready => Ok(()),
            ready::Waited::Cancelled => Err(Error::cancelled()),
            ready::Waited::TimedOut => Err(Error::new(
                ErrorKind::Timeout,
                doing.clone(),
                format!("no answer within {} s", limit.as_secs()),
            )),
        };
        let mut stdin = child.take_stdin();
        let mut pipe = child.take_stdout();
        let mut unsent = input;
        let mut stdout = Vec::new();
        let mut chunk = vec![0; 16 << 10];
        // Both at once: a helper may print before it has read all of its input.
        while let Some(from) = &mut pipe {
            if unsent.is_empty() {
                stdin = None;
            }
            let (state, side) =
                ready::wait_both(from, stdin.as_ref(), until, cancel).map_err(|e| failed(&e))?;
            waited(state)?;
            if let (For::Writing, Some(to)) = (side, &mut stdin) {
                let piece = &unsent[..unsent.len().min(ready::WRITE_AT_ONCE)];
                // A helper that does not want its input is judged by its exit status.
                unsent = match to.write_all(piece) {
                    Ok(()) => &unsent[piece.len()..],
                    Err(_) => &[],
                };
                continue;
            }
            let count = from.read(&mut chunk).map_err(|e| failed(&e))?;
            if count == 0 {
                pipe = None;
            }
            if stdout.len() + count > most {
                return Err(Error::new(
                    ErrorKind::Tool,
                    doing.clone(),
                    format!("it printed more than {most} bytes"),
                ));
            }
            stdout.extend_from_slice(&chunk[..count]);
        }
        // Nobody listens to what is left of the input.
        drop(stdin);
        let left = until.saturating_duration_since(Instant::now());
        match child.wait_deadline(left)? {
            Some(status) => Ok(Output {
                status,
                stdout,
                stderr: tail.finish(),
            }),
            None => Err(waited(ready::Waited::TimedOut)
                .err()
                .unwrap_or_else(Error::cancelled)),
        }
    }
}

/// Returns a program's path when one of [`FOLDERS`] has it.
pub fn find(name: &str) -> Option<PathBuf> {
    let plain = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
    FOLDERS
        .iter()
        .filter(|_| plain)
        .map(|folder| Path::new(folder).join(name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Returns the variables that children may see.
fn inherited(
    all: impl Iterator<Item = (OsString, OsString)>,
) -> impl Iterator<Item = (OsString, OsString)> {
    all.filter(|(name, _)| {
        name.to_str()
            .is_some_and(|name| INHERITED.contains(&name) || name.starts_with("LC_"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: &dyn Fn() -> bool = &|| false;
    const LIMIT: Duration = Duration::from_secs(10);

    fn sh(script: &str) -> Program {
        Program::named("sh").unwrap().args(["-c", script])
    }

    #[test]
    fn a_program_is_found_only_in_the_fixed_folders() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-here").is_none());
        for name in ["", ".", "..", "../bin/sh", "./sh", "/bin/sh"] {
            assert!(find(name).is_none(), "{name}");
        }
        assert_eq!(Program::named("no-such").unwrap_err().kind, ErrorKind::Tool);
    }

    #[test]
    fn a_chosen_program_is_an_executable_with_an_absolute_path() {
        assert!(Program::chosen(Path::new("/bin/sh")).is_ok());
        for bad in ["sh", "./sh", "/etc/passwd", "/bin", "/no/such"] {
            let error = Program::chosen(Path::new(bad)).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Config, "{bad}");
        }
    }

    #[test]
    fn only_listed_variables_are_inherited() {
        let all = [
            ("HOME", "/h"),
            ("LC_ALL", "C"),
            ("LD_PRELOAD", "x.so"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("SSH_AUTH_SOCK", "/s"),
            ("BASH_ENV", "/evil"),
            ("PATH", "/evil"),
        ];
        let kept: Vec<_> = inherited(all.iter().map(|(n, v)| (n.into(), v.into())))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(kept, ["HOME", "LC_ALL", "SSH_AUTH_SOCK"]);
    }

    #[test]
    fn a_child_sees_the_fixed_path_the_root_folder_and_what_was_added() {
        let out = sh("echo $PATH; pwd; echo $X; cat")
            .env("X", "a b")
            .run(b"input", 1000, LIMIT, NEVER)
            .unwrap();
        let want = format!("{}\n/\na b\ninput", FOLDERS.join(":"));
        assert_eq!(String::from_utf8(out.stdout).unwrap(), want);
    }

    #[test]
    fn arguments_are_passed_byte_for_byte() {
        let odd = ["a b", "$(id)", "it's", "-x", "", "*", "\u{fe}\n"];
        let out = sh("for a do printf '%s|' \"$a\"; done")
            .arg("sh")
            .args(odd)
            .run(b"", 1000, LIMIT, NEVER)
            .unwrap();
        assert_eq!(String::from_utf8(out.stdout).unwrap(), odd.join("|") + "|");
    }

    #[test]
    fn a_helper_that_hangs_ends_at_its_limit_and_one_that_floods_at_its_cap() {
        let hang = sh("sleep 60").run(b"", 9, Duration::from_millis(50), NEVER);
        assert_eq!(hang.unwrap_err().kind, ErrorKind::Timeout);
        let flood = sh("while :; do echo aaaaaaaaaaaaaaa; done").run(b"", 9999, LIMIT, NEVER);
        assert_eq!(flood.unwrap_err().kind, ErrorKind::Tool);
        let cancelled = sh("sleep 60").run(b"", 9, LIMIT, &|| true);
        assert_eq!(cancelled.unwrap_err().kind, ErrorKind::Cancelled);
    }

    #[test]
    fn a_helper_may_print_before_it_has_read_its_input() {
        let input = vec![b'x'; 300_000];
        let out = sh("cat").run(&input, input.len(), LIMIT, NEVER).unwrap();
        assert!(out.stdout == input);
        let out = sh("head -c 10").run(&input, 10, LIMIT, NEVER).unwrap();
        assert_eq!(out.stdout, b"xxxxxxxxxx");
    }

    #[test]
    fn a_failing_helper_leaves_its_status_and_its_words() {
        let out = sh("echo why >&2; exit 7")
            .run(b"x", 9, LIMIT, NEVER)
            .unwrap();
        assert_eq!(out.status.code(), Some(7));
        assert_eq!(out.stderr.as_bytes(), b"why\n");
    }

    #[test]
    fn a_program_that_cannot_start_is_a_tool_error() {
        let error = sh("").folder("/no/such/folder").spawn().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Tool);
        assert!(
            error.to_string().starts_with("Failed to start sh: "),
            "{error}"
        );
    }
}
