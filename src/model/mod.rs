//! The nouns every layer speaks: no input or output, no threads, no toolkit.
//!
//! Start with [`job::JobSpec`] (what to do), [`progress::Counters`] (how far it is),
//! [`event::Event`] (what must be seen), [`verdict::Row`] (what can be looked up) and
//! [`outcome::Report`] (how it ended).

pub mod control;
pub mod digest;
pub mod drop;
pub mod entry;
pub mod error;
pub mod event;
pub mod job;
pub mod location;
pub mod options;
pub mod outcome;
pub mod plan;
pub mod profile;
pub mod progress;
pub mod relpath;
pub mod rules;
pub mod units;
pub mod untrusted;
pub mod verdict;
