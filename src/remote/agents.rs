//! The agent programs that this installation can copy to other machines, by machine type.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::model::error::{Error, ErrorKind, Result};

/// Names one more folder to look for agents in, before the others.
pub const FOLDER_VARIABLE: &str = "TRANSLOAD_AGENTS";

/// A release agent has under 4 MiB; one built for debugging may have tens.
const LARGEST: u64 = 256 << 20;

/// Where agents are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents {
    /// Folders with files such as `transload-agent-linux-x86_64`, searched in this order.
    pub folders: Vec<PathBuf>,
    /// An agent for machines of our own type.
    pub own: Option<PathBuf>,
}

/// An agent in memory, ready to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The program's bytes.
    pub bytes: Vec<u8>,
    /// Its name in the far side's cache folder: `agent-VERSION-HASH`.
    pub cache_name: String,
}

impl Agents {
    /// Returns the usual places: [`FOLDER_VARIABLE`], beside this program, and where packages
    /// put them.
    pub fn usual() -> Self {
        let mut folders: Vec<PathBuf> = Vec::new();
        folders.extend(
            std::env::var_os(FOLDER_VARIABLE)
                .map(PathBuf::from)
                .filter(|folder| folder.is_absolute()),
        );
        let mut own = None;
        let exe = std::env::current_exe().ok();
        if let Some(beside) = exe.as_deref().and_then(Path::parent) {
            folders.push(beside.to_path_buf());
            folders.push(beside.join("../lib/transload/agents"));
            own = Some(beside.join("transload-agent"));
        }
        folders.push("/usr/lib/transload/agents".into());
        Self { folders, own }
    }

    /// Loads the agent for a machine that calls itself `machine` (`uname -sm`, for example
    /// `Linux x86_64`); `None` when there is none.
    ///
    /// # Errors
    /// When a file is there and cannot be read.
    pub fn load(&self, machine: &str) -> Result<Option<Image>> {
        let mut candidates = Vec::new();
        if let Some(name) = file_name(machine) {
            candidates.extend(self.folders.iter().map(|folder| folder.join(&name)));
        }
        if own_machine() == Some(machine) {
            candidates.extend(self.own.clone());
        }
        let found = candidates.into_iter().find(|path| path.is_file());
        found.map(|path| read(&path)).transpose()
    }
}

fn read(path: &Path) -> Result<Image> {
    let failed = |e: std::io::Error| Error::io("read the agent to be copied", &e).at(path);
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(LARGEST + 1)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if bytes.is_empty() || bytes.len() as u64 > LARGEST {
        let cause = "its size cannot be right";
        return Err(
            Error::new(ErrorKind::Config, "read the agent to be copied", cause)
                .at(path)
                .hint("install Transload again"),
        );
    }
    let hash = blake3::hash(&bytes).to_hex();
    Ok(Image {
        bytes,
        cache_name: format!("agent-{}-{}", env!("CARGO_PKG_VERSION"), &hash[..16]),
    })
}

/// Returns the file name for a machine type; `None` when the far side said something that is no
/// machine type.
fn file_name(machine: &str) -> Option<String> {
    let (system, hardware) = machine.split_once(' ')?;
    let plain = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    (plain(system) && plain(hardware)).then(|| {
        let system = system.to_ascii_lowercase();
        format!("transload-agent-{system}-{hardware}")
    })
}

/// Returns what `uname -sm` says on machines that run our own program; `None` where several
/// machine types do.
fn own_machine() -> Option<&'static str> {
    match std::env::consts::ARCH {
        "x86_64" => Some("Linux x86_64"),
        "aarch64" => Some("Linux aarch64"),
        "riscv64" => Some("Linux riscv64"),
        "s390x" => Some("Linux s390x"),
        "loongarch64" => Some("Linux loongarch64"),
        "powerpc64" if cfg!(target_endian = "little") => Some("Linux ppc64le"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_found_by_machine_type_and_named_by_its_content() {
        let folder = tempfile::tempdir().unwrap();
        let agents = Agents {
            folders: vec!["/no/such/folder".into(), folder.path().into()],
            own: None,
        };
        assert_eq!(agents.load("Linux armv7l").unwrap(), None);
        let path = folder.path().join("transload-agent-linux-armv7l");
        std::fs::write(&path, "program").unwrap();
        let image = agents.load("Linux armv7l").unwrap().unwrap();
        assert_eq!(image.bytes, b"program");
        let hash = blake3::hash(b"program").to_hex();
        let want = format!("agent-{}-{}", env!("CARGO_PKG_VERSION"), &hash[..16]);
        assert_eq!(image.cache_name, want);
        std::fs::write(&path, "").unwrap();
        assert!(agents.load("Linux armv7l").is_err());
    }

    #[test]
    fn our_own_agent_serves_machines_of_our_type_only() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("transload-agent");
        std::fs::write(&own, "program").unwrap();
        let agents = Agents {
            folders: Vec::new(),
            own: Some(own),
        };
        if let Some(machine) = own_machine() {
            assert!(agents.load(machine).unwrap().is_some());
        }
        assert_eq!(agents.load("Linux mips").unwrap(), None);
        assert_eq!(agents.load("Darwin arm64").unwrap(), None);
    }

    #[test]
    fn a_machine_type_never_becomes_a_path() {
        for odd in [
            "",
            "Linux",
            "Linux ../x",
            "../a b",
            "Linux x86_64 extra",
            "Linux ",
        ] {
            assert_eq!(file_name(odd), None, "{odd}");
        }
        let plain = file_name("Linux x86_64").unwrap();
        assert_eq!(plain, "transload-agent-linux-x86_64");
    }
}
