//! Runs one job on the engine and tells how it goes: events, bar, questions, rows, the end.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use crate::cli::ask::Asking;
use crate::cli::exit;
use crate::cli::json::Line;
use crate::cli::out::Out;
use crate::cli::rows::{self, Follower};
use crate::cli::signals::Stop;
use crate::engine::memory::Memory;
use crate::engine::{Command, Engine, EngineConfig, JobView, RowFilter};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::event::{Event, EventKind};
use crate::model::job::JobSpec;
use crate::model::outcome::{Abort, Outcome, Report};
use crate::model::progress::RunState;
use crate::model::untrusted::shown;
use crate::model::verdict::{Row, Verdict};
use crate::present::{text, units};
use crate::service::check_list::ListWriter;
use crate::store::dirs::Dirs;

/// How often the bar moves.
const TICK: Duration = Duration::from_millis(100);
/// How often JSON tells the progress.
const JSON_EVERY: Duration = Duration::from_secs(1);
/// How often a line tells the progress where no bar can.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// One job and what the command line adds to it.
pub struct Task {
    /// What the engine is to do.
    pub spec: JobSpec,
    /// Sources that were found missing before the start: rows of the run, too.
    pub missing: Vec<Row>,
    /// Where the digests of verified files are saved.
    pub save_list: Option<PathBuf>,
}

/// The engine of this process with what wakes the loop.
pub struct Driver<'a> {
    engine: Engine,
    woken: Receiver<()>,
    out: &'a Out,
    stop: Stop,
}

impl<'a> Driver<'a> {
    /// Starts the engine. Where nothing can be kept, the history lives as long as the program.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn start(dirs: &Dirs, out: &'a Out) -> Result<Self> {
        let stop = Stop::listen()?;
        // One is enough: it only says that there is something to look at.
        let (wake, woken) = sync_channel(1);
        let waker = Arc::new(move || match wake.try_send(()) {
            Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
        });
        let config = EngineConfig {
            parallel: 1,
            waker,
            ..EngineConfig::new(dirs.database())
        };
        let engine = match dirs.read_only() {
            None => Engine::start(config)?,
            Some(error) => {
                out.note(&format!("No history of this run is kept. {error}"));
                Engine::start_with(config, Box::new(Memory::default()))?
            }
        };
        Ok(Self {
            engine,
            woken,
            out,
            stop,
        })
    }

    /// Says whether the user asked to end; then no further job is begun.
    pub fn is_stopped(&self) -> bool {
        self.stop.is_set() || self.out.is_closed()
    }

    /// Runs a job to its end and returns the exit status.
    ///
    /// # Errors
    /// When the list of digests cannot be written, or no question can be asked.
    pub fn run(&self, task: Task) -> Result<u8> {
        let Task {
            spec,
            missing,
            save_list,
        } = task;
        let list = save_list.as_deref().map(ListWriter::create).transpose()?;
        let follower = match self.out.verbose() && !spec.dry_run {
            true => Some(Follower::new(&self.engine, spec.id, spec.resume)?),
            false => None,
        };
        let events = self.engine.events();
        let mut run = Run {
            driver: self,
            out: self.out,
            spec,
            missing,
            list,
            follower,
            errors: Vec::new(),
            told: HashSet::new(),
            asking: None,
            cancelled: false,
            next_json: Instant::now() + JSON_EVERY,
            next_line: Instant::now() + LINE_EVERY,
        };
        run.tell_missing();
        self.engine
            .send(Command::Submit(Box::new(run.spec.clone())));
        let (outcome, report) = run.until_finished(&events)?;
        run.finish(outcome, report)
    }
}

impl Drop for Driver<'_> {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}

/// One job that is under way.
struct Run<'a> {
    driver: &'a Driver<'a>,
    out: &'a Out,
    spec: JobSpec,
    missing: Vec<Row>,
    list: Option<ListWriter>,
    follower: Option<Follower<'a>>,
    errors: Vec<ErrorKind>,
    /// Errors that people have seen already.
    told: HashSet<String>,
    asking: Option<Asking>,
    cancelled: bool,
    next_json: Instant,
    next_line: Instant,
}

