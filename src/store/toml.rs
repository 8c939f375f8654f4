//! Reads values out of TOML with the line and column of what is wrong, and puts values back
//! without touching the comments around them.

use std::ops::Range;

use toml_edit::{Document, Item, Table, TableLike, Value};

/// What is wrong in a file, and where; lines and columns (in characters) count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line.
    pub line: usize,
    /// Column, in characters.
    pub column: usize,
    /// What is wrong there.
    pub reason: String,
}

impl Fault {
    /// Makes a fault at a byte of the text.
    pub fn at(text: &[u8], byte: usize, reason: impl Into<String>) -> Self {
        let before = &text[..byte.min(text.len())];
        let line_start = before
            .iter()
            .rposition(|b| *b == b'\n')
            .map_or(0, |at| at + 1);
        Self {
            line: before.iter().filter(|b| **b == b'\n').count() + 1,
            column: String::from_utf8_lossy(&before[line_start..])
                .chars()
                .count()
                + 1,
            reason: reason.into(),
        }
    }
}

/// The bytes of a value in its file, where they are known.
pub type Place = Option<Range<usize>>;

/// The result of reading a value.
pub type Read<T> = Result<T, Fault>;

/// Parses a whole file.
pub fn parse(bytes: &[u8]) -> Read<Document<&str>> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| Fault::at(bytes, e.valid_up_to(), "these bytes are not UTF-8 text"))?;
    Document::parse(text).map_err(|e| {
        let at = e.span().map_or(0, |span| span.start);
        // Some messages have several lines; a list shows one.
        let reason = e.message().trim().replace('\n', "; ");
        Fault::at(
            bytes,
            at,
            if reason.is_empty() {
                "this is not TOML".to_owned()
            } else {
                reason
            },
        )
    })
}

