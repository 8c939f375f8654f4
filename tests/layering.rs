//! Who may import whom: reads every path that `src` names and holds it against the tables below.
#![allow(clippy::unwrap_used)] // tests may panic

#[path = "support/rust_source.rs"]
mod rust_source;

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// A folder of `src`, and the folders it may name beside itself. `std` is open to all but for
/// [`STD`]; ARCHITECTURE.md tells the same in words.
#[rustfmt::skip] // A table: a line a row.
const FOLDERS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("plan", &["model"]),
    ("present", &["model"]),
    ("proc", &["model"]),
    ("fs", &["model"]),
    ("wire", &["model"]),
    ("verify", &["model"]),
    ("pump", &["model", "plan", "verify", "fs", "wire"]),
    ("store", &["model"]),
    ("remote", &["model", "proc"]),
    ("backend", &["model", "plan", "fs", "wire", "verify", "pump", "proc", "remote"]),
    ("advise", &["model", "store"]),
    ("engine", &["model", "plan", "fs", "verify", "store", "proc", "backend", "advise"]),
    ("agent", &["model", "plan", "fs", "wire", "verify", "pump", "proc"]),
    ("service", &["model", "fs", "verify", "pump", "proc", "remote", "backend", "store", "present"]),
    ("desktop", &["model", "present", "engine"]),
    ("cli", &["model", "store", "engine", "service", "present"]),
    ("ui", &["model", "store", "engine", "service", "present", "desktop"]),
    // The programs: arguments and a call.
    ("bin", &["agent", "cli", "ui"]),
];

/// The methods in `src/backend`, which never name each other.
const METHODS: &[&str] = &[
    "tcp", "rsync", "sftp", "tar", "cat", "scp", "ftp", "tftp", "netcat", "local",
];

/// Files of `src/backend` that may name every method: the registry and the suite that tests all.
const KNOWS_METHODS: &[&str] = &["mod", "conformance"];

/// `*` in a list of folders: everyone.
const ALL: &[&str] = &["*"];

/// Parts of `std` that only some folders may name. The longest that fits counts.
#[rustfmt::skip] // A table: a line a row.
const STD: &[(&str, &[&str])] = &[
    ("std::process", &["proc"]),
    // A job's owner is told by its process number.
    ("std::process::id", &["proc", "engine"]),
    ("std::process::ExitCode", &["bin", "agent", "cli", "ui", "proc"]),
    // Ends of a pipe to a program that `proc` runs; whoever talks to it holds them.
    ("std::process::ChildStdin", &["proc", "remote", "backend"]),
    ("std::process::ChildStdout", &["proc", "remote", "backend"]),
    ("std::process::ChildStderr", &["proc", "remote", "backend"]),
    ("std::net", &["pump", "backend", "remote", "agent"]),
    ("std::os::unix::net", &["pump", "backend", "remote", "agent"]),
    // An address is a noun; only sockets are kept in their place.
    ("std::net::IpAddr", ALL),
    ("std::net::Ipv4Addr", ALL),
    ("std::net::Ipv6Addr", ALL),
    ("std::net::SocketAddr", ALL),
    ("std::net::AddrParseError", ALL),
    ("std::fs", NOT_PURE),
    ("std::thread", NOT_PURE),
];

/// Everyone but the nouns and the pure functions over them.
const NOT_PURE: &[&str] = &[
    "proc", "fs", "verify", "pump", "store", "remote", "backend", "engine", "agent", "service",
    "desktop", "cli", "ui",
];

/// Other people's crates and who may name them; every dependency has its line here.
#[rustfmt::skip] // A table: a line a row.
const CRATES: &[(&str, &[&str])] = &[
    ("serde", ALL),
    ("crossbeam_channel", NOT_PURE),
    ("getrandom", NOT_PURE),
    ("rustix", &["fs", "pump", "proc", "agent", "backend", "remote", "desktop", "store"]),
    ("blake3", &["verify", "wire", "pump", "remote"]),
    // `remote` names and checks the one file it copies: the agent.
    ("sha2", &["verify", "remote"]),
    ("xxhash_rust", &["verify"]),
    ("wide", &["verify"]),
    ("clap", &["cli"]),
    ("indicatif", &["cli"]),
    ("jiff", &["cli"]),
    ("signal_hook", &["cli"]),
    ("directories", &["store"]),
    ("rusqlite", &["store"]),
    // The window reads the tokens of its look with it.
    ("toml_edit", &["store", "ui"]),
    ("serde_json", &["store", "engine", "service", "cli"]),
    ("tokio", &["engine"]),
    ("eframe", &["ui"]),
    ("egui", &["ui"]),
    ("egui_extras", &["ui"]),
    ("egui_plot", &["ui"]),
    ("rfd", &["ui"]),
    ("percent_encoding", &["ui", "desktop"]),
    ("winit", &["ui", "desktop"]),
    ("x11rb", &["desktop"]),
    ("zbus", &["desktop"]),
];

