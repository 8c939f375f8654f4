//! The far end of a raw TCP transfer, without a display: started by ssh, serves its runs, and ends
//! with its input.

mod serve;

use std::process::ExitCode;

/// Runs the agent with these arguments.
pub fn main() -> ExitCode {
    crate::proc::limits::raise_open_files();
    let mut arguments = std::env::args_os().skip(1);
    let (verb, rest) = (arguments.next(), arguments.next());
    match (
        verb.as_deref().and_then(|v| v.to_str()),
        rest.as_deref().and_then(|r| r.to_str()),
    ) {
        (Some("serve"), Some(marker)) => serve::serve(marker),
        (Some("--version"), None) => {
            println!("transload-agent {}", env!("CARGO_PKG_VERSION"));
            ExitCode::SUCCESS
        }
        _ => {
            eprintln!(
                "transload-agent is started over ssh by transload; it does nothing by itself."
            );
            ExitCode::from(2)
        }
    }
}
