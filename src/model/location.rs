//! One side of a transfer: a place on this computer or on another, with a path of bytes.
//!
//! [`read`] has the forms that people write, [`mod@write`] the ones that files hold, [`host`] what a
//! host may be called.

mod host;
mod read;
mod write;

use std::fmt;
use std::path::PathBuf;

use crate::model::error::Result;

/// A host as the user wrote it. [`Host::check`] says whether it is safe to hand to programs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Host {
    /// Log-in name; `None` leaves it to ssh's own configuration.
    pub user: Option<String>,
    /// Name, alias or address; an IPv6 address without brackets.
    pub name: String,
    /// Port; `None` leaves it to the method.
    pub port: Option<u16>,
}

/// One side of a transfer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// A path on this computer, absolute, relative, or starting with `~/`.
    Local(Vec<u8>),
    /// A path on a host that is reached by ssh; relative means below the home folder.
    Ssh {
        /// Whom to log in to.
        host: Host,
        /// The path there; empty means the home folder.
        path: Vec<u8>,
    },
    /// A path in a module of an rsync daemon.
    RsyncDaemon {
        /// Where the daemon is.
        host: Host,
        /// `module/path`.
        path: Vec<u8>,
    },
    /// A path on an ftp server.
    Ftp {
        /// Where the server is.
        host: Host,
        /// The path there.
        path: Vec<u8>,
        /// `ftps://`: the connection is encrypted.
        tls: bool,
    },
    /// A file on a tftp server.
    Tftp {
        /// Where the server is.
        host: Host,
        /// The file's name there.
        path: Vec<u8>,
    },
    /// A plain TCP port, as netcat has it.
    Tcp {
        /// Where to connect to; the port is always set.
        host: Host,
    },
}

impl Location {
    /// Returns the path's bytes; empty for a plain TCP port.
    pub fn path(&self) -> &[u8] {
        match self {
            Self::Local(path)
            | Self::Ssh { path, .. }
            | Self::RsyncDaemon { path, .. }
            | Self::Ftp { path, .. }
            | Self::Tftp { path, .. } => path,
            Self::Tcp { .. } => b"",
        }
    }

    /// Returns the host; `None` for a place on this computer.
    pub fn host(&self) -> Option<&Host> {
        match self {
            Self::Local(_) => None,
            Self::Ssh { host, .. }
            | Self::RsyncDaemon { host, .. }
            | Self::Ftp { host, .. }
            | Self::Tftp { host, .. }
            | Self::Tcp { host } => Some(host),
        }
    }

    /// Says whether the place is on this computer.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// Reads what a user wrote or a file holds: `/path`, `~/path`, `./a:b`, `file:///path`,
    /// `[user@]host:path`, `[user@][v6%zone]:path`, `ssh://[user@]host[:port]/path` (and
    /// `/~/path` below the home folder), `host::module/path`, `rsync://`, `ftp://`, `ftps://`,
    /// `tftp://` and `tcp://host:port`.
    ///
    /// As with scp, a name with a colon before its first slash is on another computer unless it
    /// starts with `/`, `./` or `~/`. Percent signs are decoded in URLs only. Nothing is trimmed
    /// or normalised.
    ///
    /// # Errors
    /// `Config` with what is wrong and what to write instead.
    pub fn parse(text: &[u8]) -> Result<Self> {
        read::parse(text)
    }

    /// Returns the bytes that [`Location::parse`] reads back as the same place, in the shortest
    /// form.
    pub fn to_bytes(&self) -> Vec<u8> {
        write::to_bytes(self)
    }

    /// Returns the place as text for files that hold UTF-8 only: [`Location::to_bytes`] where
    /// those are UTF-8, else a URL in which other bytes are percent-encoded. [`Location::parse`]
    /// reads both back as the same place.
    pub fn to_text(&self) -> String {
        String::from_utf8(self.to_bytes()).unwrap_or_else(|_| self.to_url())
    }

    /// Returns the place as a URL. Paths on this computer that are not absolute have no URL of
    /// their own and are written `file://~/path` and `file://./path`, which only this program
    /// reads.
    pub fn to_url(&self) -> String {
        write::to_url(self)
    }

