//! The command line: one file a command.

/// Runs the program with these arguments and returns its exit status.
pub fn main() -> std::process::ExitCode {
    todo!()
}
