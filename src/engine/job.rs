//! The life of a job as one pure function: (state, input) gives (state, effects).
//!
//! | state \ input | Start | Pause | Resume | Stop | Quiet / Moving | Lost / Connected | Ended | Again |
//! |---|---|---|---|---|---|---|---|---|
//! | Queued        | Active, *Launch* | Queued held | - | Finished, *End* | - | - | - | - |
//! | Queued, held  | - | - | Queued | Finished, *End* | - | - | - | - |
//! | Active        | - | paused, *Hold* | not paused, *Release* | stopping, *Cancel* | line Quiet / Up | line Down / Up | Finished, *End* | - |
//! | Active, stopping | - | - | - | (first reason stays) | - | - | Finished, *End* | - |
//! | Finished      | - | - | - | - | - | - | - | Queued |
//!
//! "-" leaves the state as it is and has no effect. `End` happens exactly once on the way to
//! Finished. What people see is [`State::shown`]: stopping hides paused, paused hides the line.

use crate::model::outcome::Abort;
use crate::model::progress::RunState;

/// How the connection of an active job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line {
    /// At work.
    Up,
    /// Connected, but nothing has moved for a while.
    Quiet,
    /// Broken; the next try is being waited for or made.
    Down,
}

/// Where a job is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Waiting for its turn.
    Queued {
        /// Not to be started until the user says so.
        held: bool,
    },
    /// A thread works on it.
    Active {
        /// How its connection is doing.
        line: Line,
        /// The user holds it.
        paused: bool,
        /// Why it has to stop.
        stop: Option<Abort>,
    },
    /// Over.
    Finished,
}

/// What happens to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// The queue lets it go.
    Start,
    /// The user holds it.
    Pause,
    /// The user lets it go on.
    Resume,
    /// It has to stop.
    Stop(Abort),
    /// Nothing has moved for a while.
    Quiet,
    /// Something moves again.
    Moving,
    /// The connection broke and will be tried again.
    Lost,
    /// The connection is there again.
    Connected,
    /// Its thread is done.
    Ended,
    /// The user wants it once more.
    Again,
}

/// What has to be done because of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start a thread for it.
    Launch,
    /// Set the pause cell.
    Hold,
    /// Clear the pause cell.
    Release,
    /// Set the cancel flag and end an open question.
    Cancel,
    /// Decide how it ended and tell everybody; the reason is set when it was stopped.
    End(Option<Abort>),
}

impl State {
    /// Returns what people see.
    pub fn shown(self) -> RunState {
        match self {
            Self::Queued { held: false } => RunState::Queued,
            Self::Queued { held: true } => RunState::Paused,
            Self::Active { stop: Some(_), .. } => RunState::Stopping,
            Self::Active { paused: true, .. } => RunState::Paused,
            Self::Active { line, .. } => match line {
                Line::Up => RunState::Running,
                Line::Quiet => RunState::Stalled,
                Line::Down => RunState::Reconnecting,
            },
            Self::Finished => RunState::Finished,
        }
    }

    /// Says whether a thread works on it.
    pub fn is_active(self) -> bool {
        matches!(self, Self::Active { .. })
    }
}

/// Returns the state after an input, and what has to be done.
pub fn step(state: State, input: Input) -> (State, Option<Effect>) {
    use Input as I;
    match (state, input) {
        (State::Queued { held: false }, I::Start) => (
            State::Active {
                line: Line::Up,
                paused: false,
                stop: None,
            },
            Some(Effect::Launch),
        ),
        (State::Queued { .. }, I::Pause) => (State::Queued { held: true }, None),
        (State::Queued { .. }, I::Resume) => (State::Queued { held: false }, None),
        (State::Queued { .. }, I::Stop(why)) => (State::Finished, Some(Effect::End(Some(why)))),
        (State::Active { stop, .. }, I::Ended) => (State::Finished, Some(Effect::End(stop))),
        (
            State::Active {
                line,
                paused,
                stop: None,
            },
            input,
        ) => active(line, paused, input),
        (State::Finished, I::Again) => (State::Queued { held: false }, None),
        (state, _) => (state, None),
    }
}

