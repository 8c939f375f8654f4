//! The plan: what a simulation found, a step an item, with counts by action.

use egui::{RichText, Ui};
use egui_extras::{Column, TableRow};

use crate::model::entry::{Action, EntryKind};
use crate::model::plan::{PlanTotals, Step};
use crate::model::untrusted::shown;
use crate::present::text::{action, plan, reason};
use crate::present::units::bytes;
use crate::ui::pages::{empty, rest_of_line, table, whose};
use crate::ui::parts::controls::{cut, icon, right, soft};
use crate::ui::parts::icon::Icon;
use crate::ui::ports::Jobs;
use crate::ui::state::{Seen, State};
use crate::ui::theme::{Palette, palette, tokens};

/// Draws the page.
pub fn show(ui: &mut Ui, state: &mut State, jobs: &dyn Jobs) {
    let Some((job, totals)) = state.subject().map(|subject| (subject.id, subject.plan)) else {
        empty(
            ui,
            "Simulate shows here what Start would do, and writes nothing",
        );
        return;
    };
    if state.seen_steps.job != Some(job) {
        state.seen_steps = Seen {
            range: 0..64,
            job: Some(job),
        };
    }
    let start = state.seen_steps.range.start.saturating_sub(32);
    let (steps, total) = jobs.steps(job, start..state.seen_steps.range.end + 32);
    ui.horizontal_wrapped(|ui| {
        if let Some(totals) = &totals {
            let colour = palette(ui).text;
            ui.label(RichText::new(plan(totals)).color(colour));
            conflicts(ui, totals);
        }
        rest_of_line(ui, 120.0, |ui| whose(ui, state));
    });
    if total == 0 {
        let words = match totals {
            Some(_) => "This run kept no list of its steps; Simulate does",
            None => "The plan is not known yet",
        };
        empty(ui, words);
        return;
    }
    let missing = table::at_least(ui, 560.0, |ui| rows(ui, state, &steps, start, total));
    if missing {
        ui.ctx()
            .request_repaint_after(std::time::Duration::from_millis(33));
    }
}

fn conflicts(ui: &mut Ui, totals: &PlanTotals) {
    if totals.conflicts > 0 {
        let p = palette(ui);
        // The sign stays with its words.
        if ui.available_size_before_wrap().x < 240.0 {
            ui.end_row();
        }
        icon(ui, Icon::Warn, p.warn);
        let words = format!("{} for the conflict rule to decide", totals.conflicts);
        ui.label(RichText::new(words).color(p.warn));
    }
}

fn rows(ui: &mut Ui, state: &mut State, steps: &[Step], start: usize, total: usize) -> bool {
    let mut missing = false;
    #[expect(clippy::reversed_empty_ranges)] // Nothing seen so far; each row widens it.
    let mut seen = usize::MAX..0;
    let rest = ui.available_width() - (128.0 + 84.0) - 3.0 * table::GAP;
    let [name, _] = table::parts(rest, [(3.0, 120.0, 9e9), (2.0, 120.0, 9e9)]);
    let columns = [
        Column::exact(128.0),
        Column::exact(name).clip(true),
        Column::exact(84.0),
        Column::remainder().at_least(120.0).clip(true),
    ];
    table::begin(ui, "steps", &columns)
        .header(table::row_height(), |mut row| {
            for (words, number) in [
                ("Action", false),
                ("Name", false),
                ("To send", true),
                ("Why", false),
            ] {
                table::head(&mut row, words, number);
            }
        })
        .body(|body| {
            body.rows(
                table::row_height(),
                total.min(table::MOST_ROWS),
                |mut row| {
                    let index = row.index();
                    seen = seen.start.min(index)..seen.end.max(index + 1);
                    match index.checked_sub(start).and_then(|at| steps.get(at)) {
                        Some(step) => one(&mut row, step),
                        None => {
                            missing = true;
                            row.col(|ui| {
                                soft(ui, "\u{2026}");
                            });
                            for _ in 1..4 {
                                row.col(|_| {});
                            }
                        }
                    }
                },
            );
        });
    if seen.start < seen.end {
        state.seen_steps.range = seen;
    }
    missing
}

fn one(cells: &mut TableRow<'_, '_>, step: &Step) {
    cells.col(|ui| {
        ui.spacing_mut().item_spacing.x = 6.0;
        let (sign, colour) = sign(palette(ui), step.action);
        icon(ui, sign, colour);
        ui.label(RichText::new(action(step.action)).color(colour));
    });
    cells.col(|ui| {
        let mut name = shown(&step.path);
        if step.kind == EntryKind::Dir && !name.ends_with('/') {
            name.push('/');
        }
        cut(ui, name);
    });
    cells.col(|ui| {
        if step.bytes > 0 {
            right(ui, bytes(step.bytes));
        }
    });
    cells.col(|ui| {
        let colour = palette(ui).soft;
        cut(
            ui,
            RichText::new(reason(step.reason))
                .color(colour)
                .size(tokens().text.small),
        );
    });
}

fn sign(p: &Palette, action: Action) -> (Icon, egui::Color32) {
    match action {
        Action::Create => (Icon::Plus, p.good),
        Action::Update => (Icon::Retry, p.accent),
        Action::Touch => (Icon::Clock, p.accent),
        Action::Delete => (Icon::Trash, p.bad),
        Action::Keep => (Icon::Check, p.soft),
        Action::Skip => (Icon::Minus, p.soft),
    }
}
