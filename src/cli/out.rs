//! Where words go: results and JSON to stdout, everything for people to stderr, names escaped.

use std::cell::{Cell, RefCell};
use std::io::{BufWriter, IsTerminal as _, Stdout, Write as _};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::cli::args::OutputArgs;
use crate::cli::json::Line;
use crate::model::error::Error;
use crate::model::outcome::{Outcome, Report};
use crate::model::untrusted::shown;
use crate::present::text;

/// The two streams and the progress bar between them.
pub struct Out {
    args: OutputArgs,
    /// stderr is a terminal that a bar may be drawn on.
    bar_allowed: bool,
    bar: RefCell<Option<ProgressBar>>,
    stdout: RefCell<BufWriter<Stdout>>,
    closed: Cell<bool>,
    /// Why stdout cannot be written to, though somebody may be there to read it: a full disk.
    lost: RefCell<Option<std::io::Error>>,
}

impl Out {
    /// Takes both streams.
    pub fn new(args: OutputArgs) -> Self {
        let stderr = std::io::stderr().is_terminal();
        // On one and the same terminal a bar would be torn apart by JSON.
        let shared = args.json && std::io::stdout().is_terminal();
        Self {
            args,
            bar_allowed: stderr && !shared && !args.quiet,
            bar: RefCell::new(None),
            stdout: RefCell::new(BufWriter::new(std::io::stdout())),
            closed: Cell::new(false),
            lost: RefCell::new(None),
        }
    }

    /// Says whether JSON is wanted.
    pub fn json(&self) -> bool {
        self.args.json
    }

    /// Says whether each file is to be named.
    pub fn verbose(&self) -> bool {
        self.args.verbose
    }

    /// Says whether a bar is drawn.
    pub fn has_bar(&self) -> bool {
        self.bar_allowed
    }

    /// Says whether whoever read stdout has gone; then nothing more is worth doing for them.
    pub fn is_closed(&self) -> bool {
        self.closed.get()
    }

    /// Tells people something.
    pub fn say(&self, text: &str) {
        if !self.args.quiet {
            self.to_stderr(text);
        }
    }

    /// Tells people something and programs the same.
    pub fn note(&self, text: &str) {
        self.say(text);
        self.emit(|| Line::Note {
            text: shown(text.as_bytes()),
        });
    }

    /// Tells people of something bad, also when quiet.
    pub fn warn(&self, text: &str) {
        self.to_stderr(text);
    }

    /// Tells an error with its hint, also when quiet, and programs the same.
    pub fn error(&self, error: &Error) {
        self.warn(&text::error_block(error));
        self.emit(|| Line::error(error));
    }

    /// Tells what kept the work from being begun, also to programs that wait for a summary.
    pub fn not_begun(&self, error: Error) {
        self.clear();
        self.error(&error);
        self.emit(|| Line::summary(&Outcome::Failed(error), &Report::default()));
    }

    /// Writes a line of JSON, if that is wanted.
    pub fn emit(&self, line: impl FnOnce() -> Line) {
        if self.args.json {
            self.to_stdout(&line().to_text());
        }
    }

    /// Writes a line of a result for people; nothing when JSON is wanted.
    pub fn print(&self, text: &str) {
        if !self.args.json {
            self.to_stdout(&shown(text.as_bytes()));
        }
    }

    /// Writes a text of several lines to stdout, names escaped.
    pub fn print_text(&self, text: &str) {
        text.lines()
            .for_each(|line| self.to_stdout(&shown(line.as_bytes())));
    }

    /// Writes a text that is to be saved elsewhere: exactly, but for a terminal escaped.
    pub fn print_data(&self, text: &str) {
        if std::io::stdout().is_terminal() {
            self.print_text(text);
        } else {
            self.write(text.as_bytes());
        }
    }

    /// Hands what was written to whoever reads stdout.
    pub fn flush(&self) {
        if let Err(error) = self.stdout.borrow_mut().flush() {
            self.fails(error);
        }
    }

    /// Hands on the rest, and returns why something of it never got out.
    pub fn finish(&self) -> Option<Error> {
        self.flush();
        let lost = self.lost.borrow_mut().take()?;
        Some(
            Error::io("write the output", &lost)
                .hint("what was done is done; only its telling is lost"),
        )
    }

    /// Takes note that stdout takes nothing any more; what is done goes on unless the reader left.
    fn fails(&self, error: std::io::Error) {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            self.closed.set(true);
        } else {
            self.lost.borrow_mut().get_or_insert(error);
        }
    }

    /// Draws the bar with this share in thousandths and this text.
    pub fn draw(&self, permille: u64, message: String) {
        if !self.bar_allowed {
            return;
        }
        let mut slot = self.bar.borrow_mut();
        let bar = slot.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{bar:20} {wide_msg}")
                .expect("the template is a constant that a test draws");
            let target = ProgressDrawTarget::stderr_with_hz(10);
            ProgressBar::with_draw_target(Some(1000), target).with_style(style)
        });
        bar.set_position(permille);
        bar.set_message(message);
    }

    /// Takes the bar away until it is drawn again.
    pub fn clear(&self) {
        if let Some(bar) = self.bar.borrow_mut().take() {
            bar.finish_and_clear();
        }
    }

    fn to_stdout(&self, line: &str) {
        let write = || {
            self.write(line.as_bytes());
            self.write(b"\n");
        };
        match &*self.bar.borrow() {
            Some(bar) if std::io::stdout().is_terminal() => bar.suspend(|| {
                write();
                self.flush();
            }),
            _ => write(),
        }
    }

    fn write(&self, bytes: &[u8]) {
        if self.closed.get() || self.lost.borrow().is_some() {
            return;
        }
        let written = self.stdout.borrow_mut().write_all(bytes);
        if let Err(error) = written {
            self.fails(error);
        }
    }

    fn to_stderr(&self, text: &str) {
        let lines: String = text
            .lines()
            .map(|line| shown(line.as_bytes()) + "\n")
            .collect();
        // With stderr gone there is nobody left to tell.
        let write = || drop(std::io::stderr().write_all(lines.as_bytes()));
        match &*self.bar.borrow() {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.clear();
        self.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_of_the_bar_is_sound() {
        assert!(ProgressStyle::with_template("{bar:20} {wide_msg}").is_ok());
    }
}
