//! The window as a program: `logic` takes in what others report, `ui` draws, and wishes are
//! fulfilled in between.

use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use egui::{CentralPanel, Context, Event, Frame, Margin, Panel, ScrollArea, ThemePreference, Ui};

use crate::store::settings::Window;
use crate::ui::execute::{execute, save};
use crate::ui::inbox::DropInbox;
use crate::ui::pages;
use crate::ui::parts::header::page_frame;
use crate::ui::parts::{
    dialogs, drop_zone, editor, header, profiles_list, question, status_bar, toast,
};
use crate::ui::ports::{Look, Order, Ports};
use crate::ui::state::{Drag, News, State, Target};
use crate::ui::theme::{palette, tokens};
use crate::ui::wish::{Deed, TABLE, Wish};

/// Longest time that one frame spends on taking in reports; the rest waits for the next.
const DRAIN: Duration = Duration::from_millis(10);
/// Frames for progress are at least this far apart.
pub const FRAME: Duration = Duration::from_millis(33);
/// A change is saved when nothing was typed for so many seconds.
const SAVE_AFTER: f64 = 0.6;
/// The least window that is laid out side by side; a smaller one scrolls as a whole.
const SIDE_BY_SIDE: egui::Vec2 = egui::Vec2::new(560.0, 380.0);

/// The window.
pub struct App {
    /// What it knows.
    pub state: State,
    /// What it stands on.
    pub ports: Ports,
    inbox: DropInbox,
    look: Option<Look>,
    frames: Option<File>,
}

impl App {
    /// Makes the window; `list` names what is to be taken at once, as if it were dropped.
    pub fn new(mut ports: Ports, inbox: DropInbox, list: Option<Vec<u8>>) -> Self {
        ports.library.send(Order::Load);
        let mut app = Self {
            state: State::default(),
            ports,
            inbox,
            look: None,
            frames: None,
        };
        if let Some(list) = list {
            execute(
                &mut app.state,
                &mut app.ports,
                Wish::Look(list, Target::Send(None)),
            );
        }
        app
    }

    /// Lets the window's own file dialog begin in this folder.
    #[must_use]
    pub fn with_home(mut self, home: PathBuf) -> Self {
        self.state.home = home;
        self
    }

    /// Writes the cost of each frame, in milliseconds a line, to this file.
    #[must_use]
    pub fn with_frame_log(mut self, file: File) -> Self {
        self.frames = Some(file);
        self
    }

