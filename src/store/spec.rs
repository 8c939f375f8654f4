//! Jobs, errors and reports as JSON, the form in which the history keeps them.
//!
//! Strict: unknown or missing fields are errors, since a job that is half understood must not run.
//! Texts that are not UTF-8 are lists of byte values; places are texts as
//! [`Location::to_text`] writes them.

use serde::{Deserialize, Serialize};

use crate::model::digest::Algorithm;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::{Consent, JobId, JobSpec};
use crate::model::location::Location;
use crate::model::options::Options;
use crate::model::outcome::{Abort, Outcome, Report, Route, Tally};
use crate::model::profile::{Encrypt, MethodChoice, Preserve, ProfileId, Settings, SshSettings};
use crate::model::rules::{Conflict, Rule};
use crate::model::units::Rate;
use crate::model::untrusted::Untrusted;

/// The version of the format that is written, and the only one that is read.
const SCHEMA: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecJson {
    schema: u32,
    id: String,
    title: String,
    profile: Option<ProfileId>,
    sources: Vec<String>,
    destination: String,
    settings: SettingsJson,
    dry_run: bool,
    attended: bool,
    consent: ConsentJson,
    resume: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsJson {
    method: MethodChoice,
    options: Options,
    contents: bool,
    verify: Algorithm,
    read_back: bool,
    conflict: Conflict,
    preserve: Preserve,
    rules: Vec<Rule>,
    limit: Option<Rate>,
    encrypt: Encrypt,
    durable: bool,
    ssh: SshSettings,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConsentJson {
    upload_agent: bool,
    plain_tcp: bool,
}

/// Writes a job.
pub fn to_json(spec: &JobSpec) -> String {
    let JobSpec {
        id,
        title,
        profile,
        sources,
        destination,
        settings,
        dry_run,
        attended,
        consent: Consent {
            upload_agent,
            plain_tcp,
        },
        resume,
    } = spec;
    encode(&SpecJson {
        schema: SCHEMA,
        id: id.to_string(),
        title: title.clone(),
        profile: profile.clone(),
        sources: sources.iter().map(Location::to_text).collect(),
        destination: destination.to_text(),
        settings: settings.into(),
        dry_run: *dry_run,
        attended: *attended,
        consent: ConsentJson {
            upload_agent: *upload_agent,
            plain_tcp: *plain_tcp,
        },
        resume: *resume,
    })
}

/// Reads a job.
///
/// # Errors
/// `Version` when a newer program wrote it, `Corrupt` when it is not what this one writes.
pub fn from_json(text: &str) -> Result<JobSpec> {
    #[derive(Deserialize)]
    struct Head {
        schema: u32,
    }
    let head: Head = decode("a job", text)?;
    if head.schema != SCHEMA {
        let why = format!(
            "it is of another version ({}, this one reads {SCHEMA})",
            head.schema
        );
        return Err(
            Error::new(ErrorKind::Version, "read a job of the history", why)
                .hint("use the newer Transload that queued it"),
        );
    }
    let json: SpecJson = decode("a job", text)?;
    let place = |text: &String| Location::parse(text.as_bytes());
    Ok(JobSpec {
        id: JobId::parse(&json.id).ok_or_else(|| corrupt("a job", "its id is no id"))?,
        title: json.title,
        profile: json.profile,
        sources: json.sources.iter().map(place).collect::<Result<_>>()?,
        destination: place(&json.destination)?,
        settings: json.settings.into(),
        dry_run: json.dry_run,
        attended: json.attended,
        consent: Consent {
            upload_agent: json.consent.upload_agent,
            plain_tcp: json.consent.plain_tcp,
        },
        resume: json.resume,
    })
}

impl From<&Settings> for SettingsJson {
    fn from(settings: &Settings) -> Self {
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
        } = settings.clone();
        Self {
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
        }
    }
}

impl From<SettingsJson> for Settings {
    fn from(json: SettingsJson) -> Self {
        let SettingsJson {
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
        } = json;
        Self {
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
        }
    }
}

/// Bytes that are mostly text.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum BytesJson {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Untrusted> for BytesJson {
    fn from(text: &Untrusted) -> Self {
        let bytes = text.as_bytes().to_vec();
        String::from_utf8(bytes).map_or_else(|e| Self::Bytes(e.into_bytes()), Self::Text)
    }
}

