//! The real window on a real screen: real drags go to a real sshd by raw TCP, and what arrives is
//! compared byte by byte.
#![cfg(feature = "gui")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

#[path = "support/desk.rs"]
mod desk;
#[path = "support/display.rs"]
mod display;
#[path = "support/screen_reader.rs"]
mod screen_reader;
mod support;
#[path = "support/xdnd.rs"]
mod xdnd;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant, SystemTime};

use desk::{Desk, Opened, TITLE, peak_mib, tree};
use support::agent_binary;
use support::sshd::{Sshd, children_of};
use xdnd::{Drag, Seen, uri};

/// The most that the window's own work for one frame may take, in milliseconds at the 99th of 100
/// frames: half of what 30 frames a second leave.
const FRAME_MS: f64 = 16.0;

/// The most memory of one process, in MiB.
const MEMORY_MIB: u64 = 300;

fn nas() -> Sshd {
    Sshd::setup().agent_in_path(agent_binary()).start()
}

/// Drops these on the window, in its upper half: send them now.
fn drop_on(desk: &Desk, paths: &[PathBuf]) -> Seen {
    let uris: Vec<String> = paths.iter().map(|path| uri(path)).collect();
    Drag::of(&uris).onto(desk.display.name(), TITLE)
}

fn write(path: &Path, bytes: &[u8], mode: u32, age: Duration) {
    fs::write(path, bytes).unwrap();
    dress(path, mode, age);
}

