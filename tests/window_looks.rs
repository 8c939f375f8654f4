//! How the window looks and what a frame of it costs, drawn by the processor alone.
#![allow(clippy::unwrap_used)] // tests may panic

#[path = "support/cpu_renderer.rs"]
mod cpu_renderer;
#[path = "support/fake_ports.rs"]
mod fake_ports;
#[path = "support/stage.rs"]
mod stage;

use std::sync::Arc;
use std::time::Instant;

use egui_kittest::kittest::Queryable as _;
use fake_ports::{World, ended, profile, running, totals, unreachable};
use stage::{Stage, open, open_sized, with_profiles};
use transload::model::drop::{DropEvent, DroppedItem};
use transload::model::event::{Question, QuestionKind};
use transload::model::outcome::Outcome;
use transload::store::profiles::Damaged;
use transload::ui::ports::{Look, Picked, ShelfItem};
use transload::ui::state::Tab;

/// Opens a table of so many rows, scrolls through it, and returns the slowest frame in
/// milliseconds.
fn slowest_frame(rows: usize) -> f64 {
    let mut stage = open(World {
        rows,
        steps: rows,
        ..with_profiles()
    });
    let mut job = ended(1, "Photos", Outcome::Completed);
    job.plan = Some(totals());
    stage.set_jobs(vec![job]);
    let mut slowest: f64 = 0.0;
    for tab in ["Verification", "Plan"] {
        stage.click(tab);
        let middle = egui::pos2(650.0, 550.0);
        stage.window.hover_at(middle);
        stage.window.run();
        for _ in 0..40 {
            stage.window.event(egui::Event::MouseWheel {
                unit: egui::MouseWheelUnit::Point,
                delta: egui::vec2(0.0, -(rows as f32)),
                phase: egui::TouchPhase::Move,
                modifiers: egui::Modifiers::NONE,
                source: egui::MouseWheelSource::Wheel,
            });
            let start = Instant::now();
            stage.window.step();
            slowest = slowest.max(start.elapsed().as_secs_f64() * 1000.0);
        }
    }
    let world = stage.world.borrow();
    let widest = world.asked.iter().map(|range| range.len()).max().unwrap();
    assert!(
        widest < 300,
        "only what is on screen is asked for, not {widest} rows"
    );
    let furthest = world.asked.iter().map(|range| range.end).max().unwrap();
    assert!(furthest > rows / 2, "it was scrolled: {furthest} of {rows}");
    slowest
}

#[test]
fn ten_thousand_and_a_million_rows_scroll_equally_well() {
    let (few, many) = (slowest_frame(10_000), slowest_frame(1_000_000));
    println!("slowest frame: {few:.1} ms with 10 000 rows, {many:.1} ms with 1 000 000");
    // A generous bound for a test build on a busy machine; a frame that grew with the number of
    // rows would be a thousand times over it.
    assert!(many < few.max(20.0) * 5.0, "{few} ms, then {many} ms");
}

/// Draws the window and keeps the picture where a person can look at it.
fn picture(name: &str, theme: egui::Theme, size: [f32; 2], scale: f32, mut world: World, tab: Tab) {
    // Jobs that are there from the start ended long ago and only the history has them.
    let jobs = std::mem::take(&mut world.jobs);
    let mut stage = open_sized(world, size, |builder| {
        builder
            .with_theme(theme)
            .with_pixels_per_point(scale)
            .with_render_cursor(false)
            .renderer(cpu_renderer::CpuRenderer::default())
    });
    let look = match theme {
        egui::Theme::Dark => Look::Dark,
        egui::Theme::Light => Look::Light,
    };
    stage.window.state_mut().state.look = look;
    stage.window.state_mut().state.tab = tab;
    stage.set_jobs(Vec::clone(&jobs));
    save_picture(&mut stage, name);
}

fn save_picture(stage: &mut Stage, name: &str) {
    let image = stage.window.render().expect("the window can be drawn");
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("window");
    std::fs::create_dir_all(&folder).unwrap();
    image.save(folder.join(format!("{name}.png"))).unwrap();
    let first = *image.get_pixel(1, 1);
    assert!(
        image.pixels().any(|pixel| *pixel != first),
        "{name} is one colour"
    );
}

