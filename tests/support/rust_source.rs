//! Reads Rust source just far enough to say which paths it names, where, and whether only tests
//! see them: a tokenizer and a path collector, without a parser.

use std::collections::BTreeSet;

/// A path as the source names it, with groups (`a::{b, c}`) taken apart and `self` and `super`
/// resolved: `crate` first when it stays in this package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    pub path: Vec<String>,
    pub line: usize,
    /// Stands under `#[cfg(test)]`.
    pub in_test: bool,
}

/// What one file says.
#[derive(Debug, Default)]
pub struct Source {
    pub named: Vec<Named>,
    /// Modules declared as `#[cfg(test)] mod name;`: their files are tests as a whole.
    pub test_modules: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Ident(String),
    /// `::`
    Colons,
    /// Any other character.
    Mark(char),
}

#[derive(Debug, Clone)]
struct Token {
    kind: Kind,
    line: usize,
    in_test: bool,
}

impl Token {
    fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }

    fn ident(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            _ => None,
        }
    }
}

/// Reads `text`, the file of module `module` (`["backend", "tcp"]`; empty for the crate's root).
pub fn read(text: &str, module: &[String]) -> Source {
    let mut tokens = tokens(text);
    let test_modules = mark_tests(&mut tokens);
    let mut named = Vec::new();
    // The inline modules that are open, and the brace depth at which each of them closes.
    let mut inline: Vec<(String, usize)> = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while at < tokens.len() {
        let token = &tokens[at];
        match &token.kind {
            Kind::Mark('{') => depth += 1,
            Kind::Mark('}') => {
                depth -= 1;
                if inline.last().is_some_and(|(_, closes)| *closes == depth) {
                    inline.pop();
                }
            }
            Kind::Ident(word) if word == "mod" => {
                if let [name, brace, ..] = &tokens[at + 1..]
                    && let Some(name) = name.ident()
                    && brace.is('{')
                {
                    inline.push((name.to_string(), depth));
                }
            }
            Kind::Ident(_) if starts_path(&tokens, at) => {
                let here: Vec<String> = module
                    .iter()
                    .cloned()
                    .chain(inline.iter().map(|(name, _)| name.clone()))
                    .collect();
                let mut found = Vec::new();
                at = collect(&tokens, at, &[], &mut found);
                for mut name in found {
                    name.path = resolve(name.path, &here);
                    named.push(name);
                }
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    Source {
        named,
        test_modules,
    }
}

/// Whether the identifier at `at` begins a path: nothing of a path, a field or a lifetime before it.
fn starts_path(tokens: &[Token], at: usize) -> bool {
    let before = |back: usize| at.checked_sub(back).map(|i| &tokens[i]);
    match before(1).map(|t| &t.kind) {
        Some(Kind::Mark('.')) => false,
        // `::std::net` is a path from the root; `a::b` is not the start of one.
        Some(Kind::Colons) => !matches!(
            before(2).map(|t| &t.kind),
            Some(Kind::Ident(_) | Kind::Mark('>'))
        ),
        _ => true,
    }
}

/// Collects the path (or, in a `use`, the paths) that begin at `at`; returns where reading goes on.
fn collect(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Named>) -> usize {
    let mut path = prefix.to_vec();
    let Some(first) = tokens.get(at) else {
        return at;
    };
    let (line, in_test) = (first.line, first.in_test);
    loop {
        match tokens.get(at).map(|t| &t.kind) {
            Some(Kind::Ident(name)) => path.push(name.clone()),
            Some(Kind::Mark('*')) => path.push("*".into()),
            Some(Kind::Mark('{')) => {
                at += 1;
                while at < tokens.len() && !tokens[at].is('}') {
                    if tokens[at].is(',') {
                        at += 1;
                        continue;
                    }
                    let next = collect(tokens, at, &path, found);
                    at = skip_rename(tokens, next.max(at + usize::from(next == at)));
                }
                return at + 1;
            }
            // A turbofish: the path ends, what is in it gets read on its own.
            _ => break,
        }
        at += 1;
        if tokens.get(at).map(|t| &t.kind) != Some(&Kind::Colons) {
            break;
        }
        at += 1;
    }
    // A lone word names nothing unless a group gave it a prefix.
    if path.len() > 1 || is_use(tokens, at) {
        found.push(Named {
            path,
            line,
            in_test,
        });
    }
    at
}

/// Whether the one word that ends before `at` is all of a `use` (`use rusqlite;`).
fn is_use(tokens: &[Token], at: usize) -> bool {
    at >= 2
        && matches!(tokens[at - 2].ident(), Some("use" | "crate"))
        && tokens[at - 1].ident().is_some()
}

fn skip_rename(tokens: &[Token], at: usize) -> usize {
    match tokens.get(at).and_then(Token::ident) {
        Some("as") => at + 2,
        _ => at,
    }
}

/// Turns `self::x` and `super::x` in module `here` into `crate::…`, and our own name into `crate`.
fn resolve(path: Vec<String>, here: &[String]) -> Vec<String> {
    let absolute = |keep: usize, rest: &[String]| {
        let mut out = vec!["crate".to_string()];
        out.extend_from_slice(&here[..keep]);
        out.extend_from_slice(rest);
        out
    };
    match path[0].as_str() {
        "self" => absolute(here.len(), &path[1..]),
        "super" => {
            let ups = path.iter().take_while(|part| *part == "super").count();
            absolute(here.len().saturating_sub(ups), &path[ups..])
        }
        "transload" => absolute(0, &path[1..]),
        _ => path,
    }
}

/// Marks everything under `#[cfg(test)]`; returns the modules declared there without a body.
fn mark_tests(tokens: &mut [Token]) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    let mut at = 0;
    while at + 1 < tokens.len() {
        if !(tokens[at].is('#') && tokens[at + 1].is('[')) {
            at += 1;
            continue;
        }
        let (end, is_test) = attribute(tokens, at + 1);
        if !is_test {
            at = end;
            continue;
        }
        let mut item = end;
        while item + 1 < tokens.len() && tokens[item].is('#') && tokens[item + 1].is('[') {
            item = attribute(tokens, item + 1).0;
        }
        let until = item_end(tokens, item);
        let words: Vec<&Token> = tokens[item..until].iter().collect();
        if let Some(i) = words.iter().take(6).position(|t| t.ident() == Some("mod"))
            && let [name, end] = words[i + 1..]
            && end.is(';')
        {
            modules.extend(name.ident().map(str::to_string));
        }
        for token in &mut tokens[at..until] {
            token.in_test = true;
        }
        at = until;
    }
    modules
}

/// Reads the attribute whose `[` is at `open`: where it ends, and whether it is a `cfg` for tests.
fn attribute(tokens: &[Token], open: usize) -> (usize, bool) {
    let mut depth = 0;
    let mut words = Vec::new();
    let mut at = open;
    while at < tokens.len() {
        match &tokens[at].kind {
            Kind::Mark('[') => depth += 1,
            Kind::Mark(']') => depth -= 1,
            Kind::Ident(word) => words.push(word.as_str()),
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    let is_test =
        words.first() == Some(&"cfg") && words.contains(&"test") && !words.contains(&"not");
    (at, is_test)
}

/// Where the item that starts at `at` ends: after its first `;` or its closing brace.
fn item_end(tokens: &[Token], mut at: usize) -> usize {
    let mut depth = 0;
    while at < tokens.len() {
        match &tokens[at].kind {
            Kind::Mark('{' | '(' | '[') => depth += 1,
            Kind::Mark(close @ ('}' | ')' | ']')) => {
                depth -= 1;
                if depth == 0 && *close == '}' {
                    return at + 1;
                }
            }
            Kind::Mark(';') if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// The tokens of `text` without comments, strings, characters, numbers and lifetimes.
fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let peek = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut out = Vec::new();
    let mut line = 1;
    let mut at = 0;
    while at < chars.len() {
        let start = at;
        let c = chars[at];
        let mut kind = None;
        if c == '/' && peek(at + 1) == '/' {
            while at < chars.len() && chars[at] != '\n' {
                at += 1;
            }
        } else if c == '/' && peek(at + 1) == '*' {
            at = after_block_comment(&chars, at);
        } else if let Some(end) = after_raw_string(&chars, at) {
            at = end;
        } else if c == '"' || (matches!(c, 'b' | 'c') && peek(at + 1) == '"') {
            at = after_quoted(&chars, at + usize::from(c != '"'), '"');
        } else if c == 'b' && peek(at + 1) == '\'' {
            at = after_quoted(&chars, at + 1, '\'');
        } else if c == '\'' {
            // A character ends with a quote; a lifetime does not.
            if peek(at + 1) == '\\' || peek(at + 2) == '\'' {
                at = after_quoted(&chars, at, '\'');
            } else {
                at += 1;
                while peek(at).is_alphanumeric() || peek(at) == '_' {
                    at += 1;
                }
            }
        } else if c.is_alphabetic() || c == '_' {
            if c == 'r' && peek(at + 1) == '#' {
                at += 2;
            }
            let from = at;
            while peek(at).is_alphanumeric() || peek(at) == '_' {
                at += 1;
            }
            kind = Some(Kind::Ident(chars[from..at].iter().collect()));
        } else if c.is_ascii_digit() {
            while peek(at).is_alphanumeric() || peek(at) == '_' {
                at += 1;
            }
        } else if c == ':' && peek(at + 1) == ':' {
            at += 2;
            kind = Some(Kind::Colons);
        } else {
            at += 1;
            kind = (!c.is_whitespace()).then_some(Kind::Mark(c));
        }
        out.extend(kind.map(|kind| Token {
            kind,
            line,
            in_test: false,
        }));
        line += chars[start..at.min(chars.len())]
            .iter()
            .filter(|c| **c == '\n')
            .count();
    }
    out
}

fn after_block_comment(chars: &[char], mut at: usize) -> usize {
    let mut depth = 0;
    while at < chars.len() {
        match chars[at..].first_chunk::<2>() {
            Some(['/', '*']) => (depth, at) = (depth + 1, at + 2),
            Some(['*', '/']) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// The end of the raw string that begins at `at` (`r"`, `br##"`, …), or `None` when none does.
fn after_raw_string(chars: &[char], mut at: usize) -> Option<usize> {
    if matches!(chars[at], 'b' | 'c') {
        at += 1;
    }
    if chars.get(at) != Some(&'r') {
        return None;
    }
    at += 1;
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    at += hashes;
    if chars.get(at) != Some(&'"') {
        return None;
    }
    at += 1;
    while at < chars.len() {
        if chars[at] == '"'
            && chars[at + 1..]
                .iter()
                .take(hashes)
                .filter(|c| **c == '#')
                .count()
                == hashes
        {
            return Some(at + 1 + hashes);
        }
        at += 1;
    }
    Some(at)
}

/// The place after the closing `quote` of what opens at `at`.
fn after_quoted(chars: &[char], mut at: usize, quote: char) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}
