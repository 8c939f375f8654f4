//! Opens the way for the data: to the agent's port, from it to ours, or through ssh.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};

use crate::model::error::{Error, Result};
use crate::model::outcome::Route;
use crate::pump::control::{ControlReader, ControlWriter};
use crate::pump::link::{self, Link};
use crate::remote::address::Arrived;
use crate::wire::codec::broken;
use crate::wire::hello::JobKey;
use crate::wire::message::{Message, RouteChoice};

/// A way that works, and why it was taken.
pub(super) struct Opened {
    /// Data connections; none mean the control channel.
    pub links: Vec<Link>,
    pub route: Route,
    pub why: String,
}

/// What is known about the two ends.
pub(super) struct Ways<'a> {
    /// The host as the user wrote it.
    pub typed: &'a str,
    /// Another address for data than for ssh.
    pub data_host: Option<&'a str>,
    /// Where ssh went from and to.
    pub arrived: Option<&'a Arrived>,
    /// Why plain TCP may not be used; `None` when it may.
    pub forbidden: Option<&'a str>,
    pub streams: u16,
    pub key: &'a JobKey,
    pub stop: &'a (dyn Fn() -> bool + Sync),
}

impl Ways<'_> {
    /// Tries the ways in turn. `listening` are the agent's addresses.
    pub fn open(
        &self,
        listening: &[String],
        from: &mut ControlReader<'_>,
        control: &ControlWriter,
    ) -> Result<Opened> {
        if let Some(why) = self.forbidden {
            return self.channel(why.to_owned(), from, control);
        }
        let direct = match self.direct(listening, from, control) {
            Ok(links) => {
                let why = "the agent's port could be reached".to_owned();
                return Ok(Opened {
                    links,
                    route: Route::Direct,
                    why,
                });
            }
            Err(error) => error,
        };
        if (self.stop)() {
            return Err(Error::cancelled());
        }
        let reversed = match self.reversed(from, control) {
            Ok(links) => {
                let why = format!("the agent's port could not be reached ({})", direct.cause);
                return Ok(Opened {
                    links,
                    route: Route::Reversed,
                    why,
                });
            }
            Err(error) => error,
        };
        if (self.stop)() {
            return Err(Error::cancelled());
        }
        let why = format!(
            "no data port could be reached, neither there ({}) nor here ({})",
            direct.cause, reversed.cause
        );
        self.channel(why, from, control)
    }

    fn direct(
        &self,
        listening: &[String],
        from: &mut ControlReader<'_>,
        control: &ControlWriter,
    ) -> Result<Vec<Link>> {
        let mut addresses: Vec<SocketAddr> = Vec::new();
        let reached = || self.arrived.and_then(|a| a.address_to_reach(self.typed));
        let host = self.data_host.map(str::to_owned).or_else(reached);
        for port in listening
            .iter()
            .filter_map(|a| a.parse::<SocketAddr>().ok())
            .map(|a| a.port())
        {
            // The address that ssh arrived at; a link-local one needs our name of the interface.
            if let Some(host) = &host {
                addresses.extend(
                    (host.as_str(), port)
                        .to_socket_addrs()
                        .into_iter()
                        .flatten(),
                );
            }
        }
        let reached = link::reach(&addresses)?;
        control.send(&Message::Route(RouteChoice::Direct))?;
        let proven = link::prove(reached, self.streams, self.key);
        answer(from)?.and(proven)
    }

    fn reversed(&self, from: &mut ControlReader<'_>, control: &ControlWriter) -> Result<Vec<Link>> {
        let none = || {
            Error::new(
                crate::model::error::ErrorKind::Unreachable,
                "listen for data",
                "our address is not known there",
            )
        };
        let ours = self.arrived.ok_or_else(none)?.client.ip;
        let any: IpAddr = if ours.is_ipv4() {
            IpAddr::from([0; 4])
        } else {
            IpAddr::from([0u16; 8])
        };
        let listener = link::listen(any, (0, 0))?;
        let port = listener
            .local_addr()
            .map_err(|e| Error::io("listen for data", &e))?
            .port();
        let address = SocketAddr::new(ours, port).to_string();
        control.send(&Message::Route(RouteChoice::Reversed(vec![address])))?;
        let accepted = link::accept(
            listener,
            self.streams,
            self.key,
            link::CONNECT * 2,
            self.stop,
        );
        answer(from)?.and(accepted)
    }

    fn channel(
        &self,
        why: String,
        from: &mut ControlReader<'_>,
        control: &ControlWriter,
    ) -> Result<Opened> {
        control.send(&Message::Route(RouteChoice::Channel))?;
        answer(from)??;
        Ok(Opened {
            links: Vec::new(),
            route: Route::Ssh,
            why,
        })
    }
}

/// Waits for the agent's word on a route.
fn answer(from: &mut ControlReader<'_>) -> Result<Result<()>> {
    match from.next()? {
        Message::Routed(Ok(())) => Ok(Ok(())),
        Message::Routed(Err(why)) => Ok(Err(Error::new(
            crate::model::error::ErrorKind::Unreachable,
            "open the data connection",
            why,
        ))),
        Message::Fail(error) => Err(error),
        _ => Err(broken("a message came that has no place here")),
    }
}