    /// Takes in what others report; draws nothing.
    pub fn logic(&mut self, ctx: &Context) {
        self.state.now = ctx.input(|i| i.time);
        self.state.wall = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or_default());
        let jobs = self.ports.jobs.jobs();
        if !std::sync::Arc::ptr_eq(&jobs, &self.state.jobs) {
            let totals = self.ports.jobs.totals();
            self.take(News::Jobs(jobs, totals));
        }
        let end = Instant::now() + DRAIN;
        while let Some(news) = self.next() {
            self.take(news);
            if Instant::now() >= end {
                ctx.request_repaint_after(FRAME);
                break;
            }
        }
        self.keep_time(ctx);
        if ctx.input(|i| i.events.contains(&Event::WindowFocused(true))) {
            self.ports.library.send(Order::Refresh);
        }
        if let Some(fault) = self.inbox.new_fault() {
            self.state.complain(&fault);
        }
        if self.look != Some(self.state.look) {
            self.look = Some(self.state.look);
            ctx.set_theme(match self.state.look {
                Look::System => ThemePreference::System,
                Look::Light => ThemePreference::Light,
                Look::Dark => ThemePreference::Dark,
            });
        }
        if ctx.input(|i| i.viewport().close_requested()) && !self.state.quitting {
            execute(&mut self.state, &mut self.ports, Wish::Do(Deed::Quit));
            if !self.state.quitting {
                ctx.send_viewport_cmd(egui::ViewportCommand::CancelClose);
            }
        }
    }

    fn next(&mut self) -> Option<News> {
        if let Some(event) = self.inbox.next_event() {
            return Some(News::Drag(event));
        }
        if let Some(news) = self.ports.library.news() {
            return Some(News::Library(news));
        }
        if let Some(done) = self.ports.chores.done() {
            return Some(News::Done(done));
        }
        if let Some(picked) = self.ports.picker.picked() {
            return Some(News::Picked(picked));
        }
        self.ports.jobs.event().map(News::Event)
    }

    fn take(&mut self, news: News) {
        for wish in self.state.apply(news) {
            execute(&mut self.state, &mut self.ports, wish);
        }
    }

    /// Saves what was typed and takes old notes away, and asks to be called when the next is due.
    fn keep_time(&mut self, ctx: &Context) {
        let now = self.state.now;
        let mut next = f64::INFINITY;
        if let Some(since) = self
            .state
            .draft
            .as_ref()
            .filter(|d| !d.faulty())
            .and_then(|d| d.dirty)
        {
            if now - since >= SAVE_AFTER {
                save(&mut self.state, &mut self.ports);
            } else {
                next = since + SAVE_AFTER - now;
            }
        }
        self.state.toasts.retain(|toast| toast.until > now);
        for toast in &self.state.toasts {
            next = next.min(toast.until - now);
        }
        if next.is_finite() {
            ctx.request_repaint_after(Duration::from_secs_f64(next.max(0.0)).max(FRAME));
        }
    }

    /// Draws the window and fulfils what was wished for.
    pub fn show(&mut self, ui: &mut Ui) {
        let ctx = ui.ctx().clone();
        self.state.area = Some(ctx.content_rect());
        self.state.scale = ctx.pixels_per_point();
        let mut wishes = Vec::new();
        let modal = !self.state.dialogs.is_empty() || self.state.question().is_some();
        if !modal && self.state.own_picker.is_none() {
            shortcuts(&ctx, &mut wishes);
            pasted(&ctx, &self.state, &mut wishes);
        }
        toolkit_drops(&ctx, &mut self.state, &mut wishes);
        let room = ctx.content_rect().size();
        if room.x < SIDE_BY_SIDE.x || room.y < SIDE_BY_SIDE.y {
            self.stacked(ui, &mut wishes);
        } else {
            self.side_by_side(ui, &mut wishes);
        }
        if !question::show(&ctx, &mut self.state, &mut wishes) {
            dialogs::show(&ctx, &mut self.state, &mut wishes);
        }
        if let Some(picker) = &mut self.state.own_picker {
            picker.show(&ctx, &mut wishes);
        }
        toast::show(&ctx, &self.state, &mut wishes);
        drop_zone::show(&ctx, &self.state);
        let acted = !wishes.is_empty();
        for wish in wishes {
            execute(&mut self.state, &mut self.ports, wish);
        }
        if self.state.quitting {
            ctx.send_viewport_cmd(egui::ViewportCommand::Close);
        } else if acted {
            // What was wished for shows in the next frame.
            ctx.request_repaint_after(FRAME);
        }
    }

    fn side_by_side(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        let space = &tokens().space;
        let pad = Margin::same(space.pad as i8);
        let p = palette(ui);
        let bar = Frame::new()
            .fill(p.panel)
            .inner_margin(Margin::symmetric(12, 4));
        Panel::bottom("status")
            .frame(bar)
            .show(ui, |ui| status_bar::show(ui, &self.state));
        Panel::left("profiles")
            .frame(Frame::new().fill(p.panel).inner_margin(pad))
            .default_size(216.0)
            .size_range(140.0..=360.0)
            .show(ui, |ui| profiles_list::show(ui, &mut self.state, wishes));
        CentralPanel::default()
            .frame(page_frame(ui))
            .show(ui, |ui| {
                header::show(ui, &mut self.state, wishes);
                let most = ui.available_height() * 0.55;
                editor::show(ui, &mut self.state, most, wishes);
                ui.add_space(4.0);
                pages::show(ui, &mut self.state, &*self.ports.jobs, wishes);
            });
    }

    /// Everything below each other, for windows too small for more; the window scrolls.
    fn stacked(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        CentralPanel::default()
            .frame(page_frame(ui))
            .show(ui, |ui| {
                ScrollArea::both()
                    .id_salt("stacked")
                    .auto_shrink(false)
                    .show(ui, |ui| {
                        ui.set_min_width(440.0);
                        ui.set_max_width(ui.available_width().max(440.0));
                        header::show(ui, &mut self.state, wishes);
                        fixed(ui, 200.0, |ui| {
                            editor::show(ui, &mut self.state, 200.0, wishes)
                        });
                        fixed(ui, 180.0, |ui| {
                            profiles_list::show(ui, &mut self.state, wishes)
                        });
                        fixed(ui, 320.0, |ui| {
                            pages::show(ui, &mut self.state, &*self.ports.jobs, wishes);
                        });
                        status_bar::show(ui, &self.state);
                    });
            });
    }

    /// Notes what the last frame cost.
    fn log_frame(&mut self, cost: Option<f32>) {
        if let (Some(file), Some(seconds)) = (&mut self.frames, cost) {
            // A full disk must not end the window; the measurement is then short, and shows it.
            let _ = writeln!(file, "{:.3}", seconds * 1000.0);
        }
    }
}