    /// Returns the path for system calls, with `~/` replaced by the home folder; `None` for a
    /// place on another computer.
    pub fn local_path(&self, home: &std::path::Path) -> Option<PathBuf> {
        use std::os::unix::ffi::OsStrExt as _;
        let Self::Local(path) = self else {
            return None;
        };
        let below = match path.as_slice() {
            b"~" => return Some(home.to_owned()),
            [b'~', b'/', below @ ..] => below,
            other => return Some(PathBuf::from(std::ffi::OsStr::from_bytes(other))),
        };
        // Joined as bytes: a second slash must not make the path absolute, and a trailing one
        // means "into".
        let mut bytes = home.as_os_str().as_bytes().to_vec();
        bytes.push(b'/');
        bytes.extend_from_slice(below);
        Some(PathBuf::from(std::ffi::OsStr::from_bytes(&bytes)))
    }
}

impl fmt::Display for Location {
    /// Shows the place escaped, for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::model::untrusted::shown(&self.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(user: Option<&str>, name: &str, port: Option<u16>) -> Host {
        Host {
            user: user.map(str::to_owned),
            name: name.to_owned(),
            port,
        }
    }

    fn local(path: &str) -> Location {
        Location::Local(path.into())
    }

    fn ssh(host: Host, path: &str) -> Location {
        Location::Ssh {
            host,
            path: path.into(),
        }
    }

    fn read(text: &str) -> Location {
        Location::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn every_form_that_people_write_is_read() {
        let nas = || host(None, "nas", None);
        let daemon = |host, path: &str| Location::RsyncDaemon {
            host,
            path: path.into(),
        };
        let ftp = |path: &str, tls| Location::Ftp {
            host: nas(),
            path: path.into(),
            tls,
        };
        for (text, place) in [
            ("/a:b", local("/a:b")),
            ("~/a b ", local("~/a b ")),
            ("~", local("~")),
            ("./a:b", local("a:b")),
            ("././a:b", local("./a:b")),
            ("./a", local("./a")),
            ("./", local("./")),
            (".", local(".")),
            ("../a", local("../a")),
            ("a/b:c", local("a/b:c")),
            (":a", local(":a")),
            ("./~me", local("~me")),
            ("12345 ", local("12345 ")),
            ("file:///a%20%FF", Location::Local(b"/a \xff".to_vec())),
            ("FILE://localhost/a", local("/a")),
            ("nas:", ssh(nas(), "")),
            ("nas:~", ssh(nas(), "")),
            ("nas:~/x", ssh(nas(), "x")),
            ("nas:./~x", ssh(nas(), "~x")),
            ("nas:a%20b:c", ssh(nas(), "a%20b:c")),
            ("nas:/a", ssh(nas(), "/a")),
            ("me@nas:", ssh(host(Some("me"), "nas", None), "")),
            (
                "me@corp.example@nas:x",
                ssh(host(Some("me@corp.example"), "nas", None), "x"),
            ),
            ("[::1]:x", ssh(host(None, "::1", None), "x")),
            (
                "u@[2001:db8::1]:/p",
                ssh(host(Some("u"), "2001:db8::1", None), "/p"),
            ),
            (
                "u@[fe80::1%eth0]:/p",
                ssh(host(Some("u"), "fe80::1%eth0", None), "/p"),
            ),
            ("u@[192.0.2.1]", ssh(host(Some("u"), "192.0.2.1", None), "")),
            ("[::1]", ssh(host(None, "::1", None), "")),
            ("[::1]/x", local("[::1]/x")),
            ("[abc]x:y", local("[abc]x:y")),
            ("ssh://nas", ssh(nas(), "")),
            ("ssh://nas/", ssh(nas(), "/")),
            (
                "ssh://me@nas:2222/a%20b",
                ssh(host(Some("me"), "nas", Some(2222)), "/a b"),
            ),
            ("ssh://nas/~/x", ssh(nas(), "x")),
            ("ssh://nas/%7E/x", ssh(nas(), "/~/x")),
            (
                "sftp://[fe80::1%25eth0]:22/a",
                ssh(host(None, "fe80::1%eth0", Some(22)), "/a"),
            ),
            (
                "sftp://[fe80::1%eth0]/a",
                ssh(host(None, "fe80::1%eth0", None), "/a"),
            ),
            ("nas::data/x", daemon(nas(), "data/x")),
            (
                "me@[::1]::data",
                daemon(host(Some("me"), "::1", None), "data"),
            ),
            (
                "rsync://nas:8730/data/x%3F",
                daemon(host(None, "nas", Some(8730)), "data/x?"),
            ),
            ("ftp://nas/a", ftp("a", false)),
            ("ftps://nas//a", ftp("/a", true)),
            ("ftp://nas/%2Fa", ftp("/a", false)),
            (
                "tftp://nas/boot.img",
                Location::Tftp {
                    host: nas(),
                    path: b"boot.img".to_vec(),
                },
            ),
            (
                "tcp://nas:9000",
                Location::Tcp {
                    host: host(None, "nas", Some(9000)),
                },
            ),
        ] {
            assert_eq!(read(text), place, "{text}");
            assert_eq!(Location::parse(&place.to_bytes()).unwrap(), place, "{text}");
            assert_eq!(read(&place.to_text()), place, "{text}");
            assert_eq!(read(&place.to_url()), place, "{text}");
        }
    }

    #[test]
    fn a_place_that_cannot_be_is_refused_with_what_to_write() {
        for (text, why) in [
            ("", "empty"),
            ("a\0b", "NUL"),
            ("file:///a%00", "NUL"),
            ("file://nas/a", "this computer only"),
            ("smb://nas/a", "file manager"),
            ("mtp://phone/a", "file manager"),
            ("https://example.org/a", "web addresses"),
            ("gopher://nas/a", "not known"),
            ("~me/a", "another user"),
            ("nas:~me/a", "another user"),
            ("-oProxyCommand=x:a", "starts with '-'"),
            ("me@-x:a", "starts with '-'"),
            ("sftp://-oProxyCommand=x@h/", "starts with '-'"),
            ("shot 2025-02-05 21:46:53.png", "blank"),
            ("a\nb@nas:x", "control"),
            ("$(id):x", "'$'"),
            ("me%3Bid@nas:x", "'%'"),
            ("ssh://me%3Bid@nas/x", "';'"),
            ("ssh://me:secret@nas/x", "password"),
            ("ssh://nas:0/x", "port"),
            ("ssh://nas:65536/x", "port"),
            ("ssh://nas:-1/x", "port"),
            ("ssh://nas:+22/x", "port"),
            ("ssh://nas:22; id/x", "port"),
            ("ssh://nas:/x", "port"),
            ("ssh:///x", "host is missing"),
            ("@nas:x", "user before"),
            ("me@:x", "host is missing"),
            ("2001:db8::1:/p", "brackets"),
            ("::1", "brackets"),
            ("nas::", "module"),
            ("nas::/x", "module"),
            ("rsync://nas", "module"),
            ("tcp://nas", "port"),
            ("tcp://nas:1/x", "no path"),
            ("ftp://nas/a%zz", "hexadecimal"),
            ("ftp://nas/a%4", "hexadecimal"),
        ] {
            let error = Location::parse(text.as_bytes()).expect_err(text);
            assert_eq!(error.kind, crate::model::error::ErrorKind::Config);
            assert!(error.cause.to_string().contains(why), "{text:?}: {error}");
            assert!(error.hint.is_some(), "{text:?}");
        }
        assert!(Location::parse(&vec![b'a'; 5000]).is_err());
    }

    #[test]
    fn the_home_folder_is_put_in_without_touching_the_rest() {
        use std::path::Path;
        let home = Path::new("/home/me");
        assert_eq!(
            read("~/a/").local_path(home).unwrap().as_os_str(),
            "/home/me/a/"
        );
        assert_eq!(read("~").local_path(home).unwrap(), home);
        assert_eq!(
            read("~//etc").local_path(home).unwrap(),
            Path::new("/home/me/etc")
        );
        assert_eq!(read("./~/a").local_path(home).unwrap(), Path::new("./~/a"));
        assert_eq!(read("nas:a").local_path(home), None);
    }
}
