//! The top line of the editor: the profile's name, Simulate, Start and the menu, always in the same
//! places.

use egui::{Align, Button, FontId, Frame, Key, Layout, Margin, Response, TextEdit, Ui, Vec2};

use crate::model::progress::RunState;
use crate::ui::parts::controls::{Weight, button, icon_button};
use crate::ui::parts::icon::Icon;
use crate::ui::state::{Focus, State};
use crate::ui::theme::{palette, tokens};
use crate::ui::wish::{Deed, DeedRow, TABLE, Wish, keys};

/// Draws the line.
pub fn show(ui: &mut Ui, state: &mut State, wishes: &mut Vec<Wish>) {
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            menu(ui, state, wishes);
            let lacks = match &state.draft {
                None => Some("make or choose a profile first"),
                Some(draft) => draft.lacks(),
            };
            for (deed, words, icon, weight) in [
                (Deed::Start, "Start", Icon::Play, Weight::Main),
                (Deed::Simulate, "Simulate", Icon::Eye, Weight::Plain),
            ] {
                let help = match (lacks, deed) {
                    (Some(lacks), _) => lacks.to_owned(),
                    (None, Deed::Start) => format!("Do it ({})", keys(ui.ctx(), deed)),
                    (None, _) => format!(
                        "Show what would be done, write nothing ({})",
                        keys(ui.ctx(), deed)
                    ),
                };
                let shown = button(ui, Some(icon), words, weight, lacks.is_none());
                let clicked = shown.clicked();
                // The name stays the word on the button; the help comes beside it.
                shown
                    .on_hover_text(&help)
                    .on_disabled_hover_text(&help)
                    .accessible_name(words);
                if clicked {
                    wishes.push(Wish::Do(deed));
                }
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                name(ui, state, wishes)
            });
        });
    });
}

fn name(ui: &mut Ui, state: &mut State, wishes: &mut Vec<Wish>) {
    let p = palette(ui);
    let heading = FontId::proportional(tokens().text.heading);
    let Some(draft) = &mut state.draft else {
        ui.label(
            egui::RichText::new("No profile")
                .font(heading)
                .color(p.soft),
        );
        return;
    };
    // It looks like a heading until it is typed in.
    ui.visuals_mut().widgets.inactive.bg_stroke.color = egui::Color32::TRANSPARENT;
    ui.visuals_mut().text_edit_bg_color = Some(p.ground);
    let shown = ui
        .add(
            TextEdit::singleline(&mut draft.profile.name)
                .font(heading)
                .hint_text("Name of this profile")
                .margin(Margin::symmetric(4, 2))
                .desired_width(f32::INFINITY)
                .char_limit(300),
        )
        .accessible_name("Profile name");
    if shown.changed() {
        wishes.push(Wish::Edited);
    }
    if state.focus == Some(Focus::Name) {
        state.focus = None;
        shown.request_focus();
        select_all(ui, shown.id, draft.profile.name.chars().count());
    }
}

/// Selects what stands in a field, so that typing replaces it.
fn select_all(ui: &Ui, field: egui::Id, chars: usize) {
    use egui::text::{CCursor, CCursorRange};
    if let Some(mut state) = TextEdit::load_state(ui.ctx(), field) {
        let all = CCursorRange::two(CCursor::default(), CCursor::new(chars));
        state.cursor.set_char_range(Some(all));
        TextEdit::store_state(ui.ctx(), field, state);
    }
}

