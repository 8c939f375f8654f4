//! The papers tell the truth: what README.md, ARCHITECTURE.md, CONTRIBUTING.md and the first lines
//! of each source file promise can be checked, so it is.
#![allow(clippy::unwrap_used)] // tests may panic

use std::fs;
use std::path::{Path, PathBuf};

/// Longer files are usually two ideas in one.
const MAX_LINES: usize = 600;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// The Rust files below `folder`.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            out.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            out.push(path);
        }
    }
    out
}

/// Whether the text opens with a module doc of at least three words.
fn opens_with_a_sentence(text: &str) -> bool {
    text.lines()
        .next()
        .and_then(|line| line.strip_prefix("//! "))
        .is_some_and(|line| line.split_whitespace().count() >= 3)
}

fn is_too_long(text: &str) -> bool {
    text.lines().count() > MAX_LINES
        && !text
            .lines()
            .any(|line| line.starts_with("//! Long because "))
}

/// The lines of the code blocks (fenced) below the heading `title`, up to the next heading.
fn commands_under(text: &str, title: &str) -> Vec<String> {
    let mut out = Vec::new();
    let (mut inside, mut fenced) = (false, false);
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            if inside && !line.trim().is_empty() {
                out.push(line.trim().to_string());
            }
        } else if line.starts_with('#') {
            inside = line.trim_start_matches('#').trim() == title;
        }
    }
    out
}

#[test]
fn each_source_file_opens_with_a_sentence_saying_what_it_is_for() {
    for folder in ["src", "tests"] {
        for file in rust_files(&root().join(folder)) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(
                opens_with_a_sentence(&text),
                "{} does not open with `//! …`",
                file.display()
            );
        }
    }
}

#[test]
fn no_source_file_is_long_without_saying_why() {
    for folder in ["src", "tests"] {
        for file in rust_files(&root().join(folder)) {
            let text = fs::read_to_string(&file).unwrap();
            assert!(
                !is_too_long(&text),
                "{} has {} lines: split it, or say `//! Long because …`",
                file.display(),
                text.lines().count()
            );
        }
    }
}

#[test]
fn the_checks_of_source_files_notice_what_they_look_for() {
    assert!(opens_with_a_sentence("//! One lane and its thread.\n"));
    assert!(!opens_with_a_sentence("use std::fmt;\n//! Late.\n"));
    assert!(!opens_with_a_sentence("//! Stuff.\n"));
    let long = "x\n".repeat(MAX_LINES + 1);
    assert!(is_too_long(&long));
    assert!(!is_too_long(&format!(
        "//! Long because it is one table.\n{long}"
    )));
    assert!(!is_too_long(&"x\n".repeat(MAX_LINES)));
}

#[test]
fn the_readme_sets_up_with_exactly_two_commands() {
    let commands = commands_under(&read("README.md"), "Set up");
    let bare: Vec<&str> = commands
        .iter()
        .map(|line| line.split('#').next().unwrap().trim())
        .collect();
    assert_eq!(bare, ["make run", "make test"]);
}

#[test]
fn the_architecture_names_every_folder_of_the_source() {
    let map = read("ARCHITECTURE.md");
    for entry in fs::read_dir(root().join("src")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            assert!(
                map.contains(&format!("`{name}`")),
                "ARCHITECTURE.md does not name `{name}`"
            );
        }
    }
}

#[test]
fn every_target_of_the_makefile_is_in_the_table_of_checks_or_in_its_help() {
    let makefile = read("Makefile");
    let contributing = read("CONTRIBUTING.md");
    let phony = makefile
        .lines()
        .find_map(|line| line.strip_prefix(".PHONY: "))
        .unwrap();
    for target in phony
        .split_whitespace()
        .filter(|name| !["help", "rust"].contains(name))
    {
        assert!(
            contributing.contains(&format!("`make {target}")),
            "CONTRIBUTING.md does not say what `make {target}` is for"
        );
    }
}

#[test]
fn no_link_within_the_papers_is_dead() {
    let mut papers: Vec<PathBuf> = [
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
    ]
    .map(PathBuf::from)
    .into();
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        papers.push(Path::new("docs").join(entry.unwrap().file_name()));
    }
    for paper in papers {
        let text = read(paper.to_str().unwrap());
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let target = root().join(paper.parent().unwrap()).join(file);
            assert!(
                target.exists(),
                "{} links to {link}, which is not there",
                paper.display()
            );
        }
    }
}

#[test]
fn the_guide_has_the_methods_that_there_are() {
    let guide = read("docs/guide.md");
    let list = guide.split("`--method auto").nth(1).unwrap();
    let mut told: Vec<&str> = list.split('`').next().unwrap().split('|').skip(1).collect();
    let mut there: Vec<String> = fs::read_dir(root().join("src/backend"))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    told.sort_unstable();
    there.sort_unstable();
    assert_eq!(told, there);
}
