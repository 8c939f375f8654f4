//! The ports as they are outside of tests: the engine, the user's files, threads that may wait.

pub mod chores;
pub mod jobs;
pub mod library;
pub mod picker;

use std::sync::Arc;

use crate::engine::Engine;
use crate::model::error::Result;
use crate::store::dirs::Dirs;
use crate::ui::ports::Ports;

/// Tells the window that there is something new to look at.
pub type Wake = Arc<dyn Fn() + Send + Sync>;

/// Makes the ports.
///
/// # Errors
/// When the system gives no thread.
pub fn ports(engine: &Engine, dirs: &Dirs, wake: &Wake) -> Result<Ports> {
    Ok(Ports {
        jobs: Box::new(jobs::EngineJobs::new(engine.clone())),
        library: Box::new(library::DiskLibrary::start(dirs.clone(), Arc::clone(wake))?),
        chores: Box::new(chores::ThreadChores::new(engine.clone(), Arc::clone(wake))),
        picker: Box::new(picker::PortalPicker::new(Arc::clone(wake))),
    })
}
