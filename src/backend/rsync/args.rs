//! Builds rsync's argument vector.
//!
//! Names travel within rsync's own protocol (`-s`), never through a shell; `--` stands before them.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

use crate::backend::rsync::far::Version;
use crate::backend::rsync::{USE, rules};
use crate::model::digest::Algorithm;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::location::Host;
use crate::model::rules::Conflict;
use crate::remote::connection::{Mode, ssh_argv, ssh_program};

/// Where half a file lies until the next run; relative, so it is beside the file.
const PARTIAL: &str = "--partial-dir=.transload-rsync-partial";

/// What the arguments of one run depend on.
pub(super) struct Wishes<'a> {
    /// The job.
    pub spec: &'a JobSpec,
    /// The conflict rule of this run.
    pub conflict: Conflict,
    /// Plan only.
    pub dry_run: bool,
    /// At most so many bytes a second; 0 for no limit.
    pub limit: u64,
    /// The version of the side that writes.
    pub receiver: Version,
    /// Begins every line about an item.
    pub token: &'a str,
}

impl Wishes<'_> {
    /// Says whether rsync will flush every file.
    pub fn flushes(&self) -> bool {
        self.spec.settings.durable && self.receiver >= Version::FSYNC
    }

    /// Returns the options, with ssh and without names.
    ///
    /// # Errors
    /// What keeps ssh or a filter from being used.
    pub fn options(&self, host: &Host) -> Result<Vec<OsString>> {
        let settings = &self.spec.settings;
        let mut options: Vec<OsString> = Vec::new();
        let mut add = |option: &str| options.push(option.into());
        add("-rs");
        // Unchanged items are told too.
        add("-ii");
        add("--info=progress2,skip1");
        add("--outbuf=L");
        add(PARTIAL);
        let digest = match settings.verify {
            Algorithm::Md5 => {
                add("--checksum-choice=md5");
                "%C "
            }
            _ => "",
        };
        add(&format!("--out-format={} %i %l %b {digest}%n", self.token));
        if settings.preserve.links {
            add("-l");
        }
        if settings.preserve.times {
            add("-t");
        }
        if settings.preserve.permissions {
            add("-p");
            // Only the bits of 0777 travel.
            add("--chmod=u-s,g-s,o-t");
        }
        match self.conflict {
            // What an earlier attempt finished is not done again.
            Conflict::Overwrite if !self.spec.resume => add("--ignore-times"),
            Conflict::Skip => add("--ignore-existing"),
            Conflict::Newer => add("-u"),
            _ => {}
        }
        if self.receiver >= Version::MKPATH {
            add("--mkpath");
        }
        if self.flushes() {
            add("--fsync");
        }
        if self.limit > 0 {
            add(&format!("--bwlimit={}", self.limit.div_ceil(1024)));
        }
        if self.dry_run {
            add("-n");
        }
        options.extend(rules::arguments(&settings.rules)?);
        options.push("-e".into());
        options.push(transport(
            ssh_program()?.path().as_os_str(),
            &ssh_argv(host, &settings.ssh, Mode::Transport)?,
        ));
        options.push("--".into());
        Ok(options)
    }
}

/// Joins a command by rsync's own rule: words are parted by blanks, a word in single quotes may hold
/// blanks, and a single quote within is doubled. No shell reads it.
fn transport(program: &std::ffi::OsStr, arguments: &[OsString]) -> OsString {
    let mut joined = Vec::new();
    for word in std::iter::once(program).chain(arguments.iter().map(OsString::as_os_str)) {
        if !joined.is_empty() {
            joined.push(b' ');
        }
        joined.push(b'\'');
        for &byte in word.as_bytes() {
            if byte == b'\'' {
                joined.push(b'\'');
            }
            joined.push(byte);
        }
        joined.push(b'\'');
    }
    OsString::from_vec(joined)
}

/// Returns a path on the host as rsync takes it.
pub(super) fn on_host(host: &Host, path: &[u8]) -> OsString {
    let name = match host.is_v6() {
        true => format!("[{}]", host.name),
        false => host.name.clone(),
    };
    OsString::from_vec([name.as_bytes(), b":", path].concat())
}

/// Writes a path so that the far rsync, which reads patterns in names, takes it letter by letter. It
/// does so in components that have a wildcard; in others a backslash is itself already.
///
/// # Errors
/// `Unsupported` for a source with a wildcard and a backslash in one name: rsync here would then not
/// know the answer for what it asked for.
pub(super) fn letter_by_letter(path: &[u8], source: bool) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(path.len() + 8);
    for (n, part) in path.split(|b| *b == b'/').enumerate() {
        if n > 0 {
            out.push(b'/');
        }
        if !has_wildcard(part) {
            out.extend_from_slice(part);
            continue;
        }
        if source && part.contains(&b'\\') {
            let cause = "rsync cannot ask for a name with both a wildcard and a backslash";
            return Err(Error::new(ErrorKind::Unsupported, USE, cause)
                .at(path)
                .hint("send the folder that it is in, or choose another method"));
        }
        for &byte in part {
            if matches!(byte, b'*' | b'?' | b'[' | b'\\') {
                out.push(b'\\');
            }
            out.push(byte);
        }
    }
    Ok(out)
}

/// Says whether rsync would read a pattern in it.
pub(super) fn has_wildcard(path: &[u8]) -> bool {
    path.iter().any(|b| matches!(b, b'*' | b'?' | b'['))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transport_is_quoted_by_rsyncs_own_rule() {
        let words = ["-o".into(), "ProxyCommand=a 'b' \"c\"".into(), "x".into()];
        assert_eq!(
            transport("/usr/bin/ssh".as_ref(), &words),
            "'/usr/bin/ssh' '-o' 'ProxyCommand=a ''b'' \"c\"' 'x'"
        );
    }

    #[test]
    fn names_that_look_like_patterns_are_taken_letter_by_letter() {
        let path = |text: &str| letter_by_letter(text.as_bytes(), true);
        assert_eq!(path("/d\\x/f[1]*").unwrap(), b"/d\\x/f\\[1]\\*");
        assert_eq!(path("/d\\x/plain").unwrap(), b"/d\\x/plain");
        assert!(path("/a\\*").is_err());
        assert_eq!(letter_by_letter(b"/a\\*", false).unwrap(), b"/a\\\\\\*");
    }

    #[test]
    fn an_address_with_colons_stands_in_brackets() {
        let host = Host {
            name: "fe80::1".into(),
            ..Host::default()
        };
        assert_eq!(on_host(&host, b"/x"), "[fe80::1]:/x");
    }
}
