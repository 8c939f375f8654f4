//! The receiver of a run: decides, takes, checks, makes durable, and tells what became of each entry.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crossbeam_channel::{Sender, bounded};

use crate::fs::root::Root;
use crate::model::entry::{Entry, EntryKind};
use crate::model::error::{Error, Result};
use crate::model::progress::{Counters, Phase};
use crate::model::verdict::Verdict;
use crate::pump::abort::Abort;
use crate::pump::admit::{Admit, Admitted, Expectations, Expected, FolderMeta};
use crate::pump::commit::{Commit, Note, Sink};
use crate::pump::control::{ControlReader, ControlWriter};
use crate::pump::digest::{Work, digest};
use crate::pump::disk::{Disk, Landed, umask};
use crate::pump::lane::{Incoming, after_word, from_channel, receive_lane};
use crate::pump::latch::Latch;
use crate::pump::link::Link;
use crate::pump::pool::Pool;
use crate::pump::report::Observer;
use crate::pump::staging::Staging;
use crate::pump::{BUFFERS, QUEUE};
use crate::wire::codec::broken;
use crate::wire::frame::Kind;
use crate::wire::message::{Message, Settled, Terms, Want};

/// Threads that write: two that make files in different folders are nearly twice as fast as one.
const DISKS: usize = 2;
/// Rough bytes of settled entries or wants that go into one message.
const PAGE_BYTES: usize = 256 * 1024;
/// How often the other end is told how far it is.
const TICK: Duration = Duration::from_millis(100);

/// What a receiver is given.
pub struct ReceiveRun<'a> {
    /// Where everything lands; `None` in a dry run whose destination is not there.
    pub root: Option<Arc<Root>>,
    /// The one source gets a new name there.
    pub named: bool,
    /// The first components that were asked for; `None` where they are not known beforehand. The
    /// other side does not choose what arrives here.
    pub allowed: Option<HashSet<Vec<u8>>>,
    /// Names the job's staging folder.
    pub job: [u8; 16],
    /// What to keep to.
    pub terms: Terms,
    /// To the sender.
    pub control: Arc<ControlWriter>,
    /// Data connections; without any, frames come by the control channel.
    pub links: Vec<Link>,
    /// How far it is.
    pub counters: &'a Counters,
    /// Who hears of each item.
    pub observer: &'a dyn Observer,
    /// Ends the run.
    pub abort: &'a Abort,
}

