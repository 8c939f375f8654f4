//! What the window knows. [`State::apply`] takes what others report and is pure: no clock, no
//! disk, no engine; what has to be done as a consequence comes back as wishes.

mod nouns;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use egui::{Pos2, Rect};

use crate::engine::{JobView, RowFilter, Totals};
use crate::model::drop::{DropEvent, DroppedItem};
use crate::model::error::Error;
use crate::model::event::{Answer, Event, EventKind, QuestionKind};
use crate::model::job::{Consent, JobId};
use crate::model::outcome::{Abort, Outcome};
use crate::model::profile::{Profile, ProfileId};
use crate::model::untrusted::{Untrusted, shown};
use crate::present::text::{error_block, outcome, sentence};
use crate::present::units::counted;
use crate::store::profiles::name_fault;
use crate::ui::draft::Draft;
use crate::ui::parts::browse::OwnPicker;
use crate::ui::parts::{drop_zone, job_row};
use crate::ui::ports::{Done, LibraryNews, Look, Pick, Picked, Run, Settings, ShelfItem};
use crate::ui::wish::{JobDeed, Wish};

pub use nouns::{Browse, Dialog, Drag, Focus, Seen, Subject, Tab, Target, Toast, Tone};

/// Everything that the window knows.
#[derive(Default)]
pub struct State {
    /// The window's clock, in seconds.
    pub now: f64,
    /// Seconds since 1970, for "2 h ago".
    pub wall: i64,
    /// Where the window's contents are, in points.
    pub area: Option<Rect>,
    /// Pixels a point.
    pub scale: f32,
    /// Light or dark.
    pub look: Look,
    /// All profiles in order.
    pub shelf: Vec<ShelfItem>,
    /// They were read at least once.
    pub loaded: bool,
    /// Which of them is edited.
    pub selected: Option<ProfileId>,
    /// The one that is edited.
    pub draft: Option<Draft>,
    /// The search text.
    pub search: String,
    /// A profile is being made, which will be selected; the one that is selected now is not meant.
    pub making: bool,
    /// Which field is to get the keyboard.
    pub focus: Option<Focus>,
    /// The jobs in the order of the list.
    pub jobs: Arc<Vec<JobView>>,
    /// Where the queue's cards are in `jobs`: those that are not over, then those that ended, the
    /// one that ended last first.
    pub rows: Vec<usize>,
    /// A job that the queue is to scroll to; `true`: once it is not over.
    pub sought_job: Option<(JobId, bool)>,
    /// A profile that the list is to scroll to.
    pub sought_profile: Option<ProfileId>,
    /// Sums over all jobs.
    pub totals: Totals,
    /// Which of them, or of the runs, is looked at; `None` means all of them.
    pub job: Option<JobId>,
    /// A job that was queued and is in no snapshot yet.
    pub queued: Option<JobId>,
    /// The first snapshot of the jobs came.
    pub began: bool,
    /// The page.
    pub tab: Tab,
    /// The filter of the verification page.
    pub filter: RowFilter,
    /// What the verification page showed last.
    pub seen_rows: Seen,
    /// What the plan page showed last.
    pub seen_steps: Seen,
    /// The runs that ended, newest first.
    pub runs: Vec<Run>,
    /// The last run of each profile.
    pub last_runs: BTreeMap<ProfileId, Run>,
    /// What the user allowed for good, by host.
    pub hosts: BTreeMap<String, Consent>,
    /// The profile that was selected when the program ended.
    pub last: Option<ProfileId>,
    /// Remember the answer that is being given.
    pub remember: bool,
    /// What is dragged over the window.
    pub drag: Option<Drag>,
    /// Questions that were answered and that their jobs may still show.
    pub answered: BTreeSet<(JobId, u64)>,
    /// Dialogs; the first is shown.
    pub dialogs: Vec<Dialog>,
    /// Notes in the corner, oldest first.
    pub toasts: Vec<Toast>,
    /// Who waits for a file or folder.
    pub browsing: Option<(Browse, Pick)>,
    /// The window's own dialog for files, while it is open.
    pub own_picker: Option<OwnPicker>,
    /// The user's home folder, where that dialog begins.
    pub home: PathBuf,
    /// The program ends.
    pub quitting: bool,
    next_toast: u64,
    /// Numbers those jobs that ended in the order in which they did.
    endings: BTreeMap<JobId, usize>,
}

