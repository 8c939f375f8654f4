//! The throughput graph: goodput over time, of one job or of all.

use egui::{FontId, Stroke, TextStyle, Ui, WidgetInfo};
use egui_plot::{AxisHints, GridMark, Line, Plot, PlotPoints};

use crate::engine::{JobView, Totals};
use crate::present::units::{duration, rate};
use crate::ui::parts::job_row::title;
use crate::ui::theme::{palette, tokens};

/// The height of the plot.
pub const HEIGHT: f32 = 132.0;

/// Draws the graph of a job, or of all together when there is none.
pub fn show(ui: &mut Ui, job: Option<&JobView>, totals: &Totals, height: f32) {
    let points = match job {
        Some(job) => series(&job.series, job.series_step),
        None => series(&totals.series, totals.series_step),
    };
    let name = match job {
        Some(job) => format!("Throughput of {}", title(job)),
        None => "Throughput of all jobs".to_owned(),
    };
    let last = points.last().map_or(0.0, |p| p[1]);
    let top = points.iter().map(|p| p[1]).fold(0.0, f64::max);
    let p = palette(ui);
    // The top of the graph stands still until the curve outgrows it.
    let ceiling = nice_ceiling(top);
    let right = points.last().map_or(0.0, |p| p[0]).max(10.0);
    let parts = if height < 100.0 { 2 } else { 4 };
    let marks = move |_: egui_plot::GridInput| {
        (0..=parts)
            .map(|i| GridMark {
                value: ceiling * f64::from(i) / f64::from(parts),
                step_size: ceiling / f64::from(parts),
            })
            .collect::<Vec<_>>()
    };
    // Marks keep their full colour however close they stand.
    let close = egui::Rangef::new(1.0, 2.0);
    let zero = |value: f64, words: fn(f64) -> String| {
        if value > 0.0 {
            words(value)
        } else {
            String::new()
        }
    };
    let speeds = AxisHints::new_y()
        .min_thickness(76.0)
        .label_spacing(close)
        .formatter(move |mark, _| zero(mark.value, rate));
    let step = time_step(right);
    let ticks = move |_: egui_plot::GridInput| {
        // A mark at the very edge would be cut off.
        let ticks = (right * 0.96 / step) as u32;
        (0..=ticks)
            .map(|i| GridMark {
                value: f64::from(i) * step,
                step_size: step,
            })
            .collect()
    };
    let times = AxisHints::new_x()
        .label_spacing(close)
        .formatter(move |mark, _| zero(mark.value, duration));
    let small = FontId::proportional(tokens().text.small);
    ui.style_mut().text_styles.insert(TextStyle::Body, small);
    ui.visuals_mut().override_text_color = Some(p.soft);
    let shown = Plot::new("throughput")
        .height(height)
        .allow_zoom(false)
        .allow_drag(false)
        .allow_scroll(false)
        .allow_boxed_zoom(false)
        .allow_axis_zoom_drag(false)
        .allow_double_click_reset(false)
        .show_crosshair(false)
        .show_background(false)
        .show_grid([false, true])
        .grid_color(p.line)
        .x_grid_spacer(ticks)
        .y_grid_spacer(marks)
        .custom_y_axes(vec![speeds])
        .custom_x_axes(vec![times])
        .label_formatter(|_| None)
        .show(ui, |plot| {
            plot.set_plot_bounds_x(0.0..=right);
            plot.set_plot_bounds_y(0.0..=ceiling * 1.04);
            let line = Line::new(name.clone(), PlotPoints::from(points))
                .color(p.graph)
                .stroke(Stroke::new(1.8, p.graph))
                .fill(0.0)
                .fill_alpha(0.14)
                .allow_hover(false);
            plot.line(line);
        });
    let words = format!("{name}: {} now, {} at most", rate(last), rate(top));
    shown
        .response
        .widget_info(|| WidgetInfo::labeled(egui::Role::Image, true, &words));
}

fn series(values: &[f32], step: f32) -> Vec<[f64; 2]> {
    let step = f64::from(step);
    values
        .iter()
        .enumerate()
        .map(|(i, v)| [i as f64 * step, f64::from(*v)])
        .collect()
}

/// Returns the next of 1, 2, 4, 8 ... MiB/s and so on that is not below the value.
fn nice_ceiling(top: f64) -> f64 {
    let mut ceiling = 1024.0 * 1024.0;
    while ceiling < top && ceiling < 1e15 {
        ceiling *= 2.0;
    }
    ceiling
}

/// Returns a round number of seconds that divides the time shown into at most six parts.
fn time_step(right: f64) -> f64 {
    const STEPS: [f64; 9] = [2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0];
    let most = |step: &f64| right / step <= 6.0;
    STEPS
        .into_iter()
        .find(most)
        .unwrap_or((right / 6.0 / 3600.0).ceil() * 3600.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_of_the_graph_stands_still_while_the_curve_moves_below_it() {
        assert_eq!(nice_ceiling(0.0), 1_048_576.0);
        assert_eq!(nice_ceiling(100.0 * 1_048_576.0), 128.0 * 1_048_576.0);
        assert_eq!(nice_ceiling(127.0 * 1_048_576.0), 128.0 * 1_048_576.0);
        assert!(nice_ceiling(f64::INFINITY).is_finite());
    }

    #[test]
    fn times_are_marked_at_round_numbers_and_never_too_closely() {
        for (right, step) in [
            (10.0, 2.0),
            (119.5, 20.0),
            (600.0, 120.0),
            (36_000.0, 7200.0),
        ] {
            assert_eq!(time_step(right), step);
        }
    }
}
