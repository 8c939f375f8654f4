//! Methods that tests script, and an engine on them that tests can wait for.

// Each test program uses some of it.
#![allow(clippy::unwrap_used, dead_code)]

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use transload::backend::contract::{Backend, Caps, Session};
use transload::backend::cx::Cx;
use transload::engine::ledger::Ledger;
use transload::engine::{Command, Engine, EngineConfig, JobView, new_job_id};
use transload::model::digest::{Algorithm, Digest};
use transload::model::entry::{Action, EntryKind, Reason};
use transload::model::error::{Error, ErrorKind, Result};
use transload::model::event::{Event, EventKind};
use transload::model::job::{Consent, JobId, JobSpec};
use transload::model::location::{Host, Location};
use transload::model::options::OptionSpec;
use transload::model::outcome::{Outcome, Report, Route, Tally};
use transload::model::plan::{PlanTotals, Step};
use transload::model::profile::Settings;
use transload::model::verdict::{Row, Verdict, When};

/// The longest that anything in these tests may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

type Connect = dyn Fn(&JobSpec, &Cx<'_>) -> Result<()> + Send + Sync;
type Plan = dyn Fn(&JobSpec, &Cx<'_>) -> Result<PlanTotals> + Send + Sync;
type Run = dyn Fn(&JobSpec, &Cx<'_>) -> Result<Tally> + Send + Sync;

/// A method whose parts are closures.
pub struct Fake {
    id: &'static str,
    connect: Box<Connect>,
    plan: Box<Plan>,
    run: Box<Run>,
}

impl Fake {
    /// A method that connects and finds nothing to do.
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            connect: Box::new(|_, _| Ok(())),
            plan: Box::new(|_, _| Ok(PlanTotals::default())),
            run: Box::new(|_, _| Ok(Tally::default())),
        }
    }

    pub fn connect(
        mut self,
        connect: impl Fn(&JobSpec, &Cx<'_>) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.connect = Box::new(connect);
        self
    }

    pub fn plan(
        mut self,
        plan: impl Fn(&JobSpec, &Cx<'_>) -> Result<PlanTotals> + Send + Sync + 'static,
    ) -> Self {
        self.plan = Box::new(plan);
        self
    }

    pub fn run(
        mut self,
        run: impl Fn(&JobSpec, &Cx<'_>) -> Result<Tally> + Send + Sync + 'static,
    ) -> Self {
        self.run = Box::new(run);
        self
    }
}

impl Backend for Fake {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.id
    }

    fn about(&self) -> &'static str {
        "For tests"
    }

    fn caps(&self) -> Caps {
        Caps::default()
    }

    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn supports(&self, _: &JobSpec) -> Result<()> {
        Ok(())
    }

    fn connect(&self, spec: &JobSpec, cx: &Cx<'_>) -> Result<Box<dyn Session>> {
        (self.connect)(spec, cx)?;
        Ok(Box::new(FakeSession {
            spec: spec.clone(),
            fake: REGISTERED
                .lock()
                .unwrap()
                .iter()
                .copied()
                .find(|fake| std::ptr::eq(*fake, self))
                .unwrap(),
        }))
    }
}

/// Every fake that a registry was made of; they live for ever.
static REGISTERED: std::sync::Mutex<Vec<&'static Fake>> = std::sync::Mutex::new(Vec::new());

struct FakeSession {
    spec: JobSpec,
    fake: &'static Fake,
}

impl Session for FakeSession {
    fn plan(&mut self, cx: &Cx<'_>) -> Result<PlanTotals> {
        (self.fake.plan)(&self.spec, cx)
    }

    fn run(&mut self, cx: &Cx<'_>) -> Result<Tally> {
        (self.fake.run)(&self.spec, cx)
    }

    fn route(&self) -> (Route, String) {
        (Route::Direct, "the port answered".to_owned())
    }
}

/// Makes a registry that lives for ever, as the real one does.
pub fn methods(fakes: Vec<Fake>) -> &'static [&'static dyn Backend] {
    let mut list: Vec<&'static dyn Backend> = Vec::new();
    for fake in fakes {
        let fake: &'static Fake = Box::leak(Box::new(fake));
        REGISTERED.lock().unwrap().push(fake);
        list.push(fake);
    }
    Box::leak(list.into_boxed_slice())
}

/// A job that sends `/src` to a host.
pub fn job(host: &str) -> JobSpec {
    let id = new_job_id().unwrap();
    JobSpec {
        id,
        title: format!("to {host}"),
        profile: None,
        sources: vec![Location::Local(b"/src".to_vec())],
        destination: Location::Ssh {
            host: Host {
                name: host.to_owned(),
                ..Host::default()
            },
            path: b"in".to_vec(),
        },
        settings: Settings::default(),
        dry_run: false,
        attended: true,
        consent: Consent::default(),
        resume: false,
    }
}

/// A row of a file that arrived.
pub fn verified(path: &str, bytes: u64) -> Row {
    Row {
        path: path.as_bytes().to_vec(),
        action: Action::Create,
        bytes,
        verdict: Verdict::Verified {
            digest: Digest::new(Algorithm::Md5, &[7; 16]).unwrap(),
            when: When::InFlight,
        },
    }
}

/// The counts of one file that arrived.
pub fn one_verified() -> Tally {
    Tally {
        verified: 1,
        ..Tally::default()
    }
}

/// A row of a file that was there already.
pub fn kept(path: &str) -> Row {
    Row {
        path: path.as_bytes().to_vec(),
        action: Action::Keep,
        bytes: 1,
        verdict: Verdict::Skipped("the same already".to_owned()),
    }
}

/// A step of a file that is in the way.
pub fn conflict(path: String) -> Step {
    Step {
        path: path.into_bytes(),
        kind: EntryKind::File,
        action: Action::Skip,
        reason: Reason::Conflict,
        bytes: 1,
    }
}

pub fn lost() -> Error {
    Error::new(ErrorKind::Disconnected, "send the files", "the line broke")
}

/// An engine and what wakes the test.
pub struct Bench {
    pub engine: Engine,
    woken: Receiver<()>,
    /// Holds the database; dropped last.
    _home: Option<TempDir>,
}

impl Bench {
    /// Starts an engine with two jobs at once and one a host, on a database of its own.
    pub fn new(fakes: Vec<Fake>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let bench = Self::on(&home.path().join("history.sqlite"), fakes, |_| {});
        Self {
            _home: Some(home),
            ..bench
        }
    }

    /// Starts an engine on that database.
    pub fn on(database: &Path, fakes: Vec<Fake>, adjust: impl FnOnce(&mut EngineConfig)) -> Self {
        let (wake, woken) = sync_channel(1);
        let mut config = EngineConfig {
            methods: methods(fakes),
            waker: Arc::new(move || {
                let _ = wake.try_send(());
            }),
            ..EngineConfig::new(database.to_owned())
        };
        adjust(&mut config);
        Self {
            engine: Engine::start(config).unwrap(),
            woken,
            _home: None,
        }
    }

    /// Starts an engine on a ledger of the test's.
    pub fn on_ledger(ledger: Box<dyn Ledger>, fakes: Vec<Fake>) -> Self {
        let (wake, woken) = sync_channel(1);
        let config = EngineConfig {
            methods: methods(fakes),
            waker: Arc::new(move || {
                let _ = wake.try_send(());
            }),
            ..EngineConfig::new(PathBuf::new())
        };
        Self {
            engine: Engine::start_with(config, ledger).unwrap(),
            woken,
            _home: None,
        }
    }

    pub fn submit(&self, spec: JobSpec) -> JobId {
        let id = spec.id;
        self.engine.send(Command::Submit(Box::new(spec)));
        id
    }

    /// Waits until the engine says that there is something to look at.
    pub fn woken(&self) {
        let call = self.woken.recv_timeout(PATIENCE);
        call.expect("it never called");
    }

    /// Waits until the look at all jobs gives something.
    pub fn until<T>(&self, what: &str, look: impl Fn(&[JobView]) -> Option<T>) -> T {
        self.until_within(PATIENCE, what, look)
    }

    /// Waits so long until the look at all jobs gives something.
    pub fn until_within<T>(
        &self,
        patience: Duration,
        what: &str,
        look: impl Fn(&[JobView]) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + patience;
        loop {
            if let Some(found) = look(&self.engine.jobs()) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            // A short wait is a safety net only: conditions may also hang on something else.
            let woken = self
                .woken
                .recv_timeout(left.min(Duration::from_millis(200)));
            if woken == Err(RecvTimeoutError::Timeout) && left.is_zero() {
                panic!("{what} did not happen; jobs: {:#?}", self.engine.jobs());
            }
        }
    }

    /// Waits until a job looks a certain way.
    pub fn until_job(&self, id: JobId, what: &str, look: impl Fn(&JobView) -> bool) -> JobView {
        self.until(what, |jobs| {
            jobs.iter()
                .find(|job| job.spec.id == id && look(job))
                .cloned()
        })
    }

    /// Waits for the end of a job.
    pub fn end(&self, id: JobId) -> (Outcome, Report) {
        let view = self.until_job(id, "the end", |job| job.end.is_some());
        view.end.unwrap()
    }
}

/// Takes events until `take` breaks.
pub fn hear<T>(
    events: &Receiver<Event>,
    mut take: impl FnMut(JobId, EventKind) -> ControlFlow<T>,
) -> T {
    loop {
        let event = events.recv_timeout(PATIENCE).expect("an event in time");
        if let ControlFlow::Break(done) = take(event.job, event.kind) {
            return done;
        }
    }
}
