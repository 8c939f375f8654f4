//! One agent on one host, and the runs that it serves.

use std::collections::HashSet;
use std::io::BufReader;
use std::process::ChildStdout;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use crate::backend::collect::Collector;
use crate::backend::contract::Session;
use crate::backend::cx::{Ask, Cx};
use crate::backend::ends::Ends;
use crate::backend::tcp::route::{Opened, Ways};
use crate::backend::tcp::{ends, ports, streams};
use crate::backend::watch::watch;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::event::{Answer, QuestionKind};
use crate::model::job::JobSpec;
use crate::model::location::Host;
use crate::model::outcome::{Route, Tally};
use crate::model::plan::PlanTotals;
use crate::model::profile::{Encrypt, MethodChoice};
use crate::model::progress::Phase;
use crate::proc::{Child, Tail};
use crate::pump::abort::Abort;
use crate::pump::control::{ControlReader, ControlWriter};
use crate::pump::destination::Destination;
use crate::pump::lane::Out;
use crate::pump::latch::Latch;
use crate::pump::limit::Throttle;
use crate::pump::link::random;
use crate::pump::receive::ReceiveRun;
use crate::pump::send::SendRun;
use crate::pump::source;
use crate::remote::address::Arrived;
use crate::remote::bootstrap::{AgentChannel, AgentFound, start_agent, start_own_agent};
use crate::remote::failure::why_ended;
use crate::wire::codec::broken;
use crate::wire::hello::JobKey;
use crate::wire::level;
use crate::wire::message::{Hello, Message, Role, Start, Terms};

/// How long the agent may take to say hello.
const HELLO: Duration = Duration::from_secs(10);

/// A running agent.
pub(super) struct TcpSession {
    spec: JobSpec,
    host: Host,
    child: Child,
    stderr: Tail,
    output: BufReader<ChildStdout>,
    control: Arc<ControlWriter>,
    level: u16,
    arrived: Option<Arrived>,
    /// Why plain TCP may not be used; `None` when it may.
    forbidden: Option<String>,
    route: (Route, String),
}

impl TcpSession {
    /// Logs in and starts the agent.
    pub fn connect(spec: &JobSpec, cx: &Cx<'_>) -> Result<Self> {
        cx.counters.set_phase(Phase::Connecting);
        let (Ends::Push { host, .. } | Ends::Pull { host, .. }) = ends(spec)?;
        let stop = || cx.cancel.is_set();
        let mut may_upload = |bytes| {
            let question = QuestionKind::UploadAgent {
                host: host.name.clone(),
                bytes,
            };
            matches!(cx.people.ask(question), Answer::Yes(true))
        };
        let ssh = &spec.settings.ssh;
        let mut channel = start_agent(&host, ssh, &mut may_upload, &stop)?;
        let mut hello = read_hello(&mut channel, &host, cx)?;
        if channel.found == AgentFound::InPath && level::agree(hello.oldest, hello.newest).is_err()
        {
            // One that is installed there is of another age; ours can go beside it.
            drop(channel);
            channel = start_own_agent(&host, ssh, &mut may_upload, &stop)?;
            hello = read_hello(&mut channel, &host, cx)?;
        }
        let level = level::agree(hello.oldest, hello.newest)?;
        let (agent, at) = (format!("agent {}", hello.version), &host.name);
        cx.people.note(match channel.found {
            AgentFound::InPath => format!("Using {agent}, which is installed on {at}"),
            AgentFound::Cached => format!("Using {agent}, which an earlier job copied to {at}"),
            AgentFound::Uploaded => format!("Copied {agent} to {at}"),
        });
        let AgentChannel {
            child,
            input,
            output,
            stderr,
            ..
        } = channel;
        Ok(Self {
            spec: spec.clone(),
            forbidden: forbidden(spec, &host, cx.people),
            host,
            child,
            stderr,
            output,
            control: Arc::new(ControlWriter::new(input)),
            level,
            arrived: Arrived::parse(&hello.connection),
            route: (Route::Ssh, String::new()),
        })
    }

