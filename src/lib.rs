//! Transload moves files between this computer and another by the fastest safe way the link
//! allows, and proves with digests that what arrived is what was sent.
//!
//! One library, two thin programs: `transload` (window and command line) and `transload-agent`
//! (the far end). Start reading with [`model`], the nouns; then [`backend`], one folder a method;
//! then [`engine`], which runs jobs. ARCHITECTURE.md has the map; `tests/layering.rs` says who may
//! import whom.

pub mod agent;
pub mod backend;
pub mod fs;
pub mod model;
pub mod plan;
pub mod proc;
pub mod pump;
pub mod remote;
pub mod verify;
pub mod wire;

#[cfg(feature = "app")]
pub mod advise;
#[cfg(feature = "app")]
pub mod cli;
#[cfg(feature = "gui")]
pub mod desktop;
#[cfg(feature = "app")]
pub mod engine;
#[cfg(feature = "app")]
pub mod present;
#[cfg(feature = "app")]
pub mod service;
#[cfg(feature = "app")]
pub mod store;
#[cfg(feature = "gui")]
pub mod ui;
