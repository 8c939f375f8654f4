//! The text of one profile: TOML, strict to read, with comments and unknown keys kept on rewrite.
//!
//! ```toml
//! schema = 1                        # must be there, as must the next three
//! name = "Photos → nas"             # any text
//! sources = ["/home/me/Pictures"]   # places, see below
//! destinations = ["nas:/volume1/photo"]
//! notes = ""
//! method = "auto"                   # or a method's name
//! contents = false                  # true: a source folder's contents, not the folder itself
//! verify = "md5"                    # none size md5 sha256 blake3 xxh3
//! read_back = false
//! conflict = "differs"              # differs overwrite skip newer larger rename resume fail ask
//! encrypt = "auto"                  # auto always never
//! durable = true
//! limit = "20M"                     # bytes a second; left out for none
//! rules = [{ exclude = "*.tmp" }, { include = "/keep/**" }]   # first match wins
//!
//! [preserve]
//! times = true
//! permissions = true
//! links = true
//!
//! [ssh]
//! identity = "/home/me/.ssh/key"    # left out for what ssh's own configuration says
//! config = "/home/me/other_config"
//! options = ["Compression=no"]
//!
//! [options]                         # of the method, by name
//! streams = "4"
//! ```
//!
//! A place is a text as [`Location::parse`] reads it. TOML holds UTF-8 only, so that a path with
//! other bytes is written as a URL with those percent-encoded ([`Location::to_text`]):
//! `file:///data/%FF.jpg`, `ssh://nas/data/%FF.jpg`.
//!
//! A value that is missing though it must be there, has the wrong type or is not understood makes
//! the file damaged: guessing a destination would be a wrong transfer. Unknown keys are kept, so
//! that a newer version's file survives an older one; the tables `hooks` and `schedule` are known
//! to come.

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use crate::model::location::Location;
use crate::model::options::Options;
use crate::model::profile::{MethodChoice, Preserve, Profile, ProfileId, Settings, SshSettings};
use crate::model::rules::{Rule, RuleVerb};
use crate::store::toml::{self, Read, Reader, put, sub_table};
use crate::store::toml_list::put_texts;

/// The version of the format that is written, and the newest that is read.
const SCHEMA: i64 = 1;

const TOP_KEYS: [&str; 19] = [
    "schema",
    "name",
    "sources",
    "destinations",
    "notes",
    "method",
    "contents",
    "verify",
    "read_back",
    "conflict",
    "encrypt",
    "durable",
    "limit",
    "rules",
    "preserve",
    "ssh",
    "options",
    "hooks",
    "schedule",
];

/// What a new file starts from: it sets the order of the keys.
const TEMPLATE: &str = "\
# A session profile of Transload. It may be edited by hand; comments and unknown keys are kept.
schema = 1
name = \"\"
sources = []
destinations = []
notes = \"\"
method = \"auto\"
contents = false
verify = \"md5\"
read_back = false
conflict = \"differs\"
encrypt = \"auto\"
durable = true

[preserve]
times = true
permissions = true
links = true

[ssh]
options = []
";

/// A profile as a file has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The profile; its id is not in the file but in its name.
    pub profile: Profile,
    /// Keys that this version does not know, with their tables; they are kept.
    pub unknown: Vec<String>,
}

/// Reads a profile from the bytes of its file.
pub(in crate::store) fn read(bytes: &[u8], id: ProfileId) -> Read<Loaded> {
    let document = toml::parse(bytes)?;
    let top = Reader::top(&document);
    match top.number("schema")? {
        Some((SCHEMA, _)) => {}
        Some((newer, span)) if newer > SCHEMA => {
            let why =
                format!("schema {newer} is of a newer Transload; this one reads up to {SCHEMA}");
            return Err(top.fault(span, why));
        }
        Some((_, span)) => return Err(top.fault(span, "there is no such schema; it is 1")),
        None => return Err(top.missing("schema", "schema = 1")),
    }
    let name = top
        .text("name")?
        .ok_or_else(|| top.missing("name", "name = \"Photos\""))?;
    let sources = places(&top, "sources", "sources = [\"/home/me/Pictures\"]")?;
    let destinations = places(&top, "destinations", "destinations = [\"nas:/backup\"]")?;
    let mut settings = Settings::default();
    let mut unknown = top.unknown(&TOP_KEYS);
    read_settings(&top, &mut settings, &mut unknown)?;
    let notes = top.text("notes")?.unwrap_or_default();
    let profile = Profile {
        id,
        name,
        notes,
        sources,
        destinations,
        settings,
    };
    Ok(Loaded { profile, unknown })
}