fn menu(ui: &mut Ui, state: &State, wishes: &mut Vec<Wish>) {
    let opener = icon_button(ui, Icon::More, "Menu", true);
    egui::Popup::menu(&opener).show(|ui| {
        ui.set_min_width(220.0);
        // A bar beside the words, not over the keys at their right.
        ui.spacing_mut().scroll = egui::style::ScrollStyle {
            foreground_color: true,
            ..egui::style::ScrollStyle::solid()
        };
        // Close together, so that fewer have to be scrolled to.
        ui.spacing_mut().item_spacing.y = 0.0;
        let mut items = Vec::with_capacity(TABLE.len());
        egui::ScrollArea::vertical()
            .max_height(ui.ctx().content_rect().height() - 24.0)
            .show(ui, |ui| {
                for row in TABLE {
                    if row.group {
                        ui.separator();
                    }
                    let mut item = Button::new(row.title).min_size(Vec2::new(220.0, 0.0));
                    if let Some(keys) = &row.keys {
                        item = item.shortcut_text(ui.ctx().format_shortcut(keys));
                    }
                    if let Deed::Look(look) = row.deed {
                        item = item.selected(look == state.look);
                    }
                    let item = ui.add_enabled(possible(state, row.deed), item);
                    if item.enabled() {
                        items.push(item.clone());
                    }
                    if with_help(item, row).clicked() {
                        wishes.push(Wish::Do(row.deed));
                        ui.close();
                    }
                }
                walk(ui, &items);
            });
    });
}

/// Moves the keyboard from one entry of an open menu to another: with the arrows, round at the
/// ends. The toolkit's own way goes by where things are, also to what lies behind the menu.
fn walk(ui: &Ui, items: &[Response]) {
    let at = items.iter().position(Response::has_focus);
    let pressed = |key| ui.input_mut(|i| i.consume_key(egui::Modifiers::NONE, key));
    let last = items.len().saturating_sub(1);
    let to = match at {
        _ if pressed(Key::Home) => 0,
        _ if pressed(Key::End) => last,
        at if pressed(Key::ArrowDown) => at.map_or(0, |at| if at == last { 0 } else { at + 1 }),
        at if pressed(Key::ArrowUp) => at.map_or(last, |at| at.checked_sub(1).unwrap_or(last)),
        _ => {
            if let Some(item) = at.and_then(|at| items.get(at)) {
                let own = egui::EventFilter {
                    vertical_arrows: true,
                    ..Default::default()
                };
                ui.memory_mut(|memory| memory.set_focus_lock_filter(item.id, own));
            }
            return;
        }
    };
    if let Some(item) = items.get(to) {
        item.request_focus();
        item.scroll_to_me(None);
        // The toolkit saw the key first and would go on from there.
        ui.memory_mut(|memory| memory.move_focus(egui::FocusDirection::None));
    }
}

/// Tells beside a menu's entry what its keys do not say.
pub fn with_help(item: Response, row: &DeedRow) -> Response {
    match row.deed {
        Deed::Delete => item
            .on_hover_text(
                "While you type in a field, these keys take away text; press Escape first.",
            )
            .accessible_name(row.title),
        _ => item,
    }
}

/// Says whether a command makes sense now.
pub fn possible(state: &State, deed: Deed) -> bool {
    match deed {
        Deed::Start | Deed::Simulate => state.draft.as_ref().is_some_and(|d| d.complete()),
        // What was selected before is not what a person means once they made a new one.
        Deed::Delete => state.draft.is_some() && !state.making,
        Deed::Rename
        | Deed::Duplicate
        | Deed::MoveUp
        | Deed::MoveDown
        | Deed::AddSource
        | Deed::Swap => state.draft.is_some(),
        Deed::CancelJob => state
            .shown_job()
            .is_some_and(|job| job.end.is_none() && job.state != RunState::Stopping),
        Deed::SaveList => state.subject().is_some(),
        Deed::ClearEnded => state.jobs.iter().any(|job| job.end.is_some()),
        Deed::NewProfile | Deed::Search | Deed::Show(_) | Deed::Look(_) | Deed::Quit => true,
    }
}

/// A frame with the margins of a page.
pub fn page_frame(ui: &Ui) -> Frame {
    let space = &tokens().space;
    Frame::new()
        .fill(palette(ui).ground)
        .inner_margin(Margin::same(space.pad as i8))
}
