//! The folded part of the editor: what is kept, filters, limit, encryption, ssh, and the options
//! that the chosen method has of its own.

use egui::{CollapsingHeader, Margin, TextEdit, Ui};

use crate::model::error::Error;
use crate::model::options::{OptionSpec, OptionType, Options};
use crate::model::profile::{Encrypt, MethodChoice};
use crate::present::text::sentence;
use crate::service::methods;
use crate::ui::draft::Draft;
use crate::ui::parts::controls::{choice, field, note, soft};
use crate::ui::parts::editor::{LABEL, browse_button, heading};
use crate::ui::ports::Pick;
use crate::ui::state::Browse;
use crate::ui::theme::palette;
use crate::ui::wish::Wish;

/// Draws the folded part; says whether something changed.
pub fn show(ui: &mut Ui, draft: &mut Draft, wishes: &mut Vec<Wish>) -> bool {
    let mut changed = false;
    ui.horizontal_top(|ui| {
        ui.add_space(LABEL + 4.0);
        ui.vertical(|ui| changed |= folded(ui, draft, wishes));
    });
    changed
}

fn folded(ui: &mut Ui, draft: &mut Draft, wishes: &mut Vec<Wish>) -> bool {
    let mut changed = false;
    CollapsingHeader::new("Advanced")
        .id_salt("advanced")
        .show_unindented(ui, |ui| {
            changed |= keep(ui, draft);
            changed |= filters(ui, draft);
            changed |= network(ui, draft);
            changed |= ssh(ui, draft, wishes);
            changed |= method(ui, draft);
            heading(ui, "Notes");
            changed |= lines(ui, &mut draft.profile.notes, "Notes", "For yourself");
        });
    changed
}

fn keep(ui: &mut Ui, draft: &mut Draft) -> bool {
    let settings = &mut draft.profile.settings;
    let keep = &mut settings.preserve;
    heading(ui, "What is kept");
    ui.horizontal_wrapped(|ui| {
        [
            ui.checkbox(&mut keep.times, "Times"),
            ui.checkbox(&mut keep.permissions, "Permissions"),
            ui.checkbox(&mut keep.links, "Links as links"),
            ui.checkbox(&mut settings.contents, "Contents only")
                .on_hover_text("Send what is in a source folder, not the folder itself.")
                .accessible_name("Contents only"),
            ui.checkbox(&mut settings.durable, "Survives a power cut")
                .on_hover_text("A file counts as done when it is on the disk, not in a cache.")
                .accessible_name("Survives a power cut"),
        ]
        .iter()
        .any(egui::Response::changed)
    })
    .inner
}

fn filters(ui: &mut Ui, draft: &mut Draft) -> bool {
    heading(ui, "Filter rules, the first that matches wins");
    let changed = lines(ui, &mut draft.rules, "Filter rules", "- *.tmp\n+ /keep/**");
    fault(ui, draft.rules_fault.as_ref());
    changed
}

/// Says below a field what is wrong with it, and where.
fn fault(ui: &mut Ui, fault: Option<&Error>) {
    if let Some(fault) = fault {
        let bad = palette(ui).bad;
        note(ui, format!("{}: {}", fault.place, fault.cause), bad);
    }
}

fn network(ui: &mut Ui, draft: &mut Draft) -> bool {
    let mut changed = false;
    heading(ui, "Network");
    ui.horizontal_wrapped(|ui| {
        soft(ui, "Limit");
        changed |= field(ui, &mut draft.limit, "Limit", "none, or 20M", 96.0).changed();
        let encrypt = &mut draft.profile.settings.encrypt;
        choice(ui, "Encryption", encrypt_words(*encrypt).0, 88.0, |ui| {
            for choice in [Encrypt::Auto, Encrypt::Always, Encrypt::Never] {
                let (title, about) = encrypt_words(choice);
                let shown = ui.selectable_value(encrypt, choice, title);
                changed |= shown.on_hover_text(about).changed();
            }
        });
    });
    if let Some(fault) = &draft.limit_fault {
        let bad = palette(ui).bad;
        note(ui, sentence(fault), bad);
    }
    changed
}

