//! Stand-ins for what the window stands on: an engine, a library, chores and a picker that do at
//! once what they are told and remember it.

#![allow(dead_code, reason = "each test uses its part")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use transload::engine::{Command, JobView, RowFilter, RowPage, Totals};
use transload::model::digest::{Algorithm, Digest};
use transload::model::drop::DroppedItem;
use transload::model::entry::{Action, EntryKind, Reason};
use transload::model::error::{Error, ErrorKind};
use transload::model::event::{Event, EventKind};
use transload::model::job::{Consent, JobId, JobSpec};
use transload::model::location::{Host, Location};
use transload::model::outcome::{Abort, Outcome, Report, Route, Tally};
use transload::model::plan::{PlanTotals, Step};
use transload::model::profile::{Profile, ProfileId, Settings};
use transload::model::progress::{Phase, Progress, RunState};
use transload::model::verdict::{Row, Verdict, When};
use transload::ui::parts::browse::FolderItem;
use transload::ui::ports::{
    self, Chore, Chores, Done, Jobs, Library, LibraryNews, Order, Pick, Picked, Picker, Ports, Run,
    ShelfItem,
};

/// What the fakes did and know; shared with the test.
#[derive(Default)]
pub struct World {
    /// What the engine was told.
    pub commands: Vec<Command>,
    /// The engine's jobs.
    pub jobs: Arc<Vec<JobView>>,
    /// The engine's events that were not fetched yet.
    pub events: VecDeque<Event>,
    /// How many rows each job has.
    pub rows: usize,
    /// The ranges of rows that were asked for.
    pub asked: Vec<Range<usize>>,
    /// How many steps each plan has.
    pub steps: usize,
    /// The settings.
    pub settings: ports::Settings,
    /// The profiles.
    pub shelf: Vec<ShelfItem>,
    /// The runs that ended.
    pub runs: Vec<Run>,
    /// What the library was told.
    pub orders: Vec<Order>,
    /// What the library has to say.
    pub news: VecDeque<LibraryNews>,
    /// Profiles that can be restored.
    pub deleted: Vec<ShelfItem>,
    /// Chores that were begun.
    pub chores: Vec<String>,
    /// Chores that ended.
    pub done: VecDeque<Done>,
    /// What was to be picked.
    pub picks: Vec<Pick>,
    /// What the next picks give.
    pub answers: VecDeque<Picked>,
    /// What was picked.
    pub picked: VecDeque<Picked>,
}

/// The world as test and fakes share it.
pub type Shared = Rc<RefCell<World>>;

/// Makes ports that all stand on one world.
pub fn ports(world: &Shared) -> Ports {
    Ports {
        jobs: Box::new(FakeJobs(Rc::clone(world))),
        library: Box::new(FakeLibrary(Rc::clone(world))),
        chores: Box::new(FakeChores(Rc::clone(world))),
        picker: Box::new(FakePicker(Rc::clone(world))),
    }
}

struct FakeJobs(Shared);

impl Jobs for FakeJobs {
    fn send(&self, command: Command) {
        let mut world = self.0.borrow_mut();
        let mut jobs = Vec::clone(&world.jobs);
        match &command {
            Command::Submit(spec) => jobs.push(job(JobSpec::clone(spec))),
            Command::Pause(id) => at(&mut jobs, *id, |job| job.state = RunState::Paused),
            Command::Resume(id) => at(&mut jobs, *id, |job| job.state = RunState::Running),
            Command::Cancel(id) => {
                let end = (Outcome::Aborted(Abort::User), Report::default());
                at(&mut jobs, *id, |job| {
                    job.state = RunState::Finished;
                    job.end = Some(end.clone());
                });
                let kind = EventKind::Finished(end.0, end.1);
                world.events.push_back(Event { job: *id, kind });
            }
            Command::Retry(id) => at(&mut jobs, *id, |job| {
                job.state = RunState::Queued;
                job.end = None;
            }),
            Command::Remove(id) => jobs.retain(|job| job.spec.id != *id),
            Command::Answer(id, ..) => at(&mut jobs, *id, |job| job.question = None),
            Command::Move(..) | Command::Limit(..) => {}
        }
        world.jobs = Arc::new(jobs);
        world.commands.push(command);
    }

    fn jobs(&self) -> Arc<Vec<JobView>> {
        Arc::clone(&self.0.borrow().jobs)
    }

