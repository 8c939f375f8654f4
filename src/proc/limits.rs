//! What the system lets this process have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most descriptors we ask for: folders are held open on both sides of a job.
const FILES: u64 = 65_536;

/// Raises the number of files that may be open at once as far as the system allows without asking
/// anybody; a shell's default of 1024 is for programs that use `select`.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(FILES, |most| most.min(FILES));
    if current.is_some_and(|now| now < wanted) {
        // Refused only where a sandbox forbids the call; then the cache of folders is smaller.
        let _ = setrlimit(
            Resource::Nofile,
            Rlimit {
                current: Some(wanted),
                maximum,
            },
        );
    }
}
