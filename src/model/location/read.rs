//! Reads a place from what people type, paste, drop and save.

use super::{Host, Location, host};
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::relpath::MAX_PATH;

/// Reads a place; see [`Location::parse`] for the forms.
pub(super) fn parse(text: &[u8]) -> Result<Location> {
    read(text).map_err(|fault| {
        let mut error = Error::new(ErrorKind::Config, "read the place", fault.why).at(text);
        error.hint = fault.hint;
        error
    })
}

/// Why a text is no place, and what to write instead.
struct Fault {
    why: String,
    hint: Option<String>,
}

impl Fault {
    fn new(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            hint: Some(hint.into()),
        }
    }
}

/// What a colon in a local name needs.
const COLON_HINT: &str =
    "for a file on this computer with a colon in its name, write ./NAME or its whole path";
const TILDE_HINT: &str = "write the whole path, or ./~NAME for a file whose name starts with ~";

fn read(text: &[u8]) -> std::result::Result<Location, Fault> {
    if text.is_empty() {
        return Err(Fault::new(
            "it is empty",
            "write a path such as /home/me/Pictures or host:path",
        ));
    }
    if text.contains(&0) {
        return Err(Fault::new(
            "it holds a NUL byte",
            "no file name can hold one",
        ));
    }
    let location = match scheme(text) {
        Some((scheme, rest)) => url(&scheme, rest)?,
        None if text.starts_with(b"./") => Location::Local(unescape(text).to_vec()),
        None => plain(text)?,
    };
    if location.path().len() > MAX_PATH {
        return Err(Fault::new(
            format!("the path is longer than {MAX_PATH} bytes"),
            "Linux opens no longer paths; choose a folder nearer to the top",
        ));
    }
    Ok(location)
}

/// Takes away the `./` that marks a name as local where it would not be taken for one by itself.
/// A `./` that is not needed for that stays, since nothing is normalised.
fn unescape(text: &[u8]) -> &[u8] {
    let mut core = text;
    while let Some(rest) = core.strip_prefix(b"./") {
        core = rest;
    }
    let is_local_by_itself = core.is_empty()
        || (scheme(core).is_none()
            && matches!(plain(core), Ok(Location::Local(path)) if path == core));
    if is_local_by_itself { text } else { &text[2..] }
}

/// Reads what is no URL and does not start with `./`.
fn plain(text: &[u8]) -> std::result::Result<Location, Fault> {
    if text.starts_with(b"~") {
        return match text.get(1) {
            None | Some(b'/') => Ok(Location::Local(text.to_vec())),
            Some(_) => Err(Fault::new(
                "another user's home folder is not looked up",
                TILDE_HINT,
            )),
        };
    }
    let head_len = text.iter().position(|b| *b == b'/').unwrap_or(text.len());
    let head = &text[..head_len];
    if is_v6(head.strip_suffix(b":").unwrap_or(head)) {
        return Err(Fault::new(
            "an IPv6 address stands without brackets",
            "write [address]:path, or ./NAME for a file on this computer",
        ));
    }
    let Some(host_len) = host_len(head, head_len == text.len()) else {
        return Ok(Location::Local(text.to_vec()));
    };
    let host = login(&head[..host_len], Form::Scp)?;
    match text.get(host_len + 1..) {
        Some([b':', module @ ..]) => daemon(host, module),
        rest => Ok(Location::Ssh {
            host,
            path: home_relative(rest.unwrap_or_default())?.to_vec(),
        }),
    }
}

/// Returns how much of the text before the first slash is user and host, as scp finds it; `None`
/// when it is the name of a file on this computer. `is_all` says that no slash follows.
fn host_len(head: &[u8], is_all: bool) -> Option<usize> {
    let colon = head.iter().position(|b| *b == b':');
    let open = head.iter().position(|b| *b == b'[').filter(|open| {
        let starts_host = *open == 0 || head[open - 1] == b'@';
        starts_host && colon.is_none_or(|colon| colon > *open)
    });
    match open {
        Some(open) => {
            let close = open + head[open..].iter().position(|b| *b == b']')?;
            match head.get(close + 1) {
                Some(b':') => Some(close + 1),
                // `user@[192.0.2.1]` and `[::1]` without a path mean the home folder there.
                None if is_all && is_address(&head[open + 1..close]) => Some(close + 1),
                _ => None,
            }
        }
        // A name that starts with a colon is a file's.
        None => colon.filter(|colon| *colon > 0),
    }
}

fn is_address(text: &[u8]) -> bool {
    is_v6(text)
        || std::str::from_utf8(text).is_ok_and(|text| text.parse::<std::net::Ipv4Addr>().is_ok())
}

fn is_v6(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|t| t.contains(':') && host::name_fault(t).is_none())
}

