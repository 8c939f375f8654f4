//! The look: colours, sizes and distances as tokens, read from `assets/theme.toml`.
//!
//! Widgets hold no colour and no distance of their own; they ask [`palette`] and [`tokens`].

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use egui::{
    Color32, Context, CornerRadius, FontFamily, FontId, Margin, Shadow, Stroke, Style, TextStyle,
    Theme, Ui, Vec2,
};
use serde::{Deserialize, Deserializer};

/// Everything that `assets/theme.toml` says.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// Distances.
    pub space: Space,
    /// Text sizes.
    pub text: TextSizes,
    light: Palette,
    dark: Palette,
}

/// Distances in points.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Space {
    /// Between neighbours.
    pub gap: f32,
    /// Inside cards and panels.
    pub pad: f32,
    /// The height of a table row.
    pub row: f32,
    /// The least height of a button or field.
    pub control: f32,
    /// Corner radius of controls.
    pub radius: u8,
    /// Corner radius of cards and dialogs.
    pub card_radius: u8,
}

/// Text sizes in points.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextSizes {
    /// Notes and axis labels.
    pub small: f32,
    /// Most text.
    pub body: f32,
    /// The title of a job.
    pub title: f32,
    /// The name of a profile.
    pub heading: f32,
    /// Digests and logs.
    pub mono: f32,
}

/// The colours of one theme, by use.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "assets/theme.toml says what each is for")]
pub struct Palette {
    #[serde(deserialize_with = "colour")]
    pub ground: Color32,
    #[serde(deserialize_with = "colour")]
    pub panel: Color32,
    #[serde(deserialize_with = "colour")]
    pub card: Color32,
    #[serde(deserialize_with = "colour")]
    pub field: Color32,
    #[serde(deserialize_with = "colour")]
    pub button: Color32,
    #[serde(deserialize_with = "colour")]
    pub button_hover: Color32,
    #[serde(deserialize_with = "colour")]
    pub button_press: Color32,
    #[serde(deserialize_with = "colour")]
    pub line: Color32,
    #[serde(deserialize_with = "colour")]
    pub text: Color32,
    #[serde(deserialize_with = "colour")]
    pub soft: Color32,
    #[serde(deserialize_with = "colour")]
    pub accent: Color32,
    #[serde(deserialize_with = "colour")]
    pub accent_hover: Color32,
    #[serde(deserialize_with = "colour")]
    pub on_accent: Color32,
    #[serde(deserialize_with = "colour")]
    pub selected: Color32,
    #[serde(deserialize_with = "colour")]
    pub good: Color32,
    #[serde(deserialize_with = "colour")]
    pub warn: Color32,
    #[serde(deserialize_with = "colour")]
    pub bad: Color32,
    #[serde(deserialize_with = "colour")]
    pub stripe: Color32,
    #[serde(deserialize_with = "colour")]
    pub track: Color32,
    #[serde(deserialize_with = "colour")]
    pub graph: Color32,
    #[serde(deserialize_with = "colour")]
    pub veil: Color32,
    #[serde(deserialize_with = "colour")]
    pub shade: Color32,
}

fn colour<'de, D: Deserializer<'de>>(from: D) -> Result<Color32, D::Error> {
    let text = String::deserialize(from)?;
    Color32::from_hex(&text).map_err(|_| {
        serde::de::Error::custom(format!("'{text}' is no colour; write #rrggbb or #rrggbbaa"))
    })
}

static TOKENS: LazyLock<Tokens> = LazyLock::new(|| {
    toml_edit::de::from_str(include_str!("../../assets/theme.toml"))
        .expect("theme.toml is part of the program and read by a test")
});

/// Returns the tokens that do not depend on light or dark.
pub fn tokens() -> &'static Tokens {
    &TOKENS
}

/// Returns the colours of the theme that this part of the window is drawn in.
pub fn palette(ui: &Ui) -> &'static Palette {
    palette_of(if ui.visuals().dark_mode {
        Theme::Dark
    } else {
        Theme::Light
    })
}

/// Returns the colours of a theme.
pub fn palette_of(theme: Theme) -> &'static Palette {
    match theme {
        Theme::Dark => &TOKENS.dark,
        Theme::Light => &TOKENS.light,
    }
}

/// Returns the text style for digests and logs.
pub fn mono() -> FontId {
    FontId::new(TOKENS.text.mono, FontFamily::Monospace)
}

/// Gives the window its fonts and both looks.
pub fn install(ctx: &Context) {
    let mut fonts = egui::FontDefinitions::default();
    // The proportional fonts have no arrows; the monospaced one, which is linked in anyway, has.
    if let Some(family) = fonts.families.get_mut(&FontFamily::Proportional) {
        family.push("Hack".to_owned());
    }
    ctx.set_fonts(fonts);
    for theme in [Theme::Dark, Theme::Light] {
        ctx.set_style_of(theme, Arc::new(style(theme)));
    }
}

