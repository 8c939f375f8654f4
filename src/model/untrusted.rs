//! Text from elsewhere: names, remote error output, banners, prompts.
//!
//! Bytes are kept as they came; only [`Untrusted`]'s `Display` may reach a widget, a log or a
//! terminal. It shows control, bidirectional and zero-width characters as escapes and bytes that
//! are not UTF-8 as `\xNN`, so that a name can neither move the cursor nor reorder the line
//! (security design rule: one type for foreign text).

use std::fmt;

use serde::{Deserialize, Serialize};

/// The longest text that is shown, in characters; the rest is replaced by "…".
pub const SHOWN_CHARS: usize = 4096;

/// Bytes that somebody else chose.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Untrusted(Vec<u8>);

impl Untrusted {
    /// Returns the bytes as they came.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Says whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&str> for Untrusted {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl From<String> for Untrusted {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

impl From<&[u8]> for Untrusted {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Untrusted {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&std::path::Path> for Untrusted {
    fn from(path: &std::path::Path) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(&self.0, f)
    }
}

impl fmt::Debug for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// Returns foreign bytes as text that is safe to show on one line.
pub fn shown(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    // Writing to a String cannot fail.
    let _ = escape(bytes, &mut text);
    text
}

fn escape(bytes: &[u8], out: &mut dyn fmt::Write) -> fmt::Result {
    let mut left = SHOWN_CHARS;
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                return out.write_char('\u{2026}');
            }
            left -= 1;
            match c {
                '\n' => out.write_str("\\n")?,
                '\r' => out.write_str("\\r")?,
                '\t' => out.write_str("\\t")?,
                c if c.is_control() => write!(out, "\\x{:02x}", u32::from(c))?,
                c if is_invisible(c) => write!(out, "\\u{{{:x}}}", u32::from(c))?,
                c => out.write_char(c)?,
            }
        }
        for byte in chunk.invalid() {
            if left == 0 {
                return out.write_char('\u{2026}');
            }
            left -= 1;
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

/// Says whether a character may not reach a terminal or widget as it is.
pub fn is_unsafe_to_show(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// Says whether a character changes the direction of a line or takes no room.
fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200c}' | '\u{200e}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_elsewhere_moves_the_cursor_or_turns_the_line() {
        assert_eq!(shown(b"a\nb\x1b[31m\xff"), "a\\nb\\x1b[31m\\xff");
        assert_eq!(
            shown("evil\u{202e}fdp.exe".as_bytes()),
            "evil\\u{202e}fdp.exe"
        );
        assert_eq!(shown("日本 é.txt".as_bytes()), "日本 é.txt");
    }

    #[test]
    fn a_joined_emoji_keeps_its_joiner() {
        assert_eq!(shown("👩\u{200d}💻".as_bytes()), "👩\u{200d}💻");
    }

    #[test]
    fn long_text_is_capped() {
        assert_eq!(
            shown(&vec![b'a'; SHOWN_CHARS + 5]).chars().count(),
            SHOWN_CHARS + 1
        );
    }
}