impl Run<'_> {
    fn tell_missing(&mut self) {
        for row in std::mem::take(&mut self.missing) {
            if let Verdict::Failed(error) = &row.verdict {
                self.tell(error);
            }
            self.missing.push(row);
        }
    }

    fn tell(&mut self, error: &Error) {
        self.errors.push(error.kind);
        self.told.insert(error.to_string());
        self.out.error(error);
    }

    fn until_finished(&mut self, events: &Receiver<Event>) -> Result<(Outcome, Report)> {
        loop {
            // Either way there is something to look at: news, or the next tick.
            let _ = self.driver.woken.recv_timeout(TICK);
            loop {
                match events.try_recv() {
                    Ok(event) if event.job == self.spec.id => {
                        if let Some(end) = self.take(event.kind)? {
                            return Ok(end);
                        }
                    }
                    Ok(_) => {}
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Err(engine_gone()),
                }
            }
            self.stop_if_asked();
            self.poll_answer()?;
            self.show_progress();
            if let Some(follower) = &mut self.follower {
                follower.name_some(self.out);
            }
            self.out.flush();
        }
    }

    fn take(&mut self, event: EventKind) -> Result<Option<(Outcome, Report)>> {
        match event {
            EventKind::State(state @ (RunState::Stalled | RunState::Reconnecting)) => {
                let phase = self.view().map(|v| v.progress.phase).unwrap_or_default();
                self.out.note(&text::state(&self.spec, state, phase));
            }
            EventKind::State(_) => {}
            EventKind::Planned(totals) => self.out.emit(|| Line::Plan(totals)),
            EventKind::Asked(question) => self.asking = Some(Asking::start(&question, self.out)?),
            EventKind::Note(note) => self.out.note(&note),
            EventKind::Warned(error) => self.tell(&error),
            EventKind::Finished(outcome, report) => return Ok(Some((outcome, report))),
        }
        Ok(None)
    }

    fn stop_if_asked(&mut self) {
        if self.cancelled || !self.driver.is_stopped() {
            return;
        }
        self.cancelled = true;
        self.asking = None;
        self.driver.engine.send(Command::Cancel(self.spec.id));
        if !self.out.is_closed() {
            self.out.say("Stopping... Once more ends it at once.");
        }
    }

    fn poll_answer(&mut self) -> Result<()> {
        let Some(asking) = &mut self.asking else {
            return Ok(());
        };
        if let Some(answer) = asking.poll(self.out)? {
            self.driver
                .engine
                .send(Command::Answer(self.spec.id, asking.id, answer));
            self.asking = None;
        }
        Ok(())
    }

    fn view(&self) -> Option<JobView> {
        self.driver
            .engine
            .jobs()
            .iter()
            .find(|view| view.spec.id == self.spec.id)
            .cloned()
    }

    fn show_progress(&mut self) {
        if self.asking.is_some() {
            return;
        }
        let Some(view) = self.view() else { return };
        if self.out.has_bar() {
            let (permille, message) = bar(&view);
            self.out.draw(permille, message);
        }
        let now = Instant::now();
        if self.out.json() && now >= self.next_json {
            self.next_json = now + JSON_EVERY;
            self.out.emit(|| Line::progress(&view));
        }
        if self.out.verbose() && !self.out.has_bar() && now >= self.next_line {
            self.next_line = now + LINE_EVERY;
            self.out.say(&bar(&view).1);
        }
    }

    /// Tells the end.
    fn finish(mut self, outcome: Outcome, mut report: Report) -> Result<u8> {
        let missing = self.missing.len() as u64;
        report.tally.failed += missing;
        let outcome = match outcome {
            Outcome::Completed if missing > 0 => Outcome::Partial(None),
            outcome => outcome,
        };
        self.out.clear();
        let mut code = exit::exit_code(&outcome, &report, &self.errors);
        if self.spec.dry_run && !self.errors.is_empty() {
            // A plan that could not look at everything is not the whole plan.
            code = exit::worst([code, exit::PARTIAL]);
        }
        if self.out.is_closed() {
            return Ok(code);
        }
        if let Outcome::Refused(error) | Outcome::Failed(error) | Outcome::Partial(Some(error)) =
            &outcome
            && !self.told.contains(&error.to_string())
        {
            self.tell(error);
        }
        self.tell_rows(&outcome)?;
        self.tell_end(&outcome, &report);
        self.out.emit(|| Line::summary(&outcome, &report));
        self.out.flush();
        Ok(code)
    }

    fn tell_rows(&mut self, outcome: &Outcome) -> Result<()> {
        let (engine, job, out) = (&self.driver.engine, self.spec.id, self.out);
        if self.spec.dry_run {
            return rows::print_steps(engine, job, out);
        }
        if out.json() {
            self.missing
                .iter()
                .for_each(|row| out.emit(|| Line::row(row)));
            rows::each(engine, job, &RowFilter::default(), |row| {
                out.emit(|| Line::row(row));
                Ok(())
            })?;
        }
        match &mut self.follower {
            Some(follower) => follower.name_rest(out)?,
            None => rows::name_bad(engine, job, out, &mut self.told)?,
        }
        match (self.list.take(), outcome) {
            (Some(list), Outcome::Completed | Outcome::Partial(_)) => {
                rows::save_list(engine, job, list)
            }
            (Some(_), _) => {
                out.note("The list of digests was not saved, since the job did not get to its end");
                Ok(())
            }
            (None, _) => Ok(()),
        }
    }

    fn tell_end(&self, outcome: &Outcome, report: &Report) {
        match outcome {
            Outcome::Refused(_) | Outcome::Failed(_) => {}
            Outcome::Aborted(why) => {
                self.out.say(&text::outcome(outcome, report));
                let left = report.files > 0 || report.kept > 0;
                if left && *why != Abort::Unanswered && !self.spec.dry_run {
                    self.out
                        .say("The same command again goes on where it stopped.");
                }
            }
            Outcome::Completed if self.spec.dry_run => {
                if let Some(totals) = self.view().and_then(|view| view.plan) {
                    self.out
                        .say(&format!("{}. Nothing was written.", text::plan(&totals)));
                }
            }
            Outcome::Completed | Outcome::Partial(_) => {
                self.out.say(&text::outcome(outcome, report));
            }
        }
    }
}