impl ReceiveRun<'_> {
    /// Receives everything and returns when all is settled, durable and acknowledged.
    ///
    /// # Errors
    /// What ended the run; single items are told to observer and sender instead.
    pub fn run(mut self, from: &mut ControlReader<'_>) -> Result<()> {
        umask();
        let links = std::mem::take(&mut self.links);
        let staging = match (&self.root, self.terms.dry_run) {
            (Some(root), false) => Some(Staging::open(root, &self.job, DISKS)?),
            _ => None,
        };
        let result = self.with_threads(from, links, staging.as_ref());
        if let Some(staging) = staging {
            staging.close(result.is_ok(), self.named);
        }
        result
    }

    fn with_threads(
        &self,
        from: &mut ControlReader<'_>,
        links: Vec<Link>,
        staging: Option<&Staging>,
    ) -> Result<()> {
        let pool = Pool::new(BUFFERS);
        let expected = Expectations::default();
        let folders: Mutex<Vec<FolderMeta>> = Mutex::default();
        let (busy, done) = (AtomicBool::new(false), Latch::default());
        // Notes are small, and the commit thread is never far behind.
        let (commit_tx, notes) = bounded::<Note>(256);
        // Each of these holds a pooled buffer, which bounds what can wait.
        let (hash_tx, hash_rx) = bounded::<Work<Landed>>(BUFFERS * 2);
        let (disks, frames): (Vec<_>, Vec<_>) =
            (0..DISKS).map(|_| bounded::<Incoming>(QUEUE)).unzip();
        let route = Arc::new(Route {
            disks,
            turn: AtomicUsize::new(0),
            abort: self.abort,
        });
        let (abort, counters, terms) = (self.abort, self.counters, self.terms);
        let (pool, expected, folders) = (&pool, &expected, &folders);
        let (busy, done, notes, hash_rx) = (&busy, &done, &notes, &hash_rx);
        std::thread::scope(|scope| {
            if let (Some(root), Some(staging)) = (&self.root, staging) {
                for (n, frames) in frames.into_iter().enumerate() {
                    let disk = DiskSetup {
                        small: staging.small[n].clone(),
                        hash: hash_tx.clone(),
                        commit: commit_tx.clone(),
                    };
                    abort.thread(scope, format!("disk-{n}"), move || {
                        let DiskSetup {
                            small,
                            hash,
                            commit,
                        } = disk;
                        let disk = Disk {
                            frames: &frames,
                            small,
                            root,
                            terms,
                            expected,
                            pool,
                            hash,
                            commit,
                            counters,
                            abort,
                            open: HashMap::new(),
                            parts: 0,
                            told: false,
                        };
                        disk.run()
                    });
                }
                let commit = commit_tx.clone();
                abort.thread(scope, "hash".into(), move || {
                    let whole = |mut landed: Landed, digest| {
                        landed.digest = digest;
                        abort.send(&commit, Note::Landed(vec![landed]));
                    };
                    digest(terms.verify, hash_rx, abort, whole, || {});
                    Ok(())
                });
                abort.thread(scope, "commit".into(), move || {
                    let commit = Commit {
                        notes,
                        root,
                        terms,
                        expected,
                        folders,
                        sink: self,
                        busy,
                        abort,
                    };
                    let result = commit.run();
                    done.set();
                    result?;
                    if abort.is_stopped() {
                        Ok(())
                    } else {
                        self.finished()
                    }
                });
                abort.thread(scope, "tick".into(), move || self.tick(busy, done));
            }
            drop(hash_tx);
            for link in links {
                let route = route.clone();
                abort.thread(scope, format!("lane-{}", link.number), move || {
                    let take = |frame| route.give(frame);
                    let done = receive_lane(link, pool, &counters.wire_bytes, abort, take);
                    after_word(done, abort)
                });
            }
            let admit = Admit {
                root: self.root.as_ref(),
                terms,
                staging,
                expected,
                folders,
                pool,
                abort,
                last: None,
                links: 0,
                whole_seconds: false,
            };
            let hearing = Hearing {
                run: self,
                admit,
                commit: commit_tx,
                route,
                pool,
                next: 0,
                frames: 0,
            };
            if let Err(error) = hearing.run(from) {
                abort.fail(error);
            }
            done.set();
            // Route and commit channel went with the hearing; the threads end after what is left.
        });
        abort.result()
    }

    /// Tells the sender how far this side is, until all is done.
    fn tick(&self, busy: &AtomicBool, done: &Latch) -> Result<()> {
        let mut told = (u64::MAX, Instant::now());
        while !done.wait(TICK) && !self.abort.is_stopped() {
            let bytes = self.counters.bytes_done.load(Relaxed);
            let busy = busy.load(Relaxed);
            if bytes != told.0 || (busy && told.1.elapsed() >= Duration::from_secs(1)) {
                told = (bytes, Instant::now());
                self.control.send(&Message::Progress(bytes, busy))?;
            }
        }
        Ok(())
    }

    fn finished(&self) -> Result<()> {
        self.control.send(&Message::Progress(
            self.counters.bytes_done.load(Relaxed),
            false,
        ))?;
        self.control.send(&Message::Finished)
    }

    /// Tells observer and sender what became of entries.
    fn tell(&self, list: impl IntoIterator<Item = (Settled, EntryKind, Vec<u8>)>) -> Result<()> {
        let (mut page, mut bytes) = (Vec::new(), 0);
        for (settled, kind, path) in list {
            self.counters.items_done.fetch_add(1, Relaxed);
            self.observer.settled(&path, kind, &settled);
            bytes += weight(&settled);
            page.push(settled);
            if bytes >= PAGE_BYTES {
                self.control
                    .send(&Message::Settleds(std::mem::take(&mut page)))?;
                bytes = 0;
            }
        }
        if page.is_empty() {
            return Ok(());
        }
        self.control.send(&Message::Settleds(page))
    }
}

/// What a disk thread takes along.
struct DiskSetup {
    small: Arc<crate::fs::root::Dir>,
    hash: Sender<Work<Landed>>,
    commit: Sender<Note>,
}

/// Returns about how many bytes a settled entry has on the wire.
fn weight(settled: &Settled) -> usize {
    let text = match &settled.verdict {
        Verdict::Failed(e) => {
            e.doing.len()
                + e.place.as_bytes().len()
                + e.cause.as_bytes().len()
                + e.hint.as_ref().map_or(0, String::len)
        }
        Verdict::Skipped(why) | Verdict::Unverified(why) => why.len(),
        _ => 0,
    };
    100 + settled.name.len() + text
}

