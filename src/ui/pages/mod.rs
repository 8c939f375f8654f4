//! The pages below the editor, one a tab.

pub mod history;
pub mod log;
pub mod plan;
pub mod queue;
pub mod table;
pub mod verification;

use egui::{Align, CornerRadius, Layout, RichText, Sense, Ui, Vec2, WidgetInfo};

use crate::present::units::count;
use crate::ui::parts::controls::{cut, soft};
use crate::ui::ports::Jobs;
use crate::ui::state::{State, Tab};
use crate::ui::theme::{palette, tokens};
use crate::ui::wish::{Deed, Wish, keys};

/// Draws the tabs and the page that is chosen.
pub fn show(ui: &mut Ui, state: &mut State, jobs: &dyn Jobs, wishes: &mut Vec<Wish>) {
    tabs(ui, state, wishes);
    ui.add_space(4.0);
    match state.tab {
        Tab::Queue => queue::show(ui, state, wishes),
        Tab::Verification => verification::show(ui, state, jobs, wishes),
        Tab::Plan => plan::show(ui, state, jobs),
        Tab::History => history::show(ui, state, wishes),
        Tab::Log => log::show(ui, state),
    }
}

fn tabs(ui: &mut Ui, state: &State, wishes: &mut Vec<Wish>) {
    let p = palette(ui);
    let line = ui.available_rect_before_wrap();
    let row = ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 20.0;
        for tab in Tab::ALL {
            let chosen = tab == state.tab;
            let mut words = tab.title().to_owned();
            if tab == Tab::Queue && !state.jobs.is_empty() {
                words = format!("{words} {}", count(state.jobs.len() as u64));
            }
            let ink = if chosen { p.text } else { p.soft };
            let galley = egui::WidgetText::from(RichText::new(&words).color(ink)).into_galley(
                ui,
                Some(egui::TextWrapMode::Extend),
                f32::INFINITY,
                egui::TextStyle::Body,
            );
            let size = Vec2::new(galley.size().x, 28.0);
            let (rect, response) = ui.allocate_exact_size(size, Sense::click());
            response
                .widget_info(|| WidgetInfo::selected(egui::Role::Tab, true, chosen, tab.title()));
            ui.painter()
                .galley(rect.center() - galley.size() / 2.0, galley, ink);
            if chosen || response.hovered() || response.has_focus() {
                let mut under = rect;
                under.min.y = rect.max.y - 2.0;
                let colour = if chosen { p.accent } else { p.line };
                ui.painter()
                    .rect_filled(under, CornerRadius::same(1), colour);
            }
            let response = response.on_hover_text(keys(ui.ctx(), Deed::Show(tab)));
            if response.accessible_name(tab.title()).clicked() {
                wishes.push(Wish::Show(tab));
            }
        }
    });
    let y = row.response.rect.bottom();
    ui.painter()
        .hline(line.x_range(), y, egui::Stroke::new(1.0, p.line));
}

/// Says of which job a page tells, cut to the room there is.
pub fn whose(ui: &mut Ui, state: &State) {
    if let Some(subject) = state.subject() {
        cut(ui, RichText::new(subject.title).color(palette(ui).soft));
    }
}

/// Gives what is left of a wrapping line to contents that begin at its right edge; they get a line
/// of their own where less than `least` points are left.
pub fn rest_of_line(ui: &mut Ui, least: f32, contents: impl FnOnce(&mut Ui)) {
    if ui.available_size_before_wrap().x < least {
        ui.end_row();
    }
    // A fraction too much would wrap once more.
    let room = (ui.available_size_before_wrap().x - 1.0).floor().max(1.0);
    let size = Vec2::new(room, tokens().space.control);
    ui.allocate_ui_with_layout(size, Layout::right_to_left(Align::Center), contents);
}

/// Fills an empty page with what to do.
pub fn empty(ui: &mut Ui, words: &str) {
    ui.add_space(24.0);
    ui.vertical_centered(|ui| soft(ui, words));
}