fn places(top: &Reader<'_>, key: &str, example: &str) -> Read<Vec<Location>> {
    let texts = top.texts(key)?.ok_or_else(|| top.missing(key, example))?;
    texts
        .into_iter()
        .map(|(text, span)| {
            Location::parse(text.as_bytes()).map_err(|e| {
                let hint = e.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
                top.fault(span, format!("{key}: {}{hint}", e.cause))
            })
        })
        .collect()
}

fn read_settings(top: &Reader<'_>, settings: &mut Settings, unknown: &mut Vec<String>) -> Read<()> {
    let Settings {
        method,
        options,
        contents,
        verify,
        read_back,
        conflict,
        preserve,
        rules,
        limit,
        encrypt,
        durable,
        ssh,
    } = settings;
    if let Some((text, span)) = top.text_at("method")? {
        if text.is_empty() {
            return Err(top.fault(span, "method is empty; write \"auto\""));
        }
        *method = MethodChoice::from(text.to_owned());
    }
    set(contents, top.flag("contents")?);
    set(verify, top.word("verify")?);
    set(read_back, top.flag("read_back")?);
    set(conflict, top.word("conflict")?);
    set(encrypt, top.word("encrypt")?);
    set(durable, top.flag("durable")?);
    *limit = top.word("limit")?;
    *rules = read_rules(top)?;
    if let Some(table) = top.table("preserve", "preserve.")? {
        let Preserve {
            times,
            permissions,
            links,
        } = preserve;
        set(times, table.flag("times")?);
        set(permissions, table.flag("permissions")?);
        set(links, table.flag("links")?);
        unknown.extend(table.unknown(&["times", "permissions", "links"]));
    }
    if let Some(table) = top.table("ssh", "ssh.")? {
        let SshSettings {
            identity,
            config,
            options,
        } = ssh;
        *identity = table.text("identity")?;
        *config = table.text("config")?;
        let texts = table.texts("options")?.unwrap_or_default();
        *options = texts.into_iter().map(|(text, _)| text.to_owned()).collect();
        unknown.extend(table.unknown(&["identity", "config", "options"]));
    }
    if let Some(table) = top.table("options", "options.")? {
        *options = read_options(&table)?;
    }
    Ok(())
}

fn set<T>(field: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *field = value;
    }
}

fn read_rules(top: &Reader<'_>) -> Read<Vec<Rule>> {
    let tables = top.tables("rules")?.unwrap_or_default();
    tables
        .into_iter()
        .map(|(table, span)| {
            let exclude = table.text("exclude")?.map(|p| (RuleVerb::Exclude, p));
            let include = table.text("include")?.map(|p| (RuleVerb::Include, p));
            match (exclude, include) {
                (Some((verb, pattern)), None) | (None, Some((verb, pattern)))
                    if !pattern.is_empty() =>
                {
                    Ok(Rule { verb, pattern })
                }
                _ => Err(top.fault(
                    span,
                    "a rule is { exclude = \"pattern\" } or { include = \"pattern\" }",
                )),
            }
        })
        .collect()
}

fn read_options(table: &Reader<'_>) -> Read<Options> {
    let mut options = Options::default();
    for (key, item) in table.items() {
        let text = option_text(item).ok_or_else(|| {
            let why = format!("options.{key} is a text, a whole number, or true or false");
            table.fault(item.span(), why)
        })?;
        options.0.insert(key.to_owned(), text);
    }
    Ok(options)
}

/// Returns an option's value as text; people also write numbers and flags.
fn option_text(item: &Item) -> Option<String> {
    let number = || item.as_integer().map(|number| number.to_string());
    let flag = || item.as_bool().map(|flag| flag.to_string());
    item.as_str()
        .map(str::to_owned)
        .or_else(number)
        .or_else(flag)
}

/// Writes a profile as a new file.
pub(super) fn create(profile: &Profile) -> String {
    let loaded = read(TEMPLATE.as_bytes(), profile.id.clone());
    let old = loaded.map(|loaded| loaded.profile).unwrap_or_default();
    rewrite(TEMPLATE, &old, profile).unwrap_or_default()
}

