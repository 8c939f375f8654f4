//! Lists of texts in TOML, changed so that a comment stays with the item it is about.
//!
//! `toml_edit` stores what follows a comma before the next item, so that a comment behind an item
//! would go or stay with its neighbour. Here lists are taken apart into items with the comments
//! above and behind each, and put together again.

use toml_edit::{Array, Item, Table, Value};

/// One item with what is written around it.
struct Line {
    value: Value,
    /// What stands before it on lines of its own, or the blank before it.
    above: String,
    /// The comment behind its comma.
    behind: String,
    is_used: bool,
}

/// Puts a list of texts at a key. Items that stay keep their comments, and one that was replaced
/// by another at its place leaves them to that.
pub fn put_texts(table: &mut Table, key: &str, texts: &[String]) {
    let Some(array) = table.get_mut(key).and_then(Item::as_array_mut) else {
        table.insert(key, Item::Value(texts.iter().collect::<Array>().into()));
        return;
    };
    let (mut old, end) = take_apart(array);
    let own_line = old
        .last()
        .and_then(|line| Some(line.above[line.above.rfind('\n')?..].to_owned()));
    let indent = own_line.unwrap_or_else(|| " ".to_owned());
    let stays = |text: &str| texts.iter().any(|new| new == text);
    let mut lines: Vec<Line> = Vec::with_capacity(texts.len());
    for (at, text) in texts.iter().enumerate() {
        let same = |line: &&mut Line| !line.is_used && line.value.as_str() == Some(text);
        let found = old.iter_mut().find(same);
        let line = match found {
            Some(line) => line.take(),
            None => match old.get_mut(at) {
                Some(gone) if !gone.is_used && !gone.value.as_str().is_some_and(stays) => Line {
                    value: Value::from(text),
                    ..gone.take()
                },
                _ => Line {
                    value: Value::from(text),
                    above: indent.clone(),
                    behind: String::new(),
                    is_used: false,
                },
            },
        };
        lines.push(line);
    }
    put_together(array, lines, end);
}

impl Line {
    /// Returns it and marks the one that is left as used.
    fn take(&mut self) -> Self {
        self.is_used = true;
        Self {
            value: self.value.clone(),
            above: self.above.clone(),
            behind: self.behind.clone(),
            is_used: false,
        }
    }
}

/// Returns the items and what stands before the closing bracket.
fn take_apart(array: &Array) -> (Vec<Line>, String) {
    let mut lines: Vec<Line> = Vec::with_capacity(array.len());
    let mut end = String::new();
    for value in array.iter() {
        let text = |raw: Option<&toml_edit::RawString>| {
            raw.and_then(toml_edit::RawString::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let prefix = text(value.decor().prefix());
        let above = match lines.last_mut() {
            Some(before) => {
                let (behind, above) = split(&prefix);
                before.behind.push_str(behind);
                above.to_owned()
            }
            None => prefix,
        };
        // What stands between an item and its comma goes behind the comma.
        let suffix = text(value.decor().suffix());
        let (behind, rest) = split(&suffix);
        end = rest.to_owned();
        let mut value = value.clone();
        value.decor_mut().set_suffix("");
        lines.push(Line {
            value,
            above,
            behind: behind.to_owned(),
            is_used: false,
        });
    }
    let trailing = array.trailing().as_str().unwrap_or_default();
    match lines.last_mut() {
        Some(last) => {
            let (behind, rest) = split(trailing);
            last.behind.push_str(behind);
            end.push_str(rest);
        }
        None => end = trailing.to_owned(),
    }
    (lines, end)
}

/// Splits what follows a comma into the comment behind it and the rest.
fn split(text: &str) -> (&str, &str) {
    let line_end = text.find('\n').unwrap_or(text.len());
    if text[..line_end].contains('#') {
        text.split_at(line_end)
    } else {
        ("", text)
    }
}

fn put_together(array: &mut Array, lines: Vec<Line>, end: String) {
    array.clear();
    let mut behind = String::new();
    for mut line in lines {
        // On one line there is a blank between items and none before the first.
        if line.above.trim_matches(' ').is_empty() {
            line.above = if array.is_empty() { "" } else { " " }.to_owned();
        }
        let newline = if behind.is_empty() || line.above.starts_with('\n') {
            ""
        } else {
            "\n"
        };
        line.value
            .decor_mut()
            .set_prefix(format!("{behind}{newline}{}", line.above));
        behind = line.behind;
        array.push_formatted(line.value);
    }
    if !behind.is_empty() {
        // A comment behind the last item needs the comma before it and a line's end after it.
        array.set_trailing_comma(true);
        if !end.starts_with('\n') {
            behind.push('\n');
        }
    }
    array.set_trailing(format!("{behind}{end}"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: &str, texts: &[&str]) -> String {
        let mut document: toml_edit::DocumentMut = before.parse().unwrap();
        let texts: Vec<_> = texts.iter().map(|text| (*text).to_owned()).collect();
        put_texts(document.as_table_mut(), "a", &texts);
        let after = document.to_string();
        let read: toml_edit::DocumentMut = after.parse().unwrap();
        let values: Vec<_> = read["a"]
            .as_array()
            .unwrap()
            .iter()
            .map(|value| value.as_str().unwrap())
            .collect();
        assert_eq!(values, texts, "{after}");
        after
    }

    const LONG: &str =
        "a = [ # all\n  \"1\", # one\n  # above two\n  \"2\", # two\n  \"3\" # three\n]";

    #[test]
    fn comments_go_with_their_items() {
        assert_eq!(
            changed(LONG, &["1", "3"]),
            "a = [ # all\n  \"1\", # one\n  \"3\", # three\n]\n"
        );
        assert_eq!(
            changed(LONG, &["2", "1", "4"]),
            "a = [\n  # above two\n  \"2\", # two\n # all\n  \"1\", # one\n  \"4\", # three\n]\n"
        );
        assert_eq!(
            changed(LONG, &["1", "2", "3", "4"]),
            "a = [ # all\n  \"1\", # one\n  # above two\n  \"2\", # two\n  \"3\", # three\n  \"4\"\n]\n"
        );
    }

    #[test]
    fn lists_on_one_line_stay_so_and_long_ones_stay_long() {
        assert_eq!(changed("a = []", &["1", "2"]), "a = [\"1\", \"2\"]\n");
        assert_eq!(changed("a = [\"1\", \"2\"]", &["2"]), "a = [\"2\"]\n");
        assert_eq!(changed("a = [\"1\"]", &["2", "3"]), "a = [\"2\", \"3\"]\n");
        assert_eq!(changed("a = [\"1\"]", &[]), "a = []\n");
        assert_eq!(
            changed("a = [\n  \"1\",\n]\n", &["0", "1", "2"]),
            "a = [\n  \"0\",\n  \"1\",\n  \"2\",\n]\n"
        );
    }
}
