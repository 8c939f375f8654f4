//! File names of profiles: a readable slug of the name, then the id.

use crate::model::profile::ProfileId;

/// The longest slug, in bytes.
const MAX_SLUG: usize = 40;

/// Returns a name's slug: small ASCII letters, digits and single hyphens, at most 40 bytes. Any
/// name has one; the id behind it tells equal ones apart.
pub fn slug(name: &str) -> String {
    let mut slug = String::new();
    for c in name.chars() {
        if slug.len() >= MAX_SLUG {
            break;
        }
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "profile".to_owned()
    } else {
        slug.to_owned()
    }
}

/// Returns the file name of a profile.
pub(super) fn file_name(name: &str, id: &ProfileId) -> String {
    format!("{}-{}.toml", slug(name), id.0)
}

/// Takes a file name apart into slug and id; `None` when it is not one of a profile.
pub(super) fn split(file_name: &str) -> Option<(&str, ProfileId)> {
    let (slug, id) = file_name.strip_suffix(".toml")?.rsplit_once('-')?;
    is_id(id).then(|| (slug, ProfileId(id.to_owned())))
}

/// Says whether a text has the form of an id.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 8 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_safe_file_name() {
        for (name, expected) in [
            ("Photos → nas", "photos-nas"),
            ("a/b", "a-b"),
            ("..", "profile"),
            ("", "profile"),
            ("😀", "profile"),
            ("-rf /", "rf"),
            ("a\0b\nc", "a-b-c"),
        ] {
            assert_eq!(slug(name), expected, "{name:?}");
        }
        assert_eq!(slug(&"x".repeat(300)).len(), MAX_SLUG);
        let id = ProfileId("0123abcd".into());
        assert_eq!(split(&file_name("a/b", &id)), Some(("a-b", id)));
        assert_eq!(split("order.toml"), None);
        assert_eq!(split("a-0123ABCD.toml"), None);
    }
}
