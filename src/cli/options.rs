//! The options that say how a transfer is done: the same for a copy and for a saved profile.

use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches};

use crate::model::digest::Algorithm;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::profile::{Encrypt, MethodChoice, Settings};
use crate::model::rules::{Conflict, Rule, RuleVerb};
use crate::model::units::Rate;
use crate::model::untrusted::Untrusted;
use crate::service::{jobs, methods};

/// How a transfer is done; what is not given stays as it is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Transfer options")]
pub struct TransferArgs {
    /// How to move the bytes; auto takes the fastest safe one and says why
    #[arg(short, long, value_name = "METHOD", value_parser = method_names())]
    pub method: Option<String>,

    /// How to check contents [md5 unless changed]
    #[arg(long, value_name = "DIGEST", value_parser = algorithm_names())]
    pub verify: Option<String>,

    /// Read the destination again from disk after the copy
    #[arg(long, overrides_with = "no_read_back")]
    pub read_back: bool,
    #[arg(long, hide = true, overrides_with = "read_back")]
    no_read_back: bool,

    /// What to do with a file that is there already [differs unless changed: replace it when size
    /// or time differs]
    #[arg(long, value_name = "RULE", value_parser = conflict_names())]
    pub conflict: Option<String>,

    #[command(flatten)]
    rules: RuleArgs,

    /// At most so many bytes a second, for example 20M, 20MiB or 20MB; none lifts it
    #[arg(long, value_name = "RATE")]
    limit: Option<Limit>,

    /// A source folder's contents instead of the folder itself
    #[arg(long, overrides_with = "no_contents")]
    contents: bool,
    #[arg(long, hide = true, overrides_with = "contents")]
    no_contents: bool,

    /// Do not keep modification times
    #[arg(long, overrides_with = "times")]
    no_times: bool,
    #[arg(long, hide = true, overrides_with = "no_times")]
    times: bool,

    /// Do not keep permissions
    #[arg(long, overrides_with = "perms")]
    no_perms: bool,
    #[arg(long, hide = true, overrides_with = "no_perms")]
    perms: bool,

    /// Leave symbolic links out
    #[arg(long, overrides_with = "links")]
    no_links: bool,
    #[arg(long, hide = true, overrides_with = "no_links")]
    links: bool,

    /// Do not wait until each file would survive a power cut
    #[arg(long, overrides_with = "durable")]
    no_durable: bool,
    #[arg(long, hide = true, overrides_with = "no_durable")]
    durable: bool,

    /// Whether others on the network may be able to read the data: auto, always (through ssh) or
    /// never (plain TCP)
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "never"])]
    encrypt: Option<String>,

    /// An option of the method itself; may be given more than once
    #[arg(short = 'O', value_name = "NAME=VALUE")]
    method_options: Vec<String>,

    /// The port of the ssh server
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Option<u16>,

    /// The key file to log in with
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,

    /// An option for ssh, as its -o takes it; may be given more than once
    #[arg(long = "ssh-option", value_name = "NAME=VALUE")]
    ssh_options: Vec<String>,

    /// An ssh configuration file instead of yours
    #[arg(
        long,
        value_name = "FILE",
        env = "TRANSLOAD_SSH_CONFIG",
        hide_env_values = true
    )]
    ssh_config: Option<PathBuf>,
}

