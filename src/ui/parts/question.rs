//! What a running job asks: a dialog with what is at stake and one button an answer.

use egui::{Context, Frame, Id, Margin, Modal, RichText, ScrollArea, Ui};

use crate::model::event::QuestionKind;
use crate::model::untrusted::shown;
use crate::present::question::{Choice, question};
use crate::present::units::count;
use crate::ui::parts::controls::{Weight, button, note, soft};
use crate::ui::parts::job_row::title;
use crate::ui::state::State;
use crate::ui::theme::{palette, palette_of, tokens};
use crate::ui::wish::Wish;

/// Draws the first open question, if there is one; says whether it did.
pub fn show(ctx: &Context, state: &mut State, wishes: &mut Vec<Wish>) -> bool {
    let Some(job) = state.question() else {
        return false;
    };
    let Some(asked) = job.question.clone() else {
        return false;
    };
    let (id, title) = (job.spec.id, title(job));
    let text = question(&asked.kind);
    let mut remember = state.remember;
    let mut chosen = None;
    dialog(ctx, Id::unique(("question", id.0, asked.id))).show(ctx, |ui| {
        ui.set_width(dialog_width(ctx));
        let p = palette(ui);
        ui.label(
            RichText::new(&text.title)
                .size(tokens().text.heading)
                .color(p.text),
        );
        soft(ui, title);
        ui.add_space(4.0);
        ui.label(&text.body);
        if let QuestionKind::Conflicts { count, examples } = &asked.kind {
            list(ui, *count, examples);
        }
        if text.host.is_some() {
            ui.checkbox(&mut remember, "Remember for this host")
                .on_hover_text("A yes counts for every later job with this host.")
                .accessible_name("Remember for this host");
        }
        ui.add_space(8.0);
        chosen = choices(ui, &text.choices);
    });
    state.remember = remember;
    if let Some(answer) = chosen {
        wishes.push(Wish::Answer {
            job: id,
            question: asked.id,
            kind: asked.kind,
            answer,
            remember: remember && text.host.is_some(),
        });
    }
    true
}

/// Begins a dialog over the window.
pub fn dialog(ctx: &Context, id: Id) -> Modal {
    let p = palette_of(ctx.theme());
    let frame = Frame::popup(&ctx.style_of(ctx.theme()));
    Modal::new(id)
        .backdrop_color(p.shade)
        .frame(frame.inner_margin(Margin::same(20)))
}

/// Returns how wide a dialog is: as wide as reads well, less in a small window.
pub fn dialog_width(ctx: &Context) -> f32 {
    (ctx.content_rect().width() - 96.0).clamp(80.0, 480.0)
}

fn choices(ui: &mut Ui, choices: &[Choice]) -> Option<crate::model::event::Answer> {
    let mut chosen = None;
    ui.horizontal_wrapped(|ui| {
        for (i, choice) in choices.iter().enumerate() {
            let weight = if i == 0 { Weight::Main } else { Weight::Plain };
            let shown = button(ui, None, choice.label, weight, true);
            if shown
                .on_hover_text(crate::present::text::sentence(choice.help))
                .clicked()
            {
                chosen = Some(choice.answer);
            }
        }
    });
    chosen
}

fn list(ui: &mut Ui, total: u64, examples: &[Vec<u8>]) {
    ScrollArea::vertical()
        .id_salt("examples")
        .max_height(140.0)
        .auto_shrink([false, true])
        .show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 2.0;
            for path in examples {
                let p = palette(ui);
                note(ui, shown(path), p.text);
            }
        });
    let more = total.saturating_sub(examples.len() as u64);
    if more > 0 {
        soft(ui, format!("and {} more", count(more)));
    }
}
