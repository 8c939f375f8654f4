//! The parts that the window is made of. Each draws from the state and returns wishes.

pub mod browse;
pub mod controls;
pub mod dialogs;
pub mod drop_zone;
pub mod editor;
pub mod editor_advanced;
pub mod graph;
pub mod header;
pub mod icon;
pub mod job_row;
pub mod profiles_list;
pub mod question;
pub mod status_bar;
pub mod toast;
