//! The `engine` thread: one loop that takes commands, what runs tell, and what the store tells, and
//! that owns all jobs. It never touches a file and sleeps without a timer while nothing runs.
//!
//! A transition is written first and shown when the store says that it is durable; orders to a
//! running thread (cancel, pause) do not wait for that.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::backend::contract::Backend;
use crate::engine::Command;
use crate::engine::board::Board;
use crate::engine::job::{self, Effect, Input, State};
use crate::engine::live::{After, Cells, Job};
use crate::engine::people::People;
use crate::engine::queue::{self, Limits, Place};
use crate::engine::runner::{self, FromRun, Line, Run, Story};
use crate::engine::sink::Sink;
use crate::engine::store::{Store, Told, Write};
use crate::model::control::{Cancel, LimitCell, Pause};
use crate::model::error::Error;
use crate::model::event::{Answer, Event, EventKind};
use crate::model::job::{JobId, JobSpec};
use crate::model::outcome::Abort;
use crate::model::progress::{Counters, RunState};

/// How long a cancelled thread may take before the job is shown as over without it.
const GRACE: Duration = Duration::from_secs(2);

/// What the control loop is told.
pub enum Msg {
    /// By the user.
    Command(Command),
    /// By the store thread.
    Store(Told),
    /// By a run of a job.
    Run(JobId, u64, FromRun),
    /// Somebody wants to hear events.
    Listen(SyncSender<Event>),
    /// Stop everything in order.
    Shutdown,
}

/// The loop's state.
pub struct Control {
    /// What it is told.
    pub inbox: UnboundedReceiver<Msg>,
    /// Given to runs.
    pub to: UnboundedSender<Msg>,
    /// The registry.
    pub methods: &'static [&'static dyn Backend],
    /// The folder where profiles that run are claimed.
    pub claims: PathBuf,
    /// The queue's limits.
    pub limits: Limits,
    /// The way to the database.
    pub store: Store,
    /// All jobs, in the order of the list.
    pub jobs: Vec<Job>,
    /// Where snapshots are made.
    pub board: Board,
    /// Those who hear events.
    pub listeners: Vec<SyncSender<Event>>,
    /// Numbers runs.
    pub runs: u64,
    /// Numbers questions.
    pub questions: Arc<AtomicU64>,
    /// Nothing starts any more.
    pub closing: bool,
}

impl Control {
    /// Runs until shut down.
    pub async fn run(mut self) {
        self.board.touch();
        loop {
            self.board.publish(&mut self.jobs);
            self.settle_lines();
            self.tell_events();
            self.board.wake();
            if self.closing && self.jobs.iter().all(|job| job.shown == RunState::Finished) {
                return;
            }
            let wake = self.board.wake_at(&self.jobs);
            let give_up = self.jobs.iter().filter_map(|job| job.give_up_at).min();
            let next = match wake.into_iter().chain(give_up).min() {
                Some(at) => tokio::time::timeout_at(at.into(), self.inbox.recv()).await,
                None => Ok(self.inbox.recv().await),
            };
            if let Ok(Some(msg)) = next {
                self.take(msg);
                // What came at the same time is shown at the same time.
                for _ in 0..256 {
                    match self.inbox.try_recv() {
                        Ok(msg) => self.take(msg),
                        Err(_) => break,
                    }
                }
            }
            self.give_up();
            self.schedule();
        }
    }

    fn take(&mut self, msg: Msg) {
        match msg {
            Msg::Command(command) => self.command(command),
            Msg::Store(Told::Saved(id, version, result)) => self.saved(id, version, result),
            Msg::Store(Told::Lost(id, error)) => {
                // Nothing is told after the end: only the curve is written later than that.
                if let Some(i) = self.find(id)
                    && self.jobs[i].shown != RunState::Finished
                {
                    self.warn(i, error);
                }
            }
            Msg::Run(id, run, what) => self.heard(id, run, what),
            Msg::Listen(listener) => self.listeners.push(listener),
            Msg::Shutdown => {
                self.closing = true;
                for i in 0..self.jobs.len() {
                    self.step(i, Input::Stop(Abort::Shutdown));
                }
            }
        }
    }

    pub(super) fn find(&self, id: JobId) -> Option<usize> {
        self.jobs.iter().position(|job| job.spec.id == id)
    }

    fn command(&mut self, command: Command) {
        let (id, input) = match command {
            Command::Submit(spec) => return self.submit(*spec),
            Command::Pause(id) => (id, Input::Pause),
            Command::Resume(id) => (id, Input::Resume),
            Command::Cancel(id) => (id, Input::Stop(Abort::User)),
            Command::Retry(id) => {
                return self.again(id, None);
            }
            Command::Move(id, place) => {
                if let Some(i) = self.find(id) {
                    let waits = |job: &Job| matches!(job.state, State::Queued { .. });
                    queue::move_to(&mut self.jobs, i, place, waits);
                    self.board.touch();
                }
                return;
            }
            Command::Remove(id) => return self.remove(id),
            Command::Answer(id, question, answer) => return self.answer(id, question, answer),
            Command::Limit(id, limit) => {
                if let Some(i) = self.find(id) {
                    self.jobs[i].limit(limit);
                    self.jobs[i].version += 1;
                    self.save(i);
                    self.board.touch();
                }
                return;
            }
        };
        if let Some(i) = self.find(id) {
            self.step(i, input);
        }
    }

