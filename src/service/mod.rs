//! What window and command line share beside jobs.

pub mod check_list;
pub mod jobs;
pub mod methods;
