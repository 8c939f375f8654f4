//! Fulfils wishes, in one place: it changes the state and tells the ports.

use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use crate::engine::{Command, new_job_id};
use crate::model::event::{Answer, QuestionKind};
use crate::model::job::{Consent, JobId, JobSpec};
use crate::model::location::Location;
use crate::model::profile::{Profile, ProfileId, Settings};
use crate::model::progress::RunState;
use crate::model::rules::Conflict;
use crate::model::untrusted::shown;
use crate::present::text::title;
use crate::present::units::counted;
use crate::ui::draft::{Draft, PlaceField};
use crate::ui::parts::header::possible;
use crate::ui::ports::{Chore, Look, Order, Pick, Ports, ShelfItem};
use crate::ui::state::{Browse, Dialog, Focus, State, Tab, Target, Tone};
use crate::ui::wish::{Deed, JobDeed, Wish};

/// Fulfils a wish.
pub fn execute(state: &mut State, ports: &mut Ports, wish: Wish) {
    match wish {
        Wish::Do(deed) => {
            if possible(state, deed) {
                command(state, ports, deed);
            }
        }
        Wish::SelectProfile(id) => select(state, ports, Some(&id)),
        Wish::Edited => {
            let now = state.now;
            if let Some(draft) = &mut state.draft {
                draft.read(now);
            }
            state.check_name();
        }
        Wish::Browse(browse, pick) => browse_for(state, ports, browse, pick),
        Wish::Picked(paths) => picked(state, ports, paths),
        Wish::List(folder) => ports.chores.start(Chore::List(folder)),
        Wish::SelectJob(job) => state.job = job,
        Wish::Show(tab) => state.tab = tab,
        Wish::ShowJob(job, tab) => (state.job, state.tab) = (Some(job), tab),
        Wish::Job(job, deed) => with_job(state, ports, job, deed),
        Wish::Answer {
            job,
            question,
            kind,
            answer,
            remember,
        } => {
            state.answered.insert((job, question));
            state.remember = false;
            if remember {
                remember_answer(state, ports, kind, answer);
            }
            ports.jobs.send(Command::Answer(job, question, answer));
        }
        Wish::Look(list, target) => ports.chores.start(Chore::Look(list, target)),
        Wish::Send(paths, target) => send(state, ports, paths, target),
        Wish::SendTo => send_to(state, ports),
        Wish::CloseDialog => {
            if !state.dialogs.is_empty() {
                state.dialogs.remove(0);
            }
        }
        Wish::Restore(id) => ports.library.send(Order::Restore(id)),
        Wish::ReadRuns => ports.library.send(Order::Runs),
        Wish::Dismiss(id) => state.toasts.retain(|toast| toast.id != id),
        Wish::QuitNow => {
            save(state, ports);
            state.quitting = true;
        }
    }
}

/// Does a command of the table.
fn command(state: &mut State, ports: &mut Ports, deed: Deed) {
    match deed {
        Deed::Start => start(state, ports, false),
        Deed::Simulate => start(state, ports, true),
        Deed::NewProfile => {
            save(state, ports);
            let profile = Profile {
                name: state.new_name(),
                ..Profile::default()
            };
            state.making = true;
            ports.library.send(Order::Create(Box::new(profile)));
        }
        Deed::Rename => state.focus = Some(Focus::Name),
        Deed::Duplicate => {
            save(state, ports);
            if let Some(id) = state.selected.clone() {
                state.making = true;
                ports.library.send(Order::Duplicate(id));
            }
        }
        Deed::Delete => delete(state, ports),
        Deed::MoveUp => shift(state, ports, -1),
        Deed::MoveDown => shift(state, ports, 1),
        Deed::AddSource => {
            if let Some(draft) = &mut state.draft {
                draft.sources.push(PlaceField::default());
            }
        }
        Deed::Swap => {
            let now = state.now;
            if let Some(draft) = &mut state.draft {
                draft.swap();
                draft.read(now);
            }
        }
        Deed::Search => state.focus = Some(Focus::Search),
        Deed::CancelJob => {
            if let Some(job) = state.shown_job().map(|job| job.spec.id) {
                with_job(state, ports, job, JobDeed::Cancel);
            }
        }
        Deed::SaveList => {
            if let Some(job) = state.subject().map(|subject| subject.id) {
                browse_for(state, ports, Browse::SaveList(job), Pick::SaveList);
            }
        }
        Deed::ClearEnded => {
            for job in state.jobs.iter().filter(|job| job.end.is_some()) {
                ports.jobs.send(Command::Remove(job.spec.id));
            }
        }
        Deed::Show(tab) => state.tab = tab,
        Deed::Look(look) => set_look(state, ports, look),
        Deed::Quit => {
            save(state, ports);
            let running = state.totals.running;
            if running > 0 {
                state.dialogs.push(Dialog::Quit { running });
            } else {
                state.quitting = true;
            }
        }
    }
}

