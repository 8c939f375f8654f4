//! Which method moves the bytes here, and why that one.

pub mod choose;
