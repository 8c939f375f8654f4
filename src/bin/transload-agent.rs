//! The far end of a transfer; started over ssh.

fn main() -> std::process::ExitCode {
    transload::agent::main()
}
