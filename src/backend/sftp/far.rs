//! Folders and names on the other side.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use crate::backend::sftp::IN_FLIGHT;
use crate::backend::sftp::channel::Channel;
use crate::backend::sftp::packet::Attrs;
use crate::backend::sftp::request::Request;
use crate::model::entry::EntryKind;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::profile::Settings;
use crate::model::progress::Counters;
use crate::pump::destination::without_slash;
use crate::pump::name::staging;

/// How the names of files begin that were there before us and are in the folder of parts while they
/// are being replaced. No part's name begins so.
pub(super) const OLD: &str = "old-";

/// Returns a path as the server takes it; an empty one is the home folder.
pub(super) fn given(path: &[u8]) -> &[u8] {
    if path.is_empty() { b"." } else { path }
}

/// Returns the path of something in a folder.
pub(super) fn join(folder: &[u8], below: &[u8]) -> Vec<u8> {
    match folder.ends_with(b"/") {
        true => [folder, below].concat(),
        false => [folder, b"/", below].concat(),
    }
}

/// Returns the last component of a path, if it is a name.
pub(super) fn last_name(path: &[u8]) -> Option<Vec<u8>> {
    match Path::new(OsStr::from_bytes(path)).components().next_back() {
        // `Components` leaves a dot at the end out.
        Some(Component::Normal(name)) if !path.ends_with(b"/.") => Some(name.as_bytes().to_vec()),
        _ => None,
    }
}

/// Returns the folder that something is in; `None` where there is none to make.
fn above(path: &[u8]) -> Option<Vec<u8>> {
    if path == b"." {
        return None;
    }
    let parent = Path::new(OsStr::from_bytes(path)).parent()?;
    let parent = parent.as_os_str().as_bytes();
    Some(given(parent).to_vec())
}

/// A destination on the other side, looked at but not yet made.
#[derive(Debug)]
pub(super) struct Landing {
    /// The folder that everything lands in.
    pub folder: Vec<u8>,
    /// The folder is there.
    pub there: bool,
    /// The name that the one source gets; `None` for its own.
    pub top: Option<Vec<u8>>,
}

impl Landing {
    /// Decides as the other methods do: what ends in a slash or is a folder means *into*; otherwise,
    /// with one source, it is the new name. A run that goes on keeps to what its first attempt
    /// decided, which its staging folder beside the name tells.
    ///
    /// # Errors
    /// `Exists` when several sources should go into a file, and those of the conversation.
    pub fn find(
        channel: &mut Channel,
        written: &[u8],
        sources: usize,
        settings: &Settings,
        resumed: Option<&[u8; 16]>,
    ) -> Result<Self> {
        let path = given(written);
        let stat = |channel: &mut Channel, path: &[u8]| -> Result<Option<Attrs>> {
            channel.look(&Request::Stat(path))?.map_err(|e| e.at(path))
        };
        let there = stat(channel, without_slash(path))?;
        let is_folder = there.is_some_and(|a| a.kind() == EntryKind::Dir);
        let name = last_name(path);
        let parent = above(path).filter(|_| name.is_some());
        let mut named = false;
        if let (Some(job), Some(parent)) = (resumed, &parent) {
            named = stat(channel, &join(parent, staging(job).as_bytes()))?.is_some();
        }
        let into = (is_folder && !named)
            || path.ends_with(b"/")
            || name.is_none()
            || settings.contents
            || sources != 1;
        if into && there.is_some() && !is_folder {
            return Err(Error::new(
                ErrorKind::Exists,
                "use the destination",
                "it is not a folder",
            )
            .at(written)
            .hint("name a folder, or send a single file to replace this one"));
        }
        match (into, parent) {
            (false, Some(folder)) => Ok(Self {
                there: stat(channel, &folder)?.is_some(),
                folder,
                top: name,
            }),
            _ => Ok(Self {
                folder: path.to_vec(),
                there: is_folder,
                top: None,
            }),
        }
    }

    /// Makes the folder, and the ones above it, where they are missing.
    ///
    /// # Errors
    /// What the server says to the first that cannot be made.
    pub fn make(&self, channel: &mut Channel) -> Result<()> {
        if self.there {
            return Ok(());
        }
        let mut missing = vec![self.folder.clone()];
        while let Some(parent) = missing.last().and_then(|path| above(path)) {
            if channel
                .look(&Request::Stat(&parent))?
                .is_ok_and(|a| a.is_some())
            {
                break;
            }
            missing.push(parent);
        }
        for path in missing.into_iter().rev() {
            let made = Request::Mkdir(&path, Attrs::default());
            if let Err(error) = channel.order(&made, "create the folder")? {
                // Others make folders too.
                let there = channel.look(&Request::Stat(&path))?;
                if !there.is_ok_and(|a| a.is_some_and(|a| a.kind() == EntryKind::Dir)) {
                    return Err(error.at(&path[..]));
                }
            }
        }
        Ok(())
    }
}

/// Makes the private folder of parts, empty: what an earlier attempt left in it goes.
///
/// # Errors
/// What the server says.
pub(super) fn make_staging(channel: &mut Channel, path: &[u8], counters: &Counters) -> Result<()> {
    let private = Attrs {
        mode: Some(0o700),
        ..Attrs::default()
    };
    let Err(error) = channel.order(&Request::Mkdir(path, private), "create the folder of parts")?
    else {
        return Ok(());
    };
    let there = channel.look(&Request::Lstat(path))?;
    if !there.is_ok_and(|a| a.is_some_and(|a| a.kind() == EntryKind::Dir)) {
        return Err(error
            .at(path)
            .hint("look at the rights and the free space there"));
    }
    empty(channel, path, counters)
}

/// Removes the parts in a staging folder, as far as that is possible; never a file that was there
/// before us.
///
/// # Errors
/// Those of the conversation.
pub(super) fn empty(channel: &mut Channel, path: &[u8], counters: &Counters) -> Result<()> {
    let Ok(names) = channel.list(path, counters)? else {
        return Ok(());
    };
    let ours = |(name, _): &&(Vec<u8>, Attrs)| !name.starts_with(OLD.as_bytes());
    let parts: Vec<_> = names.iter().filter(ours).collect();
    for some in parts.chunks(IN_FLIGHT) {
        let mut asked = Vec::with_capacity(some.len());
        for (name, _) in some {
            asked.push(channel.send(&Request::Remove(&join(path, name)))?);
        }
        for id in asked {
            // Whether it can go or not, the parts that follow have other names.
            channel.reply_to(id)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_there_come_apart_and_together() {
        assert_eq!(join(b"/", b"a"), b"/a");
        assert_eq!(join(b".", b"a/b"), b"./a/b");
        assert_eq!(above(b"a"), Some(b".".to_vec()));
        assert_eq!(above(b"/a"), Some(b"/".to_vec()));
        assert_eq!(above(b"/"), None);
        assert_eq!(above(b"."), None);
        assert_eq!(last_name(b"a/.."), None);
        assert_eq!(last_name(b"/a/b/"), Some(b"b".to_vec()));
        assert_eq!(given(b""), b".");
    }
}
