//! One shell glob over bytes: `*` and `?` stop at a slash, `**` does not.

/// The longest pattern in bytes, as long as the longest path.
const LONGEST: usize = 4096;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    tokens: Vec<Token>,
    /// Neither a slash nor `**` in it and not anchored: the last component decides.
    name_only: bool,
    /// It matches folders only.
    folders: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// These bytes.
    Bytes(Vec<u8>),
    /// `?`: one character, not a slash.
    One,
    /// `[...]`: one character of the set, or with `[!...]` one that is not in it; no slash.
    Set { not: bool, ranges: Vec<(u32, u32)> },
    /// `*`: anything without a slash.
    Star,
    /// `**`: anything.
    Stars,
    /// `**/` where a component starts: nothing, or whole components.
    Folders,
}

impl Glob {
    /// Compiles a pattern; the error says what is wrong with it.
    pub(super) fn new(pattern: &str) -> Result<Self, &'static str> {
        if pattern.len() > LONGEST {
            return Err("it is longer than 4096 bytes");
        }
        if pattern.contains('\0') {
            return Err("it holds a NUL byte");
        }
        let (anchored, rest) = match pattern.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, pattern),
        };
        let (folders, rest) = match rest.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        for part in rest.split('/') {
            match part {
                "" if rest.is_empty() => return Err("it is empty"),
                "" => return Err("it has two slashes in a row"),
                "." | ".." => {
                    return Err("it has a '.' or '..', which no path here has; \
                                start it with a slash to mean the top");
                }
                _ => {}
            }
        }
        let mut tokens = parse(rest)?;
        let name_only = !anchored && !rest.contains('/') && !tokens.contains(&Token::Stars);
        if !anchored && !name_only && !matches!(tokens[0], Token::Folders | Token::Stars) {
            tokens.insert(0, Token::Folders);
        }
        Ok(Self {
            tokens,
            name_only,
            folders,
        })
    }

    /// Says whether the pattern matches a path, and a folder where only those count.
    pub(super) fn matches(&self, path: &[u8], is_dir: bool) -> bool {
        if self.folders && !is_dir {
            return false;
        }
        let text = match path.iter().rposition(|b| *b == b'/') {
            Some(slash) if self.name_only => &path[slash + 1..],
            _ => path,
        };
        run(&self.tokens, text)
    }
}

fn parse(pattern: &str) -> Result<Vec<Token>, &'static str> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut component_starts = true;
    let mut rest = pattern;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let starts = std::mem::replace(&mut component_starts, c == '/');
        match c {
            '*' if rest.starts_with('*') => {
                rest = rest.trim_start_matches('*');
                if starts && rest.starts_with('/') {
                    rest = &rest[1..];
                    component_starts = true;
                    tokens.push(Token::Folders);
                } else {
                    tokens.push(Token::Stars);
                }
            }
            '*' => tokens.push(Token::Star),
            '?' => tokens.push(Token::One),
            '[' => {
                let (set, after) = parse_set(rest)?;
                tokens.push(set);
                rest = after;
            }
            '\\' => {
                let c = rest.chars().next().ok_or("it ends in a backslash")?;
                rest = &rest[c.len_utf8()..];
                literal(&mut tokens, c);
            }
            c => literal(&mut tokens, c),
        }
    }
    Ok(tokens)
}

fn literal(tokens: &mut Vec<Token>, c: char) {
    let mut buffer = [0; 4];
    let bytes = c.encode_utf8(&mut buffer).as_bytes();
    match tokens.last_mut() {
        Some(Token::Bytes(run)) => run.extend_from_slice(bytes),
        _ => tokens.push(Token::Bytes(bytes.to_vec())),
    }
}

/// Parses what follows a `[`; returns the set and what follows its `]`.
fn parse_set(text: &str) -> Result<(Token, &str), &'static str> {
    const OPEN: &str = "a '[' has no ']'";
    let (not, mut rest) = match text.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut ranges = Vec::new();
    let mut first = true;
    loop {
        let c = rest.chars().next().ok_or(OPEN)?;
        if c == ']' && !first {
            return Ok((Token::Set { not, ranges }, &rest[1..]));
        }
        first = false;
        if let Some(after) = rest.strip_prefix("[:") {
            let (name, after) = after.split_once(":]").ok_or("a '[:' has no ':]'")?;
            let class = class(name).ok_or("it has an unknown class, such as [:alpha:] is one")?;
            for byte in (0..128_u8).filter(class) {
                ranges.push((byte.into(), byte.into()));
            }
            rest = after;
            continue;
        }
        let (low, after) = set_member(rest)?;
        rest = after;
        // A '-' at the end of the set is itself.
        match rest.strip_prefix('-') {
            Some(after) if !after.starts_with(']') => {
                let (high, after) = set_member(after)?;
                if high < low {
                    return Err("a range in it runs backwards");
                }
                ranges.push((low, high));
                rest = after;
            }
            _ => ranges.push((low, low)),
        }
    }
}

