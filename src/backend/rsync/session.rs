//! Runs rsync and turns what it prints into rows.
//!
//! rsync tells of a file when it was sent, and confirms all of them only by how it ends: so rows of
//! files that moved wait until then, about a hundred bytes each. What was left alone is told at once.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufReader, Read};
use std::process::{ChildStderr, ChildStdout};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, bounded};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::backend::collect::Collector;
use crate::backend::contract::Session;
use crate::backend::cx::Cx;
use crate::backend::ends::{Ends, ends};
use crate::backend::rsync::USE;
use crate::backend::rsync::args::Wishes;
use crate::backend::rsync::far::{Version, here, look, program, random};
use crate::backend::rsync::layout::{Layout, to_look_at};
use crate::backend::rsync::lines::{self, Item, Told};
use crate::backend::rsync::troubles::{self, Naming, Trouble};
use crate::model::digest::Algorithm;
use crate::model::entry::{Action, EntryKind, Reason};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::outcome::{Route, Tally};
use crate::model::plan::PlanTotals;
use crate::model::progress::Phase;
use crate::model::verdict::{Verdict, When};
use crate::proc::lines::Ends as LineEnds;
use crate::proc::ready::{self, For, Waited};
use crate::proc::{Child, Lines, Pipe};
use crate::pump::name::staging;
use crate::pump::report::Observer as _;
use crate::wire::message::Settled;

/// How often it looks at cancel, pause and limit while rsync says nothing.
const LOOK: Duration = Duration::from_millis(100);
/// rsync says something every second while data flows; without a word for so long it hangs.
const SILENCE: Duration = Duration::from_secs(600);
/// How long rsync has to put half a file away when it is told to stop.
const GRACE: Duration = Duration::from_millis(500);
/// How long it may take to end after its last word.
const END: Duration = Duration::from_secs(30);
/// The most that is kept of what it complains about.
const COMPLAINTS: usize = 16 << 20;

/// A host that has rsync.
pub(super) struct RsyncSession {
    spec: JobSpec,
    ends: Ends,
    layout: Layout,
    receiver: Version,
}

/// A file that rsync says it moved.
struct Held {
    path: Box<[u8]>,
    item: Item,
}

/// What one run of rsync told.
struct Heard {
    held: Vec<Held>,
    complaints: Vec<u8>,
    code: Option<i32>,
}

impl RsyncSession {
    /// Looks at both sides.
    pub fn connect(spec: &JobSpec, cx: &Cx<'_>) -> Result<Self> {
        cx.counters.set_phase(Phase::Connecting);
        let ends = ends(spec, USE)?;
        let own = here(cx)?;
        let far = look(ends.host(), &spec.settings.ssh, &to_look_at(&ends), cx)?;
        let layout = Layout::new(spec, &ends, &far)?;
        Ok(Self {
            spec: spec.clone(),
            receiver: match ends {
                Ends::Push { .. } => far.version,
                Ends::Pull { .. } => own,
            },
            ends,
            layout,
        })
    }

    fn once(&self, cx: &Cx<'_>, dry_run: bool) -> Result<(PlanTotals, Tally)> {
        cx.counters.set_phase(Phase::Planning);
        let collector = Collector::new(cx, dry_run);
        for (path, error) in &self.layout.troubles {
            collector.trouble(path, error);
        }
        if self.layout.is_empty() {
            cx.counters.set_listed();
            return Ok(collector.finish());
        }
        let landing = match &self.layout.landing {
            Some(found) => found.open(dry_run)?,
            None => None,
        };
        // While it is there, a run that goes on knows that the source gets a new name.
        let mark = staging(&self.spec.id.0);
        let marks = landing
            .as_ref()
            .filter(|_| !dry_run && matches!(self.layout.naming, Naming::Below(_)));
        if let Some(root) = marks {
            root.top().make_dir(mark.as_bytes(), 0o700)?;
        }
        if !dry_run {
            self.layout.remember(&self.spec.id);
        }
        let done = self.run_rsync(cx, dry_run, &collector);
        if let (Ok(()), Some(root)) = (&done, marks) {
            root.top().remove_dir(mark.as_bytes())?;
        }
        if let (Ok(()), Some(root), true) = (&done, &landing, self.spec.settings.durable) {
            if !dry_run {
                cx.counters.set_phase(Phase::Verifying);
                root.sync_fs()?;
            }
        }
        let counts = collector.finish();
        done?;
        if !dry_run {
            Layout::forget(&self.spec.id);
        }
        Ok(counts)
    }