/// Changes the text of a file that reads as `old` so that it reads as `new`; what is not about
/// the difference stays as it is.
///
/// # Errors
/// When the text is no TOML.
pub(super) fn rewrite(text: &str, old: &Profile, new: &Profile) -> Read<String> {
    let mut document: DocumentMut = toml::parse(text.as_bytes())?.into_mut();
    let top = document.as_table_mut();
    let Profile {
        id: _,
        name,
        notes,
        sources,
        destinations,
        settings,
    } = new;
    let Settings {
        method,
        options,
        contents,
        verify,
        read_back,
        conflict,
        preserve,
        rules,
        limit,
        encrypt,
        durable,
        ssh,
    } = settings;
    let was = &old.settings;
    if *name != old.name {
        put(top, "name", name);
    }
    if *sources != old.sources {
        put_texts(top, "sources", &texts(sources));
    }
    if *destinations != old.destinations {
        put_texts(top, "destinations", &texts(destinations));
    }
    if *notes != old.notes {
        put(top, "notes", notes);
    }
    if *method != was.method {
        put(top, "method", String::from(method.clone()));
    }
    if *contents != was.contents {
        put(top, "contents", *contents);
    }
    if *verify != was.verify {
        put(top, "verify", verify.name());
    }
    if *read_back != was.read_back {
        put(top, "read_back", *read_back);
    }
    if *conflict != was.conflict {
        put(top, "conflict", conflict.name());
    }
    if *encrypt != was.encrypt {
        put(top, "encrypt", encrypt_name(*encrypt));
    }
    if *durable != was.durable {
        put(top, "durable", *durable);
    }
    if *limit != was.limit {
        put_or_remove(top, "limit", limit.map(|rate| rate.to_string()));
    }
    if *rules != was.rules {
        top.remove("rules");
        if !rules.is_empty() {
            top.insert("rules", Item::Value(rules_value(rules)));
        }
    }
    if *preserve != was.preserve {
        let table = sub_table(top, "preserve");
        let Preserve {
            times,
            permissions,
            links,
        } = *preserve;
        put(table, "times", times);
        put(table, "permissions", permissions);
        put(table, "links", links);
    }
    if *ssh != was.ssh {
        let table = sub_table(top, "ssh");
        let SshSettings {
            identity,
            config,
            options,
        } = ssh;
        put_or_remove(table, "identity", identity.clone());
        put_or_remove(table, "config", config.clone());
        put_texts(table, "options", options);
    }
    if *options != was.options {
        let table = sub_table(top, "options");
        let gone: Vec<_> = was
            .options
            .0
            .keys()
            .filter(|key| !options.0.contains_key(*key))
            .collect();
        for key in gone {
            table.remove(key);
        }
        for (key, value) in &options.0 {
            if was.options.get(key) != Some(value) {
                put(table, key, value);
            }
        }
        if table.is_empty() {
            top.remove("options");
        }
    }
    Ok(document.to_string())
}

fn texts(places: &[Location]) -> Vec<String> {
    places.iter().map(Location::to_text).collect()
}

fn encrypt_name(encrypt: crate::model::profile::Encrypt) -> &'static str {
    use crate::model::profile::Encrypt;
    match encrypt {
        Encrypt::Auto => "auto",
        Encrypt::Always => "always",
        Encrypt::Never => "never",
    }
}

fn put_or_remove(table: &mut Table, key: &str, value: Option<String>) {
    match value {
        Some(value) => put(table, key, value),
        None => {
            table.remove(key);
        }
    }
}

/// Writes rules one a line.
fn rules_value(rules: &[Rule]) -> Value {
    let mut array = Array::new();
    for rule in rules {
        let mut table = InlineTable::new();
        let verb = match rule.verb {
            RuleVerb::Exclude => "exclude",
            RuleVerb::Include => "include",
        };
        table.insert(verb, Value::from(&rule.pattern));
        let mut value = Value::from(table);
        value.decor_mut().set_prefix("\n    ");
        array.push_formatted(value);
    }
    array.set_trailing("\n");
    array.set_trailing_comma(true);
    array.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_reads_back_as_the_profile() {
        let profile = Profile {
            name: "a \"b\"\n→ 😀".into(),
            ..Profile::default()
        };
        let text = create(&profile);
        let loaded = read(text.as_bytes(), ProfileId::default()).unwrap();
        assert_eq!(loaded.profile, profile);
        assert!(loaded.unknown.is_empty());
    }

    #[test]
    fn the_template_is_the_default_profile() {
        let loaded = read(TEMPLATE.as_bytes(), ProfileId::default()).unwrap();
        assert_eq!(loaded.profile, Profile::default());
    }
}