    fn totals(&self) -> Totals {
        let world = self.0.borrow();
        let at_work = || {
            world
                .jobs
                .iter()
                .filter(|job| !matches!(job.state, RunState::Queued | RunState::Finished))
        };
        Totals {
            running: at_work().count(),
            paused: at_work()
                .filter(|job| job.state == RunState::Paused)
                .count(),
            queued: world
                .jobs
                .iter()
                .filter(|job| job.state == RunState::Queued)
                .count(),
            goodput: at_work().map(|job| job.goodput).sum(),
            eta: at_work().filter_map(|job| job.eta).reduce(f64::max),
            series: at_work()
                .next()
                .map(|job| Arc::clone(&job.series))
                .unwrap_or_default(),
            series_step: 0.5,
        }
    }

    fn rows(&self, _job: JobId, filter: &RowFilter, range: Range<usize>) -> RowPage {
        let mut world = self.0.borrow_mut();
        world.asked.push(range.clone());
        // Every eighth row has the same verdict, so that a filter has an eighth of them.
        let kinds = 8;
        let (total, kind) = match filter.verdict {
            None => (world.rows, None),
            Some(name) => {
                let kind = (0..kinds)
                    .find(|i| row(*i).verdict.name() == name)
                    .unwrap_or(0);
                (world.rows.div_ceil(kinds), Some(kind))
            }
        };
        let range = range.start.min(total)..range.end.min(total);
        let rows = range
            .clone()
            .map(|i| row(kind.map_or(i, |kind| i * kinds + kind)));
        RowPage {
            start: range.start,
            rows: Arc::new(rows.collect()),
            total,
        }
    }

    fn steps(&self, _job: JobId, range: Range<usize>) -> (Arc<Vec<Step>>, usize) {
        let total = self.0.borrow().steps;
        let range = range.start.min(total)..range.end.min(total);
        (Arc::new(range.map(step).collect()), total)
    }

    fn event(&mut self) -> Option<Event> {
        self.0.borrow_mut().events.pop_front()
    }
}

fn at(jobs: &mut [JobView], id: JobId, change: impl FnOnce(&mut JobView)) {
    if let Some(job) = jobs.iter_mut().find(|job| job.spec.id == id) {
        change(job);
    }
}

/// A job that waits for its turn.
pub fn job(spec: JobSpec) -> JobView {
    JobView {
        spec: Arc::new(spec),
        state: RunState::Queued,
        progress: Progress::default(),
        goodput: 0.0,
        eta: None,
        series: Arc::default(),
        series_step: 0.5,
        plan: None,
        question: None,
        log: Arc::default(),
        end: None,
    }
}

/// What a job of this title is to do.
pub fn spec(n: u8, title: &str) -> JobSpec {
    JobSpec {
        id: JobId([n; 16]),
        title: title.to_owned(),
        profile: None,
        sources: vec![Location::Local(b"/home/me/Pictures".to_vec())],
        destination: nas("/volume1/photo"),
        settings: Settings::default(),
        dry_run: false,
        attended: true,
        consent: Consent::default(),
        resume: false,
    }
}

/// A place on a host called nas.
pub fn nas(path: &str) -> Location {
    let host = Host {
        name: "nas".to_owned(),
        ..Host::default()
    };
    Location::Ssh {
        host,
        path: path.as_bytes().to_vec(),
    }
}

/// A job in the middle of its work.
pub fn running(n: u8, title: &str) -> JobView {
    let mut job = job(spec(n, title));
    job.state = RunState::Running;
    job.goodput = 113_246_208.0;
    job.eta = Some(72.0);
    job.progress = Progress {
        bytes_done: 13_312 << 20,
        bytes_total: 21_504 << 20,
        items_done: 4_812,
        items_total: 7_105,
        wire_bytes: 13_400 << 20,
        warnings: 0,
        listed: true,
        phase: Phase::Transferring,
        current: "Pictures/2024/山の写真/IMG_0412.CR3".as_bytes().to_vec(),
    };
    let wave = |i: u16| {
        let x = f32::from(i) / 12.0;
        112e6
            * (1.0 - (-f32::from(i) / 6.0).exp())
            * (1.0 + 0.05 * x.sin() + 0.03 * (x * 3.1).cos())
    };
    job.log = Arc::new(vec![
        (
            0.3,
            "tcp: the helper is there, straight to port 40123 of nas".to_owned(),
        ),
        (
            71.0,
            "Failed to open the source file: permission denied \u{2014} a\u{1b}b".to_owned(),
        ),
    ]);
    job.series = Arc::new((0..240).map(wave).collect());
    job
}

