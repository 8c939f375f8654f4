//! Lists of digests: saved beside a copy, and checked against a folder.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use crate::model::digest::Digest;
use crate::model::error::{Error, ErrorKind, Result};
use crate::verify::manifest;

/// Writes a list that `md5sum -c` and its kin read; it has its name only when it is complete.
pub struct ListWriter {
    file: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
}

impl ListWriter {
    /// Starts a list; a former one stays until the new one is complete.
    ///
    /// # Errors
    /// When the folder cannot be written to.
    pub fn create(path: &Path) -> Result<Self> {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{:08x}.part", random()?));
        let part = PathBuf::from(part);
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&part)
            .map_err(|e| failed(path, &e))?;
        Ok(Self {
            file: BufWriter::new(file),
            part,
            path: path.to_owned(),
        })
    }

    /// Adds a file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn add(&mut self, digest: &Digest, path: &[u8]) -> Result<()> {
        manifest::write_line(&mut self.file, digest, path).map_err(|e| failed(&self.path, &e))
    }

    /// Makes the list durable and gives it its name.
    ///
    /// # Errors
    /// When it cannot be written or renamed.
    pub fn finish(mut self) -> Result<()> {
        let done = self
            .file
            .flush()
            .and_then(|()| self.file.get_ref().sync_all())
            .and_then(|()| std::fs::rename(&self.part, &self.path));
        done.map_err(|e| failed(&self.path, &e))
    }
}

impl Drop for ListWriter {
    fn drop(&mut self) {
        // After `finish` there is nothing of that name any more.
        let _ = std::fs::remove_file(&self.part);
    }
}

fn random() -> Result<u32> {
    getrandom::u32().map_err(|e| {
        Error::new(
            ErrorKind::Io,
            "get random bytes from the system",
            e.to_string(),
        )
    })
}

fn failed(path: &Path, source: &std::io::Error) -> Error {
    Error::io("save the list of digests", source).at(path)
}