/// Where a user and host were written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `user@host:`
    Scp,
    /// `scheme://user@host:port/`
    Url,
}

/// Reads `user@host`, in URLs with a port.
fn login(text: &[u8], form: Form) -> std::result::Result<Host, Fault> {
    let hint = match form {
        Form::Scp => COLON_HINT,
        Form::Url => "write scheme://user@host:port/path",
    };
    let text = std::str::from_utf8(text)
        .map_err(|_| Fault::new("the host holds bytes that are not UTF-8", hint))?;
    let (user, host) = match text.rsplit_once('@') {
        Some((user, host)) => (Some(user.to_owned()), host),
        None => (None, text),
    };
    let user = match (user, form) {
        (Some(user), Form::Url) => {
            if user.contains(':') {
                return Err(Fault::new(
                    "it holds a password",
                    "leave the password out; it is asked for, never stored in a place",
                ));
            }
            let user = String::from_utf8(decode(user.as_bytes())?)
                .map_err(|_| Fault::new("the user holds bytes that are not UTF-8", hint))?;
            Some(user)
        }
        (user, _) => user,
    };
    let (name, after) = if let Some(rest) = host.strip_prefix('[') {
        rest.split_once(']')
            .ok_or_else(|| Fault::new("the ']' after the address is missing", hint))?
    } else {
        host.split_at(host.find(':').unwrap_or(host.len()))
    };
    let port = match after.strip_prefix(':') {
        None if after.is_empty() => None,
        Some(port) if form == Form::Url => Some(port_number(port)?),
        _ => {
            return Err(Fault::new(
                "there is something between the host and its path",
                hint,
            ));
        }
    };
    let name = match (name.split_once("%25"), form) {
        // In a URL the % before the zone is itself encoded (RFC 6874).
        (Some((address, zone)), Form::Url) if !zone.is_empty() => format!("{address}%{zone}"),
        _ => name.to_owned(),
    };
    let fault = user
        .as_deref()
        .and_then(host::user_fault)
        .or_else(|| host::name_fault(&name));
    match fault {
        Some(why) => Err(Fault::new(why, hint)),
        None => Ok(Host { user, name, port }),
    }
}

fn port_number(text: &str) -> std::result::Result<u16, Fault> {
    // `parse` alone would also take "+22".
    let number = if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse().ok()
    } else {
        None
    };
    number.filter(|port| *port > 0).ok_or_else(|| {
        Fault::new(
            "the port is not a number from 1 to 65535",
            "for example :22",
        )
    })
}

/// Reads a path after `host:`; `~/x` is the same as `x`, both below the home folder.
fn home_relative(path: &[u8]) -> std::result::Result<&[u8], Fault> {
    match path {
        [b'~'] => Ok(b""),
        [b'~', b'/', below @ ..] => below_home(below),
        [b'~', ..] => Err(Fault::new(
            "another user's home folder is not looked up",
            TILDE_HINT,
        )),
        [b'.', b'/', ..] => {
            let mut core = path;
            while let Some(rest) = core.strip_prefix(b"./") {
                core = rest;
            }
            // The `./` is there to keep the next character from being read as something else.
            let is_escape = matches!(core.first(), Some(b'~' | b':'));
            Ok(if is_escape { &path[2..] } else { path })
        }
        _ => Ok(path),
    }
}

/// Refuses `~//x`, which would be an absolute path that reads like one below the home folder.
fn below_home(path: &[u8]) -> std::result::Result<&[u8], Fault> {
    if path.first() == Some(&b'/') {
        return Err(Fault::new(
            "there are two slashes after the ~",
            "write one slash",
        ));
    }
    Ok(path)
}

fn daemon(host: Host, path: &[u8]) -> std::result::Result<Location, Fault> {
    if path.first().is_none_or(|b| *b == b'/') {
        return Err(Fault::new(
            "the module of the rsync daemon is missing",
            "write host::module/path",
        ));
    }
    Ok(Location::RsyncDaemon {
        host,
        path: path.to_vec(),
    })
}

/// Splits `scheme://rest`; the scheme comes back in small letters.
fn scheme(text: &[u8]) -> Option<(String, &[u8])> {
    let end = text.windows(3).position(|w| w == b"://")?;
    let scheme = &text[..end];
    let is_scheme = scheme.first()?.is_ascii_alphabetic()
        && scheme
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'.' | b'-'));
    let scheme = std::str::from_utf8(scheme).ok().filter(|_| is_scheme)?;
    Some((scheme.to_ascii_lowercase(), &text[end + 3..]))
}

