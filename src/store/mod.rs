//! What the user owns: profiles, settings, queue and history, and where they lie.
//!
//! Start with [`dirs::Dirs`], then [`profiles::Profiles`] (one text file each, made to be read
//! and edited by hand) and [`history::History`] (the queue and every run, in SQLite). [`mod@file`]
//! holds the one way in which small files are read and replaced, [`claim`] keeps a profile from
//! running twice at once.

pub mod claim;
pub mod dirs;
pub mod file;
pub mod history;
pub mod profiles;
pub mod samples;
pub mod settings;
pub mod spec;
mod toml;
mod toml_list;
