//! The far host through the user's own OpenSSH.