impl TransferArgs {
    /// Changes settings as the options say. Calls with the port are up to the caller: it belongs
    /// to a host.
    ///
    /// # Errors
    /// `Config` when a value does not fit the method, `Unsupported` when it is not UTF-8.
    pub fn apply(&self, settings: &mut Settings) -> Result<()> {
        let Self {
            method,
            verify,
            read_back,
            no_read_back,
            conflict,
            rules,
            limit,
            contents,
            no_contents,
            no_times,
            times,
            no_perms,
            perms,
            no_links,
            links,
            no_durable,
            durable,
            encrypt,
            method_options,
            port: _,
            identity,
            ssh_options,
            ssh_config,
        } = self;
        if let Some(method) = method {
            settings.method = MethodChoice::from(method.clone());
        }
        if let Some(name) = verify {
            settings.verify = word(name)?;
        }
        if let Some(name) = conflict {
            settings.conflict = word(name)?;
        }
        if let Some(name) = encrypt {
            settings.encrypt = word::<Encrypt>(name)?;
        }
        switch(&mut settings.read_back, *read_back, *no_read_back);
        switch(&mut settings.contents, *contents, *no_contents);
        switch(&mut settings.durable, *durable, *no_durable);
        switch(&mut settings.preserve.times, *times, *no_times);
        switch(&mut settings.preserve.permissions, *perms, *no_perms);
        switch(&mut settings.preserve.links, *links, *no_links);
        if !rules.0.is_empty() {
            settings.rules.clone_from(&rules.0);
        }
        jobs::check_rules(&rules.0)?;
        if (verify.is_some() || *read_back)
            && settings.read_back
            && settings.verify == Algorithm::None
        {
            return Err(Error::new(
                ErrorKind::Config,
                "read --read-back",
                "with --verify none there is nothing to compare what is read back with",
            )
            .hint("choose a digest, for example --verify md5, or leave reading back out (--no-read-back)"));
        }
        if let Some(limit) = limit {
            settings.limit = limit.0;
        }
        for text in method_options {
            let Some((name, value)) = text.split_once('=') else {
                return Err(Error::new(
                    ErrorKind::Config,
                    "read a method option",
                    "it has no equals sign",
                )
                .at(text.as_str())
                .hint("write -O NAME=VALUE"));
            };
            methods::check_option(&settings.method, name, value)?;
            settings.options.0.insert(name.to_owned(), value.to_owned());
        }
        if let Some(file) = identity {
            settings.ssh.identity = utf8_path("--identity", file)?;
            check_key(settings.ssh.identity.as_deref())?;
        }
        if let Some(file) = ssh_config {
            settings.ssh.config = utf8_path("--ssh-config", file)?;
        }
        if !ssh_options.is_empty() {
            settings.ssh.options.clone_from(ssh_options);
            jobs::check_ssh_options(&settings.ssh)?;
        }
        Ok(())
    }
}

fn switch(value: &mut bool, on: bool, off: bool) {
    if on || off {
        *value = on;
    }
}

/// Reads a word that clap has checked already.
fn word<T: FromStr<Err = String>>(text: &str) -> Result<T> {
    text.parse()
        .map_err(|why| Error::new(ErrorKind::Config, "read the options", why))
}

/// Returns an absolute path as text; an empty one takes the setting away.
fn utf8_path(flag: &str, path: &std::path::Path) -> Result<Option<String>> {
    if path.as_os_str().is_empty() {
        return Ok(None);
    }
    let path = std::path::absolute(path).map_err(|e| Error::io("find the current folder", &e))?;
    match path.to_str() {
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(Error::new(
            ErrorKind::Unsupported,
            format!("read {flag}"),
            "the name of that file is not UTF-8",
        )
        .at(&*path)
        .hint("give the file a name in UTF-8")),
    }
}

/// Refuses a key file that cannot be read: ssh would pass over it and try others.
fn check_key(file: Option<&str>) -> Result<()> {
    let Some(file) = file else { return Ok(()) };
    let refuse = |cause: Untrusted| {
        Error::new(ErrorKind::Config, "read --identity", cause)
            .at(file)
            .hint("give the private key, for example ~/.ssh/id_ed25519")
    };
    match std::fs::File::open(file).and_then(|file| file.metadata()) {
        Ok(meta) if meta.is_dir() => Err(refuse("it is a folder".into())),
        Ok(_) => Ok(()),
        Err(e) => Err(refuse(Error::io("read --identity", &e).cause)),
    }
}

fn method_names() -> PossibleValuesParser {
    let names = std::iter::once("auto").chain(methods::all().into_iter().map(|m| m.id));
    PossibleValuesParser::new(names)
}

fn algorithm_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name))
}

fn conflict_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Conflict::ALL.map(Conflict::name))
}

/// A rate, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit(Option<Rate>);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "none" | "0" => Ok(Self(None)),
            _ => text.parse().map(|rate| Self(Some(rate))),
        }
    }
}

/// `--exclude` and `--include` in the order in which they were given, since the first that matches
/// wins.
#[derive(Debug, Default)]
struct RuleArgs(Vec<Rule>);

impl RuleArgs {
    const VERBS: [(&str, RuleVerb, &str); 2] = [
        (
            "exclude",
            RuleVerb::Exclude,
            "Leave out what matches; the first rule that matches wins",
        ),
        (
            "include",
            RuleVerb::Include,
            "Keep what matches, before a later --exclude",
        ),
    ];
}