fn url(scheme: &str, rest: &[u8]) -> std::result::Result<Location, Fault> {
    match scheme {
        "file" => return file_url(rest),
        "ssh" | "sftp" | "scp" | "rsync" | "ftp" | "ftps" | "tftp" | "tcp" => {}
        other => return Err(foreign(other)),
    }
    let host_len = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    let host = login(&rest[..host_len], Form::Url)?;
    let raw = rest.get(host_len..).unwrap_or_default();
    // What follows the slash after the host; a second slash makes it absolute there.
    let path = decode(raw.strip_prefix(b"/").unwrap_or(raw))?;
    match scheme {
        "rsync" => daemon(host, &path),
        "ftp" => Ok(Location::Ftp {
            host,
            path,
            tls: false,
        }),
        "ftps" => Ok(Location::Ftp {
            host,
            path,
            tls: true,
        }),
        "tftp" => Ok(Location::Tftp { host, path }),
        "tcp" if host.port.is_none() => {
            Err(Fault::new("the port is missing", "write tcp://host:port"))
        }
        "tcp" if !path.is_empty() => Err(Fault::new(
            "a plain TCP port has no path",
            "write tcp://host:port",
        )),
        "tcp" => Ok(Location::Tcp { host }),
        _ => Ok(Location::Ssh {
            host,
            path: ssh_url_path(raw)?,
        }),
    }
}

/// Reads the path of an ssh URL: absolute, or below the home folder after `/~/`. The `~` counts
/// only as written; `%7E` is a folder of that name at the top.
fn ssh_url_path(raw: &[u8]) -> std::result::Result<Vec<u8>, Fault> {
    match raw {
        [] | [b'/', b'~'] => Ok(Vec::new()),
        [b'/', b'~', b'/', below @ ..] => {
            let below = decode(below)?;
            below_home(&below)?;
            Ok(below)
        }
        [b'/', b'~', ..] => Err(Fault::new(
            "another user's home folder is not looked up",
            "write the whole path, or %7E for a name that starts with ~",
        )),
        _ => decode(raw),
    }
}

fn file_url(rest: &[u8]) -> std::result::Result<Location, Fault> {
    let host_len = rest.iter().position(|b| *b == b'/').unwrap_or(rest.len());
    let (host, path) = rest.split_at(host_len);
    match host {
        b"" if path.is_empty() => Err(Fault::new("the path is missing", "write file:///path")),
        b"" => Ok(Location::Local(decode(path)?)),
        _ if host.eq_ignore_ascii_case(b"localhost") && !path.is_empty() => {
            Ok(Location::Local(decode(path)?))
        }
        // The two forms of our own, see `Location::to_url`.
        b"~" => Ok(Location::Local([b"~", &*decode(path)?].concat())),
        b"." if path.len() > 1 => {
            let path = decode(&path[1..])?;
            if path.starts_with(b"/") || path.starts_with(b"~/") || path == b"~" {
                return Err(Fault::new("the path is not relative", "write file:///path"));
            }
            Ok(Location::Local(path))
        }
        _ => Err(Fault::new(
            "a file:// address names a file on this computer only",
            "write file:///path, or host:path for another computer",
        )),
    }
}

/// Says what to do with an address that this program does not speak.
fn foreign(scheme: &str) -> Fault {
    match scheme {
        "http" | "https" => Fault::new(
            "web addresses are not copied from",
            "download it with a browser, or with curl or wget, and use the file you get",
        ),
        "smb" | "cifs" | "nfs" | "mtp" | "gphoto2" | "afc" | "afp" | "dav" | "davs" | "admin"
        | "google-drive" | "onedrive" | "network" => Fault::new(
            format!("{scheme}:// addresses belong to the file manager"),
            "open it in the file manager, which mounts it, and use the mounted folder: with \
             GNOME and others it is below /run/user/UID/gvfs",
        ),
        "trash" | "recent" | "computer" | "x-nautilus-search" => Fault::new(
            format!("{scheme}:// is a view of the file manager, not a folder"),
            "use the real folder of the file",
        ),
        other => Fault::new(
            format!("{other}:// is not known here"),
            "write host:path, or one of file, ssh, sftp, rsync, ftp, ftps, tftp, tcp before ://",
        ),
    }
}

/// Decodes `%XX`. A percent sign that is not followed by two hexadecimal digits is a fault.
fn decode(text: &[u8]) -> std::result::Result<Vec<u8>, Fault> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let value = match after {
            [high, low, ..] => hex(*high).zip(hex(*low)).map(|(high, low)| high << 4 | low),
            _ => None,
        };
        match value {
            Some(0) => {
                return Err(Fault::new(
                    "it holds a NUL byte",
                    "no file name can hold one",
                ));
            }
            Some(value) => bytes.push(value),
            None => {
                return Err(Fault::new(
                    "a % is not followed by two hexadecimal digits",
                    "in a URL write %25 for a percent sign",
                ));
            }
        }
        rest = &after[2..];
    }
    Ok(bytes)
}

fn hex(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