fn set_look(state: &mut State, ports: &mut Ports, look: Look) {
    state.look = look;
    ports.library.send(Order::Look(look));
}

/// Saves the profile that is edited if it changed and all of it can be read.
pub fn save(state: &mut State, ports: &mut Ports) {
    let Some(draft) = state
        .draft
        .as_mut()
        .filter(|d| d.dirty.is_some() && !d.faulty())
    else {
        return;
    };
    draft.dirty = None;
    let profile = draft.profile.clone();
    for item in &mut state.shelf {
        if matches!(item, ShelfItem::Ready(old) if old.id == profile.id) {
            *item = ShelfItem::Ready(profile.clone().into());
        }
    }
    ports.library.send(Order::Save(Box::new(profile)));
}

fn select(state: &mut State, ports: &mut Ports, id: Option<&ProfileId>) {
    save(state, ports);
    if let (Some(id), Some(selected)) = (id, &state.selected) {
        if id == selected && state.draft.is_some() {
            return;
        }
    }
    let profile = id.and_then(|id| state.profile(id)).cloned();
    state.selected = profile.as_ref().map(|profile| profile.id.clone());
    state.sought_profile = state.selected.clone();
    state.draft = profile.map(|profile| Draft::of(&profile));
    if let Some(id) = &state.selected {
        ports.library.send(Order::Selected(id.clone()));
    }
}

fn delete(state: &mut State, ports: &mut Ports) {
    save(state, ports);
    let Some(id) = state.selected.clone() else {
        return;
    };
    let ids: Vec<ProfileId> = state.profiles().map(|profile| profile.id.clone()).collect();
    let at = ids.iter().position(|other| *other == id).unwrap_or(0);
    let next = ids.get(at + 1).or_else(|| ids[..at].last()).cloned();
    let name = edited_or_saved(state, &id).map_or("", |profile| profile.name.trim());
    let said = match name {
        "" => "Deleted the unnamed profile".to_owned(),
        name => format!("Deleted '{}'", shown(name.as_bytes())),
    };
    // What stands in the fields goes with the profile; Undo brings back what was saved.
    state.draft = None;
    select(state, ports, next.as_ref());
    ports.library.send(Order::Delete(id.clone()));
    state.toast(said, Tone::Plain, Some(("Undo", Wish::Restore(id))));
}

fn shift(state: &mut State, ports: &mut Ports, by: isize) {
    let mut order: Vec<ProfileId> = state.profiles().map(|profile| profile.id.clone()).collect();
    let Some(at) = order
        .iter()
        .position(|id| Some(id) == state.selected.as_ref())
    else {
        return;
    };
    let Some(to) = at.checked_add_signed(by).filter(|to| *to < order.len()) else {
        return;
    };
    order.swap(at, to);
    state.sought_profile = state.selected.clone();
    reorder(state, ports, order);
}

