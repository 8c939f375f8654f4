//! The sender of a run: lists, reads, hashes, sends; hears what became of each entry.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use crossbeam_channel::{Sender, bounded, unbounded};

use crate::fs::filter::Filter;
use crate::model::control::Pause;
use crate::model::digest::Algorithm;
use crate::model::entry::EntryKind;
use crate::model::error::Result;
use crate::model::progress::{Counters, Phase};
use crate::pump::abort::Abort;
use crate::pump::control::{ControlReader, ControlWriter};
use crate::pump::digest::{Work, digest};
use crate::pump::lane::{Out, after_word, send_lane};
use crate::pump::limit::Throttle;
use crate::pump::pool::Pool;
use crate::pump::read::Reader;
use crate::pump::report::Observer;
use crate::pump::scan::{Book, Scan};
use crate::pump::source::Source;
use crate::pump::{BUFFERS, QUEUE};
use crate::wire::codec::broken;
use crate::wire::message::{Message, Sent, Settled, Terms, Want};

/// Digests that are told together.
const PAGE: usize = 256;

/// What a sender is given.
pub struct SendRun<'a> {
    /// What to send.
    pub sources: &'a [Source],
    /// What to leave out.
    pub filter: &'a Filter,
    /// The name that the one source gets; `None` for its own.
    pub top: Option<&'a [u8]>,
    /// What to keep to.
    pub terms: Terms,
    /// To the receiver.
    pub control: Arc<ControlWriter>,
    /// Where frames go; empty in a dry run.
    pub outs: Vec<Out>,
    /// Limit and pause.
    pub throttle: &'a Throttle,
    /// How far it is.
    pub counters: &'a Counters,
    /// Who hears of each item.
    pub observer: &'a dyn Observer,
    /// Ends the run.
    pub abort: &'a Abort,
}

impl SendRun<'_> {
    /// Sends everything and returns when the receiver says that all is settled and durable.
    ///
    /// # Errors
    /// What ended the run; single items are told to the observer instead.
    pub fn run(self, from: &mut ControlReader<'_>) -> Result<()> {
        let (book, pool) = (Book::default(), Pool::new(BUFFERS));
        // Holds at most the window and retries of it: only announced entries can be wanted.
        let (want_tx, wants) = unbounded::<Want>();
        // Each holds a reference to a pooled buffer, which bounds what can wait.
        let (hash_tx, hash_rx) = bounded::<Work<Sent>>(BUFFERS * 2);
        let algorithm = self.terms.verify;
        let tagged = self.outs.iter().any(|out| matches!(out, Out::Tcp(_)));
        std::thread::scope(|scope| {
            let mut senders = Vec::new();
            for (n, out) in self.outs.into_iter().enumerate() {
                let (tx, rx) = bounded(QUEUE);
                senders.push(tx);
                let throttle = self.throttle;
                let (abort, counters) = (self.abort, self.counters);
                abort.thread(scope, format!("lane-{n}"), move || {
                    let done = send_lane(n as u16, out, &rx, throttle, &counters.wire_bytes, abort);
                    after_word(done, abort)
                });
            }
            let control = &*self.control;
            if !senders.is_empty() {
                let reader = Reader {
                    wants: &wants,
                    book: &book,
                    pool: &pool,
                    lanes: senders,
                    hash: hash_tx,
                    algorithm,
                    leaves: tagged || algorithm == Algorithm::Blake3,
                    control,
                    counters: self.counters,
                    abort: self.abort,
                    last: None,
                    lane: 0,
                };
                self.abort.thread(scope, "read".into(), || reader.run());
                let abort = self.abort;
                abort.thread(scope, "hash".into(), move || {
                    let page = std::cell::RefCell::new(Vec::new());
                    let flush = || {
                        let page = page.take();
                        if !page.is_empty() {
                            if let Err(error) = control.send(&Message::Sents(page)) {
                                abort.fail(error);
                            }
                        }
                    };
                    let done = |mut sent: Sent, digest| {
                        sent.digest = digest;
                        page.borrow_mut().push(sent);
                        if page.borrow().len() >= PAGE {
                            flush();
                        }
                    };
                    digest(algorithm, &hash_rx, abort, done, flush);
                    Ok(())
                });
            }
            let (sources, filter, top) = (self.sources, self.filter, self.top);
            let (counters, observer, abort, book) =
                (self.counters, self.observer, self.abort, &book);
            abort.thread(scope, "scan".into(), move || {
                let mut announce = |first, entries| control.send(&Message::Entries(first, entries));
                let scan = Scan {
                    sources,
                    filter,
                    top,
                    book,
                    announce: &mut announce,
                    counters,
                    observer,
                    abort,
                };
                let count = scan.run()?;
                control.send(&Message::EntriesEnd(count))
            });
            let hearing = Hearing {
                book,
                wants: want_tx,
                throttle: self.throttle,
                counters: self.counters,
                observer: self.observer,
            };
            if let Err(error) = hearing.run(from, control) {
                self.abort.fail(error);
            }
            // Dropping the hearing ended the wants, and with them reader, hash and lanes.
        });
        self.abort.result()
    }
}

/// What is done with the receiver's messages.
struct Hearing<'a> {
    book: &'a Book,
    wants: Sender<Want>,
    throttle: &'a Throttle,
    counters: &'a Counters,
    observer: &'a dyn Observer,
}

impl Hearing<'_> {
    fn run(self, from: &mut ControlReader<'_>, control: &ControlWriter) -> Result<()> {
        loop {
            match from.next()? {
                Message::Wants(wants) => {
                    for want in wants {
                        let Some(item) = self.book.get(want.file) else {
                            return Err(broken("the other side wants what was not announced"));
                        };
                        if want.attempt == 0 {
                            self.counters.bytes_total.fetch_add(item.size, Relaxed);
                        }
                        self.counters.set_phase(Phase::Transferring);
                        // The reader is gone only when the run is ended; the next message tells.
                        let _ = self.wants.send(want);
                    }
                }
                Message::Settleds(list) => {
                    list.iter().try_for_each(|settled| self.settled(settled))?
                }
                Message::Progress(bytes, busy) => {
                    self.counters.bytes_done.store(bytes, Relaxed);
                    if busy && self.counters.snapshot().listed {
                        self.counters.set_phase(Phase::Verifying);
                    }
                }
                Message::Throttle(rate, paused) => {
                    self.throttle.limit.0.store(rate, Relaxed);
                    Pause::set(&self.throttle.pause, paused);
                }
                Message::Note(error) => self.observer.note(&error),
                Message::Fail(error) => return Err(error),
                Message::Finished => return control.send(&Message::Finished),
                _ => return Err(broken("a message came that has no place here")),
            }
        }
    }

    fn settled(&self, settled: &Settled) -> Result<()> {
        let Some(item) = self.book.take(settled.file) else {
            return Err(broken("the other side settles what was not announced"));
        };
        self.counters.items_done.fetch_add(1, Relaxed);
        let path = match settled.name.as_slice() {
            b"" => item.path,
            name => item.path.with_name(name)?,
        };
        self.observer.settled(path.as_bytes(), item.kind, settled);
        Ok(())
    }
}

/// Says whether an entry of this kind gets a row: files do, and whatever failed.
pub fn has_row(kind: EntryKind, settled: &Settled) -> bool {
    use crate::model::verdict::Verdict;
    kind == EntryKind::File
        || kind == EntryKind::Special
        || matches!(
            settled.verdict,
            Verdict::Failed(_) | Verdict::Vanished | Verdict::SourceChanged
        )
}
