//! A user of the program with a home of their own, and what a run of the program left behind.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_transload");

/// A user with a home of their own and a folder to work in.
pub struct User {
    pub top: TempDir,
}

impl User {
    pub fn new() -> Self {
        let top = crate::support::temp_dir();
        for dir in ["home", "own", "work"] {
            fs::create_dir(top.path().join(dir)).unwrap();
        }
        Self { top }
    }

    pub fn work(&self, name: &str) -> PathBuf {
        self.top.path().join("work").join(name)
    }

    pub fn write(&self, name: impl AsRef<OsStr>, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.top.path().join("work").join(name.as_ref());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// The program in the work folder, with nothing of this machine's user but PATH.
    pub fn command(&self) -> Command {
        let mut command = Command::new(PROGRAM);
        self.settle(&mut command);
        command
    }

    pub fn settle(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.top.path().join("home"))
            .env("TRANSLOAD_HOME", self.top.path().join("own"))
            .current_dir(self.top.path().join("work"))
            .stdin(Stdio::null());
    }

    pub fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Ran {
        Ran::new(self.command().args(args).output().unwrap())
    }

    /// Runs a line of shell on a terminal of its own, `transload` being the program, with these
    /// keys typed.
    pub fn on_terminal(&self, line: &str, keys: &str) -> (String, i32) {
        let script = crate::support::tool("script", "bsdutils");
        let mut command = Command::new(script);
        self.settle(&mut command);
        let mut child = command
            .args(["-qec", &line.replacen("transload", PROGRAM, 1), "/dev/null"])
            .env("TERM", "xterm")
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(keys.as_bytes()).unwrap();
        let mut text = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut text).unwrap();
        drop(stdin);
        let code = child.wait().unwrap().code().unwrap();
        (String::from_utf8_lossy(&text).into_owned(), code)
    }
}

/// What a run left behind.
pub struct Ran {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ran {
    pub fn new(output: Output) -> Self {
        Self {
            code: output.status.code().expect("it ends by itself"),
            out: String::from_utf8(output.stdout).expect("what is printed is UTF-8"),
            err: String::from_utf8(output.stderr).expect("what is printed is UTF-8"),
        }
    }

    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "stdout:\n{}\nstderr:\n{}",
            self.out, self.err
        );
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(self.err.contains(text), "no '{text}' in:\n{}", self.err);
        self
    }

    pub fn json(&self) -> Vec<Value> {
        self.out
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }

    pub fn of_type(&self, kind: &str) -> Vec<Value> {
        self.json()
            .into_iter()
            .filter(|line| line["type"] == kind)
            .collect()
    }

    #[track_caller]
    pub fn summary(&self) -> Value {
        let lines = self.json();
        let last = lines.last().expect("there is a last line").clone();
        assert_eq!(last["type"], "summary", "the last line is the summary");
        last
    }
}

/// Every path below a folder, relative.
pub fn names_below(top: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                folders.push(path.clone());
            }
            names.push(path.strip_prefix(top).unwrap().to_owned());
        }
    }
    names.sort();
    names
}
