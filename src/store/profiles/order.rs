//! The order of the list, kept apart from the profiles: one file of ids that may be wrong or gone.

use std::path::Path;

use crate::model::error::Result;
use crate::model::profile::ProfileId;
use crate::store::file;
use crate::store::profiles::slug::is_id;
use crate::store::toml::{self, Reader};

/// Reads the order. What cannot be read is left out: the order is a convenience, and profiles
/// that are not in it come last.
pub(super) fn read(path: &Path) -> Vec<ProfileId> {
    let Ok(bytes) = file::read_own(path) else {
        return Vec::new();
    };
    let Ok(document) = toml::parse(&bytes) else {
        return Vec::new();
    };
    let values = Reader::top(&document)
        .array("order")
        .ok()
        .flatten()
        .unwrap_or_default();
    let mut order: Vec<ProfileId> = Vec::with_capacity(values.len());
    for id in values
        .iter()
        .filter_map(|(value, _)| value.as_str())
        .filter(|id| is_id(id))
    {
        let id = ProfileId(id.to_owned());
        if !order.contains(&id) {
            order.push(id);
        }
    }
    order
}

/// Writes the order.
///
/// # Errors
/// Those of the system.
pub(super) fn write(path: &Path, order: &[ProfileId]) -> Result<()> {
    let mut text = "# The order of the profiles in the list.\norder = [\n".to_owned();
    for id in order {
        text.push_str("    \"");
        text.push_str(&id.0);
        text.push_str("\",\n");
    }
    text.push_str("]\n");
    file::save(path, text.as_bytes()).map(drop)
}
