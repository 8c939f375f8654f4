//! The one thread that starts processes, so that "the parent died" means this whole program.
//!
//! The kernel sends the parent-death signal when the *thread* that forked ends, not when its
//! process does. Job threads come and go while their children are handed on, so all children are
//! forked by one thread that lives as long as the program.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

/// A program on a dead network file system must not hold its caller for ever.
const START_LIMIT: Duration = Duration::from_secs(10);

struct Request {
    command: Command,
    reply: SyncSender<io::Result<Child>>,
}

static SPAWNER: Mutex<Option<SyncSender<Request>>> = Mutex::new(None);

/// Starts a command as the leader of its own process group that dies with this program.
pub(super) fn spawn(mut command: Command) -> io::Result<Child> {
    command.process_group(0);
    die_with_parent(&mut command);
    // One reply per request.
    let (reply, answer) = sync_channel(1);
    spawner()?
        .send(Request { command, reply })
        .map_err(|_| io::Error::other("the thread that starts programs has ended"))?;
    match answer.recv_timeout(START_LIMIT) {
        Ok(result) => result,
        Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other(
            "the thread that starts programs has ended",
        )),
    }
}

fn spawner() -> io::Result<SyncSender<Request>> {
    // The guarded value is replaced as a whole, so a poisoned lock still holds a good one.
    let mut slot = SPAWNER.lock().unwrap_or_else(|bad| bad.into_inner());
    if let Some(sender) = &*slot {
        return Ok(sender.clone());
    }
    keep_inherited_descriptors()?;
    // A few starts may queue while one is slow; more callers than that wait to hand theirs in.
    let (sender, requests) = sync_channel::<Request>(16);
    std::thread::Builder::new()
        .name("proc-spawn".into())
        .spawn(move || {
            for Request { mut command, reply } in requests {
                if let Err(unsent) = reply.send(command.spawn()) {
                    // The caller gave up waiting: nobody owns this child.
                    if let Ok(mut child) = unsent.0 {
                        let _ = child.kill();
                        let _ = child.wait();
                    }
                }
            }
        })?;
    *slot = Some(sender.clone());
    Ok(sender)
}

/// Marks what whoever started this program left open, so that it is not handed on. What we open
/// ourselves is marked as it is opened.
#[allow(unsafe_code)]
fn keep_inherited_descriptors() -> io::Result<()> {
    for entry in std::fs::read_dir("/proc/self/fd")? {
        let name = entry?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        if number <= 2 {
            continue;
        }
        // SAFETY: the borrow lasts for one system call, which sets a flag. When the descriptor
        // has been closed meanwhile the call fails; when its number is used again, the flag is
        // one that every descriptor of ours has anyway.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        let _ = fcntl_setfd(fd, FdFlags::CLOEXEC);
    }
    Ok(())
}

#[allow(unsafe_code)]
fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    let before_exec = move || {
        set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the signal was asked for.
        if getppid() == Some(parent) {
            Ok(())
        } else {
            Err(rustix::io::Errno::SRCH.into())
        }
    };
    // SAFETY: between fork and exec the closure makes two system calls (prctl, getppid) and
    // builds an io::Error from a number; it does not allocate, lock, or touch shared memory.
    unsafe {
        command.pre_exec(before_exec);
    }
}
