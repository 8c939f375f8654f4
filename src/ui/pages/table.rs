//! What all tables share: their look, and the limit up to which rows can be placed exactly.

use egui::{Align, Layout, RichText, Ui};
use egui_extras::{Column, TableBuilder, TableRow};

use crate::ui::parts::controls::right;
use crate::ui::theme::{palette, tokens};

/// As many rows as a table can place to the pixel: positions are 32-bit floats, and with a row
/// height that is a multiple of 4 they are exact up to 2^26 points.
pub const MOST_ROWS: usize = 2_000_000;

/// Between two columns.
pub const GAP: f32 = 12.0;

/// Begins a table: striped, with cells that are centred in height.
pub fn begin<'a>(ui: &'a mut Ui, name: &str, columns: &[Column]) -> TableBuilder<'a> {
    ui.spacing_mut().item_spacing = egui::Vec2::new(GAP, 0.0);
    let mut table = TableBuilder::new(ui)
        .id_salt(name)
        .striped(true)
        .auto_shrink(false)
        .animate_scrolling(false)
        .cell_layout(Layout::left_to_right(Align::Center));
    for column in columns {
        table = table.column(*column);
    }
    table
}

/// Divides the width that fixed columns leave, by weight, each part between its bounds.
pub fn parts<const N: usize>(rest: f32, parts: [(f32, f32, f32); N]) -> [f32; N] {
    let weights: f32 = parts.iter().map(|(weight, ..)| weight).sum();
    parts.map(|(weight, least, most)| (rest * weight / weights).clamp(least, most).floor())
}

/// The height of a row.
pub fn row_height() -> f32 {
    tokens().space.row
}

/// Draws a column's heading; numbers stand at the right, and so do their headings.
pub fn head(row: &mut TableRow<'_, '_>, words: &str, number: bool) {
    row.col(|ui| {
        let colour = palette(ui).soft;
        let text = RichText::new(words).color(colour).size(tokens().text.small);
        if number {
            right(ui, text);
        } else {
            ui.label(text);
        }
    });
}

/// Puts a table into a sideways scroll where the window is too narrow for its columns.
pub fn at_least<R>(ui: &mut Ui, width: f32, contents: impl FnOnce(&mut Ui) -> R) -> R {
    if ui.available_width() >= width {
        return contents(ui);
    }
    egui::ScrollArea::horizontal()
        .id_salt("sideways")
        .auto_shrink(false)
        .show(ui, |ui| {
            ui.set_min_width(width);
            ui.set_max_width(width);
            contents(ui)
        })
        .inner
}
