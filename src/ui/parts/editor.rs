//! The editor of the selected profile: from, to, method, verification, and where it will land.

use egui::{RichText, ScrollArea, Ui, Vec2};

use crate::model::digest::Algorithm;
use crate::model::profile::{MethodChoice, Settings};
use crate::model::rules::Conflict;
use crate::model::untrusted::shown;
use crate::present::text::{algorithm, conflict, sentence};
use crate::service::methods;
use crate::ui::draft::{Draft, PlaceField};
use crate::ui::parts::controls::{choice, field, icon_button, note, soft};
use crate::ui::parts::editor_advanced;
use crate::ui::parts::icon::Icon;
use crate::ui::ports::Pick;
use crate::ui::state::{Browse, State};
use crate::ui::theme::{palette, tokens};
use crate::ui::wish::{Deed, Wish};

/// How wide the words before the fields are.
pub const LABEL: f32 = 44.0;

/// Draws the editor below the header, at most so high; what is more scrolls.
pub fn show(ui: &mut Ui, state: &mut State, most: f32, wishes: &mut Vec<Wish>) {
    let Some(draft) = &mut state.draft else {
        soft(
            ui,
            "Choose a profile at the left, make one with +, or drop files here to send them once.",
        );
        return;
    };
    let mut changed = false;
    let area = ScrollArea::vertical().id_salt("editor").max_height(most);
    area.show(ui, |ui| {
        ui.spacing_mut().item_spacing.y = 6.0;
        if let Some(fault) = draft.name_fault {
            let bad = palette(ui).bad;
            indented(ui, |ui| {
                note(ui, format!("Name: {fault}"), bad);
            });
        }
        changed |= places(ui, draft, wishes);
        landing(ui, draft);
        changed |= choices(ui, draft);
        changed |= editor_advanced::show(ui, draft, wishes);
    });
    if changed {
        wishes.push(Wish::Edited);
    }
}

fn places(ui: &mut Ui, draft: &mut Draft, wishes: &mut Vec<Wish>) -> bool {
    let mut changed = false;
    let count = draft.sources.len();
    let mut order = None;
    for i in 0..count {
        let name = if i == 0 {
            "Source".to_owned()
        } else {
            format!("Source {}", i + 1)
        };
        let label = if i == 0 { "From" } else { "" };
        changed |= place_line(ui, label, &mut draft.sources[i], &name, |ui| {
            browse_button(
                ui,
                &name,
                Browse::Source(i),
                &[Pick::Folder, Pick::Files],
                wishes,
            );
            if i == 0 {
                if icon_button(ui, Icon::Plus, "Add source", true).clicked() {
                    wishes.push(Wish::Do(Deed::AddSource));
                }
            } else if icon_button(ui, Icon::Up, &format!("Move source {} up", i + 1), true)
                .clicked()
            {
                order = Some((i, Some(i - 1)));
            }
            if count > 1
                && icon_button(ui, Icon::Cross, &format!("Remove source {}", i + 1), true).clicked()
            {
                order = Some((i, None));
            }
        });
    }
    match order {
        Some((from, Some(to))) => draft.sources.swap(from, to),
        Some((gone, None)) => drop(draft.sources.remove(gone)),
        None => {}
    }
    changed |= order.is_some();
    changed |= place_line(ui, "To", &mut draft.destination, "Destination", |ui| {
        browse_button(
            ui,
            "Destination",
            Browse::Destination,
            &[Pick::Folder],
            wishes,
        );
        if icon_button(ui, Icon::Swap, "Swap source and destination", true).clicked() {
            wishes.push(Wish::Do(Deed::Swap));
        }
    });
    changed
}

/// Draws a place: its word, its field, its buttons at the right, and its fault below.
fn place_line(
    ui: &mut Ui,
    label: &str,
    place: &mut PlaceField,
    name: &str,
    buttons: impl FnOnce(&mut Ui),
) -> bool {
    let space = &tokens().space;
    let mut changed = false;
    ui.horizontal(|ui| {
        ui.spacing_mut().item_spacing.x = 4.0;
        let (rect, _) =
            ui.allocate_exact_size(Vec2::new(LABEL, space.control), egui::Sense::hover());
        let mut words = ui.new_child(
            egui::UiBuilder::new()
                .max_rect(rect)
                .layout(egui::Layout::left_to_right(egui::Align::Center)),
        );
        soft(&mut words, label);
        // Room for three buttons in every line, so that all fields end at one edge.
        let width = (ui.available_width() - 3.0 * (space.control + 4.0)).max(60.0);
        let hint = if name == "Destination" {
            "/folder or host:/folder"
        } else {
            "/folder, file or host:/folder"
        };
        if field(ui, &mut place.text, name, hint, width).changed() {
            changed = true;
        }
        buttons(ui);
    });
    if let Some(fault) = &place.fault {
        let bad = palette(ui).bad;
        indented(ui, |ui| {
            let hint = fault.hint.as_deref().map(sentence).unwrap_or_default();
            let text = format!("{} {hint}", sentence(&fault.cause.to_string()));
            note(ui, text.trim_end(), bad);
        });
    }
    changed
}

