//! Digests of contents and the lists that hold them.

pub mod hash;
pub mod manifest;
mod md5;
mod md5_lanes;
pub mod tree;
