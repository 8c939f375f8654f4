//! The `job-N` thread: chooses a method, connects, plans when it must, asks, runs, and tries again.
//!
//! A method that panics ends its own job as a fault in this program; others go on.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender};
use tokio::sync::mpsc::UnboundedSender;

use crate::advise::choose::{Offer, Tried, another_may_help, choose};
use crate::backend::contract::{Backend, Session};
use crate::backend::cx::{Ask as _, Cx};
use crate::engine::control::Msg;
use crate::engine::ending::{self, Arrived};
use crate::engine::people::People;
use crate::engine::retry::{Attempt, Retry, TRIES};
use crate::engine::sink::Sink;
use crate::model::control::{Cancel, LimitCell, Pause};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::event::{Answer, Question, QuestionKind};
use crate::model::job::{JobId, JobSpec};
use crate::model::outcome::{Route, Tally};
use crate::model::plan::PlanTotals;
use crate::model::progress::{Counters, Phase};
use crate::model::rules::Conflict;
use crate::store::claim::claim;

/// What a run tells the control loop.
pub enum FromRun {
    /// The connection is there.
    Connected,
    /// The connection broke and will be tried again.
    Lost,
    /// The plan is known.
    Planned(PlanTotals),
    /// A person has to decide.
    Asked(Question, Sender<Answer>),
    /// Something to know.
    Note(String),
    /// One thing went wrong and the job goes on.
    Warned(Error),
    /// The thread is done; always the last.
    Ended(Box<Story>),
}

/// The way from one run to the control loop.
#[derive(Clone)]
pub struct Line {
    /// Which job.
    pub job: JobId,
    /// Which of its runs; messages of one that was given up are told apart by it.
    pub run: u64,
    /// To the control loop. Unbounded: a run sends few messages, its notes and warnings are capped.
    pub to: UnboundedSender<Msg>,
    /// Numbers the questions of the whole engine.
    pub questions: Arc<AtomicU64>,
}

impl Line {
    /// Sends; an engine that is gone listens no more.
    pub fn tell(&self, what: FromRun) {
        let _ = self.to.send(Msg::Run(self.job, self.run, what));
    }

    /// Returns a number for a question.
    pub fn next_question(&self) -> u64 {
        self.questions.fetch_add(1, Relaxed)
    }
}

/// What a run has to show at its end.
#[derive(Debug)]
pub struct Story {
    /// What the last attempt returned, its counts merged with those of earlier ones.
    pub result: Result<Tally>,
    /// The verdicts of all attempts, also when the last returned an error.
    pub tally: Tally,
    /// What arrived in all attempts.
    pub arrived: Arrived,
    /// The method that was used.
    pub method: &'static str,
    /// Why that method, and why the data went that way.
    pub why: String,
    /// Which way the data went.
    pub route: Route,
    /// Seconds until data could flow, the first time.
    pub connect_seconds: f64,
    /// Notes and warnings beyond the cap.
    pub unsaid: (u64, u64),
}

impl Story {
    /// Makes the story of a run that has not begun.
    pub fn new(result: Result<Tally>) -> Self {
        Self {
            tally: result.as_ref().copied().unwrap_or_default(),
            result,
            arrived: Arrived::default(),
            method: "",
            why: String::new(),
            route: Route::default(),
            connect_seconds: 0.0,
            unsaid: (0, 0),
        }
    }
}

/// Everything that a run works with.
pub struct Run {
    /// What to do.
    pub spec: Arc<JobSpec>,
    /// The registry.
    pub methods: &'static [&'static dyn Backend],
    /// The folder where profiles that run are claimed.
    pub claims: PathBuf,
    /// How far it is.
    pub counters: Arc<Counters>,
    /// Set to end it.
    pub cancel: Cancel,
    /// Set to hold it.
    pub paused: Pause,
    /// Its bandwidth limit.
    pub limit: LimitCell,
    /// Wakes it from waiting for the next try.
    pub nudge: Receiver<()>,
    /// Its rows and steps.
    pub sink: Arc<Sink>,
    /// Its people.
    pub people: People,
    /// The way to the control loop.
    pub line: Line,
    /// When it began.
    pub started: Instant,
}