/// One path that stands where it may not.
#[derive(Debug, PartialEq, Eq)]
struct Violation {
    place: String,
    names: String,
    rule: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: names {}: {}", self.place, self.names, self.rule)
    }
}

/// The modules of a file below `src`: `backend/tcp/mod.rs` and `backend/tcp.rs` are `backend::tcp`.
fn module_of(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> = file
        .with_extension("")
        .iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect();
    if parts
        .last()
        .is_some_and(|last| last == "mod" || last == "lib")
    {
        parts.pop();
    }
    parts
}

/// Holds one file (its place below `src`, its text) against the tables.
fn check(file: &Path, text: &str, test_files: &BTreeSet<Vec<String>>) -> Vec<Violation> {
    let module = module_of(file);
    // The crate's root declares the modules and uses none.
    let Some(folder) = module.first().cloned() else {
        return Vec::new();
    };
    let all_test = (1..=module.len()).any(|n| test_files.contains(&module[..n]));
    let mut out = Vec::new();
    let known = FOLDERS.iter().find(|(name, _)| *name == folder);
    if known.is_none() {
        out.push(Violation {
            place: format!("src/{}:1", file.display()),
            names: folder.clone(),
            rule: "this folder has no line in the table FOLDERS of tests/layering.rs".into(),
        });
    }
    for named in rust_source::read(text, &module).named {
        let path: Vec<&str> = named.path.iter().map(String::as_str).collect();
        let rule = if path[0] == "crate" {
            known.and_then(|(_, may)| inside(&module, &path, may))
        } else if named.in_test || all_test {
            None // Tests bring what they need from outside.
        } else {
            outside(&folder, &path)
        };
        out.extend(rule.map(|rule| Violation {
            place: format!("src/{}:{}", file.display(), named.line),
            names: path.join("::"),
            rule,
        }));
    }
    out
}

/// The rule that a path within this package breaks.
fn inside(module: &[String], path: &[&str], may: &[&str]) -> Option<String> {
    let folder = module[0].as_str();
    let target = *path.get(1)?;
    if target != folder {
        if may.contains(&target) {
            return None;
        }
        return Some(format!("{folder} may import only {}", list(may)));
    }
    let own = module.get(1).map_or("mod", String::as_str);
    let other = *path.get(2)?;
    (folder == "backend"
        && METHODS.contains(&other)
        && other != own
        && !KNOWS_METHODS.contains(&own))
    .then(|| "methods never name each other; what they share stands beside them".into())
}

/// The rule that a path into `std` or another crate breaks.
fn outside(folder: &str, path: &[&str]) -> Option<String> {
    let allowed = |who: &[&str]| who == ALL || who.contains(&folder);
    if matches!(path[0], "std" | "core" | "alloc") {
        let (what, who) = STD
            .iter()
            .filter(|(what, _)| {
                let what: Vec<&str> = what.split("::").collect();
                // An address type's kin (SocketAddrV4) goes with it.
                path.len() >= what.len()
                    && path[..what.len() - 1] == what[..what.len() - 1]
                    && (path[what.len() - 1] == what[what.len() - 1]
                        || what.len() == 3
                            && path[what.len() - 1].starts_with(what[what.len() - 1]))
            })
            .max_by_key(|(what, _)| what.len())?;
        return (!allowed(who)).then(|| format!("{what} is only for {}", list(who)));
    }
    let (name, who) = CRATES.iter().find(|(name, _)| *name == path[0])?;
    if *name == "rustix" && path.get(1) == Some(&"net") {
        let sockets = ["pump", "backend", "remote", "agent"];
        return (!allowed(&sockets)).then(|| format!("sockets are only for {}", list(&sockets)));
    }
    (!allowed(who)).then(|| format!("the crate {name} is only for {}", list(who)))
}