    fn submit(&mut self, spec: JobSpec) {
        if self.closing {
            return;
        }
        if self.find(spec.id).is_some() {
            return self.again(spec.id, Some(spec));
        }
        self.jobs.push(Job::new(spec));
        let i = self.jobs.len() - 1;
        self.jobs[i].version = 1;
        self.jobs[i]
            .after
            .push_back((1, After::Show(RunState::Queued)));
        // It starts at once when there is room, so that both are one write.
        self.schedule();
        self.save(i);
    }

    /// Queues a job that is over once more, at the end.
    fn again(&mut self, id: JobId, spec: Option<JobSpec>) {
        let Some(i) = self.find(id) else { return };
        // Shown as over: its end is in the database.
        if self.closing || self.jobs[i].shown != RunState::Finished {
            return;
        }
        let mut job = self.jobs.remove(i);
        if let Some(spec) = spec {
            job.host = spec.host_key();
            job.spec = Arc::new(spec);
        }
        job.renew();
        self.jobs.push(job);
        self.step(self.jobs.len() - 1, Input::Again);
    }

    fn remove(&mut self, id: JobId) {
        if let Some(i) = self.find(id)
            && self.jobs[i].shown == RunState::Finished
            && self.jobs[i].state == State::Finished
            && self.jobs[i].orphan.is_none()
        {
            self.jobs.remove(i);
            self.board.forget(id);
        }
    }

    fn answer(&mut self, id: JobId, question: u64, answer: Answer) {
        let Some(i) = self.find(id) else { return };
        let open = self.jobs[i]
            .question
            .take_if(|(open, _)| open.id == question);
        if let Some((_, reply)) = open {
            // First the end, then the answer: who asked must not go on with a small job meanwhile.
            if answer == Answer::Cancel {
                self.step(i, Input::Stop(Abort::User));
            }
            // The asker holds the other end and has room for one.
            let _ = reply.send(answer);
            self.board.touch();
        }
    }

    /// Starts what may start.
    fn schedule(&mut self) {
        if self.closing {
            return;
        }
        let places: Vec<_> = self
            .jobs
            .iter()
            .map(|job| {
                let place = match job.state {
                    State::Queued { held: false } if job.orphan.is_none() => Place::Ready,
                    state if state.is_active() => Place::Busy,
                    _ => Place::Out,
                };
                (job.host.as_str(), place)
            })
            .collect();
        for i in queue::next(&places, self.limits) {
            self.step(i, Input::Start);
        }
    }

    /// Takes a job one step on in its life.
    fn step(&mut self, i: usize, input: Input) {
        let before = self.jobs[i].state;
        let (state, effect) = job::step(before, input);
        self.jobs[i].state = state;
        match effect {
            None => {}
            Some(Effect::Launch) => self.prepare(i),
            Some(Effect::Hold) => self.with_cells(i, |cells| cells.paused.set(true)),
            Some(Effect::Release) => self.with_cells(i, |cells| cells.paused.set(false)),
            Some(Effect::Cancel) => {
                self.with_cells(i, |cells| cells.cancel.set());
                let job = &mut self.jobs[i];
                if let Some((_, reply)) = job.question.take() {
                    let _ = reply.send(Answer::Cancel);
                }
                job.give_up_at = Some(Instant::now() + GRACE);
            }
            Some(Effect::End(stop)) => self.end(i, stop),
        }
        if state.shown() != before.shown() {
            let job = &mut self.jobs[i];
            job.version += 1;
            let version = job.version;
            job.after.push_back((version, After::Show(state.shown())));
            match effect {
                Some(Effect::Launch) => job.after.push_back((version, After::Launch)),
                Some(Effect::End(_)) => job.after.push_back((version, After::Finish)),
                _ => {}
            }
            self.save(i);
        }
    }

    fn with_cells(&self, i: usize, order: impl Fn(&Cells)) {
        if let Some(cells) = &self.jobs[i].cells {
            order(cells);
            // It has one place; a nudge that is not taken yet is as good as two.
            let _ = cells.nudge.try_send(());
        }
    }

    /// Makes what a run shares with this loop.
    fn prepare(&mut self, i: usize) {
        self.runs += 1;
        let cancel = Cancel::default();
        let job = &mut self.jobs[i];
        let sink = Sink::new(job.spec.id, self.store.clone(), cancel.clone());
        // The thread takes its end at launch.
        let (nudge, _) = crossbeam_channel::bounded(1);
        job.cells = Some(Cells {
            run: self.runs,
            started: Instant::now(),
            counters: Arc::new(Counters::default()),
            cancel,
            paused: Pause::default(),
            limit: LimitCell::default(),
            nudge,
            sink: Arc::new(sink),
        });
        job.limit(job.spec.settings.limit);
    }

