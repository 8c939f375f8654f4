//! Turns a profile's rules into rsync's.
//!
//! The two speak nearly the same language: the first rule that matches wins, a leading slash is the
//! top of the transfer, a trailing one means folders only, `*` stops at a slash and `**` does not,
//! and a folder that is left out is not entered. The differences are made up here:
//!
//! | ours | for rsync |
//! |---|---|
//! | `a/**/b` matches `a/b` too | two rules, `a/b` and `a/**/b` |
//! | `**/a` is `a` at any depth | `a` |
//! | more than two stars are two | `**` (three are special to rsync) |
//! | `\*` is a star | the same where a wildcard makes a pattern of it, which a star does |
//! | `\\` is a backslash anywhere | one backslash in a name without wildcards, else two |
//! | `[ä-ö]` is a set of characters | refused: rsync's sets are of bytes |
//!
//! Each is given as `--filter`, whose text after the sign and the blank is the pattern as it stands;
//! `--exclude` would read a pattern that begins with `+ ` or `- ` otherwise.

use std::ffi::OsString;

use crate::backend::rsync::USE;
use crate::fs::filter::Filter;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::rules::{Rule, RuleVerb};
use crate::pump::name::STAGING_GLOB;

/// A pattern with more `**/` than this would become too many rules.
const MOST_FOLDERS: usize = 4;

/// Returns rsync's arguments for the rules, and never a staging folder of ours.
///
/// # Errors
/// `Config` for a pattern that makes no sense, `Unsupported` for one that rsync cannot take.
pub(super) fn arguments(rules: &[Rule]) -> Result<Vec<OsString>> {
    Filter::new(rules)?;
    let mut arguments = vec![OsString::from(format!("--filter=- {STAGING_GLOB}"))];
    for rule in rules {
        let sign = match rule.verb {
            RuleVerb::Exclude => '-',
            RuleVerb::Include => '+',
        };
        for pattern in patterns(&rule.pattern)? {
            arguments.push(format!("--filter={sign} {pattern}").into());
        }
    }
    Ok(arguments)
}

/// Says whether a rule looks at more than the name of what it matches, so that it matters where the
/// top of the transfer is.
pub(super) fn looks_at_place(rule: &Rule) -> bool {
    let inner = rule.pattern.strip_suffix('/').unwrap_or(&rule.pattern);
    inner.contains('/') || inner.contains("**")
}

/// A piece of a pattern.
enum Piece {
    /// A character that stands for itself.
    Literal(char),
    /// A wildcard, a set or a slash, as it is written.
    Special(String),
    /// `**/` at the beginning of a component: nothing, or whole components.
    Folders,
}

/// Returns the patterns that mean to rsync together what one means to us.
fn patterns(pattern: &str) -> Result<Vec<String>> {
    let refuse = |cause: &str| {
        Error::new(ErrorKind::Unsupported, USE, cause)
            .at(pattern)
            .hint("change the pattern, or choose another method")
    };
    let mut pieces = pieces(pattern).ok_or_else(|| {
        refuse("rsync reads sets of bytes, and this pattern has a set with other characters")
    })?;
    // Without an anchor it is looked for at every depth anyway.
    if matches!(pieces.first(), Some(Piece::Folders)) {
        pieces.remove(0);
    }
    let folders = pieces
        .iter()
        .filter(|piece| matches!(piece, Piece::Folders))
        .count();
    if folders > MOST_FOLDERS {
        return Err(refuse("it has more than four times '**/'"));
    }
    let mut all: Vec<String> = (0..1_u32 << folders)
        .map(|choice| written(&pieces, choice))
        .filter(|text| !matches!(text.as_str(), "" | "/"))
        .collect();
    all.dedup();
    Ok(all)
}

