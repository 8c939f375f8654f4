//! Questions to the server that are asked and answered at once, and what its answers mean.

use std::collections::{HashMap, VecDeque};

use crate::backend::sftp::channel::Channel;
use crate::backend::sftp::far::join;
use crate::backend::sftp::packet::{Attrs, Reply, broken};
use crate::backend::sftp::request::Request;
use crate::model::entry::EntryKind;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::progress::Counters;

/// Links whose targets are asked for together.
const LINKS_AHEAD: usize = 64;
/// Folder listings that are asked for ahead.
const AHEAD: usize = 4;
/// A folder whose names take more memory than this (five million usual ones) is taken for an attack.
const MOST_LISTED: usize = 512 << 20;
/// What one name takes beside its own bytes.
const NAME_COST: usize = 80;

/// The names in a folder, and what they are.
pub(super) type Listing = Vec<(Vec<u8>, Attrs)>;

/// Where the links in a folder point, by name.
pub(super) type Targets = HashMap<Vec<u8>, Result<Vec<u8>>>;

impl Channel {
    /// Sends a request whose reply is only whether it was done. The inner error is the server's.
    ///
    /// # Errors
    /// As [`Channel::reply`].
    pub fn order(&mut self, request: &Request<'_>, doing: &str) -> Result<Result<()>> {
        Ok(done(&self.call(request)?, doing))
    }

    /// Looks at a path; `None` when there is nothing.
    ///
    /// # Errors
    /// As [`Channel::reply`]; the inner error is the server's.
    pub fn look(&mut self, request: &Request<'_>) -> Result<Result<Option<Attrs>>> {
        Ok(match self.call(request)? {
            Reply::Attrs(attrs) => Ok(Some(attrs)),
            Reply::Status(2, _) => Ok(None),
            other => Err(unexpected(&other, "look at the file")),
        })
    }

    /// Asks for one name: a link's target, or a full path.
    ///
    /// # Errors
    /// As [`Channel::reply`]; the inner error is the server's.
    pub fn name(&mut self, request: &Request<'_>, doing: &str) -> Result<Result<Vec<u8>>> {
        Ok(one_name(self.call(request)?, doing))
    }

    /// Lists a folder, without itself and the one above.
    ///
    /// # Errors
    /// As [`Channel::reply`]; the inner error is the server's.
    pub fn list(&mut self, path: &[u8], counters: &Counters) -> Result<Result<Listing>> {
        const DOING: &str = "list the folder";
        let handle = match self.call(&Request::Opendir(path))? {
            Reply::Handle(handle) => handle,
            other => return Ok(Err(unexpected(&other, DOING))),
        };
        let mut asked = VecDeque::new();
        let (mut listing, mut end, mut weight) = (Listing::new(), None, 0);
        loop {
            while end.is_none() && asked.len() < AHEAD {
                asked.push_back(self.send(&Request::Readdir(&handle))?);
            }
            let Some(id) = asked.pop_front() else { break };
            let reply = self.reply_to(id)?;
            self.count(counters);
            match reply {
                Reply::Names(names) => {
                    let real = |(name, _): &(Vec<u8>, Attrs)| name != b"." && name != b"..";
                    for name in names.into_iter().filter(real) {
                        weight += name.0.len() + NAME_COST;
                        listing.push(name);
                    }
                    if weight > MOST_LISTED {
                        return Err(broken("it is one of a folder with too many names"));
                    }
                }
                Reply::Status(1, _) => end = Some(Ok(())),
                other => {
                    end.get_or_insert(Err(unexpected(&other, DOING)));
                }
            }
        }
        self.tell(&Request::Close(&handle))?;
        Ok(end.unwrap_or(Ok(())).map(|()| listing))
    }

    /// Asks where each link in a folder points. A link that cannot be read has its error.
    ///
    /// # Errors
    /// As [`Channel::reply`].
    pub fn targets(
        &mut self,
        folder: &[u8],
        names: &Listing,
        counters: &Counters,
    ) -> Result<Targets> {
        let links = names.iter().filter(|(_, a)| a.kind() == EntryKind::Symlink);
        let links: Vec<&Vec<u8>> = links.map(|(name, _)| name).collect();
        let mut targets = Targets::new();
        for some in links.chunks(LINKS_AHEAD) {
            let mut asked = Vec::with_capacity(some.len());
            for name in some {
                asked.push(self.send(&Request::Readlink(&join(folder, name)))?);
            }
            for (id, name) in asked.into_iter().zip(some) {
                let target = one_name(self.reply_to(id)?, "read the symbolic link");
                targets.insert((*name).clone(), target);
            }
            self.count(counters);
        }
        Ok(targets)
    }
}

fn one_name(reply: Reply, doing: &str) -> Result<Vec<u8>> {
    match reply {
        Reply::Names(mut names) if names.len() == 1 => Ok(names.remove(0).0),
        other => Err(unexpected(&other, doing)),
    }
}

/// Reads a reply that only says whether it was done.
///
/// # Errors
/// What the server says.
pub(super) fn done(reply: &Reply, doing: &str) -> Result<()> {
    match reply {
        Reply::Status(0, _) => Ok(()),
        other => Err(unexpected(other, doing)),
    }
}

/// Makes the error of a reply that is not the one hoped for. Without a place: the caller knows it.
pub(super) fn unexpected(reply: &Reply, doing: &str) -> Error {
    let Reply::Status(code, words) = reply else {
        return broken("it is no answer to what was asked");
    };
    let (kind, usual) = match code {
        2 => (ErrorKind::NotFound, "no such file or folder"),
        3 => (ErrorKind::Denied, "permission denied"),
        8 => (ErrorKind::Unsupported, "the server cannot do that"),
        6 | 7 => (ErrorKind::Disconnected, "the server lost its connection"),
        // The protocol has one word for a full disk, a taken name and everything else.
        _ => (ErrorKind::Io, "the server says only that it failed"),
    };
    let told = words.trim_ascii();
    let plain = [&b""[..], b"Failure", b"No such file", b"Permission denied"];
    match plain.contains(&told) {
        true => Error::new(kind, doing, usual),
        false => Error::new(kind, doing, told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_says_becomes_a_kind_and_words() {
        let error = |code, words: &str| unexpected(&Reply::Status(code, words.into()), "write");
        assert_eq!(error(3, "Permission denied").kind, ErrorKind::Denied);
        let said = error(4, "quota \u{1b}[31m used up");
        assert_eq!(said.kind, ErrorKind::Io);
        assert!(!said.to_string().contains('\u{1b}'));
        assert_eq!(
            unexpected(&Reply::Data(vec![]), "x").kind,
            ErrorKind::Protocol
        );
    }
}