fn reorder(state: &mut State, ports: &mut Ports, order: Vec<ProfileId>) {
    let place = |item: &ShelfItem| match item {
        ShelfItem::Ready(profile) => order.iter().position(|id| *id == profile.id),
        ShelfItem::Damaged(_) => None,
    };
    state
        .shelf
        .sort_by_key(|item| place(item).unwrap_or(usize::MAX));
    ports.library.send(Order::Reorder(order));
}

/// Queues the profile that is edited.
fn start(state: &mut State, ports: &mut Ports, dry_run: bool) {
    save(state, ports);
    let Some(draft) = &state.draft else {
        return;
    };
    let profile = &draft.profile;
    let Some(destination) = draft.destination.place.clone() else {
        return;
    };
    let name = match profile.name.trim() {
        "" => title(&profile.sources, &destination),
        name => name.to_owned(),
    };
    let job = New {
        title: name,
        profile: Some(profile.id.clone()),
        sources: profile.sources.clone(),
        destination,
        settings: profile.settings.clone(),
        dry_run,
    };
    submit(state, ports, job);
}

struct New {
    title: String,
    profile: Option<ProfileId>,
    sources: Vec<Location>,
    destination: Location,
    settings: Settings,
    dry_run: bool,
}

fn submit(state: &mut State, ports: &mut Ports, new: New) {
    let id = match new_job_id() {
        Ok(id) => id,
        Err(error) => return state.complain(&error),
    };
    let New {
        title,
        profile,
        sources,
        destination,
        settings,
        dry_run,
    } = new;
    let mut spec = JobSpec {
        id,
        title,
        profile,
        sources,
        destination,
        settings,
        dry_run,
        attended: true,
        consent: Consent::default(),
        resume: false,
    };
    let host = spec.host_key();
    spec.consent = state.consent(&host);
    state.job = Some(spec.id);
    state.queued = Some(spec.id);
    state.sought_job = Some((spec.id, false));
    state.tab = if dry_run { Tab::Plan } else { Tab::Queue };
    ports.jobs.send(Command::Submit(Box::new(spec)));
}

/// Sends what was dropped, or adds it to a profile's sources.
fn send(state: &mut State, ports: &mut Ports, paths: Vec<PathBuf>, target: Target) {
    match target {
        Target::Sources(id) => {
            select(state, ports, Some(&id));
            let now = state.now;
            let added = counted(paths.len() as u64, "item", "items");
            if let Some(draft) = &mut state.draft {
                draft.add_sources(places(paths));
                draft.read(now);
                let name = shown(draft.profile.name.as_bytes());
                state.remark(&format!("added {added} to the sources of {name}"));
            }
        }
        Target::Send(id) => {
            let profile = id.as_ref().and_then(|id| edited_or_saved(state, id));
            let to = profile.and_then(|profile| profile.destinations.first().cloned());
            match (profile, to) {
                (Some(profile), Some(to)) => {
                    let (settings, id) = (profile.settings.clone(), profile.id.clone());
                    drop_job(state, ports, paths, to, settings, Some(id));
                }
                _ => {
                    let to = PlaceField::default();
                    state.dialogs.push(Dialog::WhereTo { items: paths, to });
                }
            }
        }
    }
}

fn edited_or_saved<'a>(state: &'a State, id: &ProfileId) -> Option<&'a Profile> {
    match &state.draft {
        Some(draft) if draft.profile.id == *id => Some(&draft.profile),
        _ => state.profile(id).map(AsRef::as_ref),
    }
}

fn send_to(state: &mut State, ports: &mut Ports) {
    let Some(Dialog::WhereTo { to, .. }) = state.dialogs.first() else {
        return;
    };
    let Some(place) = to.place.clone() else {
        return;
    };
    if let Dialog::WhereTo { items, .. } = state.dialogs.remove(0) {
        let settings = state.draft.as_ref().map(|d| d.profile.settings.clone());
        drop_job(
            state,
            ports,
            items,
            place,
            settings.unwrap_or_default(),
            None,
        );
    }
}