    fn run_rsync(&self, cx: &Cx<'_>, dry_run: bool, collector: &Collector<'_>) -> Result<()> {
        let token = format!("item-{:016x}", random()?);
        let limit = cx.limit.0.load(Relaxed);
        let wishes = Wishes {
            spec: &self.spec,
            conflict: cx.conflict,
            dry_run,
            limit,
            receiver: self.receiver,
            token: &token,
        };
        if self.spec.settings.durable && !wishes.flushes() && !dry_run {
            cx.people.note(
                "the rsync that writes is too old to flush files: they may be lost in a power cut \
                 shortly after"
                    .to_owned(),
            );
        }
        let child = program()?
            .args(wishes.options(self.ends.host())?)
            .args(&self.layout.names)
            .stdout(Pipe::Piped)
            .stderr(Pipe::Piped)
            .spawn()?;
        let (heard, broke) = self.listen(child, cx, collector, &token, limit)?;
        let settled = self.settle(heard, broke, collector, cx);
        cx.counters.set_listed();
        settled
    }

    /// Reads what rsync prints until it ends.
    fn listen(
        &self,
        mut child: Child,
        cx: &Cx<'_>,
        collector: &Collector<'_>,
        token: &str,
        limit: u64,
    ) -> Result<(Heard, Option<Error>)> {
        let no_pipe = || Error::new(ErrorKind::Bug, "run rsync", "it has no pipe");
        let complaints = complaints(child.take_stderr().ok_or_else(no_pipe)?)?;
        let mut output = Watched {
            pipe: child.take_stdout().ok_or_else(no_pipe)?,
            cx,
            collector,
            group: i32::try_from(child.id()).ok().and_then(Pid::from_raw),
            held: false,
            limit,
            heard: Instant::now(),
        };
        let with_digest = self.spec.settings.verify == Algorithm::Md5;
        let mut held = Vec::new();
        let broke = {
            let mut lines = Lines::new(BufReader::new(&mut output), LineEnds::FeedOrReturn);
            loop {
                match lines.next_line() {
                    Ok(Some(line)) => {
                        let told = lines::read(line, token, with_digest);
                        self.hear(told, cx, collector, &mut held);
                    }
                    Ok(None) => break None,
                    Err(error) => break Some(error),
                }
            }
        };
        let broke = match broke {
            _ if cx.cancel.is_set() => Some(Error::cancelled()),
            Some(error) => Some(Error::io("listen to rsync", &error).hint("try again, or resume")),
            None => None,
        };
        let code = if broke.is_some() {
            output.stop();
            child.kill();
            None
        } else {
            child.wait_deadline(END)?.and_then(|status| status.code())
        };
        drop(child);
        let complaints = complaints.recv_timeout(GRACE).unwrap_or_default();
        let heard = Heard {
            held,
            complaints,
            code,
        };
        Ok((heard, broke))
    }

