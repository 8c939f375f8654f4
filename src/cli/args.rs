//! The words of the command line: commands, arguments and their help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cli::options::TransferArgs;

/// Moves files between this computer and another by the fastest safe way, and proves with digests
/// that what arrived is what was sent.
///
/// Without a command the window opens; paths and addresses are dropped on it.
#[derive(Debug, Parser)]
#[command(
    name = "transload",
    version,
    args_conflicts_with_subcommands = true,
    override_usage = "transload [PATH|URL]...\n       transload COMMAND [ARGUMENTS]...",
    after_help = "Examples:\n  \
        transload                                 open the window\n  \
        transload copy Pictures nas:/volume1/     send a folder, md5 verified\n  \
        transload copy nas:notes.txt .            fetch a file\n  \
        transload run \"Photos to nas\"             run a saved profile\n\n\
        Exit status: 0 completed, 1 failed, 2 usage, 3 could not connect or log in,\n\
        4 a digest differs, 5 refused for safety, 23 partial, 24 a source vanished or\n\
        changed, 30 timeout, 130 stopped.\n\n\
        TRANSLOAD_HOME=DIR keeps profiles, history and settings below DIR."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Files, folders or addresses to drop on the window
    #[arg(value_name = "PATH|URL")]
    pub paths: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Copy(CopyArgs),
    Run(RunArgs),
    #[command(subcommand)]
    Profiles(ProfilesCommand),
    Verify(VerifyArgs),
    #[command(subcommand)]
    History(HistoryCommand),
}

/// Copy files and folders; either side may be on another computer
///
/// A place is a path here, [USER@]HOST:PATH, ssh://[USER@]HOST[:PORT]/PATH, or another address
/// that a method understands. A local name with a colon is written ./a:b. DEST that ends in / or
/// is a folder means into it. A source folder is copied as itself unless --contents is given.
/// The same command again goes on where a stopped one ended.
// The square brackets are meant for the help, where nothing is a link.
#[allow(rustdoc::broken_intra_doc_links)]
#[derive(Debug, Args)]
#[command(
    override_usage = "transload copy [OPTIONS] SOURCE... DEST",
    after_help = "Examples:\n  \
        transload copy Pictures nas:/volume1/photo/      lands in /volume1/photo/Pictures\n  \
        transload copy --contents Pictures nas:/photo    what is in Pictures lands in /photo\n  \
        transload copy -n Pictures nas:/volume1/photo/   say what would be done\n  \
        transload copy me@host:notes/todo.txt .          fetch one file\n  \
        transload copy --exclude '*.tmp' work /mnt/usb/  leave some out\n  \
        transload copy --save-list work.md5 work nas:    then, there: md5sum -c work.md5"
)]
pub struct CopyArgs {
    /// What to copy, then where to
    #[arg(value_name = "SOURCE... DEST", required = true, num_args = 2..)]
    pub places: Vec<OsString>,

    #[command(flatten)]
    pub transfer: TransferArgs,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Run saved profiles, one after the other
///
/// A profile is named by its name or id; what holds a slash or ends in .toml is a profile file.
/// Nothing runs if one of them cannot be read. The exit status is the worst of theirs.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        transload run \"Photos to nas\"           run one\n  \
        transload run -n Photos Music           say what two would do\n  \
        transload run ./backup.toml             run a profile file without importing it")]
pub struct RunArgs {
    /// Names, ids or files of profiles
    #[arg(value_name = "PROFILE|FILE", required = true)]
    pub profiles: Vec<OsString>,

    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What is decided for one run and never saved.
#[derive(Clone, Debug, Args)]
pub struct JobArgs {
    /// Say what would be done; write nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,

    /// Agree that the agent is copied to the other computer and started there
    #[arg(long)]
    pub upload_agent: bool,

    /// Ask nothing: agree to the agent's upload and to plain TCP; existing files still follow
    /// --conflict
    #[arg(long)]
    pub yes: bool,

    /// Save the digests of verified files as a list for md5sum -c, paths below the destination
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub save_list: Option<PathBuf>,
}

/// What is printed.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct OutputArgs {
    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print each file, and progress also where stderr is no terminal
    #[arg(short, long)]
    pub verbose: bool,