#[test]
fn the_window_can_be_drawn_in_both_looks_at_both_scales_and_sizes() {
    use egui::Theme::{Dark, Light};
    let busy = || {
        let mut damaged = with_profiles();
        damaged.rows = 10_000;
        damaged.steps = 60;
        damaged.shelf.push(ShelfItem::Ready(Arc::new(profile(
            3,
            "Ein sehr langer Name, der in keine Liste passt, и по-русски тоже не короче",
        ))));
        damaged.shelf.push(ShelfItem::Damaged(Damaged {
            id: None,
            file: "/home/me/.config/transload/profiles/backup-1a2b3c4d.toml".into(),
            line: 7,
            column: 3,
            reason: "'mthod' is not a field".to_owned(),
        }));
        let mut plan = ended(4, "Plan", Outcome::Completed);
        plan.plan = Some(totals());
        let mut waiting = fake_ports::job(fake_ports::spec(2, "Music \u{2192} nas"));
        waiting.progress.bytes_total = 0;
        damaged.jobs = Arc::new(vec![
            running(1, "Photos \u{2192} nas"),
            waiting,
            ended(3, "Backup \u{2192} usb", Outcome::Failed(unreachable())),
            plan,
        ]);
        damaged.runs = (0..40).map(fake_ports::run).collect();
        damaged
    };
    for (theme, name) in [(Light, "light"), (Dark, "dark")] {
        picture(
            &format!("empty-{name}"),
            theme,
            [900.0, 600.0],
            1.0,
            World::default(),
            Tab::Queue,
        );
        for (size, scale) in [
            ([900.0, 600.0], 1.0),
            ([1600.0, 1000.0], 1.0),
            ([900.0, 600.0], 2.0),
        ] {
            let at = format!("{}x{}@{scale}", size[0], size[1]);
            picture(
                &format!("queue-{name}-{at}"),
                theme,
                size,
                scale,
                busy(),
                Tab::Queue,
            );
        }
        for tab in [Tab::Verification, Tab::Plan, Tab::History, Tab::Log] {
            let at = format!("{}-{name}", tab.title().to_lowercase());
            picture(&at, theme, [1100.0, 720.0], 1.0, busy(), tab);
            picture(&(at + "-small"), theme, [900.0, 600.0], 2.0, busy(), tab);
        }
    }
    picture("tiny", Light, [200.0, 120.0], 1.0, busy(), Tab::Queue);
    let one = World { rows: 1, ..busy() };
    picture(
        "one-row",
        Light,
        [1100.0, 720.0],
        1.0,
        one,
        Tab::Verification,
    );
}

#[test]
fn what_lies_over_the_window_can_be_drawn() {
    use egui::Theme::{Dark, Light};
    for (theme, look, name) in [(Light, Look::Light, "light"), (Dark, Look::Dark, "dark")] {
        let mut stage = open_sized(with_profiles(), [1100.0, 720.0], |builder| {
            builder
                .with_theme(theme)
                .with_render_cursor(false)
                .renderer(cpu_renderer::CpuRenderer::default())
        });
        stage.window.state_mut().state.look = look;
        let mut job = running(1, "Photos \u{2192} nas");
        let hover = DropEvent::Hover {
            position: (500, 200),
            count: Some(14),
        };
        stage.drops.send(hover).unwrap();
        stage.set_jobs(vec![job.clone()]);
        save_picture(&mut stage, &format!("drag-{name}"));
        let items = vec![
            DroppedItem::Refused {
                text: b"file:///home/me/gone \xff.txt".to_vec().into(),
                why: "it is no longer there".to_owned(),
            },
            DroppedItem::Path("/home/me/new".into()),
        ];
        stage
            .drops
            .send(DropEvent::Dropped {
                position: (500, 690),
                items,
            })
            .unwrap();
        stage.settle();
        save_picture(&mut stage, &format!("refused-{name}"));
        stage.press("OK");
        save_picture(&mut stage, &format!("toast-{name}"));
        let examples = (0..20)
            .map(|i| format!("Pictures/IMG_{i:04}.CR3").into_bytes())
            .collect();
        let kind = QuestionKind::Conflicts {
            count: 1234,
            examples,
        };
        job.question = Some(Question { id: 1, kind });
        stage.set_jobs(vec![job.clone()]);
        save_picture(&mut stage, &format!("conflicts-{name}"));
        let kind = QuestionKind::UploadAgent {
            host: "nas".into(),
            bytes: 3 << 20,
        };
        job.question = Some(Question { id: 2, kind });
        stage.set_jobs(vec![job.clone()]);
        save_picture(&mut stage, &format!("upload-{name}"));
        job.question = None;
        stage.set_jobs(vec![job]);
        stage.click("Advanced");
        save_picture(&mut stage, &format!("advanced-{name}"));
        stage.press("Menu");
        for _ in 0..4 {
            stage.window.key_press(egui::Key::ArrowDown);
            stage.settle();
        }
        save_picture(&mut stage, &format!("menu-{name}"));
        stage.window.key_press(egui::Key::Escape);
        stage
            .world
            .borrow_mut()
            .answers
            .push_back(Picked::Unavailable);
        stage.press("Browse for destination");
        save_picture(&mut stage, &format!("browse-{name}"));
        stage.press("Cancel");
        stage.type_into("Destination", "smb://nas/photo");
        save_picture(&mut stage, &format!("fault-{name}"));
        stage.type_into("Destination", "nas:/photo");
        stage.type_into("Profile name", "Music");
        stage.window.get_by_label("Filter rules").focus();
        stage.window.run();
        stage.window.get_by_label("Filter rules").type_text("- [");
        stage.settle();
        save_picture(&mut stage, &format!("name-{name}"));
    }
}
