//! Two sides to a decision, purely: no file is looked at here.

pub mod compare;