/// What others report to the window.
#[derive(Debug)]
pub enum News {
    /// The library said something.
    Library(LibraryNews),
    /// The jobs as they are now.
    Jobs(Arc<Vec<JobView>>, Totals),
    /// The engine reported something.
    Event(Event),
    /// Something is dragged.
    Drag(DropEvent),
    /// A chore ended.
    Done(Done),
    /// Something was picked.
    Picked(Picked),
}

impl State {
    /// Takes in what others report; returns what is to be done about it.
    pub fn apply(&mut self, news: News) -> Vec<Wish> {
        let mut wishes = Vec::new();
        match news {
            News::Library(news) => self.library(news, &mut wishes),
            News::Jobs(jobs, totals) => self.take_jobs(jobs, totals, &mut wishes),
            News::Event(event) => self.event(event, &mut wishes),
            News::Drag(event) => self.dragged(event, &mut wishes),
            News::Done(Done::Looked(items, target)) => self.looked(items, target, &mut wishes),
            News::Done(Done::ListSaved(Ok((lines, path)))) => {
                let path = Untrusted::from(&*path);
                let text = format!("Saved {} to {path}", counted(lines, "line", "lines"));
                self.toast(text, Tone::Good, None);
            }
            News::Done(Done::ListSaved(Err(error))) => self.complain(&error),
            News::Done(Done::Listed(folder, items)) => {
                if let Some(picker) = &mut self.own_picker {
                    picker.listed(&folder, items);
                }
            }
            News::Picked(Picked::Unavailable) => {
                if let Some((_, pick)) = self.browsing {
                    // Without a home folder the root is a place as good as any.
                    let folder = Path::new("/").join(&self.home);
                    self.own_picker = Some(OwnPicker::open(pick, &folder));
                    wishes.push(Wish::List(folder));
                }
            }
            News::Picked(Picked::Paths(paths)) => wishes.push(Wish::Picked(paths)),
        }
        wishes
    }

    fn take_jobs(&mut self, jobs: Arc<Vec<JobView>>, totals: Totals, wishes: &mut Vec<Wish>) {
        if !self.began {
            // The engine brings back what ended before; the queue keeps what can go on, the
            // history has the rest.
            self.began = true;
            let over = jobs.iter().filter(|job| match &job.end {
                Some((Outcome::Aborted(why), _)) => *why == Abort::User,
                Some(_) => true,
                None => false,
            });
            wishes.extend(over.map(|job| Wish::Job(job.spec.id, JobDeed::Remove)));
        }
        self.totals = totals;
        self.jobs = jobs;
        self.arrange();
        let known = |id| self.jobs.iter().any(|job| job.spec.id == id) || self.run(id).is_some();
        if !self.job.is_some_and(known) {
            // A job that was just queued is in the next snapshot.
            self.job = self.job.filter(|id| self.queued == Some(*id));
        } else if self.job == self.queued {
            self.queued = None;
        }
        self.standing_answers(wishes);
    }

    /// Puts the queue's cards in order.
    fn arrange(&mut self) {
        let mut next = self.endings.values().max().map_or(0, |last| last + 1);
        let mut endings = BTreeMap::new();
        for job in self.jobs.iter().filter(|job| job.end.is_some()) {
            let id = job.spec.id;
            let place = self.endings.get(&id).copied().unwrap_or_else(|| {
                next += 1;
                next - 1
            });
            endings.insert(id, place);
        }
        self.endings = endings;
        let mut rows: Vec<usize> = (0..self.jobs.len()).collect();
        rows.sort_by_key(|at| {
            let ended = self.endings.get(&self.jobs[*at].spec.id);
            ended.map(|place| Reverse(*place))
        });
        self.rows = rows;
    }

    /// Returns the card that the queue is to scroll to, if it is there.
    pub fn sought_row(&self) -> Option<usize> {
        let (id, live) = self.sought_job?;
        self.rows.iter().position(|at| {
            let job = &self.jobs[*at];
            job.spec.id == id && !(live && job.end.is_some())
        })
    }

