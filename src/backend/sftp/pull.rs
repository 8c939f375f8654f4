//! Receives: leaves deciding, parts, durability and names to the same code that receives over raw
//! TCP; [`receive`](super::receive) lists the sources there and [`get`](super::get) fetches files.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crossbeam_channel::{RecvTimeoutError, Sender, bounded, unbounded};

use crate::backend::collect::Collector;
use crate::backend::cx::Cx;
use crate::backend::sftp::by_length;
use crate::backend::sftp::channel::Channel;
use crate::backend::sftp::get::Gets;
use crate::backend::sftp::receive::{Book, Receiving};
use crate::fs::filter::Filter;
use crate::fs::root::Root;
use crate::model::digest::Algorithm;
use crate::model::entry::EntryKind;
use crate::model::error::{Error, Result};
use crate::model::progress::Phase;
use crate::model::verdict::Verdict;
use crate::pump::BUFFERS;
use crate::pump::abort::Abort;
use crate::pump::admit::{Admit, Expectations, Expected, FolderMeta};
use crate::pump::commit::{Commit, Note, Sink};
use crate::pump::disk::umask;
use crate::pump::limit::Throttle;
use crate::pump::pool::Pool;
use crate::pump::report::Observer as _;
use crate::pump::staging::Staging;
use crate::wire::message::{Settled, Terms, Want};

/// How often it looks whether the commits are through.
const LOOK: Duration = Duration::from_millis(50);

/// What a pull is given.
pub(super) struct Pull<'a, 'c> {
    pub cx: &'a Cx<'c>,
    pub collector: &'a Collector<'c>,
    pub abort: &'a Abort,
    /// Told to the watch: this computer waits for its disk.
    pub busy: &'a AtomicBool,
    pub terms: Terms,
    pub job: [u8; 16],
    /// What the user wrote.
    pub sources: &'a [Vec<u8>],
    pub contents: bool,
    pub filter: &'a Filter,
    /// Where everything lands; `None` in a dry run whose destination is not there.
    pub root: Option<Arc<Root>>,
    /// The name that the one source gets.
    pub top: Option<Vec<u8>>,
}

impl Pull<'_, '_> {
    /// Receives everything.
    ///
    /// # Errors
    /// What ended the run; single items that failed are rows instead.
    pub fn run(self, channel: &mut Channel) -> Result<()> {
        umask();
        let staging = match (&self.root, self.terms.dry_run) {
            (Some(root), false) => {
                let staging = Staging::open(root, &self.job, 1)?;
                // What is whole of a part cannot be known here, so none is gone on with.
                for (name, _) in staging.large.list()? {
                    staging.large.remove_file(&name)?;
                }
                Some(staging)
            }
            _ => None,
        };
        let result = self.with_commit(channel, staging.as_ref());
        let result = self.abort.result().and(result);
        if let Some(staging) = staging {
            if result.is_err() {
                for (name, _) in staging.large.list().unwrap_or_default() {
                    // Best effort; the next run tries again.
                    let _ = staging.large.remove_file(&name);
                }
            }
            staging.close(result.is_ok(), self.top.is_some());
        }
        result
    }

    fn with_commit(&self, channel: &mut Channel, staging: Option<&Staging>) -> Result<()> {
        let pool = Pool::new(BUFFERS);
        let expected = Expectations::default();
        let folders: Mutex<Vec<FolderMeta>> = Mutex::default();
        let book = Book::default();
        // Notes are small, and the commit thread is never far behind.
        let (notes_to, notes) = bounded::<Note>(256);
        // Holds at most one retry for each file on the way.
        let (again, wants) = unbounded::<Want>();
        let sink = Receiver {
            pull: self,
            book: &book,
            again: Mutex::new(Some(again)),
        };
        // Without reading back nothing is compared but lengths, and the sink words the verdicts.
        let mut terms = self.terms;
        let hashes = terms.read_back && terms.verify.hashes();
        if !hashes {
            (terms.verify, terms.read_back) = (Algorithm::None, false);
        }
        let (pool, expected, folders, busy) = (&pool, &expected, &folders, self.busy);
        let (sink, notes, book) = (&sink, &notes, &book);
        std::thread::scope(|scope| {
            if let (Some(root), Some(_)) = (&self.root, staging) {
                self.abort.thread(scope, "commit".into(), move || {
                    let commit = Commit {
                        notes,
                        root,
                        terms,
                        expected,
                        folders,
                        sink,
                        busy,
                        abort: self.abort,
                    };
                    let result = commit.run();
                    sink.close();
                    result
                });
            } else {
                sink.close();
            }
            let throttle = Throttle::new(self.cx.limit.clone(), self.cx.paused.clone());
            let mut receiving = Receiving {
                pull: self,
                admit: Admit {
                    root: self.root.as_ref(),
                    terms: self.terms,
                    staging,
                    expected,
                    folders,
                    pool,
                    abort: self.abort,
                    last: None,
                    links: 0,
                    whole_seconds: true,
                },
                gets: Gets {
                    channel,
                    cx: self.cx,
                    abort: self.abort,
                    algorithm: terms.verify,
                    preserve: terms.preserve,
                    throttle: &throttle,
                    small: staging.map(|staging| staging.small[0].clone()),
                    notes: notes_to,
                    gets: BTreeMap::new(),
                    waiting: HashMap::new(),
                    unread: 0,
                    parts: 0,
                    told: false,
                },
                book,
                expected,
                next: 0,
            };
            let result = receiving.run().and_then(|()| {
                self.cx.counters.set_listed();
                if !self.abort.send(&receiving.gets.notes, Note::Ended) {
                    return Ok(());
                }
                loop {
                    match wants.recv_timeout(LOOK) {
                        Ok(want) => {
                            receiving.want(&want)?;
                            receiving.gets.finish()?;
                        }
                        Err(RecvTimeoutError::Disconnected) => return Ok(()),
                        Err(RecvTimeoutError::Timeout) if self.abort.is_stopped() => return Ok(()),
                        Err(RecvTimeoutError::Timeout) => {
                            self.cx.counters.set_phase(Phase::Verifying);
                        }
                    }
                }
            });
            if let Err(error) = &result {
                self.abort.fail(error.clone());
            }
            result
        })
    }
}

/// Where the results of the commits go.
struct Receiver<'a, 'b, 'c> {
    pull: &'a Pull<'b, 'c>,
    book: &'a Book,
    again: Mutex<Option<Sender<Want>>>,
}

impl Receiver<'_, '_, '_> {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Sender<Want>>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        *self.lock() = None;
    }
}

impl Sink for Receiver<'_, '_, '_> {
    fn settled(&self, list: Vec<(Settled, Arc<Expected>)>) -> Result<()> {
        for (mut settled, expected) in list {
            self.book
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&settled.file);
            if let Verdict::Unverified(_) = settled.verdict {
                settled.verdict = by_length(self.pull.terms.verify);
            }
            let path = match settled.name.as_slice() {
                b"" => expected.path.clone(),
                name => expected.path.with_name(name)?,
            };
            self.pull.cx.counters.items_done.fetch_add(1, Relaxed);
            let path = path.as_bytes();
            self.pull.collector.settled(path, EntryKind::File, &settled);
        }
        Ok(())
    }

    fn again(&self, want: Want) -> Result<()> {
        if let Some(again) = &*self.lock() {
            // The other end is gone only when the run is ended.
            let _ = again.send(want);
        }
        Ok(())
    }

    fn note(&self, error: Error) -> Result<()> {
        self.pull.collector.note(&error);
        Ok(())
    }
}
