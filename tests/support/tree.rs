//! Trees to move, and a comparison that sees every byte, mode, time and link.
#![allow(clippy::unwrap_used, dead_code)] // each test uses a part, and may panic

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

/// Everything about one entry that a transfer keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub kind: &'static str,
    pub mode: u32,
    pub mtime: (i64, i64),
    pub content: Vec<u8>,
}

/// Reads a whole tree; the root itself is not part of it.
pub fn read(root: &Path) -> BTreeMap<Vec<u8>, Entry> {
    let mut all = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path
                .strip_prefix(root)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec();
            let (kind, content) = if meta.is_dir() {
                open.push(path.clone());
                ("folder", Vec::new())
            } else if meta.is_symlink() {
                (
                    "link",
                    fs::read_link(&path).unwrap().into_os_string().into_vec(),
                )
            } else {
                ("file", fs::read(&path).unwrap())
            };
            let mode = if meta.is_symlink() {
                0
            } else {
                meta.mode() & 0o7777
            };
            all.insert(
                name,
                Entry {
                    kind,
                    mode,
                    mtime: (meta.mtime(), meta.mtime_nsec()),
                    content,
                },
            );
        }
    }
    all
}

/// Fails, naming the first difference, unless two trees are the same in everything.
pub fn assert_same(left: &Path, right: &Path) {
    let (l, r) = (read(left), read(right));
    for (name, entry) in &l {
        let shown = String::from_utf8_lossy(name);
        let other = r.get(name).unwrap_or_else(|| panic!("{shown} is missing"));
        assert_eq!(
            (entry.kind, entry.mode, entry.mtime),
            (other.kind, other.mode, other.mtime),
            "{shown}"
        );
        assert!(entry.content == other.content, "{shown} has other bytes");
    }
    for name in r.keys() {
        assert!(
            l.contains_key(name),
            "{} is extra",
            String::from_utf8_lossy(name)
        );
    }
}

/// Writes a file with this content, mode and time.
pub fn file(path: &Path, content: &[u8], mode: u32, secs: u64, nanos: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::new(secs, nanos))
        .unwrap();
}

/// Returns bytes that do not compress and differ by seed.
pub fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Names that broke other programs: control characters, blanks, leading dashes, brackets, percent
/// signs, other scripts, bytes that are not UTF-8, and the longest that fit.
pub fn odd_names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = [
        "Icon\r",
        "\u{1b}[31m",
        "a\tb.txt",
        "x\ny.txt",
        "-qx",
        "--delete",
        "-e",
        "shot 2025-02-05 21:46:53.png",
        "host:file",
        " lead",
        "t .",
        "tail ",
        "a\u{302}",
        "foo.[1]",
        "*",
        "?x",
        "{a,b}",
        "[test].mkv",
        "x\r\nDELE keep.txt",
        "日本語の名前.txt",
        "👩\u{200d}💻.txt",
        "evil\u{202e}fdp.exe",
        "e\u{301}\u{323}\u{308}",
        "b%20S.txt",
        "100%s",
        "qq q.txt",
        "a  (b)",
        "q [2019]",
        "a'b\"c`d$e",
        "\\back\\slash",
        "#hash",
        "~x",
        "~",
        "a~",
        "...",
        "..a",
        "a b;touch PWN",
        "$(touch PWN)",
        "x.desktop",
        ".hidden",
        "&<b>",
        "\u{7f}",
    ]
    .iter()
    .map(|name| name.as_bytes().to_vec())
    .collect();
    names.push(vec![0xd4, 0xc5, 0xd3, 0xd4]);
    names.push(b"a\xff\xfeb".to_vec());
    names.push(vec![b'a'; 255]);
    names.push("字".repeat(85).into_bytes());
    names.push((1..=255u8).filter(|b| *b != b'/').take(200).collect());
    names
}

/// Makes a tree with every kind of thing that is moved.
pub fn varied(root: &Path) {
    fs::create_dir_all(root.join("sub/deep/er")).unwrap();
    fs::create_dir(root.join("empty folder")).unwrap();
    fs::create_dir(root.join("odd")).unwrap();
    for (n, name) in odd_names().iter().enumerate() {
        let path = root.join("odd").join(OsStr::from_bytes(name));
        file(
            &path,
            &noise(n * 7, n as u64),
            0o600 + (n as u32 % 4),
            1_000_000_000 + n as u64,
            n as u32 * 1_000_003,
        );
    }
    for (n, len) in [
        0, 1, 4095, 4096, 131_072, 131_073, 524_288, 1_048_576, 1_048_577, 3_000_001, 9_000_000,
    ]
    .iter()
    .enumerate()
    {
        file(
            &root.join(format!("sub/size-{len}")),
            &noise(*len, 100 + n as u64),
            0o644,
            1_600_000_000,
            123_456_789,
        );
    }
    file(
        &root.join("sub/deep/er/run.sh"),
        b"#!/bin/sh\n",
        0o755,
        1_500_000_000,
        0,
    );
    symlink("size-1", root.join("sub/link")).unwrap();
    symlink("/nowhere/at/all", root.join("sub/broken link")).unwrap();
    symlink("..", root.join("sub/deep/loop")).unwrap();
    // Last, because what is written into a folder changes its time; and no one may write into it.
    // All in the past: rsync leaves a time alone that is another one in the same second.
    for (folder, mode, secs) in [
        ("sub/deep/er", 0o555, 1_400_000_000),
        ("sub/deep", 0o755, 1_350_000_000),
        ("empty folder", 0o700, 1_300_000_000),
        ("odd", 0o750, 1_200_000_000),
        ("sub", 0o755, 1_100_000_001),
        ("", 0o755, 1_000_000_001),
    ] {
        let path = root.join(folder);
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        fs::File::open(&path)
            .unwrap()
            .set_modified(UNIX_EPOCH + Duration::from_secs(secs))
            .unwrap();
    }
}
