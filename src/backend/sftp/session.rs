//! One sftp server on one host, and the runs that it serves.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::backend::collect::Collector;
use crate::backend::contract::Session;
use crate::backend::cx::Cx;
use crate::backend::ends::{Ends, ends};
use crate::backend::sftp::USE;
use crate::backend::sftp::channel::Channel;
use crate::backend::sftp::far::Landing;
use crate::backend::sftp::pull::Pull;
use crate::backend::sftp::push::Push;
use crate::backend::watch::watch;
use crate::model::error::{ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::outcome::{Route, Tally};
use crate::model::plan::PlanTotals;
use crate::model::progress::Phase;
use crate::pump::abort::Abort;
use crate::pump::destination::Destination;
use crate::pump::latch::Latch;
use crate::pump::report::Observer as _;
use crate::pump::source;
use crate::wire::message::Terms;

/// How long a cancelled run has to remove its parts before the connection is cut.
const GRACE: Duration = Duration::from_millis(500);

/// A running server.
pub(super) struct SftpSession {
    spec: JobSpec,
    ends: Ends,
    channel: Channel,
}

impl SftpSession {
    /// Logs in and starts the server.
    pub fn connect(spec: &JobSpec, cx: &Cx<'_>) -> Result<Self> {
        cx.counters.set_phase(Phase::Connecting);
        let ends = ends(spec, USE)?;
        let channel = Channel::connect(ends.host(), &spec.settings.ssh, cx)?;
        Ok(Self {
            spec: spec.clone(),
            ends,
            channel,
        })
    }

    fn once(&mut self, cx: &Cx<'_>, dry_run: bool) -> Result<(PlanTotals, Tally)> {
        cx.counters.set_phase(Phase::Planning);
        let (abort, done) = (Abort::default(), Arc::new(Latch::default()));
        let (collector, busy) = (Collector::new(cx, dry_run), AtomicBool::new(false));
        let (killer, ended) = (self.channel.killer(), done.clone());
        let parts_there = matches!(self.ends, Ends::Push { .. });
        abort.on_stop(move |error| {
            if error.kind == ErrorKind::Cancelled && parts_there {
                ended.wait(GRACE);
            }
            killer.kill();
        });
        let result = std::thread::scope(|scope| {
            let (abort, done, collector, busy) = (&abort, &*done, &collector, &busy);
            abort.thread(scope, "watch".into(), move || {
                watch(cx, abort, done, collector, None, busy)
            });
            let result = self.serve(cx, dry_run, collector, abort, busy);
            done.set();
            result
        });
        let counts = collector.finish();
        // What ended the run first counts, not what that led to.
        match (abort.result(), result) {
            (Ok(()), Ok(())) => Ok(counts),
            (Err(error), _) | (Ok(()), Err(error)) => Err(self.channel.explain(error)),
        }
    }

    fn serve(
        &mut self,
        cx: &Cx<'_>,
        dry_run: bool,
        collector: &Collector<'_>,
        abort: &Abort,
        busy: &AtomicBool,
    ) -> Result<()> {
        let settings = &self.spec.settings;
        let terms = Terms::of(settings, cx.conflict, self.spec.resume, dry_run);
        let filter = source::filter(&settings.rules)?;
        let resumed = self.spec.resume.then_some(&self.spec.id.0);
        self.channel.ask_limits()?;
        match &self.ends {
            Ends::Push {
                sources,
                destination,
                ..
            } => {
                let landing = Landing::find(
                    &mut self.channel,
                    destination,
                    sources.len(),
                    settings,
                    resumed,
                )?;
                if terms.durable && !dry_run && !self.channel.offers("fsync@openssh.com") {
                    cx.people.note(
                        "this server cannot flush files: they may be lost in a power cut shortly \
                         after"
                            .to_owned(),
                    );
                }
                let (sources, troubles) = source::open_all(sources, settings.contents);
                for (path, error) in troubles {
                    collector.trouble(&path, &error);
                }
                let push = Push {
                    cx,
                    collector,
                    abort,
                    busy,
                    terms,
                    job: self.spec.id.0,
                    sources: &sources,
                    filter: &filter,
                    landing,
                };
                push.run(&mut self.channel)
            }
            Ends::Pull {
                sources,
                destination,
                ..
            } => {
                let found = Destination::find(
                    destination,
                    sources.len() as u64,
                    settings.contents,
                    resumed,
                )?;
                let pull = Pull {
                    cx,
                    collector,
                    abort,
                    busy,
                    terms,
                    job: self.spec.id.0,
                    sources,
                    contents: settings.contents,
                    filter: &filter,
                    root: found.open(dry_run)?,
                    top: found.top,
                };
                pull.run(&mut self.channel)
            }
        }
    }
}

impl Session for SftpSession {
    fn plan(&mut self, cx: &Cx<'_>) -> Result<PlanTotals> {
        self.once(cx, true).map(|(totals, _)| totals)
    }

    fn run(&mut self, cx: &Cx<'_>) -> Result<Tally> {
        self.once(cx, false).map(|(_, tally)| tally)
    }

    fn route(&self) -> (Route, String) {
        (Route::Ssh, "data goes through ssh".to_owned())
    }
}