/// Draws the folder button; where more than one kind of thing can be picked it asks which.
pub fn browse_button(
    ui: &mut Ui,
    name: &str,
    browse: Browse,
    picks: &[Pick],
    wishes: &mut Vec<Wish>,
) {
    let words = format!("Browse for {}", name.to_lowercase());
    let shown = icon_button(ui, Icon::Folder, &words, true);
    if let [pick] = picks {
        if shown.clicked() {
            wishes.push(Wish::Browse(browse, *pick));
        }
        return;
    }
    egui::Popup::menu(&shown).show(|ui| {
        for pick in picks {
            let words = match pick {
                Pick::Folder => "Folder\u{2026}",
                Pick::Files | Pick::SaveList => "Files\u{2026}",
            };
            if ui.button(words).clicked() {
                wishes.push(Wish::Browse(browse, *pick));
                ui.close();
            }
        }
    });
}

fn landing(ui: &mut Ui, draft: &Draft) {
    let p = palette(ui);
    indented(ui, |ui| match (&draft.landing, draft.faulty()) {
        (_, true) => {
            let until = if draft.name_fault.is_some() {
                "it has another name"
            } else if draft.advanced_fault() {
                "the field under Advanced can be read"
            } else {
                "the field can be read"
            };
            let words = format!("Not saved and not to be started until {until}");
            note(ui, words, p.warn);
        }
        (Some(landing), false) => {
            note(ui, landing, p.soft);
        }
        (None, false) => {
            note(ui, "Say where from and where to", p.soft);
        }
    });
}

/// Shows a line of small text below a field, as high as the text.
fn indented(ui: &mut Ui, contents: impl FnOnce(&mut Ui)) {
    ui.scope(|ui| {
        // A row is as high as a button unless this says otherwise.
        ui.spacing_mut().interact_size.y = tokens().text.small;
        ui.horizontal(|ui| {
            ui.add_space(LABEL + 4.0);
            contents(ui);
        });
    });
}

/// As wide as all choices in one line; in less room the last goes below.
const ONE_LINE: f32 = 620.0;

fn choices(ui: &mut Ui, draft: &mut Draft) -> bool {
    let settings = &mut draft.profile.settings;
    let narrow = ui.available_width() < ONE_LINE;
    let mut changed = false;
    ui.horizontal(|ui| {
        ui.add_space(LABEL + 4.0);
        changed |= how(ui, settings);
        if !narrow {
            changed |= conflicts(ui, settings);
        }
    });
    if narrow {
        ui.horizontal(|ui| {
            ui.add_space(LABEL + 4.0);
            changed |= conflicts(ui, settings);
        });
    }
    changed
}

fn how(ui: &mut Ui, settings: &mut Settings) -> bool {
    let mut changed = false;
    let (title, _) = method_words(&settings.method);
    choice(ui, "Method", &title, 96.0, |ui| {
        let named = methods::all()
            .into_iter()
            .map(|m| MethodChoice::Named(m.id.to_owned()));
        for choice in std::iter::once(MethodChoice::Auto).chain(named) {
            let (title, about) = method_words(&choice);
            let shown = ui.selectable_value(&mut settings.method, choice, title);
            changed |= shown.on_hover_text(about).changed();
        }
    });
    choice(ui, "Verify", algorithm(settings.verify).0, 80.0, |ui| {
        for choice in Algorithm::ALL {
            let (title, about) = algorithm(choice);
            let shown = ui.selectable_value(&mut settings.verify, choice, title);
            changed |= shown.on_hover_text(sentence(about)).changed();
        }
    });
    let hashes = settings.verify.hashes();
    changed |= ui
        .add_enabled(
            hashes,
            egui::Checkbox::new(&mut settings.read_back, "Read back"),
        )
        .on_hover_text("Read every file again from the destination's disk when it is done.")
        .on_disabled_hover_text("Needs a digest.")
        .accessible_name("Read back")
        .changed();
    changed
}

fn conflicts(ui: &mut Ui, settings: &mut Settings) -> bool {
    let mut changed = false;
    choice(
        ui,
        "If it exists",
        conflict(settings.conflict).0,
        104.0,
        |ui| {
            for choice in Conflict::ALL {
                let (title, about) = conflict(choice);
                let shown = ui.selectable_value(&mut settings.conflict, choice, title);
                changed |= shown.on_hover_text(sentence(about)).changed();
            }
        },
    );
    changed
}

/// Returns the name of a method and what it is good for.
pub fn method_words(choice: &MethodChoice) -> (String, String) {
    let MethodChoice::Named(id) = choice else {
        let about = "The fastest safe method; the job says which and why.";
        return ("Auto".to_owned(), about.to_owned());
    };
    match methods::all().into_iter().find(|method| method.id == id) {
        Some(method) => (method.title.to_owned(), method.about.to_owned()),
        None => (
            shown(id.as_bytes()),
            "This program has no method of that name.".to_owned(),
        ),
    }
}

/// Shows a small heading inside the editor.
pub fn heading(ui: &mut Ui, words: &str) {
    let p = palette(ui);
    ui.label(RichText::new(words).color(p.soft).size(tokens().text.small));
}
