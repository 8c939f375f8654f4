//! The window and the command line.

fn main() -> std::process::ExitCode {
    transload::cli::main(None)
}