    /// Takes in one line.
    fn hear(&self, told: Told, cx: &Cx<'_>, collector: &Collector<'_>, held: &mut Vec<Held>) {
        let counters = cx.counters;
        match told {
            Told::Progress {
                bytes,
                percent,
                items,
            } => {
                counters.bytes_done.store(bytes, Relaxed);
                // Too coarse at first; and what is the same already is part of the hundred.
                if percent >= 5 {
                    let total = bytes.saturating_mul(100) / percent;
                    counters.bytes_total.store(total.max(bytes), Relaxed);
                }
                if bytes > 0 {
                    counters.set_phase(Phase::Transferring);
                }
                if let Some((_, all)) = items {
                    counters.items_total.fetch_max(all, Relaxed);
                }
            }
            Told::Item(item) => {
                let done = counters.items_done.fetch_add(1, Relaxed) + 1;
                counters.items_total.fetch_max(done, Relaxed);
                counters.wire_bytes.fetch_add(item.wire, Relaxed);
                let Some(path) = self.layout.naming.row(&item.name) else {
                    return;
                };
                let moved = matches!(item.action, Action::Create | Action::Update);
                if item.kind != EntryKind::File || !moved {
                    let verdict = Verdict::Skipped(
                        match item.action {
                            Action::Touch => "the same already; its time or permissions were set",
                            _ => "the same already",
                        }
                        .to_owned(),
                    );
                    let sends = 0;
                    collector.settled(&path, item.kind, &word(&item, sends, verdict));
                    return;
                }
                counters.set_current(&path);
                held.push(Held {
                    path: path.into_boxed_slice(),
                    item,
                });
            }
            Told::Skipped(name, why) => {
                counters.items_done.fetch_add(1, Relaxed);
                if let Some(path) = self.layout.naming.row(&name) {
                    let (kind, reason) = match why {
                        "the one there is kept" => (EntryKind::File, Reason::Conflict),
                        _ => (EntryKind::Special, Reason::Special),
                    };
                    let settled = Settled {
                        file: 0,
                        action: Action::Skip,
                        reason,
                        bytes: 0,
                        verdict: Verdict::Skipped(why.to_owned()),
                        name: Vec::new(),
                    };
                    collector.settled(&path, kind, &settled);
                }
            }
            Told::Other => {}
        }
    }

    /// Gives every file that moved its verdict, now that rsync has ended.
    fn settle(
        &self,
        heard: Heard,
        broke: Option<Error>,
        collector: &Collector<'_>,
        cx: &Cx<'_>,
    ) -> Result<()> {
        let Heard {
            held,
            complaints,
            code,
        } = heard;
        let whole = matches!(code, Some(0 | 23 | 24));
        let mut bad: HashMap<Vec<u8>, Verdict> = HashMap::new();
        let mut again = HashSet::new();
        let (mut doubt, mut last) = (None, None);
        for line in complaints.split(|b| *b == b'\n') {
            match troubles::read(line, &self.layout.places, &self.layout.naming) {
                None => {}
                Some(Trouble::Failed(path, error)) => {
                    last = Some(error.clone());
                    bad.entry(path).or_insert(Verdict::Failed(error));
                }
                Some(Trouble::Vanished(path)) => {
                    bad.insert(path, Verdict::Vanished);
                }
                Some(Trouble::NotKept(error)) => cx.people.warn(error),
                Some(Trouble::Again(path)) => {
                    again.insert(path);
                }
                Some(Trouble::Unclear(error)) => {
                    if whole && code != Some(0) {
                        cx.people.warn(error.clone());
                    }
                    doubt = doubt.or(Some(error));
                }
            }
        }
        if complaints.len() >= COMPLAINTS || (code != Some(0) && bad.is_empty()) {
            let error = Error::new(
                ErrorKind::Tool,
                "copy everything",
                "rsync does not say what",
            );
            doubt = doubt.or(Some(error));
        }
        let doubt = match (code, doubt) {
            (Some(0), _) => None,
            (Some(23 | 24), doubt) => {
                doubt.map(|_| "rsync complained about something and did not say which file it was")
            }
            _ => Some("rsync ended before it confirmed this file"),
        };
        let mut bytes = 0;
        for Held { path, item } in held {
            if again.remove(&path[..]) {
                continue;
            }
            let verdict = match (bad.remove(&path[..]), doubt) {
                (Some(verdict), _) => verdict,
                (None, Some(why)) => Verdict::Unverified(why.to_owned()),
                (None, None) => {
                    bytes += item.len;
                    self.good(&item)
                }
            };
            collector.settled(&path, EntryKind::File, &word(&item, item.len, verdict));
        }
        for (path, verdict) in bad {
            match verdict {
                Verdict::Failed(error) => collector.failed(&path, error),
                verdict => {
                    let settled = Settled {
                        file: 0,
                        action: Action::Skip,
                        reason: Reason::Missing,
                        bytes: 0,
                        verdict,
                        name: Vec::new(),
                    };
                    collector.settled(&path, EntryKind::File, &settled);
                }
            }
        }
        if let Some(error) = broke {
            return Err(error);
        }
        if !whole {
            return Err(troubles::ended(code, self.ends.host(), &complaints, last));
        }
        cx.counters.bytes_done.store(bytes, Relaxed);
        cx.counters.bytes_total.store(bytes, Relaxed);
        Ok(())
    }