fn set_member(text: &str) -> Result<(u32, &str), &'static str> {
    let mut chars = text.chars();
    let c = match chars.next() {
        Some('\\') => chars.next(),
        c => c,
    };
    let c = c.ok_or("a '[' has no ']'")?;
    Ok((c.into(), chars.as_str()))
}

fn class(name: &str) -> Option<fn(&u8) -> bool> {
    Some(match name {
        "alpha" => u8::is_ascii_alphabetic,
        "digit" => u8::is_ascii_digit,
        "alnum" => u8::is_ascii_alphanumeric,
        "upper" => u8::is_ascii_uppercase,
        "lower" => u8::is_ascii_lowercase,
        "punct" => u8::is_ascii_punctuation,
        "xdigit" => u8::is_ascii_hexdigit,
        "cntrl" => u8::is_ascii_control,
        "graph" => u8::is_ascii_graphic,
        "print" => |b| b.is_ascii_graphic() || *b == b' ',
        "blank" => |b| matches!(b, b' ' | b'\t'),
        "space" => |b| matches!(b, b' ' | b'\t'..=b'\r'),
        _ => return None,
    })
}

/// Where to go on when what follows a wildcard does not match.
#[derive(Clone, Copy)]
struct Retry {
    token: usize,
    text: usize,
}

/// Matches all tokens against all of the text.
///
/// Only the last `*` and the last wildcard over slashes are ever tried longer: a later one can
/// take over whatever an earlier one would have left. So the time is bounded by a polynomial,
/// which matters for patterns that came with somebody else's profile.
fn run(tokens: &[Token], text: &[u8]) -> bool {
    let (mut t, mut i) = (0, 0);
    let mut star: Option<Retry> = None;
    let mut wide: Option<Retry> = None;
    loop {
        let here = Retry { token: t, text: i };
        let step = match tokens.get(t) {
            None if i == text.len() => return true,
            None => None,
            Some(Token::Star) => {
                star = Some(here);
                Some(0)
            }
            Some(Token::Stars | Token::Folders) => {
                wide = Some(here);
                star = None;
                Some(0)
            }
            Some(Token::Bytes(bytes)) => text[i..].starts_with(bytes).then_some(bytes.len()),
            Some(Token::One) => character(&text[i..]).map(|(_, len)| len),
            Some(Token::Set { not, ranges }) => character(&text[i..])
                .filter(|(c, _)| ranges.iter().any(|(a, b)| (a..=b).contains(&c)) != *not)
                .map(|(_, len)| len),
        };
        if let Some(step) = step {
            t += 1;
            i += step;
            continue;
        }
        // One byte more for the last star, unless that is a slash.
        let no_slash = |from: &&mut Retry| text.get(from.text).is_some_and(|b| *b != b'/');
        if let Some(from) = star.as_mut().filter(no_slash) {
            from.text += 1;
            (t, i) = (from.token + 1, from.text);
            continue;
        }
        star = None;
        let Some(from) = &mut wide else { return false };
        let left = &text[from.text..];
        let more = match tokens[from.token] {
            Token::Folders => left.iter().position(|b| *b == b'/').map(|slash| slash + 1),
            _ => (!left.is_empty()).then_some(1),
        };
        let Some(more) = more else { return false };
        from.text += more;
        (t, i) = (from.token + 1, from.text);
    }
}

