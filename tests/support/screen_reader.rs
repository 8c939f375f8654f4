//! Reads and presses what the window offers to a screen reader, over a session bus of the test's
//! own: no pixel is guessed, and what cannot be reached this way cannot be reached by a blind person.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, dead_code)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use super::display::Display;

/// How long one question to the bus may take, and how long the window has to show something.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads commands, one a line, and answers each with one line. "names" lists what is shown, as JSON
/// strings, "press NAME" does the first action of what has this name.
const HELPER: &str = r#"
import json, sys
import gi
gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, Gio, GLib
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
args = GLib.Variant("(ssv)", ("org.a11y.Status", "IsEnabled", GLib.Variant("b", True)))
bus.call_sync("org.a11y.Bus", "/org/a11y/bus", "org.freedesktop.DBus.Properties", "Set",
              args, None, Gio.DBusCallFlags.NONE, 20000, None)
Atspi.init()
print(json.dumps("ready"), flush=True)

def walk(node):
    yield node
    for i in range(node.get_child_count()):
        child = node.get_child_at_index(i)
        if child:
            yield from walk(child)

def shown():
    desktop = Atspi.get_desktop(0)
    for i in range(desktop.get_child_count()):
        program = desktop.get_child_at_index(i)
        if program:
            yield from walk(program)

for line in sys.stdin:
    command, _, name = line.rstrip("\n").partition(" ")
    answer = None
    try:
        if command == "names":
            answer = [node.get_name() for node in shown()]
        elif command == "press":
            name = json.loads(name)
            answer = False
            for node in shown():
                if node.get_name() == name and node.get_action_iface():
                    answer = node.get_action_iface().do_action(0)
                    break
    except GLib.Error as error:
        # What was shown a moment ago may be gone.
        print(error, file=sys.stderr)
    print(json.dumps(answer), flush=True)
"#;

/// A session bus and somebody who reads the screen over it.
pub struct ScreenReader {
    bus: Child,
    address: String,
    helper: Child,
    asks: ChildStdin,
    answers: Receiver<String>,
}

impl ScreenReader {
    /// Starts both; programs that are to be read need [`address`](Self::address).
    pub fn start(display: &Display) -> Self {
        let mut bus = Command::new("dbus-daemon")
            .args(["--session", "--nofork", "--nopidfile", "--print-address=1"])
            .env("DISPLAY", display.name())
            .env_remove("WAYLAND_DISPLAY")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("apt-get install dbus-daemon");
        let mut address = String::new();
        let mut line = BufReader::new(bus.stdout.take().unwrap());
        line.read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        assert!(!address.is_empty(), "dbus-daemon did not tell its address");
        let mut helper = Command::new("/usr/bin/python3")
            .args(["-W", "ignore", "-c", HELPER])
            .env("DBUS_SESSION_BUS_ADDRESS", &address)
            .env("DISPLAY", display.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("apt-get install python3");
        let lines = BufReader::new(helper.stdout.take().unwrap()).lines();
        let (sender, answers) = sync_channel(1);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let asks = helper.stdin.take().unwrap();
        let reader = Self {
            bus,
            address,
            helper,
            asks,
            answers,
        };
        let ready = reader.answers.recv_timeout(PATIENCE);
        let packages = "apt-get install at-spi2-core gir1.2-atspi-2.0 python3-gi";
        assert_eq!(ready.as_deref(), Ok("\"ready\""), "{packages}");
        reader
    }

    /// Returns what `DBUS_SESSION_BUS_ADDRESS` has to be.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the names of all that is shown.
    pub fn names(&mut self) -> Vec<String> {
        serde_json::from_str::<Option<_>>(&self.ask("names"))
            .unwrap()
            .unwrap_or_default()
    }

    /// Does what a click on the thing of this name would do; false when there is no such thing.
    pub fn press(&mut self, name: &str) -> bool {
        let name = serde_json::to_string(name).unwrap();
        self.ask(&format!("press {name}")) == "true"
    }

    /// Waits until something is shown whose name fits, and returns the name.
    pub fn wait_for(&mut self, what: &str, fits: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + PATIENCE;
        loop {
            let names = self.names();
            if let Some(name) = names.iter().find(|name| fits(name)) {
                return name.clone();
            }
            assert!(
                Instant::now() < until,
                "{what} was never shown, only {names:#?}"
            );
        }
    }

    /// Waits until nothing of this name is shown.
    pub fn wait_until_gone(&mut self, name: &str) {
        let until = Instant::now() + PATIENCE;
        while self.names().iter().any(|shown| shown == name) {
            assert!(Instant::now() < until, "{name:?} is still shown");
        }
    }

    fn ask(&mut self, command: &str) -> String {
        writeln!(self.asks, "{command}").unwrap();
        self.answers
            .recv_timeout(PATIENCE)
            .expect("the bus answers")
    }
}

impl Drop for ScreenReader {
    fn drop(&mut self) {
        for child in [&mut self.helper, &mut self.bus] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
