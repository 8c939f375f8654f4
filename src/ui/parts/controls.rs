//! The controls that every page uses: buttons with icons, fields with names, cards.

use egui::{
    Align, Atom, Button, Color32, ComboBox, CornerRadius, Frame, IdSalt, Layout, Margin, Response,
    RichText, Sense, Stroke, TextEdit, Ui, Vec2, WidgetInfo, WidgetText,
};

use crate::ui::parts::icon::Icon;
use crate::ui::theme::{palette, tokens};

/// How big an icon is beside text.
pub const ICON: f32 = 14.0;

/// Shows a button that is only an icon; `name` is its help and its accessible name.
pub fn icon_button(ui: &mut Ui, icon: Icon, name: &str, enabled: bool) -> Response {
    let space = &tokens().space;
    let button = Button::new("")
        .min_size(Vec2::splat(space.control))
        .frame_when_inactive(false);
    let response = ui.add_enabled(enabled, button);
    let p = palette(ui);
    let colour = if !enabled {
        p.soft.gamma_multiply(0.5)
    } else if response.hovered() || response.has_focus() {
        p.text
    } else {
        p.soft
    };
    icon.paint(ui.painter(), response.rect.shrink(7.0), colour);
    response.on_hover_text(name).accessible_name(name)
}

/// How loud a button is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// The one thing to do next.
    Main,
    /// Everything else.
    Plain,
}

/// Shows a button with an icon before its words.
pub fn button(
    ui: &mut Ui,
    icon: Option<Icon>,
    words: &str,
    weight: Weight,
    enabled: bool,
) -> Response {
    let p = palette(ui);
    let (ink, fill) = match weight {
        Weight::Main => (p.on_accent, Some(p.accent)),
        Weight::Plain => (p.text, None),
    };
    let slot = IdSalt::new("icon");
    let text = RichText::new(words).color(ink);
    let mut button = match icon {
        Some(_) => Button::new((Atom::custom(slot, Vec2::splat(ICON)), text)),
        None => Button::new(text),
    };
    button = button
        .min_size(Vec2::new(0.0, tokens().space.control))
        .wrap_mode(egui::TextWrapMode::Extend);
    if let Some(fill) = fill {
        button = button.fill(fill).stroke(Stroke::NONE);
    }
    ui.add_enabled_ui(enabled, |ui| {
        let shown = button.atom_ui(ui);
        if let (Some(icon), Some(rect)) = (icon, shown.rect(slot)) {
            // The ui's painter fades what is disabled, so the plain colour is right here.
            icon.paint(ui.painter(), rect, ink);
        }
        shown.response
    })
    .inner
    .accessible_name(words)
}

/// Shows a field of one line; `name` is its accessible name.
pub fn field(ui: &mut Ui, text: &mut String, name: &str, hint: &str, width: f32) -> Response {
    // Fonts of other scripts are higher than ours; the row keeps its height.
    ui.add(
        TextEdit::singleline(text)
            .hint_text(RichText::new(hint.to_owned()).color(palette(ui).soft))
            .desired_width(width)
            .min_size(Vec2::new(0.0, tokens().space.control))
            .margin(Margin::symmetric(8, 4))
            .align(egui::Align2::LEFT_CENTER),
    )
    .accessible_name(name)
}

/// Shows a word and a choice beside it, kept together on one line; the word is its accessible name.
pub fn choice(
    ui: &mut Ui,
    name: &str,
    chosen: &str,
    width: f32,
    contents: impl FnOnce(&mut Ui),
) -> Response {
    ui.horizontal(|ui| {
        let label = soft(ui, name).id;
        // A popup stays open until somebody chooses, so what it holds is drawn only then.
        ComboBox::from_id_salt(name)
            .selected_text(chosen)
            .width(width)
            .icon(|ui, rect, _, _| {
                let colour = palette(ui).soft;
                let middle = egui::Rect::from_center_size(rect.center(), Vec2::splat(12.0));
                Icon::Down.paint(ui.painter(), middle, colour);
            })
            .show_ui(ui, contents)
            .response
            .labelled_by(label)
    })
    .inner
}

/// Shows a card with contents.
pub fn card<R>(ui: &mut Ui, selected: bool, contents: impl FnOnce(&mut Ui) -> R) -> (Response, R) {
    let p = palette(ui);
    let space = &tokens().space;
    let line = if selected { p.accent } else { p.line };
    let shown = Frame::new()
        .fill(p.card)
        .stroke(Stroke::new(1.0, line))
        .corner_radius(CornerRadius::same(space.card_radius))
        .inner_margin(Margin::same(space.pad as i8))
        .show(ui, contents);
    (shown.response, shown.inner)
}

/// Shows an icon as part of a line of text.
pub fn icon(ui: &mut Ui, icon: Icon, colour: Color32) {
    let (rect, _) = ui.allocate_exact_size(Vec2::splat(ICON), Sense::hover());
    icon.paint(ui.painter(), rect, colour);
}

/// Shows less important text.
pub fn soft(ui: &mut Ui, text: impl Into<String>) -> Response {
    let colour = palette(ui).soft;
    ui.label(RichText::new(text).color(colour))
}

/// Shows a small note in a colour, broken over lines where it must.
pub fn note(ui: &mut Ui, text: impl Into<String>, colour: Color32) -> Response {
    ui.add(egui::Label::new(RichText::new(text).color(colour).size(tokens().text.small)).wrap())
}

/// Shows text that ends in "…" where it does not fit; the whole shows while hovered.
pub fn cut(ui: &mut Ui, text: impl Into<WidgetText>) -> Response {
    ui.add(egui::Label::new(text).truncate())
}

/// Shows text at the right edge of a table cell, as numbers are read.
pub fn right(ui: &mut Ui, text: impl Into<WidgetText>) {
    ui.with_layout(Layout::right_to_left(Align::Center), |ui| cut(ui, text));
}

/// Shows a bar that is filled so far; `None` means that the total is not known.
pub fn bar(ui: &mut Ui, share: Option<f32>, colour: Color32, name: &str) -> Response {
    const HEIGHT: f32 = 6.0;
    let size = Vec2::new(ui.available_width().max(8.0), HEIGHT);
    let (rect, response) = ui.allocate_exact_size(size, Sense::hover());
    let p = palette(ui);
    let painter = ui.painter();
    painter.rect_filled(rect, HEIGHT / 2.0, p.track);
    let mut done = rect;
    match share {
        Some(share) if share > 0.0 => {
            done.set_width((rect.width() * share.clamp(0.0, 1.0)).max(HEIGHT));
            painter.rect_filled(done, HEIGHT / 2.0, colour);
        }
        Some(_) => {}
        // Three short pieces: at work, but nobody can say how far. It does not move, so that a
        // waiting window costs nothing.
        None => {
            for i in 0..3 {
                let mut piece = rect;
                piece.set_width(rect.width() / 7.0);
                let piece =
                    piece.translate(Vec2::new(rect.width() * (1.0 + 2.0 * i as f32) / 7.0, 0.0));
                painter.rect_filled(piece, HEIGHT / 2.0, colour.gamma_multiply(0.6));
            }
        }
    }
    let value = share.map(f64::from);
    response.widget_info(|| {
        let mut info = WidgetInfo::labeled(egui::Role::ProgressIndicator, true, name);
        info.value = value;
        info
    });
    response
}
