//! While something is dragged over the window, the whole window becomes the target and says what
//! will happen: send it once, or add it to the profile.

use egui::{
    Align2, Context, CornerRadius, FontId, Id, LayerId, Order, Pos2, Rect, Stroke, StrokeKind, Vec2,
};

use crate::model::untrusted::shown;
use crate::present::units::count;
use crate::ui::parts::icon::Icon;
use crate::ui::state::{Drag, State, Target};
use crate::ui::theme::{palette_of, tokens};

/// Divides the window into its targets: the upper two thirds send, the lower third adds. With
/// nothing to add to, all of it sends.
pub fn zones(area: Rect, can_add: bool) -> (Rect, Option<Rect>) {
    let margin = 16.0_f32.min(area.width() / 8.0).min(area.height() / 8.0);
    let area = area.shrink(margin);
    if !can_add {
        return (area, None);
    }
    let cut = area.top() + area.height() * 2.0 / 3.0;
    let (mut send, mut add) = (area, area);
    send.max.y = cut - margin / 2.0;
    add.min.y = cut + margin / 2.0;
    (send, Some(add))
}

/// Returns what a drop at this place does. A desktop that tells no place can only send.
pub fn target(state: &State, position: Option<Pos2>) -> Target {
    let Some(id) = state.selected.clone() else {
        return Target::Send(None);
    };
    let add = state.area.and_then(|area| zones(area, true).1);
    match (position, add) {
        // The strip between the two belongs to the lower one only below its middle.
        (Some(at), Some(add)) if at.y >= add.top() => Target::Sources(id),
        _ => Target::Send(Some(id)),
    }
}

/// Says what the two targets do.
pub fn words(state: &State, drag: Drag) -> (String, Option<String>) {
    let items = match drag.count {
        Some(1) => "1 item".to_owned(),
        Some(n) => format!("{} items", count(n as u64)),
        None => "the items".to_owned(),
    };
    let Some(draft) = state.draft.as_ref().filter(|_| state.selected.is_some()) else {
        return (format!("Send {items}: you are asked where to"), None);
    };
    let send = match &draft.destination.place {
        Some(place) => format!("Send {items} to {place}"),
        None => format!("Send {items}: you are asked where to"),
    };
    let name = shown(draft.profile.name.as_bytes());
    let add = (drag.position.is_some()).then(|| format!("Add to the sources of {name}"));
    (send, add)
}

/// Draws the targets over everything.
pub fn show(ctx: &Context, state: &State) {
    let Some(drag) = state.drag else {
        return;
    };
    let p = palette_of(ctx.theme());
    let area = ctx.content_rect();
    let painter = ctx.layer_painter(LayerId::new(Order::Foreground, Id::unique("drop zone")));
    painter.rect_filled(area, 0.0, p.veil);
    let (send_words, add_words) = words(state, drag);
    let (send, add) = zones(area, add_words.is_some());
    let here = target(state, drag.position);
    let send_here = matches!(here, Target::Send(_));
    let zone = |rect: Rect, icon: Icon, title: &str, below: &str, lit: bool| {
        let radius = CornerRadius::same(tokens().space.card_radius + 4);
        let (fill, line) = if lit {
            (p.selected, p.accent)
        } else {
            (p.card, p.line)
        };
        painter.rect(
            rect,
            radius,
            fill,
            Stroke::new(2.0, line),
            StrokeKind::Inside,
        );
        let ink = if lit { p.text } else { p.soft };
        let width = (rect.width() - 32.0).max(8.0);
        let title = painter.layout(
            title.to_owned(),
            FontId::proportional(tokens().text.heading),
            ink,
            width,
        );
        let below = painter.layout(
            below.to_owned(),
            FontId::proportional(tokens().text.body),
            p.soft,
            width,
        );
        let clipped = painter.with_clip_rect(rect);
        let sign = Rect::from_center_size(
            rect.center() - Vec2::new(0.0, title.size().y / 2.0 + 28.0),
            Vec2::splat(32.0),
        );
        icon.paint(&clipped, sign, if lit { p.accent } else { p.soft });
        let at = Align2::CENTER_CENTER.anchor_size(rect.center(), title.size());
        let under =
            Align2::CENTER_TOP.anchor_size(at.center_bottom() + Vec2::new(0.0, 8.0), below.size());
        clipped.galley(at.min, title, ink);
        clipped.galley(under.min, below, p.soft);
    };
    let promise =
        "One job, this once. Nothing is deleted there; you are asked before anything is replaced.";
    zone(send, Icon::Into, &send_words, promise, send_here);
    if let (Some(rect), Some(words)) = (add, add_words) {
        zone(rect, Icon::Plus, &words, "Nothing is sent yet.", !send_here);
    }
    // Painted text is not in the accessibility tree: say it there too.
    let name = match words(state, drag) {
        (send, Some(add)) => format!("{send}; or {add}"),
        (send, None) => send,
    };
    egui::Area::new(Id::unique("drop zone words"))
        .order(Order::Foreground)
        .fixed_pos(area.min)
        .interactable(false)
        .show(ctx, |ui| {
            let (_, response) = ui.allocate_exact_size(Vec2::splat(1.0), egui::Sense::hover());
            response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &name));
        });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_targets_fill_the_window_and_never_overlap() {
        for size in [
            Vec2::new(900.0, 600.0),
            Vec2::new(200.0, 120.0),
            Vec2::new(1.0, 1.0),
        ] {
            let area = Rect::from_min_size(Pos2::ZERO, size);
            let (send, add) = zones(area, true);
            let add = add.unwrap();
            assert!(send.max.y <= add.min.y);
            assert!(area.contains_rect(send) && area.contains_rect(add));
            assert!(send.height() >= add.height());
        }
    }

    #[test]
    fn without_a_profile_a_drop_can_only_be_sent() {
        let state = State::default();
        assert_eq!(
            target(&state, Some(Pos2::new(5.0, 500.0))),
            Target::Send(None)
        );
        let drag = Drag {
            position: None,
            count: Some(14),
        };
        assert_eq!(
            words(&state, drag),
            ("Send 14 items: you are asked where to".to_owned(), None)
        );
    }
}