    /// Print one JSON object a line on stdout; the last one is the summary
    #[arg(long)]
    pub json: bool,
}

/// Manage saved profiles
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
        transload profiles list\n  \
        transload profiles new Photos --source ~/Pictures --dest nas:/volume1/photo/\n  \
        transload profiles set Photos --verify blake3 --limit 20M\n  \
        transload profiles export Photos photos.toml")]
pub enum ProfilesCommand {
    /// List the profiles
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Print a profile as it is saved
    Show {
        /// Its name or id
        profile: String,
    },
    /// Make a profile
    New {
        /// What to call it
        name: String,
        #[command(flatten)]
        edit: ProfileArgs,
    },
    /// Change a profile; what is not named stays
    Set {
        /// Its name or id
        profile: String,
        #[command(flatten)]
        edit: ProfileArgs,
    },
    /// Give a profile another name
    Rename {
        /// Its name or id
        profile: String,
        /// The new name
        name: String,
    },
    /// Make a copy of a profile
    Duplicate {
        /// Its name or id
        profile: String,
        /// What to call the copy
        name: Option<String>,
    },
    /// Delete profiles
    Delete {
        /// Their names or ids
        #[arg(required = true)]
        profiles: Vec<String>,
    },
    /// Save profile files as profiles here; nothing of them runs
    Import {
        /// Profile files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Write a profile to a file, or to stdout
    Export {
        /// Its name or id
        profile: String,
        /// Where to; an existing file is left alone
        file: Option<PathBuf>,
    },
}

/// The fields of a profile.
#[derive(Debug, Args)]
pub struct ProfileArgs {
    /// What to move; may be given more than once, replaces all former sources
    #[arg(long = "source", value_name = "SOURCE")]
    pub sources: Vec<OsString>,

    /// One more source beside the former ones
    #[arg(long = "add-source", value_name = "SOURCE")]
    pub add_sources: Vec<OsString>,

    /// Where to
    #[arg(long = "dest", value_name = "DEST")]
    pub destination: Option<OsString>,

    /// Free text about the profile
    #[arg(long, value_name = "TEXT")]
    pub notes: Option<String>,

    #[command(flatten)]
    pub transfer: TransferArgs,
}

/// Check files against a list of digests
///
/// Reads what md5sum, sha256sum and b3sum write, and what copy --save-list saved. Whole paths in a
/// list (/etc/hosts) mean that file; all others are below --root, and no link leads out of it.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
        transload verify photos.md5 --root /mnt/usb/photo\n  \
        transload verify --json SHA256SUMS\n  \
        find /etc -type f -exec md5sum {} + | transload verify -")]
pub struct VerifyArgs {
    /// The list; - reads it from standard input
    #[arg(value_name = "LIST")]
    pub list: PathBuf,

    /// The folder that the paths of the list are below
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: OsString,

    /// What the digests are; told from their length and the list's name if not given
    #[arg(long, value_name = "NAME", value_parser = ["md5", "sha256", "blake3", "xxh3"])]
    pub algorithm: Option<String>,

    #[command(flatten)]
    pub output: OutputArgs,
}

/// Look at former runs
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
        transload history list --limit 5\n  \
        transload history show 3f2a\n  \
        transload history rows 3f2a --verdict failed")]
pub enum HistoryCommand {
    /// List former runs, newest first
    List {
        /// At most so many
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
    /// Show one run
    Show {
        /// Its id, or the first digits of it
        id: String,
        /// Print its summary as JSON
        #[arg(long)]
        json: bool,
    },
    /// List the files of one run with their verdicts
    Rows {
        /// Its id, or the first digits of it
        id: String,
        /// Only those with this verdict
        #[arg(long, value_name = "VERDICT", value_parser = VERDICTS)]
        verdict: Option<String>,
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
    },
}

/// The names of all verdicts.
pub const VERDICTS: [&str; 8] = [
    "verified",
    "differs",
    "size_only",
    "unverified",
    "source_changed",
    "vanished",
    "skipped",
    "failed",
];
