//! The list of profiles at the left: search, new, the state of the last run. It never hides.

use egui::style::ScrollAnimation;
use egui::{
    CornerRadius, FontId, Key, Pos2, Rect, Response, RichText, ScrollArea, Sense, Stroke,
    TextStyle, Ui, Vec2, WidgetInfo,
};

use crate::model::profile::{Profile, ProfileId};
use crate::model::progress::RunState;
use crate::model::untrusted::{Untrusted, shown};
use crate::present::text::{outcome_short, share, state};
use crate::present::units::ago;
use crate::store::profiles::Damaged;
use crate::ui::parts::controls::{field, icon_button, note, soft};
use crate::ui::parts::header::with_help;
use crate::ui::parts::icon::Icon;
use crate::ui::ports::ShelfItem;
use crate::ui::state::{Focus, State, Tone};
use crate::ui::theme::{Palette, palette, tokens};
use crate::ui::wish::{Deed, TABLE, Wish, keys};

/// Draws the list.
pub fn show(ui: &mut Ui, state: &mut State, wishes: &mut Vec<Wish>) {
    let space = &tokens().space;
    ui.horizontal(|ui| {
        let width = (ui.available_width() - space.control - space.gap).max(24.0);
        let search = field(ui, &mut state.search, "Search profiles", "Search", width);
        if state.focus == Some(Focus::Search) {
            search.request_focus();
            state.focus = None;
        }
        if search.has_focus() && ui.input(|i| i.key_pressed(Key::Escape)) {
            state.search.clear();
        }
        let help = format!("New profile ({})", keys(ui.ctx(), Deed::NewProfile));
        let new = icon_button(ui, Icon::Plus, &help, true).accessible_name("New profile");
        if new.clicked() {
            wishes.push(Wish::Do(Deed::NewProfile));
        }
    });
    ui.add_space(4.0);
    let needle = state.search.trim().to_lowercase();
    let p = palette(ui);
    ScrollArea::vertical()
        .id_salt("profiles")
        .auto_shrink(false)
        .show(ui, |ui| {
            ui.spacing_mut().item_spacing.y = 2.0;
            let mut any = false;
            let mut found = false;
            for item in &state.shelf {
                match item {
                    ShelfItem::Ready(profile) if matches(profile, &needle) => {
                        any = true;
                        let profile = current(state, profile);
                        let shown = row(ui, state, profile, wishes);
                        if state.sought_profile.as_ref() == Some(&profile.id) {
                            found = true;
                            shown.scroll_to_me_animation(None, ScrollAnimation::none());
                        }
                    }
                    ShelfItem::Ready(_) => {}
                    ShelfItem::Damaged(damaged) => {
                        any = true;
                        damaged_row(ui, damaged);
                    }
                }
            }
            if found {
                state.sought_profile = None;
            }
            if !any && state.loaded {
                ui.add_space(space.pad);
                let text = if needle.is_empty() {
                    "No profile yet. Make one with +, or drop files on the window."
                } else {
                    "No profile has that in its name or places."
                };
                note(ui, text, p.soft);
            }
        });
}

/// Returns the profile as it is edited right now, so that the list follows the typing.
fn current<'a>(state: &'a State, profile: &'a Profile) -> &'a Profile {
    match &state.draft {
        Some(draft) if draft.profile.id == profile.id => &draft.profile,
        _ => profile,
    }
}

fn matches(profile: &Profile, needle: &str) -> bool {
    needle.is_empty()
        || profile.name.to_lowercase().contains(needle)
        || profile
            .sources
            .iter()
            .chain(&profile.destinations)
            .any(|place| place.to_string().to_lowercase().contains(needle))
}

/// What the second line of a row says.
fn last_run(state_: &State, id: &ProfileId) -> (Icon, Tone, String) {
    let live = state_
        .jobs
        .iter()
        .rev()
        .find(|job| job.spec.profile.as_ref() == Some(id) && job.end.is_none());
    if let Some(job) = live {
        let text = match job.state {
            RunState::Running if job.progress.listed => format!("{} %", share(&job.progress)),
            run => state(&job.spec, run, job.progress.phase),
        };
        return (Icon::Play, Tone::Plain, text);
    }
    match state_.last_runs.get(id) {
        None => (Icon::Ring, Tone::Plain, "not run yet".to_owned()),
        Some(run) => {
            let (icon, tone) = outcome_sign(&run.outcome);
            let age = ago(u64::try_from(state_.wall - run.ended).unwrap_or_default());
            (
                icon,
                tone,
                format!("{}, {age}", outcome_short(&run.outcome, &run.report)),
            )
        }
    }
}