    /// Returns the verdict of a file that rsync confirmed.
    fn good(&self, item: &Item) -> Verdict {
        match (self.spec.settings.verify, item.digest) {
            (Algorithm::Md5, Some(digest)) => Verdict::Verified {
                digest,
                when: When::InFlight,
            },
            (Algorithm::Size, _) => Verdict::SizeOnly,
            (Algorithm::None, _) => Verdict::Unverified("no check was asked for".to_owned()),
            _ => Verdict::Unverified("rsync told no digest".to_owned()),
        }
    }
}

impl Session for RsyncSession {
    fn plan(&mut self, cx: &Cx<'_>) -> Result<PlanTotals> {
        self.once(cx, true).map(|(totals, _)| totals)
    }

    fn run(&mut self, cx: &Cx<'_>) -> Result<Tally> {
        self.once(cx, false).map(|(_, tally)| tally)
    }

    fn route(&self) -> (Route, String) {
        (Route::Ssh, "data goes through ssh".to_owned())
    }
}

fn word(item: &Item, bytes: u64, verdict: Verdict) -> Settled {
    Settled {
        file: 0,
        action: item.action,
        reason: item.reason,
        bytes,
        verdict,
        name: Vec::new(),
    }
}

/// Reads the error output on a thread of its own; it comes as a whole when it ends.
fn complaints(pipe: ChildStderr) -> Result<Receiver<Vec<u8>>> {
    // One answer.
    let (done, answer) = bounded(1);
    std::thread::Builder::new()
        .name("rsync-stderr".into())
        .spawn(move || {
            let mut kept = Vec::new();
            let mut lines = Lines::new(BufReader::new(pipe), LineEnds::Feed);
            // A stream that cannot be read any more has ended.
            while let Ok(Some(line)) = lines.next_line() {
                if kept.len() < COMPLAINTS {
                    kept.extend_from_slice(line);
                    kept.push(b'\n');
                }
            }
            let _ = done.send(kept);
        })
        .map_err(|e| Error::io("start a thread", &e))?;
    Ok(answer)
}

/// rsync's output, and an eye on what may change while it is awaited.
struct Watched<'a, 'c> {
    pipe: ChildStdout,
    cx: &'a Cx<'c>,
    collector: &'a Collector<'c>,
    group: Option<Pid>,
    held: bool,
    limit: u64,
    heard: Instant,
}

impl Watched<'_, '_> {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            // Fails only when nobody is left in the group.
            let _ = kill_process_group(group, signal);
        }
    }

    /// Asks all of rsync to end and waits a moment until the last of its processes has put half a
    /// file away and closed its output; the first one to end is not the last.
    fn stop(&mut self) {
        self.signal(Signal::TERM);
        // One that is held hears nothing.
        self.signal(Signal::CONT);
        let until = Instant::now() + GRACE;
        let mut rest = [0; 4096];
        while let Ok(Waited::Ready) = ready::wait(&self.pipe, For::Reading, until, &|| false) {
            if self.pipe.read(&mut rest).unwrap_or(0) == 0 {
                return;
            }
        }
    }

    fn look(&mut self) {
        let pause = self.cx.paused.is_set();
        if pause != self.held {
            self.held = pause;
            self.signal(if pause { Signal::STOP } else { Signal::CONT });
        }
        if pause {
            self.heard = Instant::now();
        }
        let limit = self.cx.limit.0.load(Relaxed);
        if limit != self.limit {
            self.limit = limit;
            self.cx.people.note(
                "rsync keeps the speed limit that it began with; the new one holds for the next run"
                    .to_owned(),
            );
        }
        self.collector.flush();
    }
}

impl Read for Watched<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            self.look();
            let stop = || self.cx.cancel.is_set();
            match ready::wait(&self.pipe, For::Reading, Instant::now() + LOOK, &stop)? {
                Waited::Ready => {
                    self.heard = Instant::now();
                    return self.pipe.read(buffer);
                }
                Waited::Cancelled => return Err(io::Error::other("cancelled")),
                Waited::TimedOut if self.heard.elapsed() > SILENCE => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Waited::TimedOut => {}
            }
        }
    }
}
