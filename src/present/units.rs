//! Sizes, rates and times as text.

/// Returns bytes with a binary unit, for example `3.2 GiB`; below 1 KiB exact, else 3 digits.
pub fn bytes(_n: u64) -> String {
    todo!()
}

/// Returns a rate, for example `108 MiB/s`.
pub fn rate(_bytes_per_second: f64) -> String {
    todo!()
}

/// Returns a duration, for example `1 min 12 s`, `3 h 05 min`, `0.4 s`.
pub fn duration(_seconds: f64) -> String {
    todo!()
}

/// Returns a count with thousands separated by a narrow space, for example `12 345`.
pub fn count(_n: u64) -> String {
    todo!()
}