    /// Starts the thread of a job that is in the database as active.
    pub(super) fn launch(&mut self, i: usize) {
        let job = &mut self.jobs[i];
        let Some(cells) = &mut job.cells else { return };
        let (nudge, nudged) = crossbeam_channel::bounded(1);
        cells.nudge = nudge;
        let line = Line {
            job: job.spec.id,
            run: cells.run,
            to: self.to.clone(),
            questions: Arc::clone(&self.questions),
        };
        let result = cells.cancel.check().and_then(|()| {
            runner::spawn(Run {
                people: People::new(
                    line.clone(),
                    job.spec.attended,
                    job.spec.consent,
                    cells.cancel.clone(),
                    Arc::clone(&cells.counters),
                ),
                spec: Arc::clone(&job.spec),
                methods: self.methods,
                claims: self.claims.clone(),
                counters: Arc::clone(&cells.counters),
                cancel: cells.cancel.clone(),
                paused: cells.paused.clone(),
                limit: cells.limit.clone(),
                nudge: nudged,
                sink: Arc::clone(&cells.sink),
                line,
                started: cells.started,
            })
        });
        if let Err(error) = result {
            job.story = Some(Box::new(Story::new(Err(error))));
            self.step(i, Input::Ended);
        }
    }

    fn heard(&mut self, id: JobId, run: u64, what: FromRun) {
        let Some(i) = self.find(id) else { return };
        let job = &mut self.jobs[i];
        if job.orphan == Some(run) {
            // It was given up; its end makes room for another run, all else is late.
            if matches!(what, FromRun::Ended(_)) {
                job.orphan = None;
            }
            return;
        }
        if job.cells.as_ref().is_none_or(|cells| cells.run != run) {
            return;
        }
        match what {
            FromRun::Connected => self.step(i, Input::Connected),
            FromRun::Lost => self.step(i, Input::Lost),
            FromRun::Planned(totals) => {
                job.plan = Some(totals);
                self.board.say(id, EventKind::Planned(totals));
            }
            FromRun::Asked(question, reply) => {
                if matches!(job.state, State::Active { stop: None, .. }) {
                    job.question = Some((question.clone(), reply));
                    self.board.say(id, EventKind::Asked(question));
                } else {
                    let _ = reply.send(Answer::Cancel);
                }
            }
            FromRun::Note(text) => self.note(i, text),
            FromRun::Warned(error) => self.warn(i, error),
            FromRun::Ended(story) => {
                let (notes, warnings) = story.unsaid;
                job.story = Some(story);
                for (count, what) in [(notes, "note"), (warnings, "warning")] {
                    match count {
                        0 => {}
                        1 => self.note(i, format!("And 1 more {what}")),
                        _ => self.note(i, format!("And {count} more {what}s")),
                    }
                }
                self.step(i, Input::Ended);
            }
        }
    }

    fn note(&mut self, i: usize, text: String) {
        let job = &mut self.jobs[i];
        let at = job.note(text.clone());
        self.store.write(Write::Log(job.spec.id, at, text.clone()));
        self.board.say(job.spec.id, EventKind::Note(text));
    }

    pub(super) fn warn(&mut self, i: usize, error: Error) {
        let job = &mut self.jobs[i];
        let text = match &error.hint {
            Some(hint) => format!("{error} ({hint})"),
            None => error.to_string(),
        };
        let at = job.note(text.clone());
        self.store.write(Write::Log(job.spec.id, at, text));
        self.board.say(job.spec.id, EventKind::Warned(error));
    }

    /// Decides how a job ended.
    fn end(&mut self, i: usize, stop: Option<Abort>) {
        let job = &mut self.jobs[i];
        job.give_up_at = None;
        job.question = None;
        job.sample(Instant::now());
        job.finish(stop);
        job.cells = None;
    }

    /// Stops waiting for threads that did not end in time.
    fn give_up(&mut self) {
        let now = Instant::now();
        for i in 0..self.jobs.len() {
            let job = &mut self.jobs[i];
            if job.give_up_at.is_none_or(|at| at > now) {
                continue;
            }
            job.give_up_at = None;
            if let Some(cells) = &job.cells {
                cells.sink.close();
                job.orphan = Some(cells.run);
            }
            self.note(
                i,
                "It did not stop in 2 s; a thread was left behind".to_owned(),
            );
            self.step(i, Input::Ended);
        }
    }

    /// Lets quiet and moving jobs be seen as such.
    fn settle_lines(&mut self) {
        for i in 0..self.jobs.len() {
            if self.jobs[i].moves() {
                let quiet = self.jobs[i].quiet();
                self.step(i, if quiet { Input::Quiet } else { Input::Moving });
            }
        }
    }
}