    fn library(&mut self, news: LibraryNews, wishes: &mut Vec<Wish>) {
        match news {
            LibraryNews::Profiles(shelf) => {
                self.shelf = shelf;
                self.follow_disk();
                let known = |id: &ProfileId| self.profile(id).is_some();
                if !self.selected.as_ref().is_some_and(known) {
                    self.selected = None;
                    self.draft = None;
                    let last = self.last.as_ref().and_then(|id| self.profile(id));
                    if let Some(one) = last.or_else(|| self.profiles().next()) {
                        wishes.push(Wish::SelectProfile(one.id.clone()));
                    }
                }
                self.loaded = true;
            }
            LibraryNews::Restored(id) => wishes.push(Wish::SelectProfile(id)),
            LibraryNews::Made(id) => {
                self.making = false;
                wishes.push(Wish::SelectProfile(id));
                self.focus = Some(Focus::Name);
                self.search.clear();
            }
            LibraryNews::Runs(runs) => {
                self.last_runs.clear();
                for run in &runs {
                    if let Some(profile) = &run.profile {
                        self.last_runs
                            .entry(profile.clone())
                            .or_insert_with(|| run.clone());
                    }
                }
                self.runs = runs;
            }
            LibraryNews::Settings(Settings { look, hosts, last }) => {
                self.look = look;
                self.hosts = hosts;
                self.last = last;
            }
            LibraryNews::Failed(error) => {
                self.making = false;
                self.complain(&error);
            }
        }
    }

    /// Holds the name that is typed against those of the other profiles.
    pub fn check_name(&mut self) {
        let Some(draft) = &self.draft else { return };
        let (id, name) = (&draft.profile.id, draft.profile.name.as_str());
        let kept = self.profile(id).is_some_and(|saved| saved.name == *name);
        let others = self.profiles().filter(|other| other.id != *id);
        let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        let fault = name_fault(name, &others).filter(|_| !kept);
        if let Some(draft) = &mut self.draft {
            draft.name_fault = fault;
        }
    }

    /// Returns a name for a new profile that no other has.
    pub fn new_name(&self) -> String {
        let names: Vec<&str> = self.profiles().map(|other| other.name.as_str()).collect();
        let numbered = (2u32..).map(|n| format!("New profile {n}"));
        std::iter::once("New profile".to_owned())
            .chain(numbered)
            .find(|name| name_fault(name, &names).is_none())
            .unwrap_or_default()
    }

    /// Takes over what another program changed in the profile that is edited, unless something
    /// was typed meanwhile.
    fn follow_disk(&mut self) {
        let edited = self.draft.as_ref().filter(|draft| draft.dirty.is_none());
        let Some(saved) = edited.and_then(|draft| self.profile(&draft.profile.id)) else {
            return;
        };
        if edited.is_some_and(|draft| draft.profile != **saved) {
            self.draft = Some(Draft::of(saved));
        }
    }

    fn event(&mut self, event: Event, wishes: &mut Vec<Wish>) {
        let EventKind::Finished(how, report) = event.kind else {
            return; // The rest is read from the jobs themselves.
        };
        wishes.push(Wish::ReadRuns);
        let Some(job) = self.jobs.iter().find(|job| job.spec.id == event.job) else {
            return;
        };
        if job.spec.dry_run && how == Outcome::Completed {
            return;
        }
        let (tone, tab) = match &how {
            Outcome::Completed => (Tone::Good, Tab::Verification),
            Outcome::Partial(_) => (Tone::Warn, Tab::Verification),
            Outcome::Aborted(Abort::User) => return,
            Outcome::Aborted(_) => (Tone::Warn, Tab::Log),
            Outcome::Refused(_) | Outcome::Failed(_) => (Tone::Bad, Tab::Queue),
        };
        let title = Untrusted::from(job.spec.title.as_str());
        let mut text = format!("{title}\n{}", outcome(&how, &report));
        if let Outcome::Refused(error) | Outcome::Failed(error) = &how {
            if let Some(hint) = &error.hint {
                text = format!("{text}\n{}", sentence(hint));
            }
        }
        let id = job.spec.id;
        let words = match tab {
            Tab::Verification => "Show files",
            Tab::Log => "Show log",
            _ => "Show job",
        };
        self.toast(text, tone, Some((words, Wish::ShowJob(id, tab))));
    }

    /// Returns what the user allowed for a host, for good.
    pub fn consent(&self, host: &str) -> Consent {
        self.hosts.get(host).copied().unwrap_or_default()
    }