/// Returns the first character and its length, `None` for a slash or nothing. A byte that is not
/// part of UTF-8 is a character of its own, beyond all others.
fn character(text: &[u8]) -> Option<(u32, usize)> {
    let first = *text.first()?;
    if first == b'/' {
        return None;
    }
    if first < 0x80 {
        return Some((first.into(), 1));
    }
    let most = &text[..text.len().min(4)];
    let valid = most.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    match valid.chars().next() {
        Some(c) => Some((c.into(), c.len_utf8())),
        None => Some((0x11_0000 + u32::from(first), 1)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Glob::new(pattern).unwrap().matches(path.as_bytes(), false)
    }

    #[test]
    fn a_star_stops_at_a_slash_and_two_do_not() {
        assert!(matches("/a*c", "abbc"));
        assert!(!matches("/a*c", "a/c"));
        assert!(matches("/a**c", "ab/bc"));
        assert!(matches("/a**c", "ac"));
        assert!(!matches("/a?c", "a/c"));
        assert!(!matches("/a[!b]c", "a/c"));
        assert!(matches("/a/**/z", "a/z"));
        assert!(matches("/a/**/z", "a/b/c/z"));
        assert!(!matches("/a/**/z", "a/b/cz"));
        assert!(matches("/a/**", "a/b/c"));
        assert!(!matches("/a/**", "a"));
        assert!(matches("**", "a/b"));
        assert!(matches("x**/y", "q/xa/b/y"));
    }

    #[test]
    fn a_pattern_without_a_leading_slash_matches_at_any_depth() {
        for path in ["cache", "a/cache", "a/b/cache"] {
            assert!(matches("cache", path), "{path}");
        }
        assert!(!matches("cache", "a/mycache"));
        assert!(!matches("cache", "cache/a"));
        assert!(matches("b/c*", "a/b/cd"));
        assert!(!matches("b/c*", "ab/cd"));
        assert!(!matches("/cache", "a/cache"));
    }

    #[test]
    fn characters_are_counted_and_odd_bytes_count_as_one() {
        assert!(matches("?.txt", "\u{e9}.txt"));
        assert!(matches("[\u{e0}-\u{ef}].txt", "\u{e9}.txt"));
        assert!(!matches("??.txt", "\u{e9}.txt"));
        let glob = Glob::new("a?c").unwrap();
        assert!(glob.matches(b"a\xffc", false));
        assert!(!glob.matches(b"a\xff\xfec", false));
        assert!(Glob::new("a*c").unwrap().matches(b"a\xff\n\xfec", false));
    }

    #[test]
    fn sets_know_ranges_classes_and_their_odd_members() {
        assert!(matches("[a-cx]1", "b1") && matches("[a-cx]1", "x1"));
        assert!(!matches("[a-cx]1", "d1"));
        assert!(matches("[]-]1", "]1") && matches("[]-]1", "-1"));
        assert!(matches("[!]]1", "a1") && !matches("[!]]1", "]1"));
        assert!(matches("[[:digit:]_]", "7") && !matches("[[:digit:]_]", "a"));
        assert!(matches("[\\]]", "]"));
    }

    #[test]
    fn a_backslash_takes_the_next_character_as_it_is_and_braces_are_plain() {
        assert!(matches("\\*", "*") && !matches("\\*", "a"));
        assert!(matches("a{b,c}", "a{b,c}") && !matches("a{b,c}", "ab"));
    }

    #[test]
    fn what_cannot_match_or_was_cut_off_is_an_error() {
        for bad in [
            "", "/", "//", "a//b", "../x", "./x", "[a", "a\\", "[b-a]", "[[:x:]]", "a\0",
        ] {
            assert!(Glob::new(bad).is_err(), "{bad:?}");
        }
        assert!(Glob::new(&"a".repeat(4097)).is_err());
    }

    #[test]
    fn a_pattern_made_to_take_for_ever_does_not() {
        let glob = Glob::new(&format!("/{}b", "*a".repeat(200))).unwrap();
        assert!(!glob.matches(&[b'a'; 4000], false));
        let glob = Glob::new(&format!("/{}b", "**a".repeat(200))).unwrap();
        assert!(!glob.matches(&[b'a'; 4000], false));
    }

    proptest! {
        /// `globset` agrees wherever both have the same rules: no braces, `**` only as a whole
        /// component, ASCII.
        #[test]
        fn another_matcher_agrees(
            parts in prop::collection::vec("(\\*\\*|[ab?*]{1,4}|\\[[!]?[ab]\\])", 1..5),
            path in "[abc]{1,3}(/[abc]{1,3}){0,4}",
        ) {
            // Runs of stars inside a component mean different things to the two.
            let parts: Vec<String> = parts
                .into_iter()
                .map(|p| if p == "**" { p } else { p.replace("**", "*").replace("**", "*") })
                .collect();
            let pattern = parts.join("/");
            let other = globset::GlobBuilder::new(&pattern)
                .literal_separator(true)
                .build()
                .unwrap()
                .compile_matcher();
            let ours = Glob::new(&format!("/{pattern}")).unwrap();
            prop_assert_eq!(
                ours.matches(path.as_bytes(), false),
                other.is_match(&path),
                "{} on {}", pattern, path
            );
        }

        #[test]
        fn no_pattern_panics(pattern in "\\PC{0,20}", path in prop::collection::vec(any::<u8>(), 0..30)) {
            if let Ok(glob) = Glob::new(&pattern) {
                let _ = glob.matches(&path, true);
            }
        }
    }
}
