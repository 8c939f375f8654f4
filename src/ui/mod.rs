//! The window: it draws and decides nothing.
//!
//! [`state::State`] is what it knows, [`wish::Wish`] what a person wants, [`ports::Ports`] what it
//! stands on. Each frame [`app::App`] takes in what others report (`State::apply`, pure), draws the
//! [`parts`] and [`pages`], which return wishes, and fulfils them in `execute`. Texts come from
//! `present`, colours from [`theme`].

pub mod app;
pub mod draft;
pub mod execute;
pub mod inbox;
pub mod pages;
pub mod parts;
pub mod ports;
pub mod real;
mod run;
pub mod state;
pub mod theme;
pub mod wish;

pub use run::{FRAME_LOG_VARIABLE, Launch, Waker, open, run};
