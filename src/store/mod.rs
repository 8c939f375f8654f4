//! What the user owns: profiles, history and queue, and where they lie.

pub mod dirs;
pub mod history;
pub mod profiles;
