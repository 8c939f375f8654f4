//! The line at the bottom: what runs, what waits, how fast in all, and how long it will take.

use egui::Ui;

use crate::present::units::{eta, rate};
use crate::ui::parts::controls::soft;
use crate::ui::state::State;

/// Draws the line.
pub fn show(ui: &mut Ui, state: &State) {
    ui.horizontal(|ui| {
        soft(ui, words(state));
    });
}

/// Returns the line's words.
pub fn words(state: &State) -> String {
    let totals = &state.totals;
    if totals.running + totals.queued == 0 {
        return "Nothing is running".to_owned();
    }
    let counts = [
        (totals.running.saturating_sub(totals.paused), "running"),
        (totals.paused, "paused"),
        (totals.queued, "waiting"),
    ];
    let mut parts: Vec<String> = counts
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, word)| format!("{n} {word}"))
        .collect();
    if totals.goodput > 0.0 {
        parts.push(rate(totals.goodput));
    }
    if let Some(left) = totals.eta {
        parts.push(eta(left));
    }
    parts.join(" \u{b7} ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_window_says_so() {
        assert_eq!(words(&State::default()), "Nothing is running");
    }

    #[test]
    fn a_paused_job_is_not_called_running() {
        let mut state = State::default();
        (state.totals.running, state.totals.paused) = (1, 1);
        assert_eq!(words(&state), "1 paused");
        (state.totals.running, state.totals.queued) = (3, 2);
        assert_eq!(words(&state), "2 running \u{b7} 1 paused \u{b7} 2 waiting");
    }
}
