//! The queue: a card a job, and the throughput graph of the one that is chosen or of all.

use egui::{Panel, ScrollArea, Ui};

use crate::ui::pages::empty;
use crate::ui::parts::controls::soft;
use crate::ui::parts::graph;
use crate::ui::parts::job_row::{self, title};
use crate::ui::state::State;
use crate::ui::theme::tokens;
use crate::ui::wish::Wish;

/// Draws the page.
pub fn show(ui: &mut Ui, state: &State, wishes: &mut Vec<Wish>) {
    if state.jobs.is_empty() {
        empty(
            ui,
            "Nothing to do yet. Press Start, or drop files anywhere on the window.",
        );
        return;
    }
    let room = ui.available_height();
    // One card at least stays beside the graph.
    if room > 2.0 * job_row::HEIGHT {
        Panel::bottom("graph")
            .frame(egui::Frame::new())
            .show_separator_line(false)
            .show(ui, |ui| {
                ui.add_space(8.0);
                let whose = state.job.and(state.shown_job());
                soft(ui, whose.map_or_else(|| "All jobs".to_owned(), title));
                let height = (room * 0.4 - 24.0).clamp(56.0, graph::HEIGHT);
                graph::show(ui, whose, &state.totals, height);
            });
    }
    let gap = tokens().space.gap;
    ui.spacing_mut().item_spacing.y = gap;
    ScrollArea::vertical()
        .id_salt("jobs")
        .auto_shrink(false)
        .show_rows(ui, job_row::HEIGHT, state.jobs.len(), |ui, range| {
            for job in &state.jobs[range] {
                job_row::show(ui, job, state.job == Some(job.spec.id), wishes);
            }
        });
}