fn encrypt_words(choice: Encrypt) -> (&'static str, &'static str) {
    match choice {
        Encrypt::Auto => (
            "Auto",
            "Encrypted unless you said that plain is fine for that host.",
        ),
        Encrypt::Always => ("Always", "Through ssh; nobody on the way can read it."),
        Encrypt::Never => (
            "Never",
            "Plain: readable on that network; changes are detected.",
        ),
    }
}

fn ssh(ui: &mut Ui, draft: &mut Draft, wishes: &mut Vec<Wish>) -> bool {
    let mut changed = false;
    heading(ui, "Log in by ssh, beside what your own configuration says");
    let ssh = &mut draft.profile.settings.ssh;
    for (value, name, hint) in [
        (&mut ssh.identity, "Key file", "~/.ssh/id_ed25519"),
        (&mut ssh.config, "Configuration file", "~/.ssh/config"),
    ] {
        ui.horizontal(|ui| {
            let mut text = value.clone().unwrap_or_default();
            let width = (ui.available_width() - 40.0).clamp(60.0, 360.0);
            if field(
                ui,
                &mut text,
                name,
                &format!("{name}, for example {hint}"),
                width,
            )
            .changed()
            {
                changed = true;
                *value = (!text.trim().is_empty()).then(|| text.trim().to_owned());
            }
            if name == "Key file" {
                browse_button(ui, name, Browse::Identity, &[Pick::Files], wishes);
            }
        });
    }
    changed |= lines(
        ui,
        &mut draft.ssh_options,
        "More ssh options",
        "ProxyJump=gate\nPort=2222",
    );
    fault(ui, draft.ssh_fault.as_ref());
    changed
}

fn method(ui: &mut Ui, draft: &mut Draft) -> bool {
    let settings = &mut draft.profile.settings;
    let MethodChoice::Named(id) = &settings.method else {
        return false;
    };
    let Some(method) = methods::all().into_iter().find(|method| method.id == id) else {
        return false;
    };
    if method.options.is_empty() {
        return false;
    }
    heading(ui, &format!("Options of {}", method.title));
    let mut changed = false;
    for spec in method.options {
        changed |= option(ui, spec, &mut settings.options);
    }
    changed
}

/// Draws one option of a method; a value equal to the default is not kept.
fn option(ui: &mut Ui, spec: &OptionSpec, options: &mut Options) -> bool {
    let before = options.get(spec.name).unwrap_or(spec.default).to_owned();
    let mut value = before.clone();
    let help = sentence(spec.help);
    ui.horizontal(|ui| match spec.kind {
        OptionType::Flag => {
            let mut on = value == "true";
            ui.checkbox(&mut on, spec.name)
                .on_hover_text(&help)
                .accessible_name(spec.name);
            value = on.to_string();
        }
        OptionType::Number { min, max } => {
            let label = soft(ui, spec.name).on_hover_text(&help).id;
            let mut number = value.parse().unwrap_or(min);
            ui.add(egui::DragValue::new(&mut number).range(min..=max))
                .labelled_by(label);
            value = number.to_string();
        }
        OptionType::Choice(words) => {
            let chosen = value.clone();
            choice(ui, spec.name, &chosen, 96.0, |ui| {
                for word in words {
                    ui.selectable_value(&mut value, (*word).to_owned(), *word);
                }
            })
            .on_hover_text(&help)
            .accessible_name(spec.name);
        }
        OptionType::Text => {
            soft(ui, spec.name).on_hover_text(&help);
            field(ui, &mut value, spec.name, spec.default, 200.0);
        }
    });
    if value == before {
        return false;
    }
    if value == spec.default {
        options.0.remove(spec.name);
    } else {
        options.0.insert(spec.name.to_owned(), value);
    }
    true
}

/// Draws a field of several lines; says whether it changed.
fn lines(ui: &mut Ui, text: &mut String, name: &str, hint: &'static str) -> bool {
    ui.add(
        TextEdit::multiline(text)
            .hint_text(hint)
            .desired_rows(2)
            .desired_width(ui.available_width().min(420.0))
            .margin(Margin::symmetric(8, 4)),
    )
    .accessible_name(name)
    .changed()
}
