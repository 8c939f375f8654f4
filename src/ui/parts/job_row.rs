//! One job of the queue: what it is, how far, how fast, and what can be done with it.

use egui::{Align, Color32, Layout, RichText, Ui};

use crate::engine::JobView;
use crate::model::outcome::{Abort, Outcome};
use crate::model::progress::RunState;
use crate::model::untrusted::shown;
use crate::present::text::{outcome, progress, route, sentence, state};
use crate::present::units::{eta, rate};
use crate::ui::parts::controls::{bar, card, cut, icon, icon_button};
use crate::ui::parts::icon::Icon;
use crate::ui::parts::profiles_list::{outcome_sign, tone_colour};
use crate::ui::theme::{Palette, palette, tokens};
use crate::ui::wish::{JobDeed, Wish};

/// The height of a card, fixed so that a list of thousands needs only those on screen.
pub const HEIGHT: f32 = 104.0;

/// Draws a job's card.
pub fn show(ui: &mut Ui, job: &JobView, selected: bool, wishes: &mut Vec<Wish>) {
    let pad = tokens().space.pad;
    let id = job.spec.id;
    // The card listens beneath its buttons, so that they come first.
    let whole = egui::UiBuilder::new()
        .id_salt(id.0)
        .sense(egui::Sense::click());
    let response = ui.scope_builder(whole, |ui| {
        card(ui, selected, |ui| {
            ui.set_width(ui.available_width());
            ui.set_height(HEIGHT - 2.0 * pad - 2.0);
            ui.spacing_mut().item_spacing.y = 4.0;
            top(ui, job, wishes);
            let (done, colour) = filled(palette(ui), job);
            bar(ui, done, colour, &format!("Progress of {}", title(job)));
            // Lines of text only from here on; no room for buttons is needed.
            ui.spacing_mut().interact_size.y = 18.0;
            middle(ui, job);
            bottom(ui, job);
        });
    });
    let response = response.response;
    let name = format!("Job {}", title(job));
    response.widget_info(|| egui::WidgetInfo::selected(egui::Role::Button, true, selected, &name));
    if response.clicked() {
        wishes.push(Wish::SelectJob((!selected).then_some(id)));
    }
}

/// Returns a job's title as it may be shown.
pub fn title(job: &JobView) -> String {
    let text = shown(job.spec.title.as_bytes());
    if job.spec.dry_run {
        format!("Simulation of {text}")
    } else {
        text
    }
}

fn top(ui: &mut Ui, job: &JobView, wishes: &mut Vec<Wish>) {
    let p = palette(ui);
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.spacing_mut().item_spacing.x = 2.0;
            deeds(ui, job, wishes);
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                ui.spacing_mut().item_spacing.x = 8.0;
                let (sign, colour) = sign(p, job);
                icon(ui, sign, colour);
                let words = RichText::new(title(job))
                    .size(tokens().text.title)
                    .color(p.text);
                cut(ui, words).on_hover_text(format!("To {}", job.spec.destination));
            });
        });
    });
}

/// Draws the buttons from the right edge inwards, each in its own place.
fn deeds(ui: &mut Ui, job: &JobView, wishes: &mut Vec<Wish>) {
    let id = job.spec.id;
    let name = title(job);
    let mut deed = |ui: &mut Ui, icon, words: &str, deed, enabled| {
        let shown = icon_button(ui, icon, words, enabled);
        if shown.accessible_name(format!("{words} {name}")).clicked() {
            wishes.push(Wish::Job(id, deed));
        }
    };
    if job.end.is_some() {
        deed(ui, Icon::Cross, "Remove", JobDeed::Remove, true);
        deed(ui, Icon::Retry, retry_words(job), JobDeed::Retry, true);
        return;
    }
    let stopping = job.state == RunState::Stopping;
    deed(ui, Icon::Cross, "Cancel", JobDeed::Cancel, !stopping);
    match job.state {
        RunState::Paused => deed(ui, Icon::Play, "Resume", JobDeed::Resume, true),
        RunState::Queued => {
            deed(ui, Icon::Pause, "Pause", JobDeed::Pause, true);
            deed(ui, Icon::Down, "Move down", JobDeed::Down, true);
            deed(ui, Icon::Up, "Move up", JobDeed::Up, true);
        }
        _ => deed(ui, Icon::Pause, "Pause", JobDeed::Pause, !stopping),
    }
}

