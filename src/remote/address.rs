//! Where an ssh session arrived: the far side's `SSH_CONNECTION`, read into addresses.
//!
//! The agent finds the variable in its environment and reports it; the data connection then goes
//! to the same address that ssh has already proved to be reachable, whatever name or alias the
//! user typed.

use std::net::IpAddr;

/// One end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The address; an IPv4 one that came in IPv6 clothes is IPv4 here.
    pub ip: IpAddr,
    /// The interface of a link-local IPv6 address, as the machine that reported it names it.
    pub zone: Option<String>,
    /// The port.
    pub port: u16,
}

/// Both ends of the ssh connection, as the far side saw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Where it came from: this computer, or the last jump host or address translator before it.
    pub client: End,
    /// Where it arrived: an address of the far side.
    pub server: End,
}

impl Arrived {
    /// Reads `client-ip client-port server-ip server-port`; `None` when it is anything else, as
    /// it is when sshd was not reached over a network.
    pub fn parse(variable: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(variable).ok()?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let [client_ip, client_port, server_ip, server_port] = words[..] else {
            return None;
        };
        Some(Self {
            client: end(client_ip, client_port)?,
            server: end(server_ip, server_port)?,
        })
    }

    /// Returns the address to connect to for data, in the form that name lookup understands.
    ///
    /// A link-local address means nothing without *our* name of the interface, which only the
    /// user's own way of writing the host can tell; without it there is no such address.
    pub fn address_to_reach(&self, typed_host: &str) -> Option<String> {
        let End { ip, .. } = &self.server;
        if ip.is_unspecified() || ip.is_multicast() {
            return None;
        }
        if !is_link_local(ip) {
            return Some(ip.to_string());
        }
        let (_, zone) = typed_host.split_once('%')?;
        Some(format!("{ip}%{zone}"))
    }
}

fn end(ip: &str, port: &str) -> Option<End> {
    let (ip, zone) = match ip.split_once('%') {
        Some((ip, zone)) if !zone.is_empty() => (ip, Some(zone.to_owned())),
        Some(_) => return None,
        None => (ip, None),
    };
    let ip = ip.parse::<IpAddr>().ok()?.to_canonical();
    if zone.is_some() && ip.is_ipv4() {
        return None;
    }
    let port = port.parse().ok()?;
    Some(End { ip, zone, port })
}

fn is_link_local(ip: &IpAddr) -> bool {
    match ip {
        // 169.254/16 is reachable as it is: IPv4 has no zones.
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach(variable: &str, typed: &str) -> Option<String> {
        Arrived::parse(variable.as_bytes())?.address_to_reach(typed)
    }

    #[test]
    fn the_variable_is_read_into_two_ends() {
        let arrived = Arrived::parse(b"10.0.0.7 50412 10.0.0.2 22\n").unwrap();
        assert_eq!(arrived.client.ip, "10.0.0.7".parse::<IpAddr>().unwrap());
        assert_eq!(arrived.client.port, 50412);
        assert_eq!(arrived.server.port, 22);
        assert_eq!(arrived.server.zone, None);
    }

    #[test]
    fn every_kind_of_address_is_given_as_name_lookup_takes_it() {
        let v4 = "10.0.0.7 1 10.0.0.2 22";
        assert_eq!(reach(v4, "nas").as_deref(), Some("10.0.0.2"));
        let v6 = "2001:db8::7 1 2001:db8::2 22";
        assert_eq!(reach(v6, "nas").as_deref(), Some("2001:db8::2"));
        let mapped = "::ffff:10.0.0.7 1 ::ffff:10.0.0.2 22";
        assert_eq!(reach(mapped, "nas").as_deref(), Some("10.0.0.2"));
    }

    #[test]
    fn a_link_local_address_takes_our_zone_and_never_theirs() {
        let local = "fe80::7%enp3s0 1 fe80::2%enp3s0 22";
        let arrived = Arrived::parse(local.as_bytes()).unwrap();
        assert_eq!(arrived.server.zone.as_deref(), Some("enp3s0"));
        assert_eq!(
            reach(local, "fe80::2%eth0").as_deref(),
            Some("fe80::2%eth0")
        );
        assert_eq!(reach(local, "nas.local"), None);
    }

    #[test]
    fn anything_else_is_no_address() {
        for odd in [
            "",
            "UNKNOWN 65535 UNKNOWN 65535",
            "10.0.0.7 1 10.0.0.2",
            "10.0.0.7 1 10.0.0.2 22 x",
            "10.0.0.7 x 10.0.0.2 22",
            "10.0.0.7 1 10.0.0.2 65536",
            "10.0.0.7%eth0 1 10.0.0.2 22",
            "fe80::7% 1 fe80::2 22",
            "nas 1 box 22",
        ] {
            assert_eq!(Arrived::parse(odd.as_bytes()), None, "{odd}");
        }
        assert_eq!(Arrived::parse(b"\xff 1 ::1 22"), None);
        assert_eq!(reach("10.0.0.7 1 0.0.0.0 22", "nas"), None);
    }
}