/// Starts the thread of a run; its last message is `Ended`, whatever happens.
///
/// # Errors
/// When the system gives no thread.
pub fn spawn(run: Run) -> Result<()> {
    std::thread::Builder::new()
        .name(format!("job-{}", run.line.run))
        .spawn(move || {
            let mut story = Story::new(Ok(Tally::default()));
            let ended = catch_unwind(AssertUnwindSafe(|| run.go(&mut story)));
            story.result = ended.unwrap_or_else(|panic| Err(fault(story.method, &*panic)));
            story.arrived = run.sink.arrived();
            story.tally = match &story.result {
                Ok(tally) => *tally,
                Err(_) => story.arrived.merged(&run.sink.earlier()),
            };
            story.unsaid = run.people.unsaid();
            run.line.tell(FromRun::Ended(Box::new(story)));
        })
        .map(drop)
        .map_err(|e| {
            Error::io("start a thread for the job", &e).hint("close other programs, then retry")
        })
}

/// Makes the error of a method that panicked.
fn fault(method: &str, panic: &(dyn Any + Send)) -> Error {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no reason given");
    let doing = match method {
        "" => "run the job".to_owned(),
        method => format!("run the method {method}"),
    };
    Error::new(ErrorKind::Bug, doing, text).hint("this is a fault in Transload; please report it")
}

impl Run {
    fn go(&self, story: &mut Story) -> Result<Tally> {
        let mut spec = (*self.spec).clone();
        let _claim = match &spec.profile {
            Some(profile) if !spec.dry_run => claim(&self.claims, profile)?,
            _ => None,
        };
        let mut retry = Retry::default();
        let mut tried = Vec::new();
        let mut rule = match (spec.settings.conflict, spec.attended && !spec.dry_run) {
            (Conflict::Ask, true) => None,
            (Conflict::Ask, false) => Some(Conflict::Fail),
            (rule, _) => Some(rule),
        };
        if spec.resume {
            self.sink.begin_again();
        }
        loop {
            let mut connected = false;
            let result = self.attempt(&spec, &mut tried, &mut rule, &mut connected, story);
            let error = match result {
                Ok(tally) => return Ok(ending::merge(tally, &self.sink.earlier())),
                Err(error) => error,
            };
            self.cancel.check()?;
            let now = self.counters.snapshot();
            let attempt = Attempt {
                connected,
                arrived: self.sink.arrived_now(),
                left: now
                    .listed
                    .then(|| now.bytes_total.saturating_sub(now.bytes_done)),
            };
            let Some(wait) = retry.after(&error, attempt, chance()) else {
                return Err(error);
            };
            self.line.tell(FromRun::Lost);
            self.people.note(format!(
                "{error}. Trying again in {:.0} s (try {} of {TRIES})",
                wait.as_secs_f64().ceil(),
                retry.tries(),
            ));
            self.counters.reset();
            self.wait(wait)?;
            spec.resume = true;
            self.sink.begin_again();
        }
    }

    /// Connects and does the work once.
    fn attempt(
        &self,
        spec: &JobSpec,
        tried: &mut Vec<Tried>,
        rule: &mut Option<Conflict>,
        connected: &mut bool,
        story: &mut Story,
    ) -> Result<Tally> {
        let (mut session, why) = self.connect(spec, tried, story)?;
        *connected = true;
        self.line.tell(FromRun::Connected);
        // Told the first time, and again only when another method takes over.
        if !story.why.starts_with(&why) {
            if story.why.is_empty() {
                let waited = self.people.waited();
                let elapsed = self.started.elapsed().saturating_sub(waited);
                story.connect_seconds = elapsed.as_secs_f64();
            }
            self.people.note(why.clone());
            story.why.clone_from(&why);
        }
        let result = self.work(spec, rule, session.as_mut());
        let (route, way) = session.route();
        story.route = route;
        // The one may say all that the other does: `local` has one way and one reason for it.
        story.why = match why.contains(&way) {
            true => why,
            false => format!("{why}; {way}"),
        };
        result
    }