/// Takes a pattern apart; `None` when a set has characters of several bytes. It was compiled before,
/// so it is well formed.
fn pieces(pattern: &str) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    let mut component_starts = true;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let starts = std::mem::replace(&mut component_starts, c == '/');
        match c {
            '*' if rest.starts_with('*') => {
                rest = rest.trim_start_matches('*');
                if starts && rest.len() > 1 && rest.starts_with('/') {
                    rest = &rest[1..];
                    component_starts = true;
                    pieces.push(Piece::Folders);
                } else {
                    pieces.push(Piece::Special("**".to_owned()));
                }
            }
            '*' | '?' | '/' => pieces.push(Piece::Special(c.to_string())),
            '[' => {
                let end = set_end(rest)?;
                let set = &rest[..end];
                if !set.is_ascii() {
                    return None;
                }
                pieces.push(Piece::Special(format!("[{set}")));
                rest = &rest[end..];
            }
            '\\' => {
                let c = rest.chars().next()?;
                rest = &rest[c.len_utf8()..];
                pieces.push(Piece::Literal(c));
            }
            c => pieces.push(Piece::Literal(c)),
        }
    }
    Some(pieces)
}

/// Returns where a set ends, past its `]`.
fn set_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = usize::from(text.starts_with(['!', '^']));
    let first = at;
    loop {
        match bytes.get(at)? {
            b']' if at > first => return Some(at + 1),
            b'[' if bytes.get(at + 1) == Some(&b':') => at += text[at..].find(":]")? + 2,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Writes the pieces for rsync; the bits of `choice` say which `**/` are there.
fn written(pieces: &[Piece], choice: u32) -> String {
    let write = |escape: bool| {
        let (mut text, mut folder) = (String::new(), 0);
        for piece in pieces {
            match piece {
                Piece::Literal(c) => {
                    if escape && matches!(c, '*' | '?' | '[' | '\\') {
                        text.push('\\');
                    }
                    text.push(*c);
                }
                Piece::Special(special) => text.push_str(special),
                Piece::Folders => {
                    if choice >> folder & 1 == 1 {
                        text.push_str("**/");
                    }
                    folder += 1;
                }
            }
        }
        text
    };
    let escaped = write(true);
    // Without any of these rsync compares letter by letter, backslashes too.
    if escaped.contains(['*', '?', '[']) {
        escaped
    } else {
        write(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_the_same_to_rsync() {
        for (ours, theirs) in [
            ("*.log", &["*.log"][..]),
            ("/build/", &["/build/"]),
            ("a/**/b", &["a/b", "a/**/b"]),
            ("**/a", &["a"]),
            ("/**/a/", &["/a/", "/**/a/"]),
            ("a***", &["a**"]),
            ("dir/***", &["dir/**"]),
            ("a\\*b", &["a\\*b"]),
            ("a\\\\b", &["a\\b"]),
            ("a\\\\*", &["a\\\\*"]),
            ("- x", &["- x"]),
            ("[!a-c]x[[:digit:]]", &["[!a-c]x[[:digit:]]"]),
            ("[]]\\[", &["[]]\\["]),
            ("日本*", &["日本*"]),
        ] {
            assert_eq!(patterns(ours).unwrap(), theirs, "{ours}");
        }
        assert!(patterns("[ä]").is_err());
        assert!(patterns("a/**/b/**/c/**/d/**/e/**/f").is_err());
    }

    #[test]
    fn rules_keep_their_order_and_their_sign() {
        let rule = |verb, pattern: &str| Rule {
            verb,
            pattern: pattern.into(),
        };
        let rules = [
            rule(RuleVerb::Include, "keep"),
            rule(RuleVerb::Exclude, "+ odd"),
        ];
        let got = arguments(&rules).unwrap();
        assert_eq!(got[1], "--filter=+ keep");
        assert_eq!(got[2], "--filter=- + odd");
        assert!(!looks_at_place(&rule(RuleVerb::Exclude, "a/")));
        assert!(looks_at_place(&rule(RuleVerb::Exclude, "/a")));
        assert!(arguments(&[rule(RuleVerb::Exclude, "a[b")]).is_err());
    }
}