fn style(theme: Theme) -> Style {
    let Tokens { space, text, .. } = tokens();
    let p = palette_of(theme);
    let mut style = Style {
        visuals: theme.default_visuals(),
        text_styles: BTreeMap::from([
            (
                TextStyle::Small,
                FontId::new(text.small, FontFamily::Proportional),
            ),
            (
                TextStyle::Body,
                FontId::new(text.body, FontFamily::Proportional),
            ),
            (
                TextStyle::Button,
                FontId::new(text.body, FontFamily::Proportional),
            ),
            (
                TextStyle::Heading,
                FontId::new(text.heading, FontFamily::Proportional),
            ),
            (TextStyle::Monospace, mono()),
        ]),
        animation_time: 0.0,
        ..Style::default()
    };
    style.spacing.item_spacing = Vec2::splat(space.gap);
    style.spacing.button_padding = Vec2::new(space.gap + 2.0, 4.0);
    style.spacing.interact_size = Vec2::new(space.control, space.control);
    style.spacing.window_margin = Margin::same(space.pad as i8 + 4);
    style.spacing.menu_margin = Margin::same(6);
    style.spacing.combo_width = 120.0;
    // The menu is longer than the usual popup.
    style.spacing.default_area_size = Vec2::new(600.0, 1000.0);
    style.spacing.icon_width = 18.0;
    style.spacing.icon_width_inner = 10.0;
    style.spacing.tooltip_width = 420.0;
    style.spacing.scroll.bar_width = 8.0;
    style.spacing.scroll.floating_width = 4.0;
    style.interaction.selectable_labels = false;
    style.interaction.tooltip_delay = 0.4;

    let radius = CornerRadius::same(space.radius);
    let card_radius = CornerRadius::same(space.card_radius);
    let v = &mut style.visuals;
    v.override_text_color = None;
    v.weak_text_color = Some(p.soft);
    v.hyperlink_color = p.accent;
    v.faint_bg_color = p.stripe;
    v.extreme_bg_color = p.field;
    v.text_edit_bg_color = Some(p.field);
    v.code_bg_color = p.track;
    v.warn_fg_color = p.warn;
    v.error_fg_color = p.bad;
    v.panel_fill = p.ground;
    v.window_fill = p.card;
    v.window_stroke = Stroke::new(1.0, p.line);
    v.window_corner_radius = card_radius;
    v.menu_corner_radius = card_radius;
    v.popup_shadow = Shadow {
        offset: [0, 4],
        blur: 16,
        spread: 0,
        color: p.shade.gamma_multiply(0.5),
    };
    v.window_shadow = v.popup_shadow;
    v.selection.bg_fill = p.selected;
    v.selection.stroke = Stroke::new(1.0, p.accent);
    v.disabled_alpha = 0.45;
    let w = &mut v.widgets;
    for (state, fill, line) in [
        (&mut w.noninteractive, p.card, p.line),
        (&mut w.inactive, p.button, p.line),
        (&mut w.hovered, p.button_hover, p.soft),
        (&mut w.active, p.button_press, p.accent),
        (&mut w.open, p.button_hover, p.line),
    ] {
        // Boxes to tick are filled like fields, buttons with the other fill.
        state.bg_fill = p.field;
        state.weak_bg_fill = fill;
        state.bg_stroke = Stroke::new(1.0, line);
        state.fg_stroke = Stroke::new(1.0, p.text);
        state.corner_radius = radius;
        state.expansion = 0.0;
    }
    style
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Contrast of two opaque colours as the Web Content Accessibility Guidelines define it.
    fn contrast(a: Color32, b: Color32) -> f32 {
        let light = |c: Color32| {
            let [r, g, b, _] = egui::Rgba::from(c).to_array();
            0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05
        };
        let (a, b) = (light(a), light(b));
        a.max(b) / a.min(b)
    }

    #[test]
    fn every_text_can_be_read_on_its_ground() {
        for theme in [Theme::Dark, Theme::Light] {
            let p = palette_of(theme);
            for ground in [p.ground, p.panel, p.card, p.field, p.stripe, p.selected] {
                for ink in [p.text, p.soft, p.good, p.warn, p.bad] {
                    let got = contrast(ink, ground);
                    assert!(got >= 4.5, "{theme:?}: {ink:?} on {ground:?} has {got}");
                }
            }
            assert!(contrast(p.accent, p.selected) >= 4.5, "{theme:?}");
            for fill in [p.accent, p.accent_hover] {
                assert!(contrast(p.on_accent, fill) >= 4.5, "{theme:?}");
            }
            for fill in [p.button, p.button_hover, p.button_press] {
                assert!(contrast(p.text, fill) >= 4.5, "{theme:?}");
            }
        }
    }
}
