//! The window: it draws and decides nothing.
