//! What a person reads, made by pure functions that window and command line share.

pub mod text;
pub mod units;
