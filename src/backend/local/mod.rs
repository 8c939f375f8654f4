//! Method `local`: between folders of this computer, mounted disks and shares included.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::backend::collect::Collector;
use crate::backend::contract::{Backend, Caps, Session};
use crate::backend::cx::Cx;
use crate::backend::watch::watch;
use crate::model::error::{Error, ErrorKind, Result};
use crate::model::job::JobSpec;
use crate::model::options::OptionSpec;
use crate::model::outcome::{Route, Tally};
use crate::model::plan::PlanTotals;
use crate::model::progress::Phase;
use crate::pump::abort::Abort;
use crate::pump::destination::Destination;
use crate::pump::direct::DirectRun;
use crate::pump::latch::Latch;
use crate::pump::limit::Throttle;
use crate::pump::report::Observer as _;
use crate::pump::source;
use crate::wire::message::Terms;

/// The method.
pub struct Local;

impl Backend for Local {
    fn id(&self) -> &'static str {
        "local"
    }

    fn title(&self) -> &'static str {
        "Local copy"
    }

    fn about(&self) -> &'static str {
        "Between folders of this computer, mounted disks and shares included"
    }

    fn caps(&self) -> Caps {
        Caps {
            resume: true,
            delta: false,
            encrypted: true,
            remote_digest: true,
            parallel: false,
            needs_agent: false,
        }
    }

    fn options(&self) -> &'static [OptionSpec] {
        &[]
    }

    fn supports(&self, spec: &JobSpec) -> Result<()> {
        let unsupported = |cause: &str, hint: &str| {
            Err(Error::new(ErrorKind::Unsupported, "copy on this computer", cause).hint(hint))
        };
        if spec.sources.is_empty() {
            return unsupported("there is no source", "add a file or folder to copy");
        }
        if !spec.destination.is_local() || spec.sources.iter().any(|s| !s.is_local()) {
            return unsupported(
                "one side is on another computer",
                "use the method auto, or tcp, rsync or sftp",
            );
        }
        Ok(())
    }

    fn connect(&self, spec: &JobSpec, cx: &Cx<'_>) -> Result<Box<dyn Session>> {
        self.supports(spec)?;
        cx.counters.set_phase(Phase::Planning);
        Ok(Box::new(LocalSession { spec: spec.clone() }))
    }
}

struct LocalSession {
    spec: JobSpec,
}

impl LocalSession {
    fn once(&self, cx: &Cx<'_>, dry_run: bool) -> Result<(PlanTotals, Tally)> {
        let settings = &self.spec.settings;
        let written: Vec<Vec<u8>> = self
            .spec
            .sources
            .iter()
            .map(|s| s.path().to_vec())
            .collect();
        let filter = source::filter(&settings.rules)?;
        let (sources, troubles) = source::open_all(&written, settings.contents);
        let found = Destination::find(
            self.spec.destination.path(),
            written.len() as u64,
            settings.contents,
            self.spec.resume.then_some(&self.spec.id.0),
        )?;
        for source in &sources {
            if source.start.is_none() {
                refuse_within(source.root.path(), &found.folder)?;
            }
        }
        let root = found.open(dry_run)?;
        let (abort, done) = (Abort::default(), Latch::default());
        let collector = Collector::new(cx, dry_run);
        for (path, error) in troubles {
            collector.trouble(&path, &error);
        }
        let throttle = Throttle::new(cx.limit.clone(), cx.paused.clone());
        let run = DirectRun {
            sources: &sources,
            filter: &filter,
            root,
            top: found.top.as_deref(),
            job: self.spec.id.0,
            terms: Terms::of(settings, cx.conflict, self.spec.resume, dry_run),
            throttle: &throttle,
            counters: cx.counters,
            observer: &collector,
            abort: &abort,
        };
        // Nobody here says that it waits for its disk; the phase does.
        let busy = AtomicBool::new(false);
        let result = std::thread::scope(|scope| {
            let (abort, done, collector, busy) = (&abort, &done, &collector, &busy);
            abort.thread(scope, "watch".into(), move || {
                watch(cx, abort, done, collector, None, busy)
            });
            let result = run.run();
            done.set();
            result
        });
        let counts = collector.finish();
        abort.result().and(result).map(|()| counts)
    }
}

impl Session for LocalSession {
    fn plan(&mut self, cx: &Cx<'_>) -> Result<PlanTotals> {
        cx.counters.set_phase(Phase::Planning);
        self.once(cx, true).map(|(totals, _)| totals)
    }

    fn run(&mut self, cx: &Cx<'_>) -> Result<Tally> {
        self.once(cx, false).map(|(_, tally)| tally)
    }

    fn route(&self) -> (Route, String) {
        (Route::Local, "both sides are on this computer".to_owned())
    }
}

/// Refuses to copy a folder into itself: it would grow for ever.
fn refuse_within(source: &Path, destination: &Path) -> Result<()> {
    let real = |path: &Path| -> PathBuf {
        // The part that exists decides; what is not there yet cannot be a link.
        for above in path.ancestors() {
            if let Ok(real) = std::fs::canonicalize(above) {
                return real.join(path.strip_prefix(above).unwrap_or(Path::new("")));
            }
        }
        path.to_path_buf()
    };
    if real(destination).starts_with(real(source)) {
        return Err(Error::new(
            ErrorKind::Unsupported,
            "copy the folder",
            "the destination lies inside it",
        )
        .at(destination)
        .hint("choose a destination outside the source"));
    }
    Ok(())
}
