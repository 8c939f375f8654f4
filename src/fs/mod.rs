//! This machine's files beneath a confined root: no path string touches the file system elsewhere.

pub mod meta;
pub mod part;
pub mod root;
pub mod walk;
