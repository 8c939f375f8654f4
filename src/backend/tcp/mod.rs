//! Method `tcp`: the agent is started over ssh, the data goes over plain TCP.

mod route;
mod session;

use crate::backend::contract::{Backend, Caps, Session};
use crate::backend::cx::Cx;
use crate::backend::ends::{self, Ends};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::options::{OptionSpec, OptionType};

/// The method.
pub struct Tcp;

const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "streams",
        help: "Data connections; one is best on a local network",
        kind: OptionType::Number { min: 1, max: 16 },
        default: "1",
        advanced: true,
    },
    OptionSpec {
        name: "ports",
        help: "Ports that the other side may listen on, for example 40000-40010; empty for any",
        kind: OptionType::Text,
        default: "",
        advanced: true,
    },
    OptionSpec {
        name: "data-host",
        help: "Address to connect to for data where that is not the one ssh uses: a second network card, or a host behind a jump host",
        kind: OptionType::Text,
        default: "",
        advanced: true,
    },
];

impl Backend for Tcp {
    fn id(&self) -> &'static str {
        "tcp"
    }

    fn title(&self) -> &'static str {
        "Raw TCP"
    }

    fn about(&self) -> &'static str {
        "Fastest on a network you trust: started over ssh, data over plain TCP, every change is detected"
    }

    fn caps(&self) -> Caps {
        Caps {
            resume: true,
            delta: false,
            encrypted: false,
            remote_digest: true,
            parallel: true,
            needs_agent: true,
        }
    }

    fn options(&self) -> &'static [OptionSpec] {
        OPTIONS
    }

    fn supports(&self, spec: &JobSpec) -> Result<()> {
        ends(spec).map(|_| ())?;
        streams(spec)?;
        ports(spec).map(|_| ())
    }

    fn connect(&self, spec: &JobSpec, cx: &Cx<'_>) -> Result<Box<dyn Session>> {
        Ok(Box::new(session::TcpSession::connect(spec, cx)?))
    }
}

/// Sorts the two sides out.
fn ends(spec: &JobSpec) -> Result<Ends> {
    ends::ends(spec, "use raw TCP")
}

/// Returns how many data connections to use.
fn streams(spec: &JobSpec) -> Result<u16> {
    match spec.settings.options.get("streams") {
        None | Some("") => Ok(1),
        Some(text) => match text.parse() {
            Ok(n @ 1..=16) => Ok(n),
            _ => Err(Error::new(
                ErrorKind::Config,
                "use raw TCP",
                "streams must be from 1 to 16",
            )
            .at(text)),
        },
    }
}

/// Returns the ports that the agent may listen on; 0 and 0 for any.
fn ports(spec: &JobSpec) -> Result<(u16, u16)> {
    let text = spec.settings.options.get("ports").unwrap_or_default();
    if text.is_empty() {
        return Ok((0, 0));
    }
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if 0 < first && first <= last => Ok((first, last)),
        _ => Err(Error::new(
            ErrorKind::Config,
            "use raw TCP",
            "this is not a range of ports",
        )
        .at(text)
        .hint("write for example 40000-40010")),
    }
}