/// A job that ended like this.
pub fn ended(n: u8, title: &str, outcome: Outcome) -> JobView {
    let mut job = running(n, title);
    job.state = RunState::Finished;
    job.end = Some((outcome, report()));
    job
}

/// The figures of a good run.
pub fn report() -> Report {
    Report {
        files: 7_105,
        bytes: 61_027_123,
        wire_bytes: 61_900_000,
        kept: 0,
        seconds: 0.9,
        connect_seconds: 0.3,
        method: "tcp".to_owned(),
        route: Route::Direct,
        why: "the helper is there".to_owned(),
        tally: Tally {
            verified: 7_105,
            ..Tally::default()
        },
        missing: Some(0),
    }
}

/// A run that ended a while ago.
pub fn run(n: u8) -> Run {
    let outcome = match n % 4 {
        0 | 1 => Outcome::Completed,
        2 => Outcome::Partial(None),
        _ => Outcome::Failed(unreachable()),
    };
    Run {
        job: JobId([n; 16]),
        profile: Some(ProfileId(format!("{:08x}", 1 + n % 2))),
        title: "Photos".to_owned(),
        dry_run: false,
        ended: 1_700_000_000 - i64::from(n) * 7919,
        outcome,
        report: report(),
    }
}

/// A failure that says what to do.
pub fn unreachable() -> Error {
    Error::new(ErrorKind::Unreachable, "connect", "connection refused")
        .at("nas")
        .hint("check that the host is on and that its name is right")
}

/// The row of that number; names in many scripts, one of each verdict in turn.
pub fn row(i: usize) -> Row {
    const NAMES: [&str; 8] = [
        "photos/IMG_0412.CR3",
        "Grüße aus Köln.pdf",
        "日本語のファイル.txt",
        "evil\u{202e}fdp.exe",
        "a very long name that goes on and on and does not end before it is far too long.txt",
        "Русский файл.doc",
        "line\nbreak",
        "emoji 😀.png",
    ];
    let digest = |n: u8| Digest::new(Algorithm::Md5, &[n; 16]).expect("md5 has 16 bytes");
    let verdict = match i % 8 {
        0 => Verdict::Verified {
            digest: digest(i as u8),
            when: When::InFlight,
        },
        1 => Verdict::Verified {
            digest: digest(i as u8),
            when: When::ReadBack,
        },
        2 => Verdict::Differs {
            here: digest(1),
            there: digest(2),
        },
        3 => Verdict::SizeOnly,
        4 => Verdict::SourceChanged,
        5 => Verdict::Vanished,
        6 => Verdict::Skipped("both sides are the same".to_owned()),
        _ => Verdict::Failed(unreachable()),
    };
    Row {
        path: format!("{i:07} {}", NAMES[i % 8]).into_bytes(),
        action: Action::Create,
        bytes: (i as u64 * 7919) % 5_000_000,
        verdict,
    }
}

fn step(i: usize) -> Step {
    let (action, reason) = [
        (Action::Create, Reason::Missing),
        (Action::Update, Reason::Size),
        (Action::Touch, Reason::Mode),
        (Action::Delete, Reason::Extra),
        (Action::Keep, Reason::Same),
        (Action::Skip, Reason::Excluded),
    ][i % 6];
    Step {
        path: format!("folder/{i:07}").into_bytes(),
        kind: if i % 10 == 0 {
            EntryKind::Dir
        } else {
            EntryKind::File
        },
        action,
        reason,
        bytes: if i % 6 < 2 { i as u64 * 4096 } else { 0 },
    }
}

/// The counts of a plan of six steps a kind.
pub fn totals() -> PlanTotals {
    PlanTotals {
        create: 12,
        update: 3,
        touch: 1,
        delete: 0,
        keep: 10_000,
        skip: 2,
        conflicts: 2,
        bytes: 1 << 30,
    }
}

/// A profile that sends pictures to the host called nas.
pub fn profile(n: u32, name: &str) -> Profile {
    Profile {
        id: ProfileId(format!("{n:08x}")),
        name: name.to_owned(),
        sources: vec![Location::Local(b"/home/me/Pictures".to_vec())],
        destinations: vec![nas("/volume1/photo")],
        ..Profile::default()
    }
}