    /// Runs once, for real or dry.
    fn once(&mut self, cx: &Cx<'_>, dry_run: bool) -> Result<(PlanTotals, Tally)> {
        let abort = Abort::default();
        let done = Latch::default();
        let collector = Collector::new(cx, dry_run);
        // The agent's own words keep a run alive whose disk is slow.
        let busy = AtomicBool::new(false);
        let killer = self.child.killer();
        abort.on_stop(move |_| killer.kill());
        let push = matches!(ends(&self.spec)?, Ends::Push { .. });
        let control = self.control.clone();
        let result = std::thread::scope(|scope| {
            let (abort, done, collector, busy) = (&abort, &done, &collector, &busy);
            let control = &*control;
            abort.thread(scope, "watch".into(), move || {
                watch(
                    cx,
                    abort,
                    done,
                    collector,
                    (!push && !dry_run).then_some(control),
                    busy,
                )
            });
            let result = self.serve(cx, dry_run, collector, abort);
            done.set();
            result
        });
        let counts = collector.finish();
        // What ended the run first counts, not what that led to.
        match (abort.result(), result) {
            (Ok(()), Ok(())) => Ok(counts),
            (Err(error), _) | (Ok(()), Err(error)) => Err(self.explain(error)),
        }
    }

    /// Puts ssh's own words to a channel that broke.
    fn explain(&mut self, error: Error) -> Error {
        if error.kind != ErrorKind::Disconnected {
            return error;
        }
        let words = why_ended(
            &mut self.child,
            &self.stderr,
            &self.host,
            "go on with the transfer",
        );
        let lost = match words.kind {
            ErrorKind::Login | ErrorKind::HostKey => return words,
            // What ended the run had ssh killed: that says nothing about why.
            _ if self.child.was_killed() => error.beside(&self.host.name),
            _ => Error {
                kind: ErrorKind::Disconnected,
                ..words
            },
        };
        lost.hint("look at the network and at the other computer; parts that arrived are kept")
    }

    fn serve(
        &mut self,
        cx: &Cx<'_>,
        dry_run: bool,
        collector: &Collector<'_>,
        abort: &Abort,
    ) -> Result<()> {
        let terms = Terms::of(&self.spec.settings, cx.conflict, self.spec.resume, dry_run);
        let settings = self.spec.settings.clone();
        let key = JobKey(random()?);
        cx.counters.set_phase(if dry_run {
            Phase::Planning
        } else {
            Phase::Connecting
        });
        let plain = !dry_run && self.forbidden.is_none();
        let streams = if plain { streams(&self.spec)? } else { 1 };
        let both = ends(&self.spec)?;
        // The local side is opened before the other one hears of anything.
        let landing = match &both {
            Ends::Pull {
                sources,
                destination,
                ..
            } => {
                let found = Destination::find(
                    destination,
                    sources.len() as u64,
                    settings.contents,
                    self.spec.resume.then_some(&self.spec.id.0),
                )?;
                Some((found.open(dry_run)?, found.top))
            }
            Ends::Push { .. } => None,
        };
        let role = match &both {
            Ends::Push {
                sources,
                destination,
                ..
            } => Role::Receive {
                destination: destination.clone(),
                sources: sources.len() as u64,
                contents: settings.contents,
            },
            Ends::Pull { sources, .. } => Role::Send {
                sources: sources.clone(),
                contents: settings.contents,
                rules: settings.rules.clone(),
                top: landing
                    .as_ref()
                    .and_then(|l| l.1.clone())
                    .unwrap_or_default(),
            },
        };
        self.control.send(&Message::Start(Box::new(Start {
            level: self.level,
            job: self.spec.id.0,
            key: key.0,
            streams,
            listen: plain,
            ports: ports(&self.spec)?,
            role,
            terms,
        })))?;
        let control = self.control.clone();
        let mut from = ControlReader::new(&mut self.output).of_host(&self.host.name);
        let (listening, top) = match from.next()? {
            Message::Ready(listening, top) => (listening, top),
            Message::Fail(error) => return Err(error),
            _ => return Err(broken("a message came that has no place here")),
        };
        let mut links = Vec::new();
        if !dry_run {
            let ways = Ways {
                typed: &self.host.name,
                data_host: settings
                    .options
                    .get("data-host")
                    .filter(|host| !host.is_empty()),
                arrived: self.arrived.as_ref(),
                forbidden: self.forbidden.as_deref(),
                streams,
                key: &key,
                stop: &|| cx.cancel.is_set(),
            };
            let opened: Opened = ways.open(&listening, &mut from, &control)?;
            if opened.route != Route::Direct {
                cx.people.note(match opened.route {
                    Route::Reversed => {
                        format!("the other side connected to this one: {}", opened.why)
                    }
                    _ => format!("data goes through ssh: {}", opened.why),
                });
            }
            self.route = (opened.route, opened.why);
            links = opened.links;
            cx.counters.set_phase(Phase::Planning);
        }
        match both {
            Ends::Push { sources, .. } => {
                let filter = source::filter(&settings.rules)?;
                let (sources, troubles) = source::open_all(&sources, settings.contents);
                for (path, error) in troubles {
                    crate::pump::report::Observer::trouble(collector, &path, &error);
                }
                let outs = match (dry_run, links.is_empty()) {
                    (true, _) => Vec::new(),
                    (false, true) => vec![Out::Channel(control.clone())],
                    (false, false) => links.into_iter().map(Out::Tcp).collect(),
                };
                let throttle = Throttle::new(cx.limit.clone(), cx.paused.clone());
                let run = SendRun {
                    sources: &sources,
                    filter: &filter,
                    top: (!top.is_empty()).then_some(&top[..]),
                    terms,
                    control,
                    outs,
                    throttle: &throttle,
                    counters: cx.counters,
                    observer: collector,
                    abort,
                };
                run.run(&mut from)
            }
            Ends::Pull { sources, .. } => {
                let top = landing.as_ref().and_then(|l| l.1.clone());
                let allowed = asked_for(&sources, settings.contents, top);
                let (root, named) =
                    landing.map_or((None, false), |(root, top)| (root, top.is_some()));
                let run = ReceiveRun {
                    root,
                    named,
                    allowed,
                    job: self.spec.id.0,
                    terms,
                    control,
                    links,
                    counters: cx.counters,
                    observer: collector,
                    abort,
                };
                run.run(&mut from)
            }
        }
    }
}