impl Sink for ReceiveRun<'_> {
    fn settled(&self, list: Vec<(Settled, Arc<Expected>)>) -> Result<()> {
        self.tell(list.into_iter().map(|(settled, expected)| {
            let path = match settled.name.as_slice() {
                b"" => expected.path.as_bytes().to_vec(),
                name => expected
                    .path
                    .with_name(name)
                    .map_or_else(|_| name.to_vec(), |p| p.as_bytes().to_vec()),
            };
            (settled, EntryKind::File, path)
        }))
    }

    fn again(&self, want: Want) -> Result<()> {
        self.control.send(&Message::Wants(vec![want]))
    }

    fn note(&self, error: Error) -> Result<()> {
        self.observer.note(&error);
        self.control.send(&Message::Note(error))
    }
}

/// Gives each frame to a disk thread: a large file always to the same one, batches in turn.
struct Route<'a> {
    disks: Vec<Sender<Incoming>>,
    turn: AtomicUsize,
    abort: &'a Abort,
}

impl Route<'_> {
    fn give(&self, frame: Incoming) -> bool {
        let n = match frame.header.kind {
            Kind::Batch => self.turn.fetch_add(1, Relaxed),
            _ => frame.header.file as usize,
        };
        self.abort.send(&self.disks[n % self.disks.len()], frame)
    }
}

/// What is done with the sender's messages.
struct Hearing<'a> {
    run: &'a ReceiveRun<'a>,
    admit: Admit<'a>,
    commit: Sender<Note>,
    route: Arc<Route<'a>>,
    pool: &'a Pool,
    /// The number that the next entry must have.
    next: u64,
    /// Frames that came by the control channel.
    frames: u64,
}

impl Hearing<'_> {
    fn run(mut self, from: &mut ControlReader<'_>) -> Result<()> {
        let counters = self.run.counters;
        loop {
            match from.next()? {
                Message::Entries(first, entries) => self.entries(first, &entries)?,
                Message::EntriesEnd(count) => {
                    if count != self.next {
                        return Err(broken("entries are missing"));
                    }
                    counters.set_listed();
                    if self.run.terms.dry_run {
                        self.run.finished()?;
                    }
                    self.note(Note::Ended);
                }
                Message::Sents(list) => self.note(Note::Sent(list)),
                Message::Gone(file, gone) => self.note(Note::Gone(file, gone)),
                Message::Trouble(path, error) => self.run.observer.trouble(&path, &error),
                Message::Data(bytes) => {
                    counters.wire_bytes.fetch_add(bytes.len() as u64, Relaxed);
                    let frame = from_channel(&bytes, self.frames, self.pool, self.run.abort)?;
                    self.frames += 1;
                    if let Some(frame) = frame.filter(|frame| frame.header.kind != Kind::End) {
                        self.route.give(frame);
                    }
                }
                // Only a sender holds back; the limit is of no use here.
                Message::Throttle(..) => {}
                Message::Note(error) => self.run.observer.note(&error),
                Message::Fail(error) => return Err(error),
                Message::Finished => return Ok(()),
                _ => return Err(broken("a message came that has no place here")),
            }
        }
    }

    /// Passes something on to the commit thread; when that is gone, the run is ended anyway.
    fn note(&self, note: Note) {
        if !self.run.terms.dry_run {
            self.run.abort.send(&self.commit, note);
        }
    }

    fn entries(&mut self, first: u64, entries: &[Entry]) -> Result<()> {
        if first != self.next {
            return Err(broken("entries are missing"));
        }
        self.next += entries.len() as u64;
        if let Some(allowed) = &self.run.allowed {
            let asked = |entry: &Entry| {
                entry
                    .path
                    .components()
                    .next()
                    .is_some_and(|top| allowed.contains(top))
            };
            if !entries.iter().all(asked) {
                return Err(broken("a file came that was not asked for"));
            }
        }
        let counters = self.run.counters;
        counters
            .items_total
            .fetch_add(entries.len() as u64, Relaxed);
        let (mut settled, mut wants, mut blocks) = (Vec::new(), Vec::new(), 0);
        for (file, entry) in (first..).zip(entries) {
            match self.admit.admit(file, entry) {
                Admitted::Settled(word) => {
                    settled.push((word, entry.kind, entry.path.as_bytes().to_vec()))
                }
                Admitted::Wanted(want) => {
                    counters.bytes_total.fetch_add(entry.size, Relaxed);
                    blocks += want.blocks.len() * 32;
                    wants.push(want);
                    if blocks >= PAGE_BYTES {
                        self.want(std::mem::take(&mut wants))?;
                        blocks = 0;
                    }
                }
            }
        }
        if !wants.is_empty() {
            self.want(wants)?;
        }
        self.run.tell(settled)
    }

    fn want(&self, wants: Vec<Want>) -> Result<()> {
        self.run.counters.set_phase(Phase::Transferring);
        self.note(Note::Wanted(wants.len() as u64));
        self.run.control.send(&Message::Wants(wants))
    }
}