/// One table of a file with where it came from.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    text: &'a str,
    table: &'a dyn TableLike,
    /// Shown before keys, for example `preserve.`
    prefix: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads the top of a file.
    pub fn top(document: &'a Document<&str>) -> Self {
        Self {
            text: document.raw(),
            table: document.as_table(),
            prefix: "",
        }
    }

    /// Makes a fault at an item.
    pub fn fault(&self, span: Place, reason: impl Into<String>) -> Fault {
        Fault::at(
            self.text.as_bytes(),
            span.map_or(0, |span| span.start),
            reason,
        )
    }

    /// Makes a fault at a key's value.
    pub fn fault_at_key(&self, key: &str, reason: impl Into<String>) -> Fault {
        self.fault(self.item(key).and_then(Item::span), reason)
    }

    fn item(&self, key: &str) -> Option<&'a Item> {
        self.table.get(key).filter(|item| !item.is_none())
    }

    fn wrong_type(&self, key: &str, item: &Item, wanted: &str) -> Fault {
        let found = item.type_name();
        let prefix = self.prefix;
        self.fault(
            item.span(),
            format!("{prefix}{key} is {wanted}, not {}", with_article(found)),
        )
    }

    /// Returns the fault of a key that must be there, at the end of the file.
    pub fn missing(&self, key: &str, example: &str) -> Fault {
        let end = self.text.trim_end().len();
        let reason = format!(
            "{}{key} is missing; write for example {example}",
            self.prefix
        );
        Fault::at(self.text.as_bytes(), end, reason)
    }

    /// Returns a text with its place in the file.
    pub fn text_at(&self, key: &str) -> Read<Option<(&'a str, Place)>> {
        self.item(key)
            .map(|item| match item.as_str() {
                Some(text) => Ok((text, item.span())),
                None => Err(self.wrong_type(key, item, "a text in quotes")),
            })
            .transpose()
    }

    /// Returns a text.
    pub fn text(&self, key: &str) -> Read<Option<String>> {
        Ok(self.text_at(key)?.map(|(text, _)| text.to_owned()))
    }

    /// Returns true or false.
    pub fn flag(&self, key: &str) -> Read<Option<bool>> {
        self.item(key)
            .map(|item| {
                item.as_bool()
                    .ok_or_else(|| self.wrong_type(key, item, "true or false"))
            })
            .transpose()
    }

    /// Returns a whole number.
    pub fn number(&self, key: &str) -> Read<Option<(i64, Place)>> {
        self.item(key)
            .map(|item| match item.as_integer() {
                Some(number) => Ok((number, item.span())),
                None => Err(self.wrong_type(key, item, "a whole number")),
            })
            .transpose()
    }

    /// Returns a number with or without a fraction.
    pub fn real(&self, key: &str) -> Read<Option<f64>> {
        self.item(key)
            .map(|item| {
                let whole = item.as_integer().map(|number| number as f64);
                item.as_float()
                    .or(whole)
                    .ok_or_else(|| self.wrong_type(key, item, "a number"))
            })
            .transpose()
    }

    /// Returns a text that stands for one of a type's values.
    pub fn word<T: std::str::FromStr<Err = String>>(&self, key: &str) -> Read<Option<T>> {
        self.text_at(key)?
            .map(|(text, span)| {
                text.parse()
                    .map_err(|why| self.fault(span, format!("{}{key}: {why}", self.prefix)))
            })
            .transpose()
    }

    /// Returns the values of an array, each with its place in the file.
    pub fn array(&self, key: &str) -> Read<Option<Vec<(&'a Value, Place)>>> {
        self.item(key)
            .map(|item| match item.as_array() {
                Some(array) => Ok(array.iter().map(|value| (value, value.span())).collect()),
                None => Err(self.wrong_type(key, item, "a list in [ ]")),
            })
            .transpose()
    }

    /// Returns the texts of an array, each with its place in the file.
    pub fn texts(&self, key: &str) -> Read<Option<Vec<(&'a str, Place)>>> {
        self.array(key)?
            .map(|values| {
                values
                    .into_iter()
                    .map(|(value, span)| match value.as_str() {
                        Some(text) => Ok((text, span)),
                        None => {
                            let why = format!(
                                "{}{key} holds texts in quotes, not {}",
                                self.prefix,
                                with_article(value.type_name())
                            );
                            Err(self.fault(span, why))
                        }
                    })
                    .collect()
            })
            .transpose()
    }

    /// Returns a table below this one.
    pub fn table(&self, key: &str, prefix: &'static str) -> Read<Option<Self>> {
        self.item(key)
            .map(|item| match item.as_table_like() {
                Some(table) => Ok(Self {
                    text: self.text,
                    table,
                    prefix,
                }),
                None => Err(self.wrong_type(key, item, "a table")),
            })
            .transpose()
    }

    /// Returns the tables of a list of tables, in either of TOML's two forms.
    pub fn tables(&self, key: &str) -> Read<Option<Vec<(Self, Place)>>> {
        let Some(item) = self.item(key) else {
            return Ok(None);
        };
        let reader = |table: &'a dyn TableLike| Self {
            text: self.text,
            table,
            prefix: "",
        };
        if let Some(tables) = item.as_array_of_tables() {
            return Ok(Some(tables.iter().map(|t| (reader(t), t.span())).collect()));
        }
        let Some(values) = item.as_array() else {
            return Err(self.wrong_type(key, item, "a list of tables"));
        };
        values
            .iter()
            .map(|value| match value.as_inline_table() {
                Some(table) => Ok((reader(table), value.span())),
                None => {
                    let found = with_article(value.type_name());
                    Err(self.fault(value.span(), format!("{key} holds tables, not {found}")))
                }
            })
            .collect::<Read<Vec<_>>>()
            .map(Some)
    }

    /// Returns the keys with their items.
    pub fn items(&self) -> impl Iterator<Item = (&'a str, &'a Item)> {
        self.table.iter()
    }

    /// Returns the keys that are none of these.
    pub fn unknown(&self, known: &[&str]) -> Vec<String> {
        self.items()
            .filter(|(key, _)| !known.contains(key))
            .map(|(key, _)| format!("{}{key}", self.prefix))
            .collect()
    }
}

fn with_article(type_name: &str) -> String {
    match type_name.as_bytes().first() {
        Some(b'a' | b'e' | b'i' | b'o' | b'u') => format!("an {type_name}"),
        _ => format!("a {type_name}"),
    }
}

/// Puts a value at a key; the comments around the old one stay.
pub fn put(table: &mut Table, key: &str, value: impl Into<Value>) {
    let mut value = value.into();
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            *value.decor_mut() = old.decor().clone();
            *old = value;
        }
        None => {
            table.insert(key, Item::Value(value));
        }
    }
}

/// Returns a table below another, made if it is missing; one in braces becomes one with a header.
pub fn sub_table<'a>(table: &'a mut Table, key: &str) -> &'a mut Table {
    let item = table.entry(key).or_insert_with(toml_edit::table);
    if !item.is_table() {
        *item = Item::Table(std::mem::take(item).into_table().unwrap_or_default());
    }
    item.as_table_mut().expect("it was made a table above")
}