    /// Connects with the best method that works here.
    fn connect(
        &self,
        spec: &JobSpec,
        tried: &mut Vec<Tried>,
        story: &mut Story,
    ) -> Result<(Box<dyn Session>, String)> {
        let offers: Vec<Offer> = self
            .methods
            .iter()
            .map(|method| Offer {
                id: method.id(),
                supports: method.supports(spec),
            })
            .collect();
        loop {
            self.cancel.check()?;
            let choice = choose(spec, &offers, tried)?;
            let method = self.methods.iter().find(|m| m.id() == choice.id);
            let method = method.expect("the choice is one of the offers, made from the registry");
            story.method = choice.id;
            // The rule of a run is settled only later; connecting decides nothing by it.
            match method.connect(spec, &self.cx(Conflict::Fail)) {
                Ok(session) => {
                    // A question on the way may have been answered with the end of the job.
                    self.cancel.check()?;
                    return Ok((session, choice.why));
                }
                Err(error) if another_may_help(&error) => {
                    tried.push(Tried {
                        id: choice.id,
                        error,
                    });
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Plans when it must, asks when it must, and runs.
    fn work(
        &self,
        spec: &JobSpec,
        rule: &mut Option<Conflict>,
        session: &mut dyn Session,
    ) -> Result<Tally> {
        if spec.dry_run {
            self.plan(session, rule.unwrap_or(Conflict::Fail))?;
            return Ok(Tally::default());
        }
        let rule = match *rule {
            Some(rule) => rule,
            None => *rule.insert(self.ask_rule(session)?),
        };
        session.run(&self.cx(rule))
    }

    fn plan(&self, session: &mut dyn Session, rule: Conflict) -> Result<PlanTotals> {
        self.counters.set_phase(Phase::Planning);
        let totals = session.plan(&self.cx(rule))?;
        self.line.tell(FromRun::Planned(totals));
        Ok(totals)
    }

    /// Looks what is there and asks once, before the first write.
    fn ask_rule(&self, session: &mut dyn Session) -> Result<Conflict> {
        let totals = self.plan(session, Conflict::Fail)?;
        self.counters.reset();
        // Without conflicts the strictest rule keeps what appears there in the meantime.
        if totals.conflicts == 0 {
            return Ok(Conflict::Fail);
        }
        let answer = self.people.ask(QuestionKind::Conflicts {
            count: totals.conflicts,
            examples: self.sink.take_conflicts(),
        });
        self.cancel.check()?;
        match answer {
            Answer::Rule(rule) if rule != Conflict::Ask => Ok(rule),
            Answer::Cancel => Err(Error::cancelled()),
            Answer::Rule(_) | Answer::Yes(_) => Ok(Conflict::Fail),
        }
    }

    fn cx(&self, conflict: Conflict) -> Cx<'_> {
        Cx {
            counters: &self.counters,
            cancel: self.cancel.clone(),
            paused: self.paused.clone(),
            limit: self.limit.clone(),
            conflict,
            rows: &*self.sink,
            people: &self.people,
        }
    }

    /// Waits for the next try, and as long as the job is paused; ends at once on cancel.
    fn wait(&self, wait: Duration) -> Result<()> {
        let until = Instant::now() + wait;
        loop {
            self.cancel.check()?;
            let left = until.saturating_duration_since(Instant::now());
            if self.paused.is_set() {
                // The nudge comes with resume and cancel; the second is a safety net.
                let _ = self.nudge.recv_timeout(left.max(Duration::from_secs(1)));
            } else if left.is_zero() {
                return Ok(());
            } else {
                let _ = self.nudge.recv_timeout(left);
            }
        }
    }
}

/// Returns a random number, 0 to 1.
fn chance() -> f64 {
    // Without randomness all jobs wait the same time, which does no harm.
    f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX)
}