    /// Answers what a person allowed for a host, for good.
    fn standing_answers(&mut self, wishes: &mut Vec<Wish>) {
        let jobs = Arc::clone(&self.jobs);
        self.answered.retain(|(id, question)| {
            jobs.iter().any(|job| {
                job.spec.id == *id && job.question.as_ref().is_some_and(|q| q.id == *question)
            })
        });
        for job in jobs.iter().filter(|job| job.end.is_none()) {
            let Some(question) = &job.question else {
                continue;
            };
            let allowed = match &question.kind {
                QuestionKind::UploadAgent { host, .. } => self.consent(host).upload_agent,
                QuestionKind::PlainTcp { host } => self.consent(host).plain_tcp,
                QuestionKind::Conflicts { .. } => false,
            };
            if allowed && !self.answered.contains(&(job.spec.id, question.id)) {
                wishes.push(Wish::Answer {
                    job: job.spec.id,
                    question: question.id,
                    kind: question.kind.clone(),
                    answer: Answer::Yes(true),
                    remember: false,
                });
            }
        }
    }

    fn dragged(&mut self, event: DropEvent, wishes: &mut Vec<Wish>) {
        let scale = if self.scale > 0.0 { self.scale } else { 1.0 };
        let point = |(x, y): (i32, i32)| Pos2::new(x as f32 / scale, y as f32 / scale);
        match event {
            DropEvent::Hover { position, count } => {
                self.drag = Some(Drag {
                    position: Some(point(position)),
                    count,
                });
            }
            DropEvent::Leave => self.drag = None,
            DropEvent::Dropped { position, items } => {
                self.drag = None;
                let target = drop_zone::target(self, Some(point(position)));
                self.looked(items, target, &mut *wishes);
            }
        }
    }

    fn looked(&mut self, items: Vec<DroppedItem>, target: Target, wishes: &mut Vec<Wish>) {
        let mut paths = Vec::with_capacity(items.len());
        let mut refused = Vec::new();
        for item in items {
            match item {
                DroppedItem::Path(path) => paths.push(path),
                DroppedItem::Refused { text, why } => refused.push((text, why)),
            }
        }
        if !refused.is_empty() {
            self.dialogs.push(Dialog::Refused {
                items: refused,
                taken: paths.len(),
            });
        }
        if !paths.is_empty() {
            wishes.push(Wish::Send(paths, target));
        }
    }

    /// Returns the profiles that can be used, in order.
    pub fn profiles(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.shelf.iter().filter_map(|item| match item {
            ShelfItem::Ready(profile) => Some(profile),
            ShelfItem::Damaged(_) => None,
        })
    }

    /// Returns a profile as it was saved last.
    pub fn profile(&self, id: &ProfileId) -> Option<&Arc<Profile>> {
        self.profiles().find(|profile| profile.id == *id)
    }

    /// Returns the job that is looked at; else the newest one, unless a run is looked at.
    pub fn shown_job(&self) -> Option<&JobView> {
        match self.job {
            Some(id) => self.jobs.iter().find(|job| job.spec.id == id),
            None => self.jobs.last(),
        }
    }

    /// Returns a run that ended.
    pub fn run(&self, id: JobId) -> Option<&Run> {
        self.runs.iter().find(|run| run.job == id)
    }

    /// Returns what the pages tell of.
    pub fn subject(&self) -> Option<Subject> {
        if let Some(job) = self.shown_job() {
            let title = job_row::title(job);
            return Some(Subject {
                id: job.spec.id,
                title,
                plan: job.plan,
            });
        }
        let run = self.job.and_then(|id| self.run(id))?;
        let title = shown(run.title.as_bytes());
        Some(Subject {
            id: run.job,
            title,
            plan: None,
        })
    }

    /// Returns the first job that waits for an answer.
    pub fn question(&self) -> Option<&JobView> {
        self.jobs.iter().find(|job| {
            let open = job.question.as_ref().filter(|_| job.end.is_none());
            open.is_some_and(|q| !self.answered.contains(&(job.spec.id, q.id)))
        })
    }

    /// Shows a note in the corner.
    pub fn toast(&mut self, text: String, tone: Tone, button: Option<(&'static str, Wish)>) {
        /// Long enough to read a sentence and to reach the button.
        const SECONDS: f64 = 10.0;
        /// More would cover the window; the history has all of them.
        const MOST: usize = 4;
        self.next_toast += 1;
        self.toasts.push(Toast {
            id: self.next_toast,
            text,
            tone,
            until: self.now + SECONDS,
            button,
        });
        if self.toasts.len() > MOST {
            self.toasts.remove(0);
        }
    }

    /// Shows an error in the corner.
    pub fn complain(&mut self, error: &Error) {
        self.toast(error_block(error), Tone::Bad, None);
    }

    /// Shows a reason in the corner as a sentence.
    pub fn remark(&mut self, text: &str) {
        self.toast(sentence(text), Tone::Plain, None);
    }
}