/// Queues one job for everything that was dropped: each item as itself, links as links, and a
/// question before anything is replaced.
fn drop_job(
    state: &mut State,
    ports: &mut Ports,
    paths: Vec<PathBuf>,
    destination: Location,
    mut settings: Settings,
    profile: Option<ProfileId>,
) {
    settings.conflict = Conflict::Ask;
    settings.contents = false;
    settings.preserve.links = true;
    let sources: Vec<Location> = places(paths).collect();
    let title = title(&sources, &destination);
    submit(
        state,
        ports,
        New {
            title,
            profile,
            sources,
            destination,
            settings,
            dry_run: false,
        },
    );
}

fn places(paths: Vec<PathBuf>) -> impl Iterator<Item = Location> {
    paths
        .into_iter()
        .map(|path| Location::Local(path.as_os_str().as_bytes().to_vec()))
}

fn browse_for(state: &mut State, ports: &mut Ports, browse: Browse, pick: Pick) {
    if state.browsing.is_none() {
        state.browsing = Some((browse, pick));
        ports.picker.open(pick);
    }
}

fn picked(state: &mut State, ports: &mut Ports, paths: Vec<PathBuf>) {
    state.own_picker = None;
    let Some((browse, _)) = state.browsing.take() else {
        return;
    };
    if paths.is_empty() {
        return;
    }
    let now = state.now;
    if let Browse::SaveList(job) = browse {
        ports.chores.start(Chore::SaveList(
            job,
            paths.into_iter().next().unwrap_or_default(),
        ));
        return;
    }
    if let (Browse::WhereTo, Some(Dialog::WhereTo { to, .. })) = (browse, state.dialogs.first_mut())
    {
        if let Some(place) = places(paths).next() {
            *to = PlaceField::of(&place);
        }
        return;
    }
    let Some(draft) = &mut state.draft else {
        return;
    };
    match browse {
        Browse::Source(i) => {
            // The first takes the field's place, the others follow.
            let at = i.min(draft.sources.len().saturating_sub(1));
            draft
                .sources
                .splice(at..=at, places(paths).map(|place| PlaceField::of(&place)));
        }
        Browse::Destination => {
            if let Some(place) = places(paths).next() {
                draft.destination = PlaceField::of(&place);
            }
        }
        Browse::Identity => {
            draft.profile.settings.ssh.identity = paths
                .first()
                .map(|path| path.to_string_lossy().into_owned());
        }
        Browse::WhereTo | Browse::SaveList(_) => {}
    }
    draft.read(now);
}

fn with_job(state: &mut State, ports: &mut Ports, id: JobId, deed: JobDeed) {
    let command = match deed {
        JobDeed::Pause => Command::Pause(id),
        JobDeed::Resume => Command::Resume(id),
        JobDeed::Cancel => Command::Cancel(id),
        JobDeed::Retry => {
            state.sought_job = Some((id, true));
            Command::Retry(id)
        }
        JobDeed::Remove => Command::Remove(id),
        JobDeed::Up | JobDeed::Down => {
            let mut queued = state
                .jobs
                .iter()
                .filter(|job| job.state == RunState::Queued);
            let Some(place) = queued.position(|job| job.spec.id == id) else {
                return;
            };
            let place = if deed == JobDeed::Up {
                place.saturating_sub(1)
            } else {
                place + 1
            };
            Command::Move(id, place)
        }
    };
    ports.jobs.send(command);
}

/// Keeps a yes for the host; a no is asked again, since it costs speed and not safety.
fn remember_answer(state: &mut State, ports: &mut Ports, kind: QuestionKind, answer: Answer) {
    if answer != Answer::Yes(true) {
        return;
    }
    let (QuestionKind::UploadAgent { host, .. } | QuestionKind::PlainTcp { host }) = &kind else {
        return;
    };
    let mut consent = state.consent(host);
    match kind {
        QuestionKind::UploadAgent { .. } => consent.upload_agent = true,
        _ => consent.plain_tcp = true,
    }
    state.hosts.insert(host.clone(), consent);
    ports.library.send(Order::Allow(host.clone(), consent));
}
