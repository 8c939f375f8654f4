//! A person's desk: a screen, a home folder of their own, the real program, and a window of it.

use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::display::Display;
use super::screen_reader::ScreenReader;
use super::support::sshd::Sshd;
use super::support::{temp_dir, tool};
use super::xdnd;

/// What the window is called.
pub const TITLE: &str = "Transload";

/// The one profile of the desk.
pub const PROFILE: &str = "Photos to nas";

/// How long a step may take in a debug build on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A screen, a home folder, and who reads the screen.
pub struct Desk {
    pub display: Display,
    reader: Option<ScreenReader>,
    folder: TempDir,
}

/// The program with its window open; gone with its value.
pub struct Opened {
    program: Child,
    frame_log: PathBuf,
}

impl Desk {
    /// Makes one on which only the screen tells what happens.
    pub fn plain() -> Self {
        let folder = temp_dir();
        for name in ["home", "run"] {
            fs::DirBuilder::new()
                .mode(0o700)
                .create(folder.path().join(name))
                .unwrap();
        }
        Self {
            display: Display::start(),
            reader: None,
            folder,
        }
    }

    /// Makes one with somebody who reads the window by its accessible names.
    pub fn with_reader() -> Self {
        let mut desk = Self::plain();
        desk.reader = Some(ScreenReader::start(&desk.display));
        desk
    }

    /// Returns who reads the screen.
    pub fn reader(&mut self) -> &mut ScreenReader {
        self.reader.as_mut().expect("a desk with a reader")
    }

    /// Returns a folder for what the person has.
    pub fn folder(&self, name: &str) -> PathBuf {
        let folder = self.folder.path().join("home").join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// Prepares the program as a person would start it, with nothing else from this process.
    fn program(&self) -> Command {
        let at = |name: &str| self.folder.path().join(name);
        let mut command = Command::new(env!("CARGO_BIN_EXE_transload"));
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", at("home"))
            .env("TRANSLOAD_HOME", at("transload"))
            .env("XDG_RUNTIME_DIR", at("run"))
            .env("LANG", "C.UTF-8")
            .env("DISPLAY", self.display.name())
            .env("WINIT_X11_SCALE_FACTOR", "1")
            .env("RUST_BACKTRACE", "1")
            .current_dir(at("home"))
            .stdin(Stdio::null());
        if let Some(reader) = &self.reader {
            command.env("DBUS_SESSION_BUS_ADDRESS", reader.address());
        }
        command
    }

    /// Runs a command of the program and returns what it printed.
    pub fn transload<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> String {
        let Output {
            status,
            stdout,
            stderr,
        } = self.program().args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&stderr).into_owned();
        assert!(status.success(), "{status}: {stderr}");
        String::from_utf8(stdout).unwrap()
    }

