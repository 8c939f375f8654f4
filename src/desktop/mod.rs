//! The desktop around the window: drag and drop.

pub mod drag;
pub mod portal;