struct FakeLibrary(Shared);

impl Library for FakeLibrary {
    fn send(&mut self, order: Order) {
        let world = &mut *self.0.borrow_mut();
        let is =
            |item: &ShelfItem, id: &ProfileId| matches!(item, ShelfItem::Ready(p) if p.id == *id);
        let mut made = None;
        match &order {
            Order::Load => {
                world
                    .news
                    .push_back(LibraryNews::Settings(world.settings.clone()));
                world.news.push_back(LibraryNews::Runs(world.runs.clone()));
            }
            Order::Create(profile) => {
                let id = ProfileId(format!("{:08x}", 0xc0_0000 + world.orders.len()));
                let profile = Profile {
                    id: id.clone(),
                    ..Profile::clone(profile)
                };
                world.shelf.push(ShelfItem::Ready(Arc::new(profile)));
                made = Some(LibraryNews::Made(id));
            }
            Order::Save(profile) => {
                for item in &mut world.shelf {
                    if is(item, &profile.id) {
                        *item = ShelfItem::Ready(Arc::new(Profile::clone(profile)));
                    }
                }
            }
            Order::Duplicate(id) => {
                let found = world.shelf.iter().find(|item| is(item, id)).cloned();
                if let Some(ShelfItem::Ready(profile)) = found {
                    let id = ProfileId(format!("{:08x}", 0xd0_0000 + world.orders.len()));
                    let name = format!("{} (copy)", profile.name);
                    let copy = Profile {
                        id: id.clone(),
                        name,
                        ..Profile::clone(&profile)
                    };
                    world.shelf.push(ShelfItem::Ready(Arc::new(copy)));
                    made = Some(LibraryNews::Made(id));
                }
            }
            Order::Delete(id) => {
                let (gone, kept) = world.shelf.drain(..).partition(|item| is(item, id));
                world.shelf = kept;
                world.deleted.extend::<Vec<_>>(gone);
            }
            Order::Restore(id) => {
                world.shelf.append(&mut world.deleted);
                made = Some(LibraryNews::Restored(id.clone()));
            }
            Order::Runs => world.news.push_back(LibraryNews::Runs(world.runs.clone())),
            Order::Reorder(_)
            | Order::Allow(..)
            | Order::Look(_)
            | Order::Selected(_)
            | Order::Window(_)
            | Order::Refresh => {}
        }
        world
            .news
            .push_back(LibraryNews::Profiles(world.shelf.clone()));
        world.news.extend(made);
        world.orders.push(order);
    }

    fn news(&mut self) -> Option<LibraryNews> {
        self.0.borrow_mut().news.pop_front()
    }
}

struct FakeChores(Shared);

impl Chores for FakeChores {
    fn start(&mut self, chore: Chore) {
        let mut world = self.0.borrow_mut();
        let done = match chore {
            Chore::Look(list, target) => {
                world.chores.push("look".to_owned());
                let text = String::from_utf8(list).expect("tests paste text");
                let item = |line: &str| match line.strip_prefix("file://").unwrap_or(line) {
                    path if path.starts_with("/gone") => DroppedItem::Refused {
                        text: path.into(),
                        why: "it is no longer there".to_owned(),
                    },
                    path => DroppedItem::Path(PathBuf::from(path)),
                };
                Done::Looked(text.lines().map(item).collect(), target)
            }
            Chore::List(folder) => {
                let item = |name: &str, is_folder| FolderItem {
                    name: name.into(),
                    is_folder,
                    size: 4096,
                };
                let items = vec![
                    item("Music", true),
                    item("Photos", true),
                    item("a.txt", false),
                ];
                Done::Listed(folder, Ok(items))
            }
            Chore::SaveList(job, path) => {
                world.chores.push(format!("save {job} {}", path.display()));
                Done::ListSaved(Ok((7105, path)))
            }
        };
        world.done.push_back(done);
    }

    fn done(&mut self) -> Option<Done> {
        self.0.borrow_mut().done.pop_front()
    }
}

struct FakePicker(Shared);

impl Picker for FakePicker {
    fn open(&mut self, pick: Pick) {
        let world = &mut *self.0.borrow_mut();
        world.picks.push(pick);
        world.picked.extend(world.answers.pop_front());
    }

    fn picked(&mut self) -> Option<Picked> {
        self.0.borrow_mut().picked.pop_front()
    }
}
