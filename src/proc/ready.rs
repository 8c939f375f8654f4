//! Waits until a pipe can be read or written, with a deadline, and looks for a cancel meanwhile.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long a cancel may go unnoticed.
const SLICE: Duration = Duration::from_millis(50);

/// A pipe accepts at least this many bytes without blocking once it is ready for writing
/// (`PIPE_BUF`, the same on every Linux).
pub const WRITE_AT_ONCE: usize = 4096;

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum For {
    /// Data or the end of the stream.
    Reading,
    /// Room for [`WRITE_AT_ONCE`] bytes, or nobody left to read them.
    Writing,
}

/// How the wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// The next read or write does not block.
    Ready,
    /// The deadline passed.
    TimedOut,
    /// The caller's flag was raised.
    Cancelled,
}

/// Waits for one descriptor.
///
/// # Errors
/// Only when the kernel refuses to poll.
pub fn wait(
    fd: &impl AsFd,
    what: For,
    until: Instant,
    cancel: &dyn Fn() -> bool,
) -> io::Result<Waited> {
    let flags = match what {
        For::Reading => PollFlags::IN,
        For::Writing => PollFlags::OUT,
    };
    let mut fds = [PollFd::new(fd, flags)];
    wait_any(&mut fds, until, cancel)
}

/// Waits until one descriptor can be read or another, where there is one, can be written, and
/// says which; reading goes first.
///
/// # Errors
/// Only when the kernel refuses to poll.
pub fn wait_both(
    from: &impl AsFd,
    to: Option<&impl AsFd>,
    until: Instant,
    cancel: &dyn Fn() -> bool,
) -> io::Result<(Waited, For)> {
    let Some(to) = to else {
        return Ok((wait(from, For::Reading, until, cancel)?, For::Reading));
    };
    let mut fds = [
        PollFd::new(from, PollFlags::IN),
        PollFd::new(to, PollFlags::OUT),
    ];
    let waited = wait_any(&mut fds, until, cancel)?;
    let side = if fds[0].revents().is_empty() {
        For::Writing
    } else {
        For::Reading
    };
    Ok((waited, side))
}

fn wait_any(
    fds: &mut [PollFd<'_>],
    until: Instant,
    cancel: &dyn Fn() -> bool,
) -> io::Result<Waited> {
    loop {
        if cancel() {
            return Ok(Waited::Cancelled);
        }
        let left = until.saturating_duration_since(Instant::now());
        if poll_once(fds, left.min(SLICE))? {
            return Ok(Waited::Ready);
        }
        if left.is_zero() {
            return Ok(Waited::TimedOut);
        }
    }
}

/// Waits at most `limit` until a descriptor can be read.
pub(super) fn readable(fd: &impl AsFd, limit: Duration) -> io::Result<bool> {
    poll_once(&mut [PollFd::new(fd, PollFlags::IN)], limit)
}

/// Polls for at most `limit`; an interrupted poll counts as "not yet".
fn poll_once(fds: &mut [PollFd<'_>], limit: Duration) -> io::Result<bool> {
    let limit = Timespec {
        tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: limit.subsec_nanos().into(),
    };
    match poll(fds, Some(&limit)) {
        Ok(count) => Ok(count > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_silent_pipe_ends_at_its_deadline_and_a_cancel_ends_it_sooner() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let soon = Instant::now() + Duration::from_millis(20);
        let never = || false;
        assert_eq!(
            wait(&far, For::Reading, soon, &never).unwrap(),
            Waited::TimedOut
        );
        let late = Instant::now() + Duration::from_secs(60);
        assert_eq!(
            wait(&far, For::Reading, late, &|| true).unwrap(),
            Waited::Cancelled
        );
        near.write_all(b"x").unwrap();
        assert_eq!(
            wait(&far, For::Reading, late, &never).unwrap(),
            Waited::Ready
        );
        assert_eq!(
            wait(&near, For::Writing, late, &never).unwrap(),
            Waited::Ready
        );
    }
}
