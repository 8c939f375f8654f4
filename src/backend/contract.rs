//! The contract of all methods: say what you can, connect, plan, run.

use crate::backend::cx::Cx;
use crate::model::error::Result;
use crate::model::job::JobSpec;
use crate::model::options::OptionSpec;
use crate::model::outcome::{Route, Tally};
use crate::model::plan::PlanTotals;

/// What a method can do, asked before and never learnt from failing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// An interrupted file goes on where it stopped.
    pub resume: bool,
    /// Only differences are sent.
    pub delta: bool,
    /// Nobody on the network can read the data.
    pub encrypted: bool,
    /// The other side can take digests.
    pub remote_digest: bool,
    /// Several connections.
    pub parallel: bool,
    /// The other side needs the agent.
    pub needs_agent: bool,
}

/// A method. Stateless; one value for ever.
pub trait Backend: Sync {
    /// Returns the short name used on the command line and in profiles.
    fn id(&self) -> &'static str;
    /// Returns the name that people see.
    fn title(&self) -> &'static str;
    /// Returns one sentence: what it is good for.
    fn about(&self) -> &'static str;
    /// Returns what it can do.
    fn caps(&self) -> Caps;
    /// Returns the options of its own.
    fn options(&self) -> &'static [OptionSpec];
    /// Says whether it can do this job at all, judged by the locations and settings alone.
    ///
    /// # Errors
    /// `Unsupported` or `Config`, with what to change.
    fn supports(&self, spec: &JobSpec) -> Result<()>;
    /// Logs in and gets ready. Blocks; ends within its deadlines and on cancel.
    ///
    /// # Errors
    /// What kept it from connecting.
    fn connect(&self, spec: &JobSpec, cx: &Cx<'_>) -> Result<Box<dyn Session>>;
}

/// A live connection of one job. Its calls block and own the thread they run on.
pub trait Session: Send {
    /// Lists both sides and gives a step an item to `cx.rows`; writes nothing anywhere.
    ///
    /// # Errors
    /// What ended it; single items that cannot be read are rows instead.
    fn plan(&mut self, cx: &Cx<'_>) -> Result<PlanTotals>;
    /// Does the work and gives a row an item to `cx.rows`. May follow `plan` on the same session
    /// (after a question about conflicts): the counters are at zero again by then.
    ///
    /// # Errors
    /// What ended it; single items that failed are rows instead.
    fn run(&mut self, cx: &Cx<'_>) -> Result<Tally>;
    /// Returns the way the data goes, and why that way.
    fn route(&self) -> (Route, String);
}
