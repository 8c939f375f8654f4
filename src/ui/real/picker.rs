//! The desktop's dialogs for files and folders, through its portal.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::desktop::portal;
use crate::ui::parts::browse::SAVE_NAME;
use crate::ui::ports::{Pick, Picked, Picker};
use crate::ui::real::Wake;

/// A dialog that is over so soon was never on the screen: nobody can answer in that time.
const TOO_SOON: Duration = Duration::from_millis(300);

/// Asks the portal on a thread of its own, since the answer comes from a person.
pub struct PortalPicker {
    wake: Wake,
    tell: Sender<Picked>,
    picked: Receiver<Picked>,
}

impl PortalPicker {
    /// Makes it; nothing is asked yet.
    pub fn new(wake: Wake) -> Self {
        // Without a bound: one dialog is open at a time.
        let (tell, picked) = unbounded();
        Self { wake, tell, picked }
    }
}

impl Picker for PortalPicker {
    fn open(&mut self, pick: Pick) {
        let (tell, wake) = (self.tell.clone(), self.wake.clone());
        let thread = std::thread::Builder::new().name("picker".to_owned());
        let started = thread.spawn(move || {
            let picked = ask(pick);
            let _ = tell.send(picked);
            wake();
        });
        if started.is_err() {
            let _ = self.tell.send(Picked::Unavailable);
            (self.wake)();
        }
    }

    fn picked(&mut self) -> Option<Picked> {
        self.picked.try_recv().ok()
    }
}

fn ask(pick: Pick) -> Picked {
    if !portal::has_file_dialog() {
        return Picked::Unavailable;
    }
    let start = Instant::now();
    let dialog = rfd::FileDialog::new();
    let paths: Option<Vec<PathBuf>> = match pick {
        Pick::Files => dialog.pick_files(),
        Pick::Folder => dialog.pick_folder().map(|path| vec![path]),
        Pick::SaveList => dialog
            .set_file_name(SAVE_NAME)
            .save_file()
            .map(|path| vec![path]),
    };
    match paths {
        Some(paths) => Picked::Paths(paths),
        None if start.elapsed() < TOO_SOON => Picked::Unavailable,
        None => Picked::Paths(Vec::new()),
    }
}
