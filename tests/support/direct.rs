//! Drives a method without the engine: one session, its rows and words kept for the test.
#![allow(clippy::unwrap_used, dead_code)] // each test uses a part, and may panic

use std::sync::{Mutex, PoisonError};

use transload::backend::contract::Backend;
use transload::backend::cx::{Ask, Cancel, Cx, LimitCell, Pause, Rows};
use transload::model::error::{Error, Result};
use transload::model::event::{Answer, QuestionKind};
use transload::model::job::{Consent, JobId, JobSpec};
use transload::model::location::Location;
use transload::model::outcome::{Route, Tally};
use transload::model::plan::{PlanTotals, Step};
use transload::model::profile::{MethodChoice, Settings};
use transload::model::progress::Counters;
use transload::model::rules::Conflict;
use transload::model::verdict::{Row, Verdict};

/// What a run told.
#[derive(Default)]
pub struct Told {
    pub rows: Mutex<Vec<Row>>,
    pub steps: Mutex<Vec<Step>>,
    pub notes: Mutex<Vec<String>>,
    pub warnings: Mutex<Vec<Error>>,
    pub counters: Counters,
    pub cancel: Cancel,
    pub limit: LimitCell,
    pub pause: Pause,
}

impl Rows for Told {
    fn rows(&self, rows: &mut Vec<Row>) {
        self.rows
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(rows);
    }

    fn steps(&self, steps: &mut Vec<Step>) {
        self.steps
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .append(steps);
    }
}

impl Ask for Told {
    fn ask(&self, _: QuestionKind) -> Answer {
        Answer::Yes(true)
    }

    fn note(&self, text: String) {
        self.notes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(text);
    }

    fn warn(&self, error: Error) {
        self.warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(error);
    }
}

impl Told {
    /// Returns the verdict of one path.
    pub fn verdict(&self, path: &[u8]) -> Option<Verdict> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter()
            .rev()
            .find(|row| row.path == path)
            .map(|row| row.verdict.clone())
    }

    fn cx(&self, conflict: Conflict) -> Cx<'_> {
        Cx {
            counters: &self.counters,
            cancel: self.cancel.clone(),
            paused: self.pause.clone(),
            limit: self.limit.clone(),
            conflict,
            rows: self,
            people: self,
        }
    }
}

/// Returns a job with the usual settings.
pub fn job(method: &str, sources: Vec<Location>, destination: Location) -> JobSpec {
    let mut id = [0; 16];
    getrandom::fill(&mut id).expect("the system has random bytes");
    JobSpec {
        id: JobId(id),
        title: "test".into(),
        profile: None,
        sources,
        destination,
        settings: Settings {
            method: MethodChoice::Named(method.into()),
            ..Settings::default()
        },
        dry_run: false,
        attended: false,
        consent: Consent {
            upload_agent: true,
            plain_tcp: true,
        },
        resume: false,
    }
}

/// Runs a job once; also returns the route.
pub fn run(backend: &dyn Backend, spec: &JobSpec, told: &Told) -> Result<(Tally, Route)> {
    backend.supports(spec)?;
    let cx = told.cx(spec.settings.conflict);
    let mut session = backend.connect(spec, &cx)?;
    let tally = session.run(&cx)?;
    Ok((tally, session.route().0))
}

/// Plans a job.
pub fn plan(backend: &dyn Backend, spec: &JobSpec, told: &Told) -> Result<PlanTotals> {
    let cx = told.cx(spec.settings.conflict);
    let totals = backend.connect(spec, &cx)?.plan(&cx)?;
    // Whoever hears a warning counts it; a method that counts it too makes two of one.
    assert_eq!(told.counters.snapshot().warnings, 0);
    Ok(totals)
}
