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
    let mut parts = vec![format!("{} running", totals.running)];
    if totals.queued > 0 {
        parts.push(format!("{} waiting", totals.queued));
    }
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
}
