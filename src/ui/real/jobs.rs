//! The engine behind its port.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use crate::engine::{Command, Engine, JobView, RowFilter, RowPage, Totals};
use crate::model::event::Event;
use crate::model::job::JobId;
use crate::model::plan::Step;
use crate::ui::ports::Jobs;

/// The engine and its events.
pub struct EngineJobs {
    engine: Engine,
    events: Receiver<Event>,
}

impl EngineJobs {
    /// Listens from now on.
    pub fn new(engine: Engine) -> Self {
        let events = engine.events();
        Self { engine, events }
    }
}

impl Jobs for EngineJobs {
    fn send(&self, command: Command) {
        self.engine.send(command);
    }

    fn jobs(&self) -> Arc<Vec<JobView>> {
        self.engine.jobs()
    }

    fn totals(&self) -> Totals {
        self.engine.totals()
    }

    fn rows(&self, job: JobId, filter: &RowFilter, range: Range<usize>) -> RowPage {
        self.engine.rows(job, filter, range)
    }

    fn steps(&self, job: JobId, range: Range<usize>) -> (Arc<Vec<Step>>, usize) {
        self.engine.steps(job, range)
    }

    fn event(&mut self) -> Option<Event> {
        match self.events.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            // A window that was hidden for very long was cut off; the jobs themselves tell what
            // was missed.
            Err(TryRecvError::Disconnected) => {
                self.events = self.engine.events();
                None
            }
        }
    }
}
