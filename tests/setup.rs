//! The scripts that set up a machine keep their promises: they say what they do, touch nothing when
//! all is there, and never need a terminal.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs the install script as from `env -i HOME PATH` with nothing to read.
fn install_deps(args: &[&str], path: &str, more: &[(&str, &str)]) -> Output {
    Command::new("/bin/sh")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/install-deps.sh"))
        .args(args)
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("PATH", path)
        .envs(more.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A folder of stand-ins for system programs, to be put before the real ones.
struct Fakes(tempfile::TempDir);

impl Fakes {
    fn new(programs: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (name, body) in programs {
            let file = dir.path().join(name);
            fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(dir)
    }

    fn path(&self) -> String {
        format!("{}:/usr/bin:/bin", self.0.path().display())
    }
}

#[test]
fn the_install_script_is_silent_when_all_is_there() {
    let fakes = Fakes::new(&[("dpkg-query", "printf installed"), ("apt-get", "exit 9")]);
    let out = install_deps(&["build", "run", "test"], &fakes.path(), &[]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert_eq!(text(&out.stdout), "");
    assert_eq!(text(&out.stderr), "");
}

#[test]
fn the_install_script_asks_nobody_when_there_is_nobody_to_ask() {
    // A person's machine: not root, no CI, and nothing to read an answer from.
    let fakes = Fakes::new(&[
        ("dpkg-query", "exit 1"),
        ("apt-get", "exit 9"),
        ("id", "echo 1000"),
        ("sudo", "echo SUDO WAS CALLED"),
    ]);
    let out = install_deps(&["build"], &fakes.path(), &[]);
    assert_eq!(out.status.code(), Some(1));
    assert!(
        text(&out.stdout).contains("gcc libc6-dev make"),
        "{}",
        text(&out.stdout)
    );
    assert!(
        text(&out.stderr).contains("sudo apt-get install"),
        "{}",
        text(&out.stderr)
    );
    assert!(!text(&out.stdout).contains("SUDO WAS CALLED"));
}

#[test]
fn the_install_script_uses_sudo_unasked_in_ci_only() {
    let fakes = Fakes::new(&[
        ("dpkg-query", "exit 1"),
        ("apt-get", "exit 9"),
        ("id", "echo 1000"),
        ("sudo", "echo sudo \"$@\""),
    ]);
    let out = install_deps(&["build"], &fakes.path(), &[("CI", "true")]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("sudo -n sh "),
        "{}",
        text(&out.stdout)
    );
}

#[test]
fn a_machine_without_apt_gets_the_list_and_no_error() {
    // Everything the script calls, but no apt-get and no dpkg-query.
    let dir = tempfile::tempdir().unwrap();
    for name in ["sort", "tr", "sed"] {
        std::os::unix::fs::symlink(format!("/usr/bin/{name}"), dir.path().join(name)).unwrap();
    }
    let out = install_deps(&["run"], dir.path().to_str().unwrap(), &[]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(
        text(&out.stdout).contains("has no apt"),
        "{}",
        text(&out.stdout)
    );
    assert!(
        text(&out.stdout).contains("libxkbcommon-x11-0"),
        "{}",
        text(&out.stdout)
    );
}

#[test]
fn an_unknown_group_is_refused_by_name() {
    let out = install_deps(&["everything"], "/usr/bin:/bin", &[]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out.stderr).contains("no such group: everything"));
}

#[test]
fn every_script_is_executable_and_parses() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for script in [
        ".ci/run",
        "packaging/install-deps.sh",
        "packaging/agent.sh",
        "packaging/check-msrv.sh",
    ] {
        let path = root.join(script);
        assert_ne!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o111,
            0,
            "{script} is not executable"
        );
        let shell = if script == ".ci/run" { "bash" } else { "sh" };
        let out = Command::new(shell).arg("-n").arg(&path).output().unwrap();
        assert!(out.status.success(), "{script}: {}", text(&out.stderr));
    }
}

#[test]
fn the_sample_that_make_run_falls_back_to_is_shipped() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let makefile = fs::read_to_string(root.join("Makefile")).unwrap();
    let sample = makefile
        .lines()
        .find_map(|line| line.strip_prefix("SAMPLE := "))
        .unwrap();
    let shipped = fs::read_dir(root.join("profiles"))
        .unwrap()
        .map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap())
        .any(|profile| {
            profile
                .lines()
                .any(|line| line.starts_with("name") && line.contains(sample))
        });
    assert!(shipped, "no file in profiles/ has the name {sample:?}");
}

#[test]
fn every_package_that_a_test_asks_for_is_installed_by_make_test() {
    // Every Debian system has these.
    const ESSENTIAL: &[&str] = &["bash", "coreutils", "dash", "perl-base"];
    let out = install_deps(&["--list", "build", "run", "test"], "/usr/bin:/bin", &[]);
    let listed = text(&out.stdout);
    let mut asked = 0;
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.ends_with("tests/setup.rs") {
                continue; // It only talks about them.
            }
            let Ok(source) = fs::read_to_string(&path) else {
                continue;
            };
            for package in packages_named(&source) {
                asked += 1;
                assert!(
                    ESSENTIAL.contains(&package.as_str())
                        || listed.lines().any(|line| line == package),
                    "{} asks for the package {package}, which packaging/install-deps.sh does not install",
                    path.display()
                );
            }
        }
    }
    assert!(
        asked > 5,
        "the places where tests name packages were not found"
    );
}

/// The packages in `apt-get install …` and `tool("program", "package")`.
fn packages_named(source: &str) -> Vec<String> {
    let is_name = |word: &&str| word.starts_with(|c: char| c.is_ascii_lowercase());
    let after_install = source.split("apt-get install ").skip(1).flat_map(|rest| {
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || " .+-".contains(c)))
            .unwrap_or(rest.len());
        rest[..end].split(' ').filter(is_name)
    });
    let of_tools = source.split("tool(\"").skip(1).filter_map(|rest| {
        let (arguments, _) = rest.split_once(')')?;
        arguments.split('"').nth(2).filter(is_name)
    });
    after_install.chain(of_tools).map(str::to_string).collect()
}
