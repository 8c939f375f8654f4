//! A screen of the test's own: Xvfb on a display number that it picked itself, gone with the test.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, dead_code)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// How long the server may take to be ready on a busy machine.
const READY: Duration = Duration::from_secs(30);

/// A running X server.
pub struct Display {
    server: Child,
    name: String,
}

impl Display {
    /// Starts one of 1280 x 800 pixels.
    pub fn start() -> Self {
        Self::of_size(1280, 800)
    }

    /// Starts one of another size.
    pub fn of_size(width: u32, height: u32) -> Self {
        // The server writes the number it found free, and only once it answers: nothing to poll.
        let mut server = Command::new("Xvfb")
            .args(["-displayfd", "1", "-nolisten", "tcp", "-noreset"])
            .args(["-screen", "0", &format!("{width}x{height}x24")])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start Xvfb ({e}): apt-get install xvfb"));
        let stdout = server.stdout.take().unwrap();
        let (sender, receiver) = sync_channel(1);
        std::thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            let _ = sender.send(read.map(|_| line));
        });
        let line = receiver.recv_timeout(READY);
        let mut display = Self {
            server,
            name: String::new(),
        };
        let number = match line {
            Ok(Ok(line)) if !line.trim().is_empty() => line.trim().to_owned(),
            other => {
                let _ = display.server.kill();
                panic!("Xvfb did not tell its display within {READY:?}: {other:?}");
            }
        };
        display.name = format!(":{number}");
        display
    }

    /// Returns what `DISPLAY` has to be.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Saves what the screen shows of a window as a PNG.
    pub fn screenshot(&self, window: u32, to: &Path) {
        let done = Command::new("import")
            .args(["-display", &self.name, "-window", &window.to_string()])
            .arg(to)
            .stdin(Stdio::null())
            .output()
            .unwrap_or_else(|e| panic!("cannot start import ({e}): apt-get install imagemagick"));
        assert!(
            done.status.success(),
            "no screenshot: {}",
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
