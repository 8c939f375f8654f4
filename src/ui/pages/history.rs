//! The runs that ended, newest first.

use egui::{RichText, Ui};
use egui_extras::{Column, TableRow};

use crate::model::untrusted::shown;
use crate::present::text::{outcome, outcome_short};
use crate::present::units::{ago, bytes, count, duration, rate};
use crate::ui::pages::{empty, table};
use crate::ui::parts::controls::{cut, icon, right, soft};
use crate::ui::parts::profiles_list::{outcome_sign, tone_colour};
use crate::ui::ports::Run;
use crate::ui::state::{State, Tab};
use crate::ui::theme::palette;
use crate::ui::wish::Wish;

/// Draws the page.
pub fn show(ui: &mut Ui, state: &State, wishes: &mut Vec<Wish>) {
    if state.runs.is_empty() {
        empty(ui, "Runs that ended are kept here");
        return;
    }
    table::at_least(ui, 600.0, |ui| {
        let wide = ui.available_width() >= ALL_COLUMNS;
        // Widths of the columns whose words have one; files and time give way first.
        let numbers: &[f32] = match wide {
            true => &[64.0, 76.0, 88.0, 92.0],
            false => &[76.0, 92.0],
        };
        let gaps = 3 + numbers.len();
        let fixed = 88.0 + 120.0 + numbers.iter().sum::<f32>();
        let rest = ui.available_width() - fixed - gaps as f32 * table::GAP;
        let [job, _] = table::parts(rest, [(2.0, 96.0, 480.0), (1.0, 64.0, 9e9)]);
        let mut columns = vec![
            Column::exact(88.0),
            Column::exact(job).clip(true),
            Column::exact(120.0),
        ];
        columns.extend(numbers.iter().map(|width| Column::exact(*width)));
        columns.push(Column::remainder().at_least(64.0).clip(true));
        table::begin(ui, "runs", &columns)
            .sense(egui::Sense::click())
            .header(table::row_height(), |mut row| {
                for (words, number, narrow) in [
                    ("When", false, true),
                    ("Job", false, true),
                    ("Outcome", false, true),
                    ("Files", true, false),
                    ("Bytes", true, true),
                    ("Time", true, false),
                    ("Goodput", true, true),
                    ("Method", false, true),
                ] {
                    if wide || narrow {
                        table::head(&mut row, words, number);
                    }
                }
            })
            .body(|body| {
                body.rows(table::row_height(), state.runs.len(), |mut row| {
                    if let Some(run) = state.runs.get(row.index()) {
                        row.set_selected(state.job == Some(run.job));
                        one(&mut row, run, state.wall, wide);
                        let help = "Show the verdicts of this run";
                        if row.response().on_hover_text(help).clicked() {
                            wishes.push(Wish::ShowJob(run.job, Tab::Verification));
                        }
                    }
                });
            });
    });
}

/// As wide as it must be for all columns; the outcome tells the others while it is hovered.
const ALL_COLUMNS: f32 = 780.0;

fn one(cells: &mut TableRow<'_, '_>, run: &Run, wall: i64, wide: bool) {
    let report = &run.report;
    cells.col(|ui| {
        soft(ui, ago(u64::try_from(wall - run.ended).unwrap_or_default()));
    });
    cells.col(|ui| {
        let title = shown(run.title.as_bytes());
        cut(
            ui,
            if run.dry_run {
                format!("Simulation of {title}")
            } else {
                title
            },
        );
    });
    cells.col(|ui| {
        ui.spacing_mut().item_spacing.x = 6.0;
        let (sign, tone) = outcome_sign(&run.outcome);
        let colour = tone_colour(palette(ui), tone);
        icon(ui, sign, colour);
        let words = RichText::new(outcome_short(&run.outcome, report)).color(colour);
        ui.label(words).on_hover_text(outcome(&run.outcome, report));
    });
    if wide {
        cells.col(|ui| right(ui, count(report.files)));
    }
    cells.col(|ui| right(ui, bytes(report.bytes)));
    if wide {
        cells.col(|ui| right(ui, duration(report.seconds)));
    }
    cells.col(|ui| {
        if report.bytes > 0 {
            right(ui, rate(report.goodput()));
        }
    });
    cells.col(|ui| {
        let method = soft(ui, shown(report.method.as_bytes()));
        if !report.why.is_empty() {
            method.on_hover_text(shown(report.why.as_bytes()));
        }
    });
}
