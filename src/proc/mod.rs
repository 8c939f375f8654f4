//! Runs other programs: argument vectors, fixed paths, an environment allow-list, process groups
//! (security design rule 12). The only place that may use `std::process`.
