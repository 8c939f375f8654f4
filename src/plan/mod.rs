//! Two listings to a plan, purely.
