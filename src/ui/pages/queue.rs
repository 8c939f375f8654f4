//! The queue: a card a job, those that are not over first, and the throughput graph of the one that
//! is chosen or of all.

use egui::style::ScrollAnimation;
use egui::{Panel, Rect, RichText, ScrollArea, Ui, Vec2};

use crate::engine::JobView;
use crate::ui::pages::empty;
use crate::ui::parts::controls::cut;
use crate::ui::parts::graph;
use crate::ui::parts::job_row::{self, title};
use crate::ui::state::State;
use crate::ui::theme::{palette, tokens};
use crate::ui::wish::Wish;

/// Draws the page.
pub fn show(ui: &mut Ui, state: &mut State, wishes: &mut Vec<Wish>) {
    if state.jobs.is_empty() {
        empty(
            ui,
            "Nothing to do yet. Press Start, or drop files anywhere on the window.",
        );
        return;
    }
    let room = ui.available_height();
    let whose = state.job.and(state.shown_job());
    // One card at least stays beside the graph, and an empty graph takes no room from them.
    if room > 2.0 * job_row::HEIGHT && graph_tells(whose, state) {
        Panel::bottom("graph")
            .frame(egui::Frame::new())
            .show_separator_line(false)
            .show(ui, |ui| {
                ui.add_space(8.0);
                let words = whose.map_or_else(|| "All jobs".to_owned(), title);
                cut(ui, RichText::new(words).color(palette(ui).soft));
                let height = (room * 0.4 - 24.0).clamp(56.0, graph::HEIGHT);
                graph::show(ui, whose, &state.totals, height);
            });
    }
    let gap = tokens().space.gap;
    ui.spacing_mut().item_spacing.y = gap;
    let sought = state.sought_row();
    ScrollArea::vertical()
        .id_salt("jobs")
        .auto_shrink(false)
        .show_rows(ui, job_row::HEIGHT, state.rows.len(), |ui, range| {
            if let Some(row) = sought {
                let down = (row as f32 - range.start as f32) * (job_row::HEIGHT + gap);
                let size = Vec2::new(ui.available_width(), job_row::HEIGHT);
                let card = Rect::from_min_size(ui.max_rect().min + Vec2::new(0.0, down), size);
                ui.scroll_to_rect_animation(card, None, ScrollAnimation::none());
            }
            for job in state.rows[range].iter().map(|at| &state.jobs[*at]) {
                job_row::show(ui, job, state.job == Some(job.spec.id), wishes);
            }
        });
    if sought.is_some() {
        state.sought_job = None;
    }
}

/// Says whether the graph has a curve, or may have one soon. It is there from the moment a job
/// waits, so that it does not push away the card that was just scrolled to.
fn graph_tells(job: Option<&JobView>, state: &State) -> bool {
    let totals = &state.totals;
    let (live, series) = match job {
        Some(job) => (job.end.is_none(), &job.series),
        None => (totals.running + totals.queued > 0, &totals.series),
    };
    live || series.iter().any(|rate| *rate > 0.0)
}