impl Args for RuleArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        Self::VERBS
            .iter()
            .fold(command, |command, (name, _, help)| {
                command.arg(
                    Arg::new(*name)
                        .long(*name)
                        .value_name("PATTERN")
                        .action(ArgAction::Append)
                        .help(*help),
                )
            })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for RuleArgs {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let mut rules = Vec::new();
        for (name, verb, _) in Self::VERBS {
            let places = matches.indices_of(name).into_iter().flatten();
            let patterns = matches.get_many::<String>(name).into_iter().flatten();
            rules.extend(places.zip(patterns.map(move |p| Rule {
                verb,
                pattern: p.clone(),
            })));
        }
        rules.sort_by_key(|(place, _)| *place);
        Ok(Self(rules.into_iter().map(|(_, rule)| rule).collect()))
    }

    fn update_from_arg_matches(
        &mut self,
        matches: &ArgMatches,
    ) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::cli::args::{Cli, Command};

    fn settings(args: &[&str]) -> Result<Settings> {
        let words = ["transload", "copy"].iter().chain(args).chain(&["a", "b"]);
        let cli = Cli::try_parse_from(words).expect("the words are options of copy");
        let Some(Command::Copy(copy)) = cli.command else {
            panic!("no copy")
        };
        let mut settings = Settings::default();
        copy.transfer.apply(&mut settings)?;
        Ok(settings)
    }

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn rules_keep_the_order_in_which_they_were_given() {
        let rules = settings(&["--exclude", "a", "--include", "b", "--exclude", "c"])
            .unwrap()
            .rules;
        let words: Vec<_> = rules.iter().map(|r| (r.verb, r.pattern.as_str())).collect();
        assert_eq!(
            words,
            [
                (RuleVerb::Exclude, "a"),
                (RuleVerb::Include, "b"),
                (RuleVerb::Exclude, "c")
            ]
        );
    }

    #[test]
    fn nothing_given_changes_nothing_but_an_ssh_configuration_from_the_environment() {
        let mut settings = settings(&[]).unwrap();
        settings.ssh.config = None;
        assert_eq!(settings, Settings::default());
    }

    #[test]
    fn each_option_changes_its_setting() {
        let s = settings(&[
            "--verify",
            "blake3",
            "--read-back",
            "--conflict",
            "skip",
            "--limit",
            "20M",
            "--contents",
            "--no-times",
            "--no-perms",
            "--no-links",
            "--no-durable",
            "--encrypt",
            "always",
            "--ssh-option",
            "Compression=no",
        ])
        .unwrap();
        assert_eq!(s.verify, Algorithm::Blake3);
        assert_eq!(s.conflict, Conflict::Skip);
        assert_eq!(s.limit, Some(Rate(20 << 20)));
        assert_eq!(s.encrypt, Encrypt::Always);
        assert_eq!(s.ssh.options, ["Compression=no"]);
        assert!(s.read_back && s.contents && !s.durable);
        assert!(!s.preserve.times && !s.preserve.permissions && !s.preserve.links);
    }

    #[test]
    fn what_cannot_be_meant_is_refused_at_once_by_its_name() {
        let no_key = "/no/such/folder/key";
        for (args, word) in [
            (&["--exclude", "["][..], "'['"),
            (&["--include", "a//b"], "two slashes"),
            (&["--exclude", ""], "empty"),
            (&["--read-back", "--verify", "none"], "--verify none"),
            (&["--identity", no_key], "no such file"),
            (&["--identity", "/"], "folder"),
            (&["--ssh-option", "Compression"], "Name=value"),
            (&["--ssh-option", "ProxyCommand=x"], "ProxyCommand"),
        ] {
            let error = settings(args).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Config, "{error}");
            assert!(error.to_string().contains(word), "{error}");
            assert!(error.hint.is_some(), "{error}");
        }
    }

    #[test]
    fn the_last_of_two_opposites_wins() {
        assert!(settings(&["--no-times", "--times"]).unwrap().preserve.times);
        assert!(!settings(&["--times", "--no-times"]).unwrap().preserve.times);
        assert_eq!(settings(&["--limit", "none"]).unwrap().limit, None);
    }

    #[test]
    fn a_method_option_needs_a_name_that_a_method_has_and_a_value() {
        assert!(
            settings(&["-O", "nonsense"])
                .unwrap_err()
                .to_string()
                .contains("equals sign")
        );
        assert!(settings(&["-O", "no-such-thing=1"]).is_err());
    }
}