/// Returns the state of an active job that is not stopping, after any input but `Ended`.
fn active(line: Line, paused: bool, input: Input) -> (State, Option<Effect>) {
    let to = |line, paused, stop| State::Active { line, paused, stop };
    match input {
        Input::Pause if !paused => (to(line, true, None), Some(Effect::Hold)),
        Input::Resume if paused => (to(line, false, None), Some(Effect::Release)),
        Input::Stop(why) => (to(line, paused, Some(why)), Some(Effect::Cancel)),
        Input::Quiet if line == Line::Up => (to(Line::Quiet, paused, None), None),
        Input::Moving if line == Line::Quiet => (to(Line::Up, paused, None), None),
        Input::Lost => (to(Line::Down, paused, None), None),
        Input::Connected => (to(Line::Up, paused, None), None),
        _ => (to(line, paused, None), None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn inputs() -> impl Strategy<Value = Vec<Input>> {
        let one = prop_oneof![
            Just(Input::Start),
            Just(Input::Pause),
            Just(Input::Resume),
            Just(Input::Stop(Abort::User)),
            Just(Input::Stop(Abort::Shutdown)),
            Just(Input::Quiet),
            Just(Input::Moving),
            Just(Input::Lost),
            Just(Input::Connected),
            Just(Input::Ended),
            Just(Input::Again),
        ];
        proptest::collection::vec(one, 0..60)
    }

    proptest! {
        #[test]
        fn whatever_happens_a_job_ends_once_a_life_and_is_cancelled_only_while_active(
            inputs in inputs()
        ) {
            let mut state = State::Queued { held: false };
            let (mut launched, mut ended, mut lives, mut holding) = (0, 0, 1, false);
            for input in inputs {
                let before = state;
                let (after, effect) = step(before, input);
                match effect {
                    Some(Effect::Launch) => {
                        prop_assert_eq!(before, State::Queued { held: false });
                        prop_assert!(after.is_active());
                        launched += 1;
                        holding = false;
                    }
                    Some(Effect::Hold) => {
                        prop_assert!(!holding && after.is_active());
                        holding = true;
                    }
                    Some(Effect::Release) => {
                        prop_assert!(holding && after.is_active());
                        holding = false;
                    }
                    Some(Effect::Cancel) => {
                        prop_assert!(before.is_active() && before.shown() != RunState::Stopping);
                        prop_assert_eq!(after.shown(), RunState::Stopping);
                    }
                    Some(Effect::End(_)) => {
                        prop_assert_ne!(before, State::Finished);
                        prop_assert_eq!(after, State::Finished);
                        ended += 1;
                    }
                    None => {}
                }
                if before == State::Finished && after != State::Finished {
                    prop_assert_eq!(input, Input::Again);
                    lives += 1;
                }
                if before.shown() == RunState::Stopping {
                    prop_assert!(matches!(
                        after.shown(),
                        RunState::Stopping | RunState::Finished
                    ));
                }
                state = after;
            }
            prop_assert!(launched <= lives);
            prop_assert_eq!(ended, if state == State::Finished { lives } else { lives - 1 });
        }
    }

    #[test]
    fn the_first_reason_to_stop_is_the_one_that_is_told() {
        let (state, _) = step(State::Queued { held: false }, Input::Start);
        let (state, _) = step(state, Input::Stop(Abort::User));
        let (state, none) = step(state, Input::Stop(Abort::Shutdown));
        assert_eq!(none, None);
        let (_, end) = step(state, Input::Ended);
        assert_eq!(end, Some(Effect::End(Some(Abort::User))));
    }

    #[test]
    fn a_paused_job_whose_line_breaks_stays_paused_and_then_shows_the_truth() {
        let (state, _) = step(State::Queued { held: false }, Input::Start);
        let (state, _) = step(state, Input::Pause);
        let (state, _) = step(state, Input::Lost);
        assert_eq!(state.shown(), RunState::Paused);
        let (state, _) = step(state, Input::Resume);
        assert_eq!(state.shown(), RunState::Reconnecting);
    }
}