/// Gives contents a height of their own inside a scrolling window.
fn fixed(ui: &mut Ui, height: f32, contents: impl FnOnce(&mut Ui)) {
    let size = egui::Vec2::new(ui.available_width(), height);
    ui.allocate_ui(size, |ui| {
        ui.set_min_height(height);
        ui.set_max_height(height);
        contents(ui);
    });
}

fn shortcuts(ctx: &Context, wishes: &mut Vec<Wish>) {
    let typing = ctx.text_edit_focused();
    for row in TABLE {
        // Ctrl+Delete takes away a word while something is typed.
        if typing && row.deed == Deed::Delete {
            continue;
        }
        if let Some(keys) = &row.keys {
            if ctx.input_mut(|i| i.consume_shortcut(keys)) {
                wishes.push(Wish::Do(row.deed));
            }
        }
    }
}

/// Takes pasted paths like a drop, unless a field has the keyboard.
fn pasted(ctx: &Context, state: &State, wishes: &mut Vec<Wish>) {
    if ctx.text_edit_focused() {
        return;
    }
    ctx.input(|i| {
        for event in &i.events {
            if let Event::Paste(text) = event {
                // Some file managers put their verb on a line before the addresses.
                let list = ["copy\n", "cut\n"]
                    .iter()
                    .find_map(|verb| text.strip_prefix(verb));
                let list = list.unwrap_or(text).as_bytes().to_vec();
                wishes.push(Wish::Look(list, Target::Send(state.selected.clone())));
            }
        }
    });
}

/// Takes drops that come through the toolkit, for desktops that our own target does not serve.
fn toolkit_drops(ctx: &Context, state: &mut State, wishes: &mut Vec<Wish>) {
    let (hovering, list) = ctx.input(|i| {
        let mut list = Vec::new();
        for file in &i.raw.dropped_files {
            list.extend_from_slice(&file_address(file.path()));
            list.push(b'\n');
        }
        (i.raw.hovered_files.len(), list)
    });
    match (hovering, state.drag) {
        (0, Some(Drag { position: None, .. })) => state.drag = None,
        (0, _) => {}
        (n, _) => {
            state.drag = Some(Drag {
                position: None,
                count: Some(n),
            })
        }
    }
    if !list.is_empty() {
        wishes.push(Wish::Look(list, Target::Send(state.selected.clone())));
    }
}

/// Writes a path as a `file://` address, so that line breaks in names stay inside it.
pub fn file_address(path: &std::path::Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt as _;
    let mut address = b"file://".to_vec();
    let bytes = path.as_os_str().as_bytes();
    let escaped = percent_encoding::percent_encode(bytes, percent_encoding::NON_ALPHANUMERIC);
    address.extend(escaped.to_string().replace("%2F", "/").into_bytes());
    address
}

impl eframe::App for App {
    fn logic(&mut self, ctx: &Context, _frame: &mut eframe::Frame) {
        Self::logic(self, ctx);
    }

    fn ui(&mut self, ui: &mut Ui, frame: &mut eframe::Frame) {
        self.log_frame(frame.info().cpu_usage);
        self.show(ui);
    }

    fn on_exit(&mut self, _gl: Option<&eframe::glow::Context>) {
        save(&mut self.state, &mut self.ports);
        if let Some(area) = self.state.area.filter(|area| area.is_positive()) {
            let (width, height) = (area.width(), area.height());
            self.ports.library.send(Order::Window(Window {
                width,
                height,
                position: None,
            }));
        }
    }
}
