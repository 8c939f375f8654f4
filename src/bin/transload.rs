//! The window and the command line.

#[cfg(feature = "gui")]
const WINDOW: Option<transload::cli::Window> = Some(transload::ui::open);
#[cfg(not(feature = "gui"))]
const WINDOW: Option<transload::cli::Window> = None;

fn main() -> std::process::ExitCode {
    transload::cli::main(WINDOW)
}
