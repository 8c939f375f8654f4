//! A running program whose whole process group ends with its owner.

use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};

use crate::model::error::{Error, Result};
use crate::proc::ready;

/// A killed child that the kernel cannot end (a dead network disk) is left behind after this.
const KILL_LIMIT: Duration = Duration::from_secs(5);
/// Between looks at a child where the kernel has no pidfd (before Linux 5.3).
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Kills one program from any thread. It holds the process itself and not its number, so that it
/// can never hit a stranger.
#[derive(Debug)]
pub struct Killer {
    fd: Option<OwnedFd>,
}

impl Killer {
    /// Kills the program; what else is in its group goes when its owner collects it.
    pub fn kill(&self) {
        if let Some(fd) = &self.fd {
            let _ = pidfd_send_signal(fd, Signal::KILL);
        }
    }
}

/// A running program. Dropping it kills the program and everything it started in its group.
#[derive(Debug)]
pub struct Child {
    inner: std::process::Child,
    name: String,
    group: Option<Pid>,
    /// Becomes readable when the program ends.
    ending: Option<OwnedFd>,
    status: Option<ExitStatus>,
}

impl Child {
    pub(super) fn new(inner: std::process::Child, name: String) -> Self {
        let group = i32::try_from(inner.id()).ok().and_then(Pid::from_raw);
        let ending = group.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self {
            inner,
            name,
            group,
            ending,
            status: None,
        }
    }

    /// Returns the program's file name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the process id, which is also the id of the process group.
    pub fn id(&self) -> u32 {
        self.inner.id()
    }

    /// Returns a handle that can kill the program from another thread while this one waits for
    /// its output.
    pub fn killer(&self) -> Killer {
        let fd = self.ending.as_ref().and_then(|fd| fd.try_clone().ok());
        Killer { fd }
    }

    /// Takes the pipe to its input; dropping that is the end of input.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.inner.stdin.take()
    }

    /// Takes the pipe from its output.
    pub fn take_stdout(&mut self) -> Option<ChildStdout> {
        self.inner.stdout.take()
    }

    /// Takes the pipe from its error output.
    pub fn take_stderr(&mut self) -> Option<ChildStderr> {
        self.inner.stderr.take()
    }

    /// Waits for the program's end; `None` when the time is over and it still runs. What it left
    /// running in its group is killed when it ends.
    ///
    /// # Errors
    /// `Io` when the system refuses to wait.
    pub fn wait_deadline(&mut self, limit: Duration) -> Result<Option<ExitStatus>> {
        let until = Instant::now().checked_add(limit);
        loop {
            if self.status.is_some() {
                return Ok(self.status);
            }
            if self.has_ended() {
                self.reap()?;
                continue;
            }
            let left = until.map_or(Duration::MAX, |u| {
                u.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(None);
            }
            match &self.ending {
                Some(fd) => {
                    ready::readable(fd, left)
                        .map_err(|e| Error::io(format!("wait for {}", self.name), &e))?;
                }
                None => std::thread::sleep(left.min(LOOK_EVERY)),
            }
        }
    }

    /// Returns how the program ended, or `None` while it runs; does not wait.
    ///
    /// # Errors
    /// As [`Child::wait_deadline`].
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        self.wait_deadline(Duration::ZERO)
    }

    /// Says whether the program has ended by the signal that a [`Killer`] sends.
    pub fn was_killed(&self) -> bool {
        self.status
            .is_some_and(|status| status.signal() == Some(Signal::KILL.as_raw()))
    }

    /// Asks the program to end, gives it `grace`, then kills its group.
    pub fn stop(&mut self, grace: Duration) {
        if self.status.is_none() {
            self.signal(Signal::TERM);
            let _ = self.wait_deadline(grace);
        }
        self.kill();
    }

    /// Kills the program and its group and collects what is left of it.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            self.signal(Signal::KILL);
            let _ = self.wait_deadline(KILL_LIMIT);
        }
    }

    /// Looks whether the program has ended and leaves it to be collected, so that its process
    /// group's number cannot be given to a stranger meanwhile.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        self.group
            .is_some_and(|pid| !matches!(waitid(WaitId::Pid(pid), options), Ok(None)))
    }

    fn reap(&mut self) -> Result<()> {
        self.signal(Signal::KILL);
        let status = self
            .inner
            .wait()
            .map_err(|e| Error::io(format!("wait for {}", self.name), &e))?;
        self.status = Some(status);
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails only when nobody is left in the group.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::{Pipe, Program};
    use std::io::{BufRead as _, BufReader, Read as _};

    fn sh(script: &str) -> Child {
        Program::named("sh")
            .unwrap()
            .args(["-c", script])
            .stdin(Pipe::Piped)
            .stdout(Pipe::Piped)
            .spawn()
            .unwrap()
    }

    #[test]
    fn dropping_a_child_ends_its_grandchildren_too() {
        let mut child = sh("sleep 1000 & echo; wait");
        let mut out = BufReader::new(child.take_stdout().unwrap());
        out.read_line(&mut String::new()).unwrap();
        drop(child);
        // The pipe ends only when the last holder, the background sleep, is gone.
        assert_eq!(out.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn what_a_finished_program_left_behind_is_ended_with_it() {
        let mut child = sh("sleep 1000 & exit 3");
        let mut out = child.take_stdout().unwrap();
        let status = child
            .wait_deadline(Duration::from_secs(10))
            .unwrap()
            .unwrap();
        assert_eq!(status.code(), Some(3));
        assert_eq!(out.read(&mut [0]).unwrap(), 0);
    }

    #[test]
    fn waiting_ends_at_the_deadline_and_stopping_ends_a_stubborn_program() {
        let mut child = sh("trap '' TERM; echo; while :; do read x; done");
        let mut out = BufReader::new(child.take_stdout().unwrap());
        out.read_line(&mut String::new()).unwrap();
        assert_eq!(
            child.wait_deadline(Duration::from_millis(20)).unwrap(),
            None
        );
        assert_eq!(child.try_wait().unwrap(), None);
        child.stop(Duration::from_millis(20));
        assert!(child.try_wait().unwrap().is_some());
    }

    #[test]
    fn a_child_outlives_the_thread_that_started_it() {
        let mut child = std::thread::scope(|s| s.spawn(|| sh("read x; exit 5")).join().unwrap());
        assert_eq!(
            child.wait_deadline(Duration::from_millis(50)).unwrap(),
            None
        );
        drop(child.take_stdin());
        let status = child
            .wait_deadline(Duration::from_secs(10))
            .unwrap()
            .unwrap();
        assert_eq!(status.code(), Some(5));
    }
}
