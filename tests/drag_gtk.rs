//! A drag from a program with another toolkit, under a window manager, with a real pointer.
#![cfg(feature = "gui")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod support {
    pub mod display;
    pub mod drop_window;
    pub mod xdnd;
}

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use transload::model::drop::{DropEvent, DroppedItem};
use x11rb::connection::Connection as _;
use x11rb::protocol::xproto::ConnectionExt as _;

use support::display::Display;
use support::drop_window::Fixture;
use support::xdnd::find_titled;

/// Drags the files that are its arguments from the middle of its window, and says how it went.
const GTK_SOURCE: &str = r#"
import pathlib, sys
import gi
gi.require_version("Gdk", "3.0")
gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, Gtk
window = Gtk.Window(title="drag from here")
window.set_default_size(200, 150)
window.move(950, 300)
area = Gtk.EventBox()
window.add(area)
area.drag_source_set(Gdk.ModifierType.BUTTON1_MASK, [], Gdk.DragAction.COPY | Gdk.DragAction.MOVE)
area.drag_source_add_uri_targets()
uris = [pathlib.Path(name).as_uri() for name in sys.argv[1:]]
area.connect("drag-data-get", lambda _w, _c, data, *_: data.set_uris(uris))
area.connect("drag-data-delete", lambda *_: print("asked to delete", flush=True))
area.connect("drag-failed", lambda *_: print("failed", flush=True))
area.connect("drag-end", lambda _w, drag: (print("ended", drag.get_selected_action().value_nicks, flush=True), Gtk.main_quit()))
window.show_all()
print("shown", flush=True)
Gtk.main()
"#;

/// A program that ends with the test.
struct Program(Child);

impl Program {
    fn start(command: &mut Command, package: &str) -> Self {
        let name = command.get_program().to_owned();
        Self(command.spawn().unwrap_or_else(|e| {
            panic!(
                "cannot start {} ({e}): apt-get install {package}",
                name.display()
            )
        }))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_toolkit_drags_its_files_here_under_a_window_manager() {
    let display = Display::start();
    let mut openbox = Command::new("openbox");
    openbox
        .env("DISPLAY", display.name())
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    openbox.stdout(Stdio::null());
    let _openbox = Program::start(&mut openbox, "openbox");
    let fixture = Fixture::on(display);
    // Managed: its parent is the frame that the window manager made.
    let root = fixture.conn.setup().roots[0].root;
    let parent = |window| {
        fixture
            .conn
            .query_tree(window)
            .unwrap()
            .reply()
            .unwrap()
            .parent
    };
    fixture.until(|| parent(fixture.window) != root);

    let folder = tempfile::tempdir().unwrap();
    let names: Vec<PathBuf> = (0..3_000)
        .map(|n| {
            folder.path().join(format!(
                "\u{e9} {n:04} of a long list, so that it comes in pieces {}",
                "x".repeat(90)
            ))
        })
        .collect();
    names
        .iter()
        .for_each(|name| std::fs::write(name, "").unwrap());
    let mut gtk = Command::new("/usr/bin/python3");
    gtk.arg("-c").arg(GTK_SOURCE).args(&names);
    gtk.env("DISPLAY", fixture.display.name())
        .env("NO_AT_BRIDGE", "1");
    gtk.env("GDK_BACKEND", "x11")
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut gtk = Program::start(&mut gtk, "python3");
    let mut gtk_says = BufReader::new(gtk.0.stdout.take().unwrap());
    let mut line = String::new();
    gtk_says.read_line(&mut line).unwrap();
    assert_eq!(line, "shown\n", "apt-get install python3-gi gir1.2-gtk-3.0");

    let pointer = |args: &[&str]| {
        let done = Command::new("xdotool")
            .args(args)
            .env("DISPLAY", fixture.display.name())
            .status();
        assert!(
            done.expect("apt-get install xdotool").success(),
            "xdotool {args:?}"
        );
    };
    let source = find_titled(&fixture.conn, 0, "drag from here");
    let place = |window, x, y| {
        let cookie = fixture
            .conn
            .translate_coordinates(window, root, x, y)
            .unwrap();
        let place = cookie.reply().unwrap();
        (place.dst_x, place.dst_y)
    };
    let move_to = |(x, y): (i16, i16)| pointer(&["mousemove", &x.to_string(), &y.to_string()]);
    // Pressed only where the source lies under the pointer.
    fixture.until(|| {
        move_to(place(source, 100, 75));
        let pointer = fixture.conn.query_pointer(source).unwrap().reply().unwrap();
        (pointer.win_x, pointer.win_y) == (100, 75) && parent(source) != root
    });
    pointer(&["mousedown", "1"]);
    // The toolkit starts a drag only after some movement that it has seen.
    let mut steps = (0..).map(|n| (150 + n % 20, 120 + n % 20));
    let mut last = (0, 0);
    let target = fixture.target.as_ref().unwrap();
    let mut position = None;
    fixture.until(|| {
        last = steps.next().unwrap();
        move_to(place(fixture.window, last.0, last.1));
        while let Some(event) = target.next_event() {
            let DropEvent::Hover {
                position: at,
                count: Some(3_000),
            } = event
            else {
                continue;
            };
            position = Some(at);
        }
        position == Some((last.0.into(), last.1.into()))
    });
    pointer(&["mouseup", "1"]);
    let items = fixture.items();
    assert!(items == names.into_iter().map(DroppedItem::Path).collect::<Vec<_>>());
    let mut said = String::new();
    gtk_says.read_to_string(&mut said).unwrap();
    assert_eq!(said, "ended ['copy']\n");
    assert!(fixture.undisturbed(), "the toolkit heard of it as well");
}