fn list(names: &[&str]) -> String {
    if names.is_empty() {
        "nothing".into()
    } else {
        names.join(", ")
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below `src`, as its place below `src` and its text.
fn sources() -> Vec<(PathBuf, String)> {
    let src = root().join("src");
    let mut out = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                out.push((path.strip_prefix(&src).unwrap().to_path_buf(), text));
            }
        }
    }
    out.sort();
    out
}

/// Modules that `files` declare for tests only.
fn test_files(files: &[(PathBuf, String)]) -> BTreeSet<Vec<String>> {
    let mut out = BTreeSet::new();
    for (file, text) in files {
        let module = module_of(file);
        for name in rust_source::read(text, &module).test_modules {
            out.insert(module.iter().cloned().chain([name]).collect());
        }
    }
    out
}

fn violations(file: &str, text: &str) -> Vec<String> {
    check(Path::new(file), text, &BTreeSet::new())
        .iter()
        .map(|v| v.to_string())
        .collect()
}

#[test]
fn every_import_follows_the_table() {
    let files = sources();
    assert!(files.len() > 20, "the sources were not found");
    let tests = test_files(&files);
    let found: Vec<String> = files
        .iter()
        .flat_map(|(file, text)| check(file, text, &tests))
        .map(|violation| violation.to_string())
        .collect();
    assert!(
        found.is_empty(),
        "{} imports break the layers:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn every_folder_of_the_table_exists_and_every_method_is_in_it() {
    for (folder, _) in FOLDERS {
        assert!(
            root().join("src").join(folder).is_dir(),
            "FOLDERS names src/{folder}, which is gone"
        );
    }
    for entry in fs::read_dir(root().join("src/backend")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            !path.is_dir() || METHODS.contains(&name.as_str()),
            "src/backend/{name} is not in METHODS of tests/layering.rs"
        );
    }
}

#[test]
fn the_architecture_tells_the_same_as_the_table() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let words = |cell: &str| -> Vec<String> {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_string)
            .collect()
    };
    for (folder, may) in FOLDERS {
        let row = map
            .lines()
            .find(|line| line.starts_with(&format!("| `{folder}` |")));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {folder}"));
        let told = words(row.trim_end_matches('|').rsplit('|').next().unwrap());
        assert_eq!(
            told, *may,
            "what ARCHITECTURE.md says that {folder} may import"
        );
    }
}

#[test]
fn every_dependency_has_its_place() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let section = manifest.split("[dependencies]").nth(1).unwrap();
    let section = section.split("\n[").next().unwrap();
    let mut used = BTreeSet::new();
    for line in section
        .lines()
        .filter(|line| line.starts_with(|c: char| c.is_alphabetic()))
    {
        let name = line.split(['=', '.', ' ']).next().unwrap();
        let name = name.replace('-', "_");
        used.insert(name.clone());
        assert!(
            CRATES.iter().any(|(known, _)| *known == name),
            "the dependency {name} has no line in CRATES of tests/layering.rs: who may use it?"
        );
    }
    for (name, _) in CRATES {
        assert!(
            used.contains(*name),
            "CRATES has a line for {name}, which is no dependency"
        );
    }
}

#[test]
fn a_folder_without_a_line_in_the_table_fails() {
    let found = violations("shiny/mod.rs", "//! New.\n");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("src/shiny/mod.rs:1: names shiny: this folder has no line"));
}