/// Gives a file or folder its mode and a time that is no round number.
fn dress(path: &Path, mode: u32, age: Duration) {
    let file = fs::File::open(path).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns bytes that look random and are the same each time.
fn noise(length: usize) -> Vec<u8> {
    let mut x = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        bytes.extend_from_slice(&x.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

#[test]
fn a_drop_sends_what_is_there_by_raw_tcp_and_names_what_is_gone() {
    let nas = nas();
    let mut desk = Desk::with_reader();
    let arrived = nas.home().join("photo");
    fs::create_dir(&arrived).unwrap();
    // Slow enough that the graph has something to show.
    let from = desk.folder("Pictures");
    desk.profile(&nas, "photo", &["--source", "~/Pictures", "--limit", "8M"]);

    let hours = |n: u64| Duration::new(n * 3600, 123_456_789);
    let at = |name: &[u8]| from.join(OsStr::from_bytes(name));
    write(
        &at(b"harbour at night.raw"),
        &noise(36 << 20),
        0o640,
        hours(900),
    );
    write(&at(b"caf\xe9 \xff.jpg"), &noise(3 << 20), 0o604, hours(20));
    write(
        &at("\u{43c}\u{43e}\u{440}\u{435} notes.txt".as_bytes()),
        b"",
        0o444,
        hours(1),
    );
    symlink("harbour at night.raw", at(b"latest")).unwrap();
    fs::create_dir_all(at(b"2024/summer/empty")).unwrap();
    for n in 0..40_u32 {
        let name = format!("2024/summer/picture {n:02}.jpg");
        write(
            &at(name.as_bytes()),
            &noise(n as usize * 4099),
            0o644,
            hours(n.into()),
        );
    }
    symlink("../nowhere", at(b"2024/dangling")).unwrap();
    dress(&at(b"2024/summer"), 0o750, hours(70));
    dress(&at(b"2024"), 0o755, hours(80));
    let gone = at(b"removed just now.jpg");
    fs::write(&gone, "x").unwrap();
    let dropped: Vec<PathBuf> = fs::read_dir(&from)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(dropped.len(), 6);

    let _window = desk.open();
    fs::remove_file(&gone).unwrap();
    let uris: Vec<String> = dropped.iter().map(|path| uri(path)).collect();
    let (release, hold) = sync_channel(1);
    let drag = Drag {
        hold: Some(hold),
        ..Drag::of(&uris)
    };
    let display = desk.display.name().to_owned();
    let hand = std::thread::spawn(move || drag.onto(&display, TITLE));
    desk.reader().wait_for("what a drop would do", |name| {
        name.starts_with("Send 6 items to nas:photo")
    });
    desk.picture("drop.png");
    release.send(()).unwrap();
    let seen = hand.join().unwrap();
    assert!(
        seen.accepts && seen.copies && seen.finished == Some(true),
        "{seen:?}"
    );

    let reader = desk.reader();
    reader.wait_for("the missing file", |name| name == gone.to_str().unwrap());
    reader.wait_for("the reason", |name| name == "It is no longer there.");
    assert!(reader.press("OK"));

    let run = &desk.ended(1)[0];
    assert_eq!(run["outcome"], "completed", "{run}");
    assert_eq!(run["method"], "tcp", "{run}");
    let shown = desk.json(&["history", "show", run["id"].as_str().unwrap(), "--json"]);
    let summary = shown.iter().find(|line| line["type"] == "summary").unwrap();
    assert_eq!(summary["route"], "direct", "{summary}");
    assert_eq!(summary["verified"], 43, "{summary}");
    assert!(
        tree(&from) == tree(&arrived),
        "{:#?}",
        (tree_words(&from), tree_words(&arrived))
    );

    // The note about the ending would hide a corner of the picture.
    desk.reader().wait_for("the note", |name| name == "Dismiss");
    assert!(desk.reader().press("Dismiss"));
    desk.reader().wait_until_gone("Dismiss");
    desk.picture("queue.png");
    desk.keys("ctrl+2");
    desk.reader().wait_for("the verification table", |name| {
        name.contains("picture 00.jpg")
    });
    desk.picture("verification.png");
}

/// Lists a tree without the contents, for a person to compare.
fn tree_words(folder: &Path) -> Vec<String> {
    let all = tree(folder).into_iter();
    all.map(|(path, facts, bytes)| format!("{path:?} {facts} {}", bytes.len()))
        .collect()
}

#[test]
fn ten_thousand_dropped_files_are_one_job() {
    let nas = nas();
    let desk = Desk::plain();
    let arrived = nas.home().join("many");
    fs::create_dir(&arrived).unwrap();
    desk.profile(&nas, arrived.file_name().unwrap(), &[]);
    let from = desk.folder("many");
    let paths: Vec<PathBuf> = (0..10_000)
        .map(|n| {
            from.join(format!(
                "a rather long name as cameras like them, number {n:05}.txt"
            ))
        })
        .collect();
    for path in &paths {
        fs::write(path, path.as_os_str().as_bytes()).unwrap();
    }
    let _window = desk.open();
    assert_eq!(drop_on(&desk, &paths).finished, Some(true));
    let runs = desk.ended(1);
    assert_eq!(runs.len(), 1);
    assert_eq!(
        (&runs[0]["outcome"], &runs[0]["files"]),
        (&"completed".into(), &10_000.into())
    );
    assert!(tree(&from) == tree(&arrived));
}

#[test]
fn a_program_that_drops_on_the_window_itself_is_served_by_the_toolkit() {
    let nas = nas();
    let desk = Desk::plain();
    let arrived = nas.home().join("in");
    fs::create_dir(&arrived).unwrap();
    desk.profile(&nas, arrived.file_name().unwrap(), &[]);
    let from = desk.folder("out");
    let paths = ["a b.txt", "\u{e4}.txt"].map(|name| from.join(name));
    paths.iter().for_each(|path| fs::write(path, "x").unwrap());
    let _window = desk.open();
    let uris = paths.each_ref().map(|path| uri(path));
    let drag = Drag {
        ignores_proxy: true,
        ..Drag::of(&uris)
    };
    assert_eq!(drag.onto(desk.display.name(), TITLE).finished, Some(true));
    let runs = desk.ended(1);
    assert_eq!(runs.len(), 1, "one drop came twice: {runs:?}");
    assert_eq!(runs[0]["outcome"], "completed");
    assert!(tree(&from) == tree(&arrived));
}

#[test]
fn two_hundred_thousand_empty_files_leave_the_window_quick_and_small() {
    let nas = nas();
    let desk = Desk::plain();
    let arrived = nas.home().join("empty");
    fs::create_dir(&arrived).unwrap();
    desk.profile(&nas, arrived.file_name().unwrap(), &[]);
    let from = desk.folder("empty");
    for folder in 0..400 {
        let folder = from.join(format!("{folder:03}"));
        fs::create_dir(&folder).unwrap();
        for file in 0..500 {
            fs::write(folder.join(format!("file {file:03}")), "").unwrap();
        }
    }
    let window = desk.open();
    let (ran, waited) = window.ran_and_waited();
    let frames = window.frames().len();
    let before = Before {
        frames,
        ran,
        waited,
    };

    // Cancelled while it is being listed: it ends at once and the window stays awake.
    drop_on(&desk, std::slice::from_ref(&from));
    desk.until("the window shows the job", || {
        window.frames().len() > frames + 5
    });
    let pressed = Instant::now();
    desk.keys("ctrl+period");
    let run = &desk.ended(1)[0];
    assert_eq!(run["outcome"], "aborted", "{run}");
    assert!(
        pressed.elapsed() < Duration::from_secs(3),
        "took {:?}",
        pressed.elapsed()
    );

    drop_on(&desk, std::slice::from_ref(&from));
    let (mut app, mut agent) = (0, 0);
    let mut runs = Vec::new();
    let mut asked = Instant::now();
    desk.until("all have arrived", || {
        move_pointer(&desk);
        app = app.max(peak_mib(window.id()).unwrap());
        agent = agent.max(agent_peak(&nas));
        if asked.elapsed() > Duration::from_secs(2) {
            asked = Instant::now();
            runs = desk.ended(1);
        }
        runs.len() == 2
    });
    assert_eq!(runs[1]["outcome"], "completed", "{}", runs[1]);
    assert_eq!(runs[1]["files"], 200_000);
    check_frames(&window, &before);
    assert!(
        app < MEMORY_MIB && (1..MEMORY_MIB).contains(&agent),
        "{app} and {agent} MiB"
    );
}

/// Moves the pointer over the window, so that it has to draw.
fn move_pointer(desk: &Desk) {
    use x11rb::connection::Connection as _;
    use x11rb::protocol::xproto::ConnectionExt as _;
    use x11rb::wrapper::ConnectionExt as _;
    let (conn, screen) = x11rb::connect(Some(desk.display.name())).unwrap();
    let root = conn.setup().roots[screen].root;
    for step in 0..20 {
        conn.warp_pointer(
            x11rb::NONE,
            root,
            0,
            0,
            0,
            0,
            300 + step * 20,
            300 + step * 5,
        )
        .unwrap();
        conn.sync().unwrap();
    }
}

/// Returns the most memory that an agent on the server has had so far, in MiB.
fn agent_peak(nas: &Sshd) -> u64 {
    let mut all = vec![nas.pid()];
    let mut next = 0;
    while next < all.len() {
        all.extend(children_of(all[next]));
        next += 1;
    }
    let is_agent = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name == "transload-agent\n")
    };
    all.into_iter()
        .filter(is_agent)
        .filter_map(peak_mib)
        .max()
        .unwrap_or_default()
}

/// Holds the cost of each frame against the limit. It is measured by the clock, so when other
/// programs take the processors away, the limit grows by what the window had to wait for them.
fn check_frames(window: &Opened, before: &Before) {
    let mut frames = window.frames().split_off(before.frames);
    assert!(frames.len() >= 200, "only {} frames", frames.len());
    frames.sort_by(f64::total_cmp);
    let at = |part: usize| frames[frames.len() * part / 100];
    let (ran, waited) = window.ran_and_waited();
    let (ran, waited) = (ran - before.ran, waited - before.waited);
    let crowded = 1.0 + waited.as_secs_f64() / ran.as_secs_f64().max(0.001);
    let words = format!(
        "{} frames, median {} ms, 99th {} ms, processors crowded by {crowded:.2}",
        frames.len(),
        at(50),
        at(99)
    );
    println!("{words}");
    assert!(at(99) < FRAME_MS * crowded, "{words}");
}

/// Where the window's counters stood.
struct Before {
    frames: usize,
    ran: Duration,
    waited: Duration,
}
