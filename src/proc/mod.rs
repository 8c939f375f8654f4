//! Runs other programs safely: argument vectors instead of shell lines, programs found only in
//! fixed folders, an allow-list for the environment, and a process group that ends with its owner.
//!
//! Start with [`Program`], which describes what to run; [`Program::spawn`] gives a [`Child`] with
//! pipes, [`Program::run`] collects what a short-lived helper prints. [`Tail`] keeps the end of a
//! child's error output, [`Lines`] reads its output in bounded lines, and [`ready::wait`] waits
//! for a pipe with a deadline. Nothing else in the crate starts processes.
//!
//! What every child gets: its own process group, which is killed as a whole when the [`Child`] is
//! dropped; a signal from the kernel when this program dies; `/` as its working folder; and no
//! file descriptor of ours but the three pipes (everything is opened close-on-exec).

pub use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};

pub mod child;
pub mod limits;
pub mod lines;
pub mod program;
pub mod ready;
mod spawn;

pub use child::{Child, Killer};
pub use lines::{Lines, Tail};
pub use program::{Output, Pipe, Program};