/// Says what Retry does for this ending.
fn retry_words(job: &JobView) -> &'static str {
    match &job.end {
        Some((Outcome::Aborted(_) | Outcome::Failed(_) | Outcome::Partial(_), _)) => "Go on",
        _ => "Run again",
    }
}

fn sign(p: &Palette, job: &JobView) -> (Icon, Color32) {
    match (&job.end, job.state) {
        (Some((outcome, _)), _) => {
            let (icon, tone) = outcome_sign(outcome);
            (icon, tone_colour(p, tone))
        }
        (None, _) if job.question.is_some() => (Icon::Warn, p.warn),
        (None, RunState::Queued) => (Icon::Clock, p.soft),
        (None, RunState::Paused) => (Icon::Pause, p.soft),
        (None, RunState::Stalled | RunState::Reconnecting) => (Icon::Warn, p.warn),
        _ => (Icon::Play, p.accent),
    }
}

/// Returns how much of the bar is filled, and its colour.
fn filled(p: &Palette, job: &JobView) -> (Option<f32>, Color32) {
    let exact = || {
        let q = &job.progress;
        match (q.bytes_total, q.items_total) {
            (0, 0) => 0.0,
            (0, items) => q.items_done as f32 / items as f32,
            (bytes, _) => (q.bytes_done as f64 / bytes as f64) as f32,
        }
    };
    match &job.end {
        Some((Outcome::Completed, _)) => (Some(1.0), p.good),
        Some((Outcome::Partial(_), _)) => (Some(1.0), p.warn),
        Some((Outcome::Aborted(Abort::LeftRunning), _)) => (Some(exact()), p.warn),
        Some((Outcome::Aborted(_), _)) => (Some(exact()), p.soft),
        Some((Outcome::Refused(_) | Outcome::Failed(_), _)) => (Some(exact()), p.bad),
        None if job.state == RunState::Queued => (Some(exact()), p.soft),
        None if job.state == RunState::Paused && job.progress.listed => (Some(exact()), p.soft),
        None if job.progress.listed => (Some(exact()), p.accent),
        None => (None, p.accent),
    }
}

fn middle(ui: &mut Ui, job: &JobView) {
    let p = palette(ui);
    if let Some((how, report)) = &job.end {
        let (_, tone) = outcome_sign(how);
        let colour = if *how == Outcome::Completed {
            p.text
        } else {
            tone_colour(p, tone)
        };
        cut(ui, RichText::new(outcome(how, report)).color(colour));
        return;
    }
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if job.state == RunState::Running {
                if let Some(left) = job.eta {
                    ui.label(RichText::new(eta(left)).color(p.text));
                }
                if job.goodput > 0.0 {
                    ui.label(RichText::new(rate(job.goodput)).color(p.text));
                }
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let words = match (job.question.is_some(), job.state) {
                    (true, _) => "Waiting for your answer".to_owned(),
                    (false, RunState::Queued) => state(&job.spec, job.state, job.progress.phase),
                    (false, _) => progress(&job.progress),
                };
                cut(ui, RichText::new(words).color(p.text));
            });
        });
    });
}

fn bottom(ui: &mut Ui, job: &JobView) {
    let p = palette(ui);
    let small = |text: String| RichText::new(text).size(tokens().text.small).color(p.soft);
    match &job.end {
        Some((Outcome::Failed(error) | Outcome::Refused(error), _)) => {
            let hint = error.hint.as_deref().map(sentence).unwrap_or_default();
            cut(ui, small(hint));
        }
        Some((_, report)) => {
            let why = if report.why.is_empty() {
                String::new()
            } else {
                format!(": {}", shown(report.why.as_bytes()))
            };
            let words = if report.method.is_empty() {
                String::new()
            } else {
                format!(
                    "{}, {}{why}",
                    shown(report.method.as_bytes()),
                    route(report.route)
                )
            };
            let speed = (report.bytes > 0).then(|| format!("{} \u{b7} ", rate(report.goodput())));
            cut(ui, small(speed.unwrap_or_default() + &words));
        }
        None => {
            let phase = state(&job.spec, job.state, job.progress.phase);
            let current = shown(&job.progress.current);
            let words = match (job.state, current.is_empty()) {
                (RunState::Queued, _) => format!("To {}", job.spec.destination),
                (_, true) => phase,
                (_, false) => format!("{phase} \u{b7} {current}"),
            };
            cut(ui, small(words));
        }
    }
}
