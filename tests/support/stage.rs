//! Opens the window on fakes and acts on it by the names that a screen reader hears.

#![allow(dead_code, reason = "each test uses its part")]

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

use egui::accesskit::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;

use crate::fake_ports::{Shared, World, ports, profile};
use transload::engine::{Command, JobView};
use transload::model::drop::DropEvent;
use transload::ui::app::App;
use transload::ui::inbox::DropInbox;
use transload::ui::ports::ShelfItem;

/// The harness around the window.
pub type Window = Harness<'static, App>;

/// A window on fakes, and the ends that a test holds.
pub struct Stage {
    /// The window.
    pub window: Window,
    /// What it stands on.
    pub world: Shared,
    /// Where a test drags things.
    pub drops: SyncSender<DropEvent>,
}

/// Opens a window of this size on a world.
pub fn open_sized(world: World, size: [f32; 2], setup: impl FnOnce(Builder) -> Builder) -> Stage {
    let world: Shared = Rc::new(RefCell::new(world));
    let (drops, inbox) = sync_channel(16);
    let app = App::new(ports(&world), DropInbox::Channel(inbox), None);
    let builder = Harness::builder()
        .with_size(size)
        .with_max_steps(8)
        .allow_missing_glyphs();
    let window = setup(builder).build_ui_state(draw, app);
    let mut stage = Stage {
        window,
        world,
        drops,
    };
    transload::ui::theme::install(&stage.window.ctx);
    stage.settle();
    stage
}

/// What a test may set up before the window opens.
pub type Builder = egui_kittest::HarnessBuilder<App>;

fn draw(ui: &mut egui::Ui, app: &mut App) {
    let ctx = ui.ctx().clone();
    app.logic(&ctx);
    app.show(ui);
}

/// Opens a window of a usual size.
pub fn open(world: World) -> Stage {
    open_sized(world, [1100.0, 720.0], |builder| builder)
}

/// A world with two profiles.
pub fn with_profiles() -> World {
    World {
        shelf: vec![
            ShelfItem::Ready(Arc::new(profile(1, "Photos"))),
            ShelfItem::Ready(Arc::new(profile(2, "Music"))),
        ],
        ..World::default()
    }
}

impl Stage {
    /// Lets what was asked for take its effect: wishes show one frame later.
    pub fn settle(&mut self) {
        for _ in 0..3 {
            self.window.run();
        }
    }

    /// Clicks on what has this name.
    pub fn click(&mut self, name: &str) {
        self.window.get_by_label(name).click();
        self.settle();
    }

    /// Presses the button of this name.
    pub fn press(&mut self, name: &str) {
        self.window
            .get_by_role_and_label(Role::Button, name)
            .click();
        self.settle();
    }

    /// Replaces what stands in a field.
    pub fn type_into(&mut self, name: &str, text: &str) {
        self.window
            .get_by_role_and_label(Role::TextInput, name)
            .focus();
        self.window.run();
        self.window
            .key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::A);
        self.window.run();
        self.window
            .get_by_role_and_label(Role::TextInput, name)
            .type_text(text);
        self.settle();
    }

    /// Says whether this text is somewhere.
    pub fn shows(&self, text: &str) -> bool {
        self.window
            .query_all_by_label_contains(text)
            .next()
            .is_some()
    }

    /// Fails when this text is nowhere.
    #[track_caller]
    pub fn expect(&self, text: &str) {
        assert!(self.shows(text), "the window does not show '{text}'");
    }

    /// Takes what the engine was told since the last look.
    pub fn commands(&self) -> Vec<Command> {
        self.world.borrow_mut().commands.drain(..).collect()
    }

    /// Gives the engine these jobs.
    pub fn set_jobs(&mut self, jobs: Vec<JobView>) {
        self.world.borrow_mut().jobs = Arc::new(jobs);
        self.settle();
    }
}
