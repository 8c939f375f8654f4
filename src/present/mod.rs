//! What a person reads, made by pure functions that window and command line share.

pub mod question;
pub mod text;
pub mod units;
