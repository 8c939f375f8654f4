//! What window and command line share beside jobs.