#[test]
fn imports_are_found_in_every_form_they_can_take() {
    for (file, text) in [
        ("model/a.rs", "use crate::fs::Root;"),
        ("model/a.rs", "use transload::fs::Root;"),
        ("model/a.rs", "pub(crate) use crate::{fs::Root, model::x};"),
        ("model/a.rs", "use crate::fs;"),
        ("model/a.rs", "fn f() { crate::fs::open() }"),
        ("model/a.rs", "fn f(x: &dyn crate::fs::Look) {}"),
        ("model/a.rs", "fn f() -> Vec<crate::fs::Root> { vec![] }"),
        (
            "model/a.rs",
            "fn f() { <crate::fs::Root as Clone>::clone() }",
        ),
        ("model/a/b.rs", "use super::super::super::fs::Root;"),
        ("model/mod.rs", "mod x { use super::super::fs::Root; }"),
        (
            "model/mod.rs",
            "#[cfg(test)] mod tests { use crate::ui::App; }",
        ),
        (
            "model/mod.rs",
            "#[cfg(not(test))] mod x { use std::thread; }",
        ),
        ("plan/mod.rs", "use std::{fmt, fs as files};"),
        ("plan/mod.rs", "fn f() { std::thread::sleep(d) }"),
        ("verify/mod.rs", "use std::net::TcpStream;"),
        ("engine/mod.rs", "use std::{net::{IpAddr, ToSocketAddrs}};"),
        ("engine/mod.rs", "use std::os::unix::net::UnixStream;"),
        ("engine/mod.rs", "use std::process::{self, Command};"),
        ("engine/mod.rs", "fn f() { ::std::process::exit(1) }"),
        ("ui/mod.rs", "use rusqlite;"),
        ("engine/mod.rs", "use egui::Color32;"),
        ("engine/mod.rs", "fn f(c: &egui::Context) {}"),
        ("store/mod.rs", "extern crate clap;"),
        ("fs/mod.rs", "use rustix::net::socket;"),
        ("backend/tcp/mod.rs", "use crate::backend::rsync::Args;"),
        ("backend/tcp/lane.rs", "use super::super::rsync::Args;"),
        ("backend/contract.rs", "use super::tcp::Lane;"),
        (
            "backend/local.rs",
            "use crate::backend::{contract::Session, sftp};",
        ),
        ("agent/mod.rs", "use crate::backend::contract::Session;"),
        ("bin/transload.rs", "fn main() { transload::engine::run() }"),
    ] {
        let found = violations(file, text);
        assert_eq!(
            found.len(),
            if text.contains("{self, ") { 2 } else { 1 },
            "{file} {text}: {found:?}"
        );
    }
}

#[test]
fn what_is_allowed_or_only_looks_like_an_import_passes() {
    for (file, text) in [
        ("pump/mod.rs", "use crate::wire::frame;\nuse crate::verify;"),
        (
            "model/location.rs",
            "use std::net::{IpAddr, Ipv6Addr, SocketAddrV4};",
        ),
        (
            "model/a.rs",
            "// use crate::fs::Root;\n/* crate::fs /* nested */ crate::ui */",
        ),
        ("model/a.rs", "//! [`crate::fs::Root`] resolves it.\n"),
        (
            "model/a.rs",
            r##"const A: &str = "crate::fs::x"; const B: &str = r#"use "crate::fs" "#;"##,
        ),
        (
            "model/a.rs",
            r"const A: char = '\''; const B: &[u8] = b'\\'; fn f<'a>(x: &'a str) {}",
        ),
        ("model/a.rs", "fn f(fs: u8) { self.fs.egui(); }"),
        (
            "plan/mod.rs",
            "#[cfg(test)]\nmod tests {\n use std::fs;\n use tempfile::tempdir;\n}",
        ),
        ("proc/mod.rs", "use std::process::{Command, Stdio};"),
        (
            "cli/mod.rs",
            "pub fn main() -> std::process::ExitCode { crate::engine::start() }",
        ),
        (
            "backend/mod.rs",
            "pub const ALL: &[&dyn Backend] = &[&tcp::Tcp, &self::local::Local];",
        ),
        ("backend/conformance.rs", "use crate::backend::tcp::Tcp;"),
        (
            "backend/tcp/lane.rs",
            "use super::hello;\nuse crate::backend::tcp::order;",
        ),
        (
            "bin/transload.rs",
            "fn main() -> std::process::ExitCode { transload::cli::main() }",
        ),
    ] {
        assert_eq!(
            violations(file, text),
            Vec::<String>::new(),
            "{file} {text}"
        );
    }
}

#[test]
fn a_violation_says_file_line_and_rule() {
    let text = "//! A noun.\n\nuse std::fmt;\n\nfn f() {\n    let s = \"two\nlines\";\n    crate::ui::draw(s);\n}\n";
    assert_eq!(
        violations("present/text.rs", text),
        ["src/present/text.rs:8: names crate::ui::draw: present may import only model"]
    );
}
