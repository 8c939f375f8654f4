//! Ends all threads of a run at the first failure: one flag, one error, and hooks that wake those
//! who block.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, RecvTimeoutError, SendTimeoutError, Sender};

use crate::model::error::{Error, ErrorKind};

/// How often a waiting thread looks at the flag.
pub(super) const LOOK: Duration = Duration::from_millis(100);

type Hook = Box<dyn FnOnce(&Error) + Send>;

/// Shared by the threads of one run.
#[derive(Default)]
pub struct Abort {
    stopped: AtomicBool,
    first: Mutex<Option<Error>>,
    hooks: Mutex<Vec<Hook>>,
}

impl Abort {
    /// Ends the run; only the first error counts. What follows a cancel, for example, is a
    /// consequence of it, whatever it looks like.
    pub fn fail(&self, error: Error) {
        {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_none() {
                *first = Some(error);
            }
        }
        self.stopped.store(true, Ordering::SeqCst);
        self.run_hooks();
    }

    fn run_hooks(&self) {
        let hooks = std::mem::take(&mut *self.hooks.lock().unwrap_or_else(PoisonError::into_inner));
        if let Err(error) = self.result() {
            hooks.into_iter().for_each(|hook| hook(&error));
        }
    }

    /// Has this called with the first error when the run is ended, to wake a thread that blocks in
    /// the kernel.
    pub fn on_stop(&self, hook: impl FnOnce(&Error) + Send + 'static) {
        self.hooks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Box::new(hook));
        if self.is_stopped() {
            self.run_hooks();
        }
    }

    /// Says whether the run is ended.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Waits until the run is ended, or so long.
    pub fn wait_stopped(&self, patience: Duration) {
        let until = Instant::now() + patience;
        while !self.is_stopped() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns what ended it.
    ///
    /// # Errors
    /// The first error, if there was one.
    pub fn result(&self) -> Result<(), Error> {
        match self
            .first
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
        {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Waits for the next item; `None` when all senders are gone or the run is ended.
    pub fn recv<T>(&self, from: &Receiver<T>) -> Option<T> {
        loop {
            match from.recv_timeout(LOOK) {
                Ok(item) => return Some(item),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) if self.is_stopped() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Waits for room; `false` when the receiver is gone or the run is ended.
    pub fn send<T>(&self, to: &Sender<T>, item: T) -> bool {
        let mut item = item;
        loop {
            match to.send_timeout(item, LOOK) {
                Ok(()) => return true,
                Err(SendTimeoutError::Disconnected(_)) => return false,
                Err(SendTimeoutError::Timeout(_)) if self.is_stopped() => return false,
                Err(SendTimeoutError::Timeout(back)) => item = back,
            }
        }
    }

    /// Starts a thread of this run; one that panics ends the run instead of leaving it waiting.
    pub fn thread<'scope, 'env>(
        &'env self,
        scope: &'scope std::thread::Scope<'scope, 'env>,
        name: String,
        body: impl FnOnce() -> Result<(), Error> + Send + 'scope,
    ) {
        let started =
            std::thread::Builder::new()
                .name(name.clone())
                .spawn_scoped(scope, move || {
                    let guard = Guard { abort: self, name };
                    if let Err(error) = body() {
                        self.fail(error);
                    }
                    std::mem::forget(guard);
                });
        if let Err(error) = started {
            self.fail(Error::io("start a thread", &error));
        }
    }
}

/// Dropped only while unwinding.
struct Guard<'a> {
    abort: &'a Abort,
    name: String,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        let cause = format!("a fault in thread {}", self.name);
        self.abort
            .fail(Error::new(ErrorKind::Bug, "go on", cause).hint("please report this"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_error_counts_and_wakes_everybody() {
        let abort = Abort::default();
        let (tx, rx) = crossbeam_channel::bounded::<u8>(1);
        let woken = std::sync::Arc::new(AtomicBool::new(false));
        let seen = woken.clone();
        abort.on_stop(move |_| seen.store(true, Ordering::SeqCst));
        std::thread::scope(|scope| {
            abort.thread(scope, "waits".into(), || {
                assert!(abort.recv(&rx).is_none());
                Ok(())
            });
            abort.fail(Error::cancelled());
            abort.fail(Error::new(ErrorKind::Io, "x", "y"));
        });
        drop(tx);
        assert_eq!(abort.result().unwrap_err().kind, ErrorKind::Cancelled);
        assert!(woken.load(Ordering::SeqCst));
    }

    #[test]
    fn a_thread_that_panics_ends_the_run() {
        let abort = Abort::default();
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            std::thread::scope(|scope| abort.thread(scope, "bad".into(), || panic!("on purpose")));
        }));
        assert!(done.is_err());
        assert_eq!(abort.result().unwrap_err().kind, ErrorKind::Bug);
    }
}