/// Returns the share in thousandths and the words beside the bar.
fn bar(view: &JobView) -> (u64, String) {
    let p = &view.progress;
    let mut parts = Vec::with_capacity(5);
    let mut permille = 0;
    if p.listed {
        let share = u64::from(text::share(p));
        permille = if p.bytes_total > 0 {
            (u128::from(p.bytes_done) * 1000 / u128::from(p.bytes_total)).min(1000) as u64
        } else {
            share * 10
        };
        parts.push(format!("{share} %"));
    } else if p.items_done > 0 {
        parts.push(text::progress(p));
    }
    if view.goodput > 0.0 {
        parts.push(units::rate(view.goodput));
    }
    if let Some(eta) = view.eta {
        parts.push(units::eta(eta));
    }
    parts.push(text::state(&view.spec, view.state, p.phase));
    if !p.current.is_empty() {
        parts.push(shown(&p.current));
    }
    (permille, parts.join("  "))
}

fn engine_gone() -> Error {
    Error::new(
        ErrorKind::Bug,
        "follow the job",
        "the engine ended before the job did",
    )
    .hint("run the same command again; it goes on where it stopped")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::job::{Consent, JobId};
    use crate::model::location::Location;
    use crate::model::plan::PlanTotals;
    use crate::model::profile::Settings;
    use crate::model::progress::{Phase, Progress};

    fn view(progress: Progress) -> JobView {
        let place = || Location::Local(b"/a".to_vec());
        JobView {
            spec: Arc::new(JobSpec {
                id: JobId([0; 16]),
                title: String::new(),
                profile: None,
                sources: vec![place()],
                destination: place(),
                settings: Settings::default(),
                dry_run: false,
                attended: false,
                consent: Consent::default(),
                resume: false,
            }),
            state: RunState::Running,
            progress,
            goodput: 108.0 * 1024.0 * 1024.0,
            eta: Some(72.0),
            series: Arc::default(),
            series_step: 0.5,
            plan: None::<PlanTotals>,
            question: None,
            log: Arc::default(),
            end: None,
        }
    }

    #[test]
    fn the_bar_says_percent_only_when_the_total_is_known_and_escapes_names() {
        let mut progress = Progress {
            bytes_done: 62,
            bytes_total: 100,
            items_done: 3,
            items_total: 9,
            listed: true,
            phase: Phase::Transferring,
            current: b"a\x1b[2Jb".to_vec(),
            ..Progress::default()
        };
        let (permille, message) = bar(&view(progress.clone()));
        assert_eq!(permille, 620);
        assert_eq!(
            message,
            "62 %  108 MiB/s  1 min 12 s left  Transferring  a\\x1b[2Jb"
        );
        progress.listed = false;
        let (permille, message) = bar(&view(progress.clone()));
        assert_eq!(permille, 0);
        assert!(
            !message.contains('%') && message.contains("so far"),
            "{message}"
        );
        progress.listed = true;
        progress.bytes_done = 150;
        assert_eq!(bar(&view(progress)).0, 1000);
    }
}
