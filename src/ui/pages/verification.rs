//! The verification table: a verdict a file. Only the rows on screen are asked for, so a million
//! of them cost no more than forty.

use egui::{Color32, RichText, Ui};
use egui_extras::{Column, TableRow};

use crate::engine::RowPage;
use crate::model::digest::Digest;
use crate::model::untrusted::shown;
use crate::model::verdict::{Row, Verdict, When};
use crate::present::text::{VERDICTS, verdict, verdict_word};
use crate::present::units::{bytes, count, counted};
use crate::ui::pages::{empty, rest_of_line, table, whose};
use crate::ui::parts::controls::{Weight, button, choice, cut, field, icon, right, soft};
use crate::ui::parts::icon::Icon;
use crate::ui::ports::Jobs;
use crate::ui::state::{Seen, State};
use crate::ui::theme::{Palette, mono, palette, tokens};
use crate::ui::wish::{Deed, Wish};

/// Draws the page.
pub fn show(ui: &mut Ui, state: &mut State, jobs: &dyn Jobs, wishes: &mut Vec<Wish>) {
    let Some(job) = state.subject().map(|subject| subject.id) else {
        empty(ui, "When a job runs, every file gets its verdict here");
        return;
    };
    if state.seen_rows.job != Some(job) {
        state.seen_rows = Seen {
            range: 0..64,
            job: Some(job),
        };
    }
    // A few more than were on screen, so that scrolling meets rows that are there already.
    let near = state.seen_rows.range.start.saturating_sub(32)..state.seen_rows.range.end + 32;
    let page = jobs.rows(job, &state.filter, near);
    tools(ui, state, &page, wishes);
    if page.total == 0 {
        let filtered = state.filter.verdict.is_some() || !state.filter.text.is_empty();
        empty(
            ui,
            if filtered {
                "No file passes the filter"
            } else {
                "No file is settled yet"
            },
        );
        return;
    }
    let missing = table::at_least(ui, 520.0, |ui| rows(ui, state, &page));
    if missing {
        // Those rows come with the next page; look again as soon as it can be there.
        ui.ctx()
            .request_repaint_after(std::time::Duration::from_millis(33));
    }
}

fn tools(ui: &mut Ui, state: &mut State, page: &RowPage, wishes: &mut Vec<Wish>) {
    ui.horizontal_wrapped(|ui| {
        let chosen = state.filter.verdict.map_or("All", verdict_word);
        choice(ui, "Verdict", chosen, 120.0, |ui| {
            ui.selectable_value(&mut state.filter.verdict, None, "All");
            for name in VERDICTS {
                let words = verdict_word(name);
                ui.selectable_value(&mut state.filter.verdict, Some(name), words);
            }
        });
        field(
            ui,
            &mut state.filter.text,
            "Filter by name",
            "Filter by name",
            180.0,
        );
        soft(ui, counted(page.total as u64, "file", "files"));
        if page.total > table::MOST_ROWS {
            let most = count(table::MOST_ROWS as u64);
            soft(
                ui,
                format!("the first {most} are shown; filter for the others"),
            );
        }
        // The button, and enough of the title to tell one job from another.
        rest_of_line(ui, 200.0, |ui| {
            let save = button(
                ui,
                Some(Icon::Save),
                "Save list\u{2026}",
                Weight::Plain,
                true,
            );
            let help = "Save the digests as a list that md5sum -c and its kin check";
            if save
                .on_hover_text(help)
                .accessible_name("Save list")
                .clicked()
            {
                wishes.push(Wish::Do(Deed::SaveList));
            }
            whose(ui, state);
        });
    });
}

