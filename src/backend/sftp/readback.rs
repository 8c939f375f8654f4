//! Reads files through the server and digests them, many at a time.

use std::collections::VecDeque;

use crate::backend::cx::Cx;
use crate::backend::sftp::ask::unexpected;
use crate::backend::sftp::channel::Channel;
use crate::backend::sftp::packet::{Attrs, Reply};
use crate::backend::sftp::request::{READ, Request};
use crate::backend::sftp::{at_once, window};
use crate::model::digest::Digest;
use crate::model::error::{Error, Result};
use crate::pump::abort::Abort;
use crate::pump::limit::Throttle;
use crate::verify::hash::Hasher;

/// Completes "Failed to ...".
const DOING: &str = "read the file back";

/// A file to be read.
pub(super) struct Reading {
    path: Vec<u8>,
    size: u64,
    hasher: Hasher,
    handle: Option<Vec<u8>>,
    /// Up to here it was asked for.
    asked: u64,
    /// Up to here it was digested.
    done: u64,
    /// Reads without a reply.
    pending: u32,
    failed: Option<Error>,
}

/// What a request was for.
enum Asked {
    Open,
    Read(u64, u64),
}

impl Reading {
    /// Begins with a file and the digest to take.
    pub fn new(path: Vec<u8>, size: u64, hasher: Hasher) -> Self {
        Self {
            path,
            size,
            hasher,
            handle: None,
            asked: 0,
            done: 0,
            pending: 0,
            failed: None,
        }
    }

    fn take(&mut self, asked: &Asked, reply: Reply) {
        match (asked, reply) {
            (Asked::Open, Reply::Handle(handle)) => self.handle = Some(handle),
            (Asked::Read(offset, len), Reply::Data(data))
                if *offset == self.done && !data.is_empty() && data.len() as u64 <= *len =>
            {
                self.hasher.update(&data);
                self.done += data.len() as u64;
            }
            // What follows a short answer is asked for again.
            (Asked::Read(offset, _), Reply::Data(_)) if *offset > self.done => {}
            (_, other) => {
                self.failed.get_or_insert(unexpected(&other, DOING));
            }
        }
        if let Asked::Read(..) = asked {
            self.pending -= 1;
        }
    }
}

/// Reads all of them; for each its digest, or why it could not be read.
///
/// # Errors
/// Those of the conversation, `Cancelled`.
pub(super) fn read_back(
    channel: &mut Channel,
    mut readings: Vec<Reading>,
    throttle: &Throttle,
    abort: &Abort,
    cx: &Cx<'_>,
) -> Result<Vec<Result<Option<Digest>>>> {
    let mut waiting = VecDeque::with_capacity(readings.len());
    for (n, reading) in readings.iter().enumerate() {
        let open = Request::Open(&reading.path, READ, Attrs::default());
        waiting.push_back((channel.send(&open)?, n, Asked::Open));
    }
    let mut unread = 0;
    loop {
        for (n, reading) in readings.iter_mut().enumerate() {
            let Some(handle) = &reading.handle else {
                continue;
            };
            if reading.pending == 0 && (reading.done == reading.size || reading.failed.is_some()) {
                channel.tell(&Request::Close(handle))?;
                reading.handle = None;
                continue;
            }
            if reading.pending == 0 {
                reading.asked = reading.done;
            }
            while reading.failed.is_none()
                && reading.asked < reading.size
                && unread < window(&cx.limit)
            {
                let most = at_once(channel.read_size.into(), &cx.limit);
                let len = most.min(reading.size - reading.asked);
                throttle.wait(len as usize, abort);
                cx.cancel.check()?;
                let read = Request::Read(handle, reading.asked, len as u32);
                let asked = Asked::Read(reading.asked, len);
                waiting.push_back((channel.send(&read)?, n, asked));
                reading.asked += len;
                reading.pending += 1;
                unread += len;
            }
        }
        let Some((id, n, asked)) = waiting.pop_front() else {
            break;
        };
        let reply = channel.reply_to(id)?;
        channel.count(cx.counters);
        if let Asked::Read(_, len) = asked {
            unread -= len;
        }
        readings[n].take(&asked, reply);
    }
    let result = |reading: Reading| match reading.failed {
        Some(error) => Err(error),
        None => Ok(reading.hasher.finish()),
    };
    Ok(readings.into_iter().map(result).collect())
}