impl From<BytesJson> for Untrusted {
    fn from(json: BytesJson) -> Self {
        match json {
            BytesJson::Text(text) => text.into(),
            BytesJson::Bytes(bytes) => bytes.into(),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ErrorJson {
    kind: ErrorKind,
    doing: String,
    place: BytesJson,
    cause: BytesJson,
    hint: Option<String>,
}

impl From<&Error> for ErrorJson {
    fn from(error: &Error) -> Self {
        Self {
            kind: error.kind,
            doing: error.doing.clone(),
            place: (&error.place).into(),
            cause: (&error.cause).into(),
            hint: error.hint.clone(),
        }
    }
}

impl From<ErrorJson> for Error {
    fn from(json: ErrorJson) -> Self {
        let mut error = Self::new(json.kind, json.doing, Untrusted::from(json.cause));
        error.place = json.place.into();
        error.hint = json.hint;
        error
    }
}

/// Writes an error.
pub fn error_to_json(error: &Error) -> String {
    encode(&ErrorJson::from(error))
}

/// Reads an error.
///
/// # Errors
/// `Corrupt`.
pub fn error_from_json(text: &str) -> Result<Error> {
    decode::<ErrorJson>("an error", text).map(Error::from)
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutcomeJson {
    Completed,
    Partial,
    /// Partial, and what ended it early.
    CutShort(ErrorJson),
    Aborted(Abort),
    Refused(ErrorJson),
    Failed(ErrorJson),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EndJson {
    outcome: OutcomeJson,
    files: u64,
    bytes: u64,
    wire_bytes: u64,
    // Reports from before it was known have none.
    #[serde(default)]
    kept: u64,
    seconds: f64,
    connect_seconds: f64,
    method: String,
    route: Route,
    why: String,
    tally: Tally,
    /// Not in what the first versions wrote.
    #[serde(default)]
    missing: Option<u64>,
}

/// Writes how a job ended.
pub fn end_to_json(outcome: &Outcome, report: &Report) -> String {
    let outcome = match outcome {
        Outcome::Completed => OutcomeJson::Completed,
        Outcome::Partial(None) => OutcomeJson::Partial,
        Outcome::Partial(Some(error)) => OutcomeJson::CutShort(error.into()),
        Outcome::Aborted(by) => OutcomeJson::Aborted(*by),
        Outcome::Refused(error) => OutcomeJson::Refused(error.into()),
        Outcome::Failed(error) => OutcomeJson::Failed(error.into()),
    };
    let Report {
        files,
        bytes,
        wire_bytes,
        kept,
        seconds,
        connect_seconds,
        method,
        route,
        why,
        tally,
        missing,
    } = report;
    // JSON has no infinities; none makes sense here either.
    let finite = |seconds: f64| if seconds.is_finite() { seconds } else { 0.0 };
    encode(&EndJson {
        outcome,
        files: *files,
        bytes: *bytes,
        wire_bytes: *wire_bytes,
        kept: *kept,
        seconds: finite(*seconds),
        connect_seconds: finite(*connect_seconds),
        method: method.clone(),
        route: *route,
        why: why.clone(),
        tally: *tally,
        missing: *missing,
    })
}

/// Reads how a job ended.
///
/// # Errors
/// `Corrupt`.
pub fn end_from_json(text: &str) -> Result<(Outcome, Report)> {
    let json: EndJson = decode("the end of a job", text)?;
    let outcome = match json.outcome {
        OutcomeJson::Completed => Outcome::Completed,
        OutcomeJson::Partial => Outcome::Partial(None),
        OutcomeJson::CutShort(error) => Outcome::Partial(Some(error.into())),
        OutcomeJson::Aborted(by) => Outcome::Aborted(by),
        OutcomeJson::Refused(error) => Outcome::Refused(error.into()),
        OutcomeJson::Failed(error) => Outcome::Failed(error.into()),
    };
    let report = Report {
        files: json.files,
        bytes: json.bytes,
        wire_bytes: json.wire_bytes,
        kept: json.kept,
        seconds: json.seconds,
        connect_seconds: json.connect_seconds,
        method: json.method,
        route: json.route,
        why: json.why,
        tally: json.tally,
        missing: json.missing,
    };
    Ok((outcome, report))
}

/// Writes any of the values above, or of the model's own that serde knows.
pub(super) fn encode<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("only texts, numbers and lists, with texts as keys")
}

/// Reads what `encode` wrote.
pub(super) fn decode<T: for<'a> Deserialize<'a>>(what: &str, text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|e| corrupt(what, &e.to_string()))
}

fn corrupt(what: &str, why: &str) -> Error {
    Error::new(
        ErrorKind::Corrupt,
        format!("read {what} of the history"),
        why,
    )
}
