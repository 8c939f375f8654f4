//! Writes a place so that it reads back as the same place.

use std::fmt::Write as _;

use super::{Host, Location, read};

/// Returns the shortest form that reads back as the same place.
///
/// The short forms are ambiguous for odd names (a file called `a:b`, a folder called `~`), so each
/// is read back before it is used. The forms that follow are exact.
pub(super) fn to_bytes(location: &Location) -> Vec<u8> {
    let short = match location {
        Location::Local(path) => Some(path.clone()),
        Location::Ssh { host, path } => scp(host, b":", path),
        Location::RsyncDaemon { host, path } => scp(host, b"::", path),
        _ => None,
    };
    if let Some(short) = short.filter(|short| reads_back(short, location)) {
        return short;
    }
    if let Location::Local(path) = location {
        let marked = [b"./", path.as_slice()].concat();
        if reads_back(&marked, location) {
            return marked;
        }
    }
    to_url(location).into_bytes()
}

fn reads_back(text: &[u8], location: &Location) -> bool {
    read::parse(text).is_ok_and(|read| read == *location)
}

/// Returns `user@host`, the mark and the path; `None` where a port has to be told.
fn scp(host: &Host, mark: &[u8], path: &[u8]) -> Option<Vec<u8>> {
    if host.port.is_some() {
        return None;
    }
    Some([login(host, "%").as_bytes(), mark, path].concat())
}

/// Returns user and host, an address in brackets, its zone after `percent`.
fn login(host: &Host, percent: &str) -> String {
    let mut text = String::new();
    if let Some(user) = &host.user {
        text.push_str(user);
        text.push('@');
    }
    if host.is_v6() {
        text.push('[');
        text.push_str(&host.name.replacen('%', percent, 1));
        text.push(']');
    } else {
        text.push_str(&host.name);
    }
    text
}

/// Returns the place as a URL.
pub(super) fn to_url(location: &Location) -> String {
    let (scheme, host) = match location {
        Location::Local(path) => return file_url(path),
        Location::Ssh { host, .. } => ("ssh", host),
        Location::RsyncDaemon { host, .. } => ("rsync", host),
        Location::Ftp {
            host, tls: false, ..
        } => ("ftp", host),
        Location::Ftp {
            host, tls: true, ..
        } => ("ftps", host),
        Location::Tftp { host, .. } => ("tftp", host),
        Location::Tcp { host } => ("tcp", host),
    };
    let mut url = format!("{scheme}://{}", login(host, "%25"));
    if let Some(port) = host.port {
        // Writing to a String cannot fail.
        let _ = write!(url, ":{port}");
    }
    let path = location.path();
    match location {
        Location::Tcp { .. } => {}
        Location::Ssh { .. } => match path {
            [] => {}
            // As written, the ~ would mean the home folder.
            [b'/', b'~', rest @ ..] => {
                url.push_str("/%7E");
                encode(rest, &mut url);
            }
            [b'/', ..] => encode(path, &mut url),
            _ => {
                url.push_str("/~/");
                encode(path, &mut url);
            }
        },
        _ => {
            url.push('/');
            encode(path, &mut url);
        }
    }
    url
}

fn file_url(path: &[u8]) -> String {
    let mut url = "file://".to_owned();
    match path {
        [b'/', ..] | [b'~'] | [b'~', b'/', ..] => {}
        _ => url.push_str("./"),
    }
    encode(path, &mut url);
    url
}

/// Encodes what would not survive in a URL or is not UTF-8; letters of any script stay readable.
fn encode(path: &[u8], url: &mut String) {
    for chunk in path.utf8_chunks() {
        for c in chunk.valid().chars() {
            let is_safe = !c.is_ascii()
                || c.is_ascii_alphanumeric()
                || matches!(
                    c,
                    '-' | '.' | '_' | '~' | '/' | ':' | '@' | '+' | '=' | ',' | '!'
                );
            if is_safe {
                url.push(c);
            } else {
                let _ = write!(url, "%{:02X}", u32::from(c));
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(url, "%{byte:02X}");
        }
    }
}
