//! Serves the runs of one ssh session: says hello, opens a route for the data, sends or receives.

use std::io::{Read, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;

use crate::model::control::{LimitCell, Pause};
use crate::model::entry::EntryKind;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::Counters;
use crate::pump::abort::Abort;
use crate::pump::control::{ControlReader, ControlWriter};
use crate::pump::destination::Destination;
use crate::pump::lane::Out;
use crate::pump::limit::Throttle;
use crate::pump::link::{self, Link};
use crate::pump::receive::ReceiveRun;
use crate::pump::report::Observer;
use crate::pump::send::SendRun;
use crate::pump::source;
use crate::wire::codec::broken;
use crate::wire::hello::JobKey;
use crate::wire::level;
use crate::wire::message::{Hello, Message, Role, RouteChoice, Settled, Start};

/// Serves until the input ends.
pub(super) fn serve(marker: &str) -> ExitCode {
    let mut out = std::io::stdout();
    if writeln!(out, "{marker} agent")
        .and_then(|()| out.flush())
        .is_err()
    {
        return ExitCode::FAILURE;
    }
    // From here on standard output carries frames only.
    let control = Arc::new(ControlWriter::new(out));
    let mut input = std::io::stdin();
    match session(&mut input, &control) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Whoever listens still gets the reason; with nobody there it does not matter.
            let _ = control.send(&Message::Fail(error));
            ExitCode::FAILURE
        }
    }
}

fn session(input: &mut (dyn Read + Send), control: &Arc<ControlWriter>) -> Result<()> {
    let connection = std::env::var_os("SSH_CONNECTION").unwrap_or_default();
    control.send(&Message::Hello(Hello {
        oldest: level::OLDEST,
        newest: level::NEWEST,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        connection: std::os::unix::ffi::OsStringExt::into_vec(connection.clone()),
    }))?;
    let connection = connection.to_string_lossy();
    let arrived = connection
        .split_ascii_whitespace()
        .nth(2)
        .and_then(|ip| ip.parse().ok());
    let mut from = ControlReader::new(input);
    loop {
        match from.next() {
            Ok(Message::Start(start)) => run(*start, arrived, &mut from, control)?,
            // Left over from a run that has ended.
            Ok(Message::Throttle(..)) => {}
            Ok(_) => return Err(broken("a message came that has no place here")),
            Err(error) if error.kind == ErrorKind::Disconnected => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Serves one run.
fn run(
    start: Start,
    arrived: Option<IpAddr>,
    from: &mut ControlReader<'_>,
    control: &Arc<ControlWriter>,
) -> Result<()> {
    level::agree(start.level, start.level)?;
    let Start {
        job,
        key,
        streams,
        listen,
        ports,
        role,
        terms,
        ..
    } = start;
    let key = JobKey(key);
    let streams = streams.max(1);
    let listener = match (listen && !terms.dry_run, arrived) {
        (true, Some(address)) => link::listen(address.to_canonical(), ports).ok(),
        _ => None,
    };
    let addresses = listener
        .iter()
        .filter_map(|l| l.local_addr().ok())
        .map(|a| a.to_string())
        .collect();
    let (abort, counters) = (Abort::default(), Counters::default());
    let throttle = Throttle::new(LimitCell::default(), Pause::default());
    // The caller of a run waits for the client's next word; the client ends the session on this.
    let last = control.clone();
    abort.on_stop(move |error| {
        let _ = last.send(&Message::Fail(error.clone()));
    });
    let observer = Relay(control.clone());
    match role {
        Role::Receive {
            destination,
            sources,
            contents,
        } => {
            let found = Destination::find(
                &destination,
                sources,
                contents,
                terms.resume.then_some(&job),
            )?;
            let (root, named) = (found.open(terms.dry_run)?, found.top.is_some());
            control.send(&Message::Ready(addresses, found.top.unwrap_or_default()))?;
            let links = if terms.dry_run {
                Vec::new()
            } else {
                route(listener, streams, &key, from, control)?
            };
            let run = ReceiveRun {
                root,
                named,
                allowed: None,
                job,
                terms,
                control: control.clone(),
                links,
                counters: &counters,
                observer: &observer,
                abort: &abort,
            };
            run.run(from)
        }
        Role::Send {
            sources,
            contents,
            rules,
            top,
        } => {
            let filter = source::filter(&rules)?;
            let (sources, troubles) = source::open_all(&sources, contents);
            control.send(&Message::Ready(addresses, Vec::new()))?;
            let outs = if terms.dry_run {
                Vec::new()
            } else {
                match route(listener, streams, &key, from, control)? {
                    links if links.is_empty() => vec![Out::Channel(control.clone())],
                    links => links.into_iter().map(Out::Tcp).collect(),
                }
            };
            for (path, error) in troubles {
                control.send(&Message::Trouble(path, error))?;
            }
            let run = SendRun {
                sources: &sources,
                filter: &filter,
                top: (!top.is_empty()).then_some(&top[..]),
                terms,
                control: control.clone(),
                outs,
                throttle: &throttle,
                counters: &counters,
                observer: &observer,
                abort: &abort,
            };
            run.run(from)
        }
    }
}

/// Opens the way that the client asks for, until one works; no links mean the control channel.
fn route(
    mut listener: Option<TcpListener>,
    streams: u16,
    key: &JobKey,
    from: &mut ControlReader<'_>,
    control: &ControlWriter,
) -> Result<Vec<Link>> {
    loop {
        let Message::Route(choice) = from.next()? else {
            return Err(broken("a message came before the route was known"));
        };
        let opened = match choice {
            RouteChoice::Channel => Ok(Vec::new()),
            RouteChoice::Direct => match listener.take() {
                Some(listener) => link::accept(listener, streams, key, link::HANDSHAKE, &|| false),
                None => Err(Error::new(
                    ErrorKind::Unreachable,
                    "wait for data",
                    "no port is open",
                )),
            },
            RouteChoice::Reversed(addresses) => {
                // The port is of no use any more.
                listener = None;
                let addresses: Vec<SocketAddr> =
                    addresses.iter().filter_map(|a| a.parse().ok()).collect();
                link::reach(&addresses).and_then(|it| link::prove(it, streams, key))
            }
        };
        match opened {
            Ok(links) => {
                control.send(&Message::Routed(Ok(())))?;
                return Ok(links);
            }
            Err(error) => control.send(&Message::Routed(Err(error.cause.to_string())))?,
        }
    }
}

/// Passes on what the client could not know otherwise.
struct Relay(Arc<ControlWriter>);

impl Observer for Relay {
    fn settled(&self, _: &[u8], _: EntryKind, _: &Settled) {}

    fn trouble(&self, path: &[u8], error: &Error) {
        // A channel that broke is found by whoever reads it.
        let _ = self.0.send(&Message::Trouble(path.to_vec(), error.clone()));
    }

    fn note(&self, _: &Error) {}
}
