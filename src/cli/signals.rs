//! Ctrl+C and kill: the first asks the job to end in order, the second ends the program at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::exit;
use crate::model::error::{Error, Result};

/// Set when the program was asked to end.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Starts to listen. A signal that the caller had ignored (as `nohup` does) stays ignored.
    ///
    /// # Errors
    /// When the system refuses the handler.
    pub fn listen() -> Result<Self> {
        let stop = Self::default();
        let ignored = ignored_signals();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if ignored & (1 << (signal - 1)) != 0 {
                continue;
            }
            // In this order: the first signal finds the flag clear and sets it, the second ends.
            let flag = || Arc::clone(&stop.0);
            signal_hook::flag::register_conditional_shutdown(
                signal,
                i32::from(exit::STOPPED),
                flag(),
            )
            .and_then(|_| signal_hook::flag::register(signal, flag()))
            .map_err(|e| Error::io("listen for Ctrl+C", &e))?;
        }
        Ok(stop)
    }

    /// Says whether the program was asked to end.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }
}

/// Returns the mask of ignored signals; 0 when the system does not tell.
fn ignored_signals() -> u64 {
    std::fs::read_to_string("/proc/self/status").map_or(0, |status| sig_ign(&status))
}

fn sig_ign(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_ignored_signals_is_read() {
        assert_eq!(
            sig_ign("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t1\n"),
            0x1001
        );
        assert_eq!(sig_ign(""), 0);
    }
}
