//! The desktop around the window: drag and drop.