    /// Runs a command that prints JSON, and returns its lines.
    pub fn json<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Vec<Value> {
        let text = self.transload(args);
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Makes the only profile: by raw TCP into a folder of this server, with more options.
    pub fn profile(&self, nas: &Sshd, into: impl AsRef<Path>, more: &[&str]) {
        for sample in self.json(&["profiles", "list", "--json"]) {
            self.transload(&["profiles", "delete", sample["id"].as_str().unwrap()]);
        }
        let to = format!("{}/", nas.location(into));
        let config = nas.config();
        let mut args = vec!["profiles", "new", PROFILE, "--dest", &to, "--method", "tcp"];
        args.extend([
            "--encrypt",
            "never",
            "--ssh-config",
            config.to_str().unwrap(),
        ]);
        args.extend(more);
        self.transload(&args);
    }

    /// Opens the window and returns once it takes drags and has nothing more to draw.
    pub fn open(&self) -> Opened {
        let frame_log = self.folder.path().join("frames");
        let stderr = fs::File::create(self.folder.path().join("stderr")).unwrap();
        let mut program = self.program();
        program.env("TRANSLOAD_FRAME_LOG", &frame_log);
        let program = program
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap();
        let mut opened = Opened { program, frame_log };
        let (conn, screen) = x11rb::connect(Some(self.display.name())).unwrap();
        self.until("the window takes drags", || {
            assert!(
                opened.program.try_wait().unwrap().is_none(),
                "{}",
                self.said()
            );
            xdnd::takes_drags(&conn, screen, TITLE)
        });
        opened.quiet();
        opened
    }

    /// Returns what the window wrote to its error stream.
    pub fn said(&self) -> String {
        let bytes = fs::read(self.folder.path().join("stderr")).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until something holds.
    pub fn until(&self, what: &str, mut holds: impl FnMut() -> bool) {
        let until = Instant::now() + PATIENCE;
        while !holds() {
            assert!(
                Instant::now() < until,
                "waited in vain until {what}: {}",
                self.said()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until so many runs have ended, and returns all, oldest first.
    pub fn ended(&self, count: usize) -> Vec<Value> {
        let mut runs = Vec::new();
        self.until(&format!("{count} runs have ended"), || {
            runs = self.json(&["history", "list", "--json"]);
            runs.retain(|run| run["type"] == "run" && !run["outcome"].is_null());
            runs.len() >= count
        });
        runs.sort_by(|a, b| f64::total_cmp(&began(a), &began(b)));
        runs
    }

    /// Saves what the screen shows once it stands still; with UPDATE_SCREENSHOTS also for the
    /// papers. Somebody has to look at them: a picture that exists proves little.
    pub fn picture(&self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("screenshots");
        fs::create_dir_all(&folder).unwrap();
        let (conn, screen) = x11rb::connect(Some(self.display.name())).unwrap();
        let window = xdnd::find_window(&conn, screen, TITLE);
        let (file, last) = (folder.join(name), folder.join(format!("last-{name}")));
        self.display.screenshot(window, &file);
        self.until("the picture stands still", || {
            fs::rename(&file, &last).unwrap();
            self.display.screenshot(window, &file);
            fs::read(&file).unwrap() == fs::read(&last).unwrap()
        });
        fs::remove_file(&last).unwrap();
        if std::env::var_os("UPDATE_SCREENSHOTS").is_some() {
            let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/screenshots");
            fs::create_dir_all(&papers).unwrap();
            fs::copy(&file, papers.join(name)).unwrap();
        }
    }

    /// Presses keys, by their names for xdotool.
    pub fn keys(&self, keys: &str) {
        let xdotool = tool("xdotool", "xdotool");
        let pressed = Command::new(xdotool)
            .args([
                "search",
                "--name",
                &format!("^{TITLE}$"),
                "windowfocus",
                "key",
                keys,
            ])
            .env("DISPLAY", self.display.name())
            .status()
            .unwrap();
        assert!(pressed.success(), "xdotool: {pressed}");
    }
}

impl Opened {
    /// Returns the process id.
    pub fn id(&self) -> u32 {
        self.program.id()
    }

    /// Returns what each frame cost so far, in milliseconds.
    pub fn frames(&self) -> Vec<f64> {
        let text = fs::read_to_string(&self.frame_log).unwrap_or_default();
        // The last line may still be being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().map(|line| line.parse().unwrap()).collect()
    }

    /// Returns for how long the window's thread ran so far and for how long it was ready and had
    /// to wait for a processor; zero where the kernel keeps no such account.
    pub fn ran_and_waited(&self) -> (Duration, Duration) {
        let id = self.id();
        let text = fs::read_to_string(format!("/proc/{id}/task/{id}/schedstat"));
        let text = text.unwrap_or_default();
        let mut numbers = text
            .split_ascii_whitespace()
            .map(|number| number.parse().unwrap());
        let mut next = || Duration::from_nanos(numbers.next().unwrap_or_default());
        (next(), next())
    }

    /// Waits until the window has drawn something and then nothing for a second.
    fn quiet(&mut self) {
        let until = Instant::now() + PATIENCE;
        let (mut frames, mut since) = (0, Instant::now());
        while frames == 0 || since.elapsed() < Duration::from_secs(1) {
            assert!(Instant::now() < until, "the window never comes to rest");
            std::thread::sleep(Duration::from_millis(20));
            let now = self.frames().len();
            if now != frames {
                (frames, since) = (now, Instant::now());
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

fn began(run: &Value) -> f64 {
    run["started"].as_f64().unwrap()
}

/// Returns the most memory that a process ever had, in MiB; `None` when it is gone.
pub fn peak_mib(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib / 1024)
}

/// Lists what is below a folder in a form that two equal trees share: kind, mode, time to the
/// nanosecond and contents of each entry.
pub fn tree(folder: &Path) -> Vec<(PathBuf, String, Vec<u8>)> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut all = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let (kind, contents) = if meta.is_symlink() {
                (
                    "link",
                    path.read_link().unwrap().as_os_str().as_bytes().to_vec(),
                )
            } else if meta.is_dir() {
                folders.push(path.clone());
                ("folder", Vec::new())
            } else {
                ("file", fs::read(&path).unwrap())
            };
            // A link has no mode of its own.
            let mode = if meta.is_symlink() {
                0
            } else {
                meta.mode() & 0o7777
            };
            let facts = format!("{kind} {mode:o} {}.{:09}", meta.mtime(), meta.mtime_nsec());
            all.push((
                path.strip_prefix(folder).unwrap().to_owned(),
                facts,
                contents,
            ));
        }
    }
    all.sort();
    all
}