impl Session for TcpSession {
    fn plan(&mut self, cx: &Cx<'_>) -> Result<PlanTotals> {
        self.once(cx, true).map(|(totals, _)| totals)
    }

    fn run(&mut self, cx: &Cx<'_>) -> Result<Tally> {
        self.once(cx, false).map(|(_, tally)| tally)
    }

    fn route(&self) -> (Route, String) {
        self.route.clone()
    }
}

/// Returns the first components that the other side may send; `None` where they cannot be known:
/// a folder's contents, or a path such as `.` whose name only the other side can tell.
fn asked_for(
    sources: &[Vec<u8>],
    contents: bool,
    top: Option<Vec<u8>>,
) -> Option<HashSet<Vec<u8>>> {
    if contents {
        return None;
    }
    if let Some(top) = top {
        return Some(HashSet::from([top]));
    }
    let name = |source: &Vec<u8>| -> Option<Vec<u8>> {
        // A slash at the end follows a link, and the name is then that of its target.
        match source.rsplit(|b| *b == b'/').next()? {
            b"" | b"." | b".." | b"~" => None,
            name => Some(name.to_vec()),
        }
    };
    sources.iter().map(name).collect()
}

/// Reads what the agent says first.
fn read_hello(channel: &mut AgentChannel, host: &Host, cx: &Cx<'_>) -> Result<Hello> {
    let (said, killer) = (Latch::default(), channel.child.killer());
    std::thread::scope(|scope| {
        let guard = || {
            // The agent has just written its first line; the next follows at once or never.
            let until = Instant::now() + HELLO;
            while !said.wait(Duration::from_millis(50)) {
                if cx.cancel.is_set() || Instant::now() > until {
                    killer.kill();
                    return;
                }
            }
        };
        let guard = std::thread::Builder::new()
            .name("hello".into())
            .spawn_scoped(scope, guard);
        let hello = hear_hello(channel, host);
        said.set();
        cx.cancel.check()?;
        guard.map_err(|e| Error::io("start a thread", &e))?;
        hello
    })
}

fn hear_hello(channel: &mut AgentChannel, host: &Host) -> Result<Hello> {
    match ControlReader::new(&mut channel.output).next() {
        Ok(Message::Hello(hello)) => Ok(hello),
        Ok(_) => Err(broken("the agent did not say hello")),
        Err(_) => Err(why_ended(
            &mut channel.child,
            &channel.stderr,
            host,
            "start the agent",
        )),
    }
}

/// Returns why plain TCP may not be used for this job: it needs the user's word, which naming the
/// method by hand is.
fn forbidden(spec: &JobSpec, host: &Host, people: &dyn Ask) -> Option<String> {
    if spec.dry_run {
        // Names travel inside ssh, and no contents are sent.
        return None;
    }
    match spec.settings.encrypt {
        Encrypt::Always => return Some("encryption was asked for".to_owned()),
        Encrypt::Never => return None,
        Encrypt::Auto => {}
    }
    if spec.consent.plain_tcp || matches!(spec.settings.method, MethodChoice::Named(_)) {
        return None;
    }
    let question = QuestionKind::PlainTcp {
        host: host.name.clone(),
    };
    match people.ask(question) {
        Answer::Yes(true) => None,
        _ => Some(
            "plain TCP can be read by others on that network, and nobody allowed it".to_owned(),
        ),
    }
}
