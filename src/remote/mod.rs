//! The far host, reached through the user's own OpenSSH with their keys, aliases and jump hosts.
//!
//! [`connection`] builds ssh's argument vector with options that keep a session quiet and safe;
//! [`bootstrap`] starts the agent over such a session; [`failure`] turns ssh's last words into an
//! error that says what to do; [`address`] tells where the session arrived. [`target`] holds the
//! checked names that may stand on ssh's command line and [`options`] the `-o` options that may.
//!
//! No path, key or name of a file ever becomes part of a command line on the far side: what runs
//! there is one constant text, and everything else follows on its standard input.

pub mod address;
pub mod agents;
pub mod bootstrap;
pub mod connection;
pub mod failure;
pub mod options;
mod replies;
mod talk;
pub mod target;
