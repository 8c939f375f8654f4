//! What is shown only when it is durable: saves of jobs, what waits for them, and the events that
//! tell of it.

use std::sync::Arc;
use std::sync::mpsc::TrySendError;

use crate::engine::control::Control;
use crate::engine::job::State;
use crate::engine::live::After;
use crate::engine::store::Write;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::event::EventKind;
use crate::model::job::JobId;
use crate::model::outcome::{Outcome, Report};
use crate::model::progress::RunState;

impl Control {
    /// Hands a job to the store, unless it has it already; one save at a time, the newest state.
    pub(super) fn save(&mut self, i: usize) {
        let job = &mut self.jobs[i];
        if !job.saving && job.version > job.saved {
            job.saving = true;
            let (id, version) = (job.spec.id, job.version);
            let write = Write::Job {
                record: Box::new(job.record()),
                version,
                claim: job.claiming,
            };
            if !self.store.write(write) {
                let gone = "the thread that writes the history ended";
                let error = Error::new(ErrorKind::Bug, "keep the job", gone)
                    .hint("start Transload again; please report this");
                self.saved(id, version, Err(error));
            }
        }
    }

    pub(super) fn saved(&mut self, id: JobId, version: u64, result: Result<()>) {
        let Some(i) = self.find(id) else { return };
        let job = &mut self.jobs[i];
        job.saving = false;
        if let Err(error) = result {
            if job.claiming {
                return self.refuse(i, error);
            }
            // The bytes matter more than the book: the job goes on, and its owner is told.
            self.warn(i, error);
        }
        self.jobs[i].saved = version;
        self.jobs[i].claiming = false;
        while let Some((_, after)) = self.jobs[i].after.pop_front_if(|(of, _)| *of <= version) {
            self.after(i, after);
        }
        self.save(i);
    }

    pub(super) fn after(&mut self, i: usize, after: After) {
        match after {
            After::Show(state) => {
                self.jobs[i].shown = state;
                if state == RunState::Finished {
                    self.board.touch();
                } else {
                    self.board
                        .say(self.jobs[i].spec.id, EventKind::State(state));
                }
            }
            After::Launch => self.launch(i),
            After::Finish => {
                let job = &self.jobs[i];
                let (id, series) = (job.spec.id, &job.meter.series);
                if !series.values.is_empty() {
                    let values = Arc::clone(&series.values);
                    self.store
                        .write(Write::Series(id, series.step as f32, values));
                }
                if let Some(kind) = job.finished() {
                    self.board.say(id, kind);
                }
            }
        }
    }

    /// Ends a job that could not be put into the queue on disk, before it did anything.
    pub(super) fn refuse(&mut self, i: usize, error: Error) {
        let job = &mut self.jobs[i];
        job.cells = None;
        job.claiming = false;
        job.state = State::Finished;
        job.shown = RunState::Finished;
        job.after.clear();
        job.version = job.saved;
        job.end = Some((Outcome::Failed(error), Report::default()));
        self.after(i, After::Finish);
    }

    /// Sends what was shown. Who left a full channel unread is cut off: a deaf listener holds up
    /// nobody, and it can tell by its end.
    pub(super) fn tell_events(&mut self) {
        for event in self.board.take_events() {
            self.listeners
                .retain(|listener| match listener.try_send(event.clone()) {
                    Ok(()) => true,
                    Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => false,
                });
        }
    }
}
