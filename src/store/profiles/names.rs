//! What a profile may be called: something that can be seen, and that no other profile is called.

use crate::model::error::{Error, ErrorKind, Result};

/// Says what is wrong with a profile's name beside those of others: it shows nothing, or it is
/// taken. Blanks around a name do not tell it from another.
pub fn name_fault<S: AsRef<str>>(name: &str, others: &[S]) -> Option<&'static str> {
    // Marks of no width are no name either; a list would show an empty line.
    let shows = |c: char| {
        let no_width = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        !c.is_whitespace() && !c.is_control() && !no_width
    };
    if !name.chars().any(shows) {
        return Some("a profile needs a name that can be seen");
    }
    let taken = others
        .iter()
        .any(|other| other.as_ref().trim() == name.trim());
    taken.then_some("another profile has that name")
}

/// Refuses a name with which something is wrong beside those of others.
pub(super) fn check_free(name: &str, others: &[String]) -> Result<()> {
    let Some(fault) = name_fault(name, others) else {
        return Ok(());
    };
    Err(Error::new(ErrorKind::Config, "name the profile", fault)
        .at(name)
        .hint("choose another name; 'transload profiles list' shows those that are taken"))
}
