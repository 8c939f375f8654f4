//! What a job tells and asks people: notes and warnings up to a cap, and one question at a time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_channel::RecvTimeoutError;

use crate::backend::cx::Ask;
use crate::engine::runner::{FromRun, Line};
use crate::model::control::Cancel;
use crate::model::error::Error;
use crate::model::event::{Answer, Question, QuestionKind};
use crate::model::job::Consent;
use crate::model::progress::Counters;
use crate::model::rules::Conflict;

/// Notes, and warnings, that a run may send; the rest is counted.
pub const CAP: u64 = 100;

/// The people of one run.
pub struct People {
    /// The way to the control loop.
    line: Line,
    attended: bool,
    consent: Consent,
    cancel: Cancel,
    counters: Arc<Counters>,
    notes: AtomicU64,
    warnings: AtomicU64,
    /// Milliseconds that questions were open.
    waited: AtomicU64,
    /// Answers that were given in this run. The lock is held while a question is open, which makes
    /// others wait for their turn.
    answered: Mutex<Vec<(QuestionKind, Answer)>>,
}

impl People {
    /// Makes the people of a run.
    pub fn new(
        line: Line,
        attended: bool,
        consent: Consent,
        cancel: Cancel,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            line,
            attended,
            consent,
            cancel,
            counters,
            notes: AtomicU64::new(0),
            warnings: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            answered: Mutex::default(),
        }
    }

    /// Returns how many notes and warnings were beyond the cap.
    pub fn unsaid(&self) -> (u64, u64) {
        let beyond = |count: &AtomicU64| count.load(Relaxed).saturating_sub(CAP);
        (beyond(&self.notes), beyond(&self.warnings))
    }

    /// Returns how long questions were open.
    pub fn waited(&self) -> Duration {
        Duration::from_millis(self.waited.load(Relaxed))
    }

    /// Returns the answer that needs nobody.
    fn known(&self, question: &QuestionKind) -> Option<Answer> {
        let consent = match question {
            QuestionKind::UploadAgent { .. } => self.consent.upload_agent,
            QuestionKind::PlainTcp { .. } => self.consent.plain_tcp,
            QuestionKind::Conflicts { .. } if self.attended => return None,
            QuestionKind::Conflicts { .. } => return Some(Answer::Rule(Conflict::Fail)),
        };
        (consent || !self.attended).then_some(Answer::Yes(consent))
    }

    fn wait(&self, kind: QuestionKind) -> Answer {
        let (reply, answer) = crossbeam_channel::bounded(1);
        let question = Question {
            id: self.line.next_question(),
            kind,
        };
        self.line.tell(FromRun::Asked(question, reply));
        loop {
            // The control loop answers when the job is cancelled; the look at the flag is for those
            // who set it themselves.
            match answer.recv_timeout(Duration::from_secs(1)) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Disconnected) => return Answer::Cancel,
                Err(RecvTimeoutError::Timeout) if self.cancel.is_set() => return Answer::Cancel,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl Ask for People {
    fn ask(&self, question: QuestionKind) -> Answer {
        if let Some(answer) = self.known(&question) {
            return answer;
        }
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        if self.cancel.is_set() {
            return Answer::Cancel;
        }
        if let Some((_, answer)) = answered.iter().find(|(kind, _)| same(kind, &question)) {
            return *answer;
        }
        let asked = Instant::now();
        let answer = self.wait(question.clone());
        let waited = u64::try_from(asked.elapsed().as_millis()).unwrap_or_default();
        self.waited.fetch_add(waited, Relaxed);
        if answer != Answer::Cancel {
            answered.push((question, answer));
        }
        answer
    }

    fn note(&self, text: String) {
        if self.notes.fetch_add(1, Relaxed) < CAP {
            self.line.tell(FromRun::Note(text));
        }
    }

    fn warn(&self, error: Error) {
        self.counters.warnings.fetch_add(1, Relaxed);
        if self.warnings.fetch_add(1, Relaxed) < CAP {
            self.line.tell(FromRun::Warned(error));
        }
    }
}

/// Says whether two questions ask the same, so that a new attempt does not ask again.
fn same(one: &QuestionKind, other: &QuestionKind) -> bool {
    use QuestionKind as Q;
    match (one, other) {
        (Q::UploadAgent { host: a, .. }, Q::UploadAgent { host: b, .. })
        | (Q::PlainTcp { host: a }, Q::PlainTcp { host: b }) => a == b,
        (Q::Conflicts { .. }, Q::Conflicts { .. }) => true,
        _ => false,
    }
}