/// Returns the sign of an ending; its form differs as well as its colour.
pub fn outcome_sign(outcome: &crate::model::outcome::Outcome) -> (Icon, Tone) {
    use crate::model::outcome::Outcome;
    match outcome {
        Outcome::Completed => (Icon::Check, Tone::Good),
        Outcome::Partial(_) => (Icon::Warn, Tone::Warn),
        Outcome::Aborted(_) => (Icon::Minus, Tone::Plain),
        Outcome::Refused(_) | Outcome::Failed(_) => (Icon::Cross, Tone::Bad),
    }
}

/// Returns the colour of a tone.
pub fn tone_colour(p: &Palette, tone: Tone) -> egui::Color32 {
    match tone {
        Tone::Good => p.good,
        Tone::Plain => p.soft,
        Tone::Warn => p.warn,
        Tone::Bad => p.bad,
    }
}

fn row(ui: &mut Ui, state: &State, profile: &Profile, wishes: &mut Vec<Wish>) -> Response {
    let selected = state.selected.as_ref() == Some(&profile.id);
    let (icon, tone, under) = last_run(state, &profile.id);
    let name = match profile.name.trim() {
        "" => "Unnamed profile".to_owned(),
        name => shown(name.as_bytes()),
    };
    let response = two_lines(ui, selected, icon, tone, &name, &under);
    let response = response.on_hover_text(&name);
    if response.clicked() {
        wishes.push(Wish::SelectProfile(profile.id.clone()));
    }
    if response.double_clicked() {
        wishes.push(Wish::Do(Deed::Rename));
    }
    response.context_menu(|ui| {
        if !selected {
            wishes.push(Wish::SelectProfile(profile.id.clone()));
        }
        for row in TABLE.iter().filter(|row| on_a_profile(row.deed)) {
            let mut button = egui::Button::new(row.title);
            if let Some(keys) = &row.keys {
                button = button.shortcut_text(ui.ctx().format_shortcut(keys));
            }
            if with_help(ui.add(button), row).clicked() {
                wishes.push(Wish::Do(row.deed));
                ui.close();
            }
        }
    });
    response
}

fn on_a_profile(deed: Deed) -> bool {
    matches!(
        deed,
        Deed::Start
            | Deed::Simulate
            | Deed::Rename
            | Deed::Duplicate
            | Deed::Delete
            | Deed::MoveUp
            | Deed::MoveDown
    )
}

/// Draws one entry: sign, name, and a smaller line below; both lines are cut where they end.
fn two_lines(
    ui: &mut Ui,
    selected: bool,
    icon: Icon,
    tone: Tone,
    name: &str,
    under: &str,
) -> Response {
    const HEIGHT: f32 = 44.0;
    let p = palette(ui);
    let size = Vec2::new(ui.available_width().max(40.0), HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::click());
    let spoken = format!("{name}, {under}");
    response.widget_info(|| WidgetInfo::selected(egui::Role::Button, true, selected, &spoken));
    if !ui.is_rect_visible(rect) {
        return response;
    }
    let painter = ui.painter_at(rect);
    let radius = CornerRadius::same(tokens().space.radius);
    if selected {
        painter.rect_filled(rect, radius, p.selected);
    } else if response.hovered() {
        painter.rect_filled(rect, radius, p.button);
    }
    if response.has_focus() {
        let line = Stroke::new(1.0, p.accent);
        painter.rect_stroke(rect, radius, line, egui::StrokeKind::Inside);
    }
    let sign = Rect::from_center_size(rect.left_center() + Vec2::new(16.0, 0.0), Vec2::splat(14.0));
    icon.paint(&painter, sign, tone_colour(p, tone));
    let width = rect.width() - 38.0;
    let small = FontId::proportional(tokens().text.small);
    for (text, font, colour, y) in [
        (name, TextStyle::Body.resolve(ui.style()), p.text, 14.0),
        (under, small, p.soft, 32.0),
    ] {
        let text = RichText::new(text).font(font).color(colour);
        let galley = egui::WidgetText::from(text).into_galley(
            ui,
            Some(egui::TextWrapMode::Truncate),
            width.max(8.0),
            TextStyle::Body,
        );
        let at = Pos2::new(rect.left() + 30.0, rect.top() + y - galley.size().y / 2.0);
        painter.galley(at, galley, colour);
    }
    response
}

fn damaged_row(ui: &mut Ui, damaged: &Damaged) {
    let file = damaged.file.file_name().unwrap_or(damaged.file.as_os_str());
    let name = Untrusted::from(std::path::Path::new(file)).to_string();
    let reason = shown(damaged.reason.as_bytes());
    let under = match damaged.line {
        0 => reason,
        line => format!("line {line}, column {}: {reason}", damaged.column),
    };
    let response = two_lines(ui, false, Icon::Warn, Tone::Bad, &name, &under);
    response.on_hover_ui(|ui| {
        ui.label(Untrusted::from(&*damaged.file).to_string());
        soft(ui, &under);
        soft(
            ui,
            "The file is left as it is. Mend it with a text editor, or remove it.",
        );
    });
}