/// Draws the rows; says whether some that are on screen are not at hand yet.
fn rows(ui: &mut Ui, state: &mut State, page: &RowPage) -> bool {
    let mut missing = false;
    #[expect(clippy::reversed_empty_ranges)] // Nothing seen so far; each row widens it.
    let mut seen = usize::MAX..0;
    let wide = ui.available_width() >= ALL_COLUMNS;
    // Size, verdict and when are as wide as their words, with a gap between any two columns.
    let columns = if wide {
        let rest = ui.available_width() - (84.0 + 128.0 + 76.0) - 5.0 * table::GAP;
        let [name, digest, _] = table::parts(
            rest,
            [(5.0, 120.0, 640.0), (4.0, 96.0, 252.0), (3.0, 96.0, 9e9)],
        );
        vec![
            Column::exact(name).clip(true),
            Column::exact(84.0),
            Column::exact(128.0),
            Column::exact(digest).clip(true),
            Column::exact(76.0),
            Column::remainder().at_least(96.0).clip(true),
        ]
    } else {
        let rest = ui.available_width() - (84.0 + 128.0) - 3.0 * table::GAP;
        let [name, _] = table::parts(rest, [(3.0, 120.0, 9e9), (4.0, 120.0, 9e9)]);
        vec![
            Column::exact(name).clip(true),
            Column::exact(84.0),
            Column::exact(128.0),
            Column::remainder().at_least(120.0).clip(true),
        ]
    };
    table::begin(ui, "verdicts", &columns)
        .sense(egui::Sense::click())
        .header(table::row_height(), |mut row| {
            for (words, number, narrow) in [
                ("Name", false, true),
                ("Size", true, true),
                ("Verdict", false, true),
                ("Digest", false, false),
                ("When", false, false),
                ("Why", false, true),
            ] {
                if wide || narrow {
                    table::head(&mut row, words, number);
                }
            }
        })
        .body(|body| {
            body.rows(
                table::row_height(),
                page.total.min(table::MOST_ROWS),
                |mut row| {
                    let index = row.index();
                    seen = seen.start.min(index)..seen.end.max(index + 1);
                    match index
                        .checked_sub(page.start)
                        .and_then(|at| page.rows.get(at))
                    {
                        Some(known) => one(&mut row, known, wide),
                        None => {
                            missing = true;
                            row.col(|ui| {
                                soft(ui, "\u{2026}");
                            });
                            for _ in 1..columns.len() {
                                row.col(|_| {});
                            }
                        }
                    }
                },
            );
        });
    if seen.start < seen.end {
        state.seen_rows.range = seen;
    }
    missing
}

/// As wide as it must be for all columns; in less room the digest shows while the verdict is hovered.
const ALL_COLUMNS: f32 = 720.0;

fn one(cells: &mut TableRow<'_, '_>, row: &Row, wide: bool) {
    let name = shown(&row.path);
    let (word, why) = verdict(&row.verdict);
    let (digest, when) = digest_of(&row.verdict);
    cells.col(|ui| {
        cut(ui, &name);
    });
    cells.col(|ui| right(ui, bytes(row.bytes)));
    cells.col(|ui| {
        ui.spacing_mut().item_spacing.x = 6.0;
        let (sign, colour) = sign(palette(ui), &row.verdict);
        icon(ui, sign, colour);
        let word = ui.label(RichText::new(word).color(colour));
        if let Some(digest) = digest.filter(|_| !wide) {
            let help = format!("{} {digest}\n{when}", digest.algorithm().name());
            word.on_hover_text(help.trim_end());
        }
    });
    if wide {
        cells.col(|ui| {
            if let Some(digest) = digest {
                let help = digest.algorithm().name();
                cut(ui, RichText::new(digest.to_string()).font(mono())).on_hover_text(help);
            }
        });
        cells.col(|ui| {
            soft(ui, when);
        });
    }
    cells.col(|ui| {
        if let Some(why) = &why {
            let colour = palette(ui).soft;
            cut(
                ui,
                RichText::new(why).color(colour).size(tokens().text.small),
            );
        }
    });
    cells.response().context_menu(|ui| {
        if ui.button("Copy name").clicked() {
            ui.ctx().copy_text(name.clone());
            ui.close();
        }
        if let Some(digest) = digest {
            if ui.button("Copy digest").clicked() {
                ui.ctx().copy_text(digest.to_string());
                ui.close();
            }
        }
    });
}

fn digest_of(verdict: &Verdict) -> (Option<&Digest>, &'static str) {
    match verdict {
        Verdict::Verified {
            digest,
            when: When::InFlight,
        } => (Some(digest), "In flight"),
        Verdict::Verified {
            digest,
            when: When::ReadBack,
        } => (Some(digest), "Read back"),
        Verdict::Differs { here, .. } => (Some(here), ""),
        _ => (None, ""),
    }
}

/// Returns the sign of a verdict; its form differs as well as its colour.
fn sign(p: &Palette, verdict: &Verdict) -> (Icon, Color32) {
    match verdict {
        Verdict::Verified { .. } => (Icon::Check, p.good),
        Verdict::Differs { .. } => (Icon::NotEqual, p.bad),
        Verdict::Failed(_) => (Icon::Cross, p.bad),
        Verdict::SourceChanged | Verdict::Vanished => (Icon::Warn, p.warn),
        Verdict::SizeOnly => (Icon::Ring, p.soft),
        Verdict::Unverified(_) => (Icon::Dot, p.soft),
        Verdict::Skipped(_) => (Icon::Minus, p.soft),
    }
}
