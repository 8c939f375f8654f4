//! Notes in the corner that go by themselves, some with a button such as Undo.

use egui::{Align, Align2, Area, Context, Frame, Id, Layout, Margin, Order, RichText, Vec2};

use crate::ui::parts::controls::{Weight, button, icon, icon_button};
use crate::ui::parts::icon::Icon;
use crate::ui::parts::profiles_list::tone_colour;
use crate::ui::state::{State, Toast, Tone};
use crate::ui::theme::{palette, tokens};
use crate::ui::wish::Wish;

/// Draws the notes.
pub fn show(ctx: &Context, state: &State, wishes: &mut Vec<Wish>) {
    if state.toasts.is_empty() {
        return;
    }
    let width = (ctx.content_rect().width() - 48.0).clamp(80.0, 380.0);
    Area::new(Id::unique("toasts"))
        .order(Order::Foreground)
        .anchor(Align2::RIGHT_BOTTOM, Vec2::new(-16.0, -44.0))
        .show(ctx, |ui| {
            for toast in &state.toasts {
                ui.push_id(toast.id, |ui| one(ui, toast, width, wishes));
            }
        });
}

fn one(ui: &mut egui::Ui, toast: &Toast, width: f32, wishes: &mut Vec<Wish>) {
    let p = palette(ui);
    let colour = tone_colour(p, toast.tone);
    let sign = match toast.tone {
        Tone::Good => Icon::Check,
        Tone::Plain => Icon::Dot,
        Tone::Warn => Icon::Warn,
        Tone::Bad => Icon::Cross,
    };
    let frame = Frame::popup(ui.style()).inner_margin(Margin::symmetric(12, 8));
    frame.show(ui, |ui| {
        ui.set_width(width);
        ui.horizontal(|ui| {
            icon(ui, sign, colour);
            // What the buttons at the right leave.
            let beside = if toast.button.is_some() { 132.0 } else { 36.0 };
            let room = (ui.available_width() - beside).max(40.0);
            let size = Vec2::new(room, tokens().space.control);
            ui.allocate_ui_with_layout(size, Layout::left_to_right(Align::Center), |ui| {
                ui.set_min_width(room);
                ui.add(egui::Label::new(RichText::new(&toast.text).color(p.text)).wrap());
            });
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if icon_button(ui, Icon::Cross, "Dismiss", true).clicked() {
                    wishes.push(Wish::Dismiss(toast.id));
                }
                if let Some((words, wish)) = &toast.button {
                    if button(ui, None, words, Weight::Plain, true).clicked() {
                        wishes.push(wish.clone());
                        wishes.push(Wish::Dismiss(toast.id));
                    }
                }
            });
        });
    });
}
