//! The window's own dialogs: where to, what was refused, and whether to end while jobs run.

use egui::{Context, Id, Key, RichText, ScrollArea, Ui};

use crate::model::untrusted::Untrusted;
use crate::present::text::sentence;
use crate::present::units::{count, counted};
use crate::ui::draft::PlaceField;
use crate::ui::parts::controls::{Weight, button, field, note, soft};
use crate::ui::parts::editor::browse_button;
use crate::ui::parts::question::{dialog, dialog_width};
use crate::ui::ports::Pick;
use crate::ui::state::{Browse, Dialog, State};
use crate::ui::theme::{palette, tokens};
use crate::ui::wish::Wish;

/// Draws the first dialog, if there is one; says whether it did.
pub fn show(ctx: &Context, state: &mut State, wishes: &mut Vec<Wish>) -> bool {
    let Some(open) = state.dialogs.first_mut() else {
        return false;
    };
    let shown = dialog(ctx, Id::unique("dialog")).show(ctx, |ui| {
        ui.set_width(dialog_width(ctx));
        match open {
            Dialog::WhereTo { items, to } => where_to(ui, items.len(), to, wishes),
            Dialog::Refused { items, taken } => refused(ui, items, *taken, wishes),
            Dialog::Quit { running } => quit(ui, *running, wishes),
        }
    });
    if shown.should_close() {
        wishes.push(Wish::CloseDialog);
    }
    true
}

fn title(ui: &mut Ui, words: &str) {
    let colour = palette(ui).text;
    ui.label(
        RichText::new(words)
            .size(tokens().text.heading)
            .color(colour),
    );
}

fn where_to(ui: &mut Ui, items: usize, to: &mut PlaceField, wishes: &mut Vec<Wish>) {
    title(
        ui,
        &format!("Send {} where?", counted(items as u64, "item", "items")),
    );
    soft(
        ui,
        "A folder on this computer, or a host and a folder there, such as nas:/photos",
    );
    let mut enter = false;
    ui.horizontal(|ui| {
        let width = (ui.available_width() - 40.0).max(60.0);
        let shown = field(
            ui,
            &mut to.text,
            "Where to",
            "/folder or host:/folder",
            width,
        );
        if shown.changed() {
            to.read();
        }
        enter = shown.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
        if to.text.is_empty() && ui.memory(|m| m.focused().is_none()) {
            shown.request_focus();
        }
        browse_button(ui, "Where to", Browse::WhereTo, &[Pick::Folder], wishes);
    });
    if let Some(fault) = &to.fault {
        let bad = palette(ui).bad;
        let hint = fault.hint.as_deref().map(sentence).unwrap_or_default();
        note(
            ui,
            format!("{} {hint}", sentence(&fault.cause.to_string())),
            bad,
        );
    }
    ui.add_space(8.0);
    ui.horizontal(|ui| {
        let ready = to.place.is_some();
        if button(ui, None, "Send", Weight::Main, ready).clicked() || (enter && ready) {
            wishes.push(Wish::SendTo);
        }
        if button(ui, None, "Cancel", Weight::Plain, true).clicked() {
            wishes.push(Wish::CloseDialog);
        }
    });
}

fn refused(ui: &mut Ui, items: &[(Untrusted, String)], taken: usize, wishes: &mut Vec<Wish>) {
    let n = items.len() as u64;
    title(
        ui,
        &format!(
            "{} taken",
            counted(n, "item could not be", "items could not be")
        ),
    );
    if taken > 0 {
        let rest = match taken {
            1 => "The other item was taken.".to_owned(),
            n => format!("The other {} items were taken.", count(n as u64)),
        };
        soft(ui, rest);
    }
    let height = (ui.ctx().content_rect().height() - 220.0).clamp(40.0, 280.0);
    const MOST: usize = 200;
    ScrollArea::vertical()
        .id_salt("refused")
        .max_height(height)
        .show(ui, |ui| {
            let p = palette(ui);
            for (text, why) in items.iter().take(MOST) {
                ui.label(RichText::new(text.to_string()).color(p.text));
                note(ui, sentence(why), p.warn);
            }
            if items.len() > MOST {
                soft(
                    ui,
                    format!("and {} more", count((items.len() - MOST) as u64)),
                );
            }
        });
    ui.add_space(8.0);
    if button(ui, None, "OK", Weight::Main, true).clicked() {
        wishes.push(Wish::CloseDialog);
    }
}

fn quit(ui: &mut Ui, running: usize, wishes: &mut Vec<Wish>) {
    title(
        ui,
        &format!(
            "{} still running",
            counted(running as u64, "job is", "jobs are")
        ),
    );
    ui.label("If you quit now they stop. They can go on later where they stopped.");
    ui.add_space(8.0);
    ui.horizontal(|ui| {
        if button(ui, None, "Keep running", Weight::Main, true).clicked() {
            wishes.push(Wish::CloseDialog);
        }
        if button(ui, None, "Stop them and quit", Weight::Plain, true).clicked() {
            wishes.push(Wish::QuitNow);
        }
    });
}
