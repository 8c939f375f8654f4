//! Opens the window on a display, and ends it in order.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use egui::{Context, IconData, Vec2, ViewportBuilder};
use winit::platform::x11::EventLoopBuilderExtX11 as _;
use winit::raw_window_handle::{HasWindowHandle as _, RawWindowHandle};

use crate::desktop::drag::DragTarget;
use crate::engine::{Engine, EngineConfig};
use crate::model::error::{Error, ErrorKind, Result};
use crate::store::dirs::{Dirs, home};
use crate::store::settings::AppSettings;
use crate::ui::app::{App, FRAME, file_address};
use crate::ui::inbox::DropInbox;
use crate::ui::real;
use crate::ui::theme;

/// The variable that names a file for the cost of each frame, in milliseconds a line.
pub const FRAME_LOG_VARIABLE: &str = "TRANSLOAD_FRAME_LOG";

/// What the window is opened with.
pub struct Launch {
    /// Dropped on the window as soon as it is open.
    pub paths: Vec<PathBuf>,
    /// Runs the jobs; it was given the waker.
    pub engine: Engine,
    /// Where the user's files are.
    pub dirs: Dirs,
    /// Wakes the window when the engine has something new.
    pub waker: Waker,
}

/// Wakes a window that may not be open yet: made first, given to the engine, then filled.
#[derive(Clone, Default)]
pub struct Waker(Arc<Mutex<Option<Context>>>);

impl Waker {
    /// Returns what the engine calls.
    pub fn closure(&self) -> Arc<dyn Fn() + Send + Sync> {
        let waker = self.clone();
        Arc::new(move || waker.wake())
    }

    fn wake(&self) {
        let ctx = self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        if let Some(ctx) = ctx {
            // One frame and not two, and not sooner than a frame is worth.
            ctx.request_repaint_after(FRAME);
        }
    }

    fn set(&self, ctx: Option<Context>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ctx;
    }
}

/// Opens the window for this user with these paths dropped on it, and returns when it is closed.
///
/// # Errors
/// When the user's folders or the history cannot be opened, or there is no display.
pub fn open(paths: Vec<PathBuf>) -> Result<()> {
    let dirs = Dirs::open()?;
    let (settings, _) = AppSettings::load(&dirs);
    let waker = Waker::default();
    let engine = Engine::start(EngineConfig {
        parallel: settings.parallel,
        per_host: settings.per_host,
        restore: true,
        waker: waker.closure(),
        ..EngineConfig::new(dirs.database())
    })?;
    run(Launch {
        paths,
        engine,
        dirs,
        waker,
    })
}

/// Opens the window and returns when it is closed; jobs are stopped in order then.
///
/// # Errors
/// `Unsupported` when there is no display, with what to do instead.
pub fn run(launch: Launch) -> Result<()> {
    let Launch {
        paths,
        engine,
        dirs,
        waker,
    } = launch;
    let (settings, _) = AppSettings::load(&dirs);
    let mut frames = None;
    if let Some(path) = std::env::var_os(FRAME_LOG_VARIABLE) {
        let file = OpenOptions::new().create(true).append(true).open(&path);
        frames = Some(file.map_err(|e| {
            Error::io("open the file for the cost of frames", &e).at(PathBuf::from(path).as_path())
        })?);
    }
    let wake = waker.closure();
    let ports = real::ports(&engine, &dirs, &wake)?;
    let creator_waker = waker.clone();
    let opened = eframe::run_native(
        "transload",
        options(&settings),
        Box::new(move |cc| {
            theme::install(&cc.egui_ctx);
            cc.egui_ctx.set_zoom_factor(settings.text_scale);
            creator_waker.set(Some(cc.egui_ctx.clone()));
            let list = (!paths.is_empty()).then(|| list_of(&paths));
            let mut app = App::new(ports, inbox(cc, &creator_waker), list);
            if let Ok(home) = home() {
                app = app.with_home(home);
            }
            if let Some(file) = frames {
                app = app.with_frame_log(file);
            }
            Ok(Box::new(app))
        }),
    );
    waker.set(None);
    engine.shutdown();
    opened.map_err(|error| no_display(&error))
}

fn options(settings: &AppSettings) -> eframe::NativeOptions {
    let size = settings
        .window
        .map_or(Vec2::new(1100.0, 720.0), |w| Vec2::new(w.width, w.height));
    let viewport = ViewportBuilder::default()
        .with_title("Transload")
        .with_app_id("transload")
        .with_inner_size(size)
        .with_min_inner_size([200.0, 120.0])
        .with_icon(icon())
        .with_drag_and_drop(true);
    let mut options = eframe::NativeOptions {
        viewport,
        ..eframe::NativeOptions::default()
    };
    // Our own drag receiver works on X11, also the one inside Wayland desktops; the toolkit takes
    // no drags on Wayland at all.
    if std::env::var_os("DISPLAY").is_some_and(|display| !display.is_empty()) {
        options.event_loop_builder = Some(Box::new(|builder| {
            builder.with_x11();
        }));
    }
    options
}

fn icon() -> IconData {
    eframe::icon_data::from_png_bytes(include_bytes!("../../assets/transload.png"))
        .expect("the icon is part of the program and read by a test")
}

/// Writes paths as a list of addresses, so that line breaks in names stay inside them.
fn list_of(paths: &[PathBuf]) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        // Relative paths mean this folder, whatever the window does later.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        list.extend_from_slice(&file_address(&path));
        list.push(b'\n');
    }
    list
}

/// Takes drags through our own target where the window is one of X11's.
fn inbox(cc: &eframe::CreationContext<'_>, waker: &Waker) -> DropInbox {
    let window = match cc.window_handle().map(|handle| handle.as_raw()) {
        Ok(RawWindowHandle::Xlib(handle)) => u32::try_from(handle.window).ok(),
        Ok(RawWindowHandle::Xcb(handle)) => Some(handle.window.get()),
        _ => None,
    };
    let Some(window) = window else {
        return DropInbox::None;
    };
    let waker = waker.clone();
    match DragTarget::on_x11(None, window, move || waker.wake()) {
        Ok(target) => DropInbox::Target(target, false),
        // The toolkit's own events bring the drops then.
        Err(_) => DropInbox::None,
    }
}

fn no_display(error: &eframe::Error) -> Error {
    Error::new(ErrorKind::Unsupported, "open the window", error.to_string())
        .hint("set DISPLAY or WAYLAND_DISPLAY, or use the command line: transload --help")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_icon_can_be_read() {
        assert_eq!(icon().width, icon().height);
    }

    #[test]
    fn names_with_line_breaks_stay_one_item() {
        let list = list_of(&["/a b\nc".into(), "/d%".into()]);
        assert_eq!(
            String::from_utf8(list).unwrap(),
            "file:///a%20b%0Ac\nfile:///d%25\n"
        );
    }
}
