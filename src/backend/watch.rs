//! Looks after a run from outside: cancel, stall, and limits that change while it runs.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::backend::collect::Collector;
use crate::backend::cx::Cx;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::Phase;
use crate::pump::abort::Abort;
use crate::pump::control::ControlWriter;
use crate::pump::latch::Latch;
use crate::wire::message::Message;

/// How often it looks.
const LOOK: Duration = Duration::from_millis(50);
/// A run without any progress for so long is ended and may be tried again.
const STALL: Duration = Duration::from_secs(30);
/// The same while the other side waits for its disk: a weak box takes minutes to flush its cache.
const DISK_STALL: Duration = Duration::from_secs(600);

/// Watches until `done`. While `busy` is set somebody waits for a disk.
pub(super) fn watch(
    cx: &Cx<'_>,
    abort: &Abort,
    done: &Latch,
    collector: &Collector<'_>,
    tell_limit: Option<&ControlWriter>,
    busy: &AtomicBool,
) -> Result<()> {
    let progress = || {
        let now = cx.counters.snapshot();
        (
            now.bytes_done,
            now.items_done,
            now.items_total,
            now.wire_bytes,
        )
    };
    let (mut last, mut since) = (progress(), Instant::now());
    let mut told = (0, false);
    while !done.wait(LOOK) && !abort.is_stopped() {
        if cx.cancel.is_set() {
            return Err(Error::cancelled());
        }
        collector.flush();
        let throttle = (cx.limit.0.load(Relaxed), cx.paused.is_set());
        if throttle != told {
            told = throttle;
            if let Some(control) = tell_limit {
                control.send(&Message::Throttle(throttle.0, throttle.1))?;
            }
        }
        let now = progress();
        if now != last || throttle.1 {
            (last, since) = (now, Instant::now());
        }
        let patience = match cx.counters.snapshot().phase {
            Phase::Verifying => DISK_STALL,
            _ if busy.load(Relaxed) => DISK_STALL,
            _ => STALL,
        };
        if since.elapsed() >= patience {
            return Err(Error::new(
                ErrorKind::Timeout,
                "go on",
                format!("nothing moved for {} s", patience.as_secs()),
            )
            .hint("look at the network and at the other computer"));
        }
    }
    Ok(())
}
