//! The command line: one file a command.
//!
//! [`args`] and [`options`] have the words, [`out`] the streams, [`drive`] the loop that follows a
//! job, [`exit`] the exit statuses, [`json`] the lines for other programs.

mod args;
mod ask;
mod copy;
mod drive;
mod exit;
mod history;
mod json;
mod options;
mod out;
mod profiles;
mod resume;
mod rows;
mod run;
mod signals;
mod verify;
mod window;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind as Usage;

use crate::model::untrusted::shown;
use args::{Cli, Command, HistoryCommand, OutputArgs, ProfilesCommand};
use out::Out;

pub use window::Window;

/// Runs the program with the arguments of the process; `window` opens the window where the
/// program was built with one.
pub fn main(window: Option<Window>) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(explain(&error)),
    };
    ExitCode::from(dispatch(cli, window))
}

fn dispatch(cli: Cli, window: Option<Window>) -> u8 {
    let out = Out::new(output_of(&cli));
    let result = match &cli.command {
        None => window::open(window, &cli.paths, &out),
        Some(Command::Copy(args)) => copy::run(args, &out),
        Some(Command::Run(args)) => run::run(args, &out),
        Some(Command::Profiles(command)) => profiles::run(command, &out),
        Some(Command::Verify(args)) => verify::run(args, &out),
        Some(Command::History(command)) => history::run(command, &out),
    };
    let code = result.unwrap_or_else(|error| {
        let code = exit::of_error(&error);
        match cli.command {
            Some(Command::Copy(_) | Command::Run(_) | Command::Verify(_)) => out.not_begun(error),
            _ => out.error(&error),
        }
        code
    });
    match out.finish() {
        Some(error) => {
            out.error(&error);
            exit::worst([code, exit::of_error(&error)])
        }
        None => code,
    }
}

fn output_of(cli: &Cli) -> OutputArgs {
    let only_json = |json: bool| OutputArgs {
        json,
        ..OutputArgs::default()
    };
    match &cli.command {
        Some(Command::Copy(args)) => args.output,
        Some(Command::Run(args)) => args.output,
        Some(Command::Verify(args)) => args.output,
        Some(Command::Profiles(ProfilesCommand::List { json })) => only_json(*json),
        Some(Command::History(
            HistoryCommand::List { json, .. }
            | HistoryCommand::Show { json, .. }
            | HistoryCommand::Rows { json, .. },
        )) => only_json(*json),
        _ => OutputArgs::default(),
    }
}

/// Prints help, version or what is wrong with the arguments, and returns the exit status.
fn explain(error: &clap::Error) -> u8 {
    if matches!(error.kind(), Usage::DisplayHelp | Usage::DisplayVersion) {
        // A reader that has gone needs no help.
        let _ = error.print();
        return exit::COMPLETED;
    }
    // Arguments may be names from anywhere, for example by a shell's `*`.
    for line in error.render().to_string().lines() {
        eprintln!("{}", shown(line.as_bytes()));
    }
    exit::USAGE
}
