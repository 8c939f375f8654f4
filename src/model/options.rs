//! Settings that belong to one method, described by the method itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What kind of value an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionType {
    /// On or off.
    Flag,
    /// A whole number within bounds.
    Number {
        /// Smallest allowed.
        min: u64,
        /// Largest allowed.
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Free text.
    Text,
}

/// One option of a method: form, flag and help are made from it.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The key in profiles, also the long flag without dashes.
    pub name: &'static str,
    /// One sentence.
    pub help: &'static str,
    /// What it takes.
    pub kind: OptionType,
    /// The value when nothing is said, as text.
    pub default: &'static str,
    /// Folded away at first.
    pub advanced: bool,
}

/// Values of a method's options, as text by name; a name that is missing has its default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Options(pub BTreeMap<String, String>);

impl Options {
    /// Returns the value of an option, if it was set.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}
