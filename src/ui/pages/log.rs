//! Notes and warnings of the job that is looked at.

use egui::{RichText, ScrollArea, Ui};

use crate::model::untrusted::shown;
use crate::present::text::outcome;
use crate::present::units::duration;
use crate::ui::pages::{empty, whose};
use crate::ui::parts::controls::note;
use crate::ui::state::State;
use crate::ui::theme::{mono, palette};

/// Draws the page.
pub fn show(ui: &mut Ui, state: &State) {
    let Some(job) = state.shown_job() else {
        match state.job.and_then(|id| state.run(id)) {
            Some(run) => {
                whose(ui, state);
                ui.label(outcome(&run.outcome, &run.report));
            }
            None => empty(
                ui,
                "Click a job in the queue to read its notes and warnings here",
            ),
        }
        return;
    };
    whose(ui, state);
    let p = palette(ui);
    ScrollArea::both()
        .id_salt("log")
        .auto_shrink(false)
        .stick_to_bottom(true)
        .show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 4.0;
            for (seconds, text) in job.log.iter() {
                ui.horizontal(|ui| {
                    let when = format!("{:>12}", duration(*seconds));
                    ui.label(RichText::new(when).font(mono()).color(p.soft));
                    ui.label(RichText::new(shown(text.as_bytes())).color(p.text));
                });
            }
            if let Some((how, report)) = &job.end {
                ui.label(RichText::new(outcome(how, report)).color(p.text));
            }
            if job.log.is_empty() && job.end.is_none() {
                note(ui, "Nothing to tell yet", p.soft);
            }
        });
}
