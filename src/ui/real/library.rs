//! Profiles, settings and the memory of runs, on a thread that may wait for the disk.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::model::error::{Error, Result};
use crate::model::profile::ProfileId;
use crate::store::dirs::Dirs;
use crate::store::history::History;
use crate::store::profiles::{Deleted, Entry, Profiles};
use crate::store::settings::{AppSettings, Theme};
use crate::ui::ports::{Library, LibraryNews, Look, Order, Run, Settings, ShelfItem};
use crate::ui::real::Wake;

/// As many runs as the history page shows.
const RUNS: usize = 1000;
/// How long the end of the program waits for the last changes to be on the disk.
const FLUSH: Duration = Duration::from_secs(5);

/// The library; its thread ends with it, after what it was told is done.
pub struct DiskLibrary {
    orders: Option<Sender<Order>>,
    news: Receiver<LibraryNews>,
    thread: Option<JoinHandle<()>>,
}

impl DiskLibrary {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(dirs: Dirs, wake: Wake) -> Result<Self> {
        // Without a bound: orders come from a person's hands, and each gives a few pieces of news.
        let (orders, todo) = unbounded();
        let (tell, news) = unbounded();
        let thread = std::thread::Builder::new()
            .name("library".to_owned())
            .spawn(move || {
                let mut keeper = Keeper {
                    dirs,
                    profiles: None,
                    history: None,
                    deleted: Vec::new(),
                    tell,
                    wake,
                };
                for order in todo {
                    if let Err(error) = keeper.fulfil(order) {
                        keeper.say(LibraryNews::Failed(error));
                    }
                }
            })
            .map_err(|e| Error::io("start the thread that keeps the profiles", &e))?;
        Ok(Self {
            orders: Some(orders),
            news,
            thread: Some(thread),
        })
    }
}

impl Library for DiskLibrary {
    fn send(&mut self, order: Order) {
        if let Some(orders) = &self.orders {
            // Only a thread that panicked does not listen; its last words were news.
            let _ = orders.send(order);
        }
    }

    fn news(&mut self) -> Option<LibraryNews> {
        self.news.try_recv().ok()
    }
}

impl Drop for DiskLibrary {
    fn drop(&mut self) {
        self.orders = None;
        let until = Instant::now() + FLUSH;
        // The news channel ends when the thread does.
        while self.news.recv_deadline(until).is_ok() {}
        if let Some(thread) = self.thread.take().filter(JoinHandle::is_finished) {
            let _ = thread.join();
        }
    }
}

/// What the thread owns.
struct Keeper {
    dirs: Dirs,
    profiles: Option<Profiles>,
    history: Option<History>,
    /// Profiles that were deleted since the start, for Undo.
    deleted: Vec<Deleted>,
    tell: Sender<LibraryNews>,
    wake: Wake,
}

impl Keeper {
    fn say(&self, news: LibraryNews) {
        // Nobody listens any more when the window is closing.
        let _ = self.tell.send(news);
        (self.wake)();
    }

    fn profiles(&mut self) -> Result<&mut Profiles> {
        if self.profiles.is_none() {
            self.profiles = Some(Profiles::open(&self.dirs)?);
        }
        Ok(self.profiles.as_mut().expect("it was opened above"))
    }

    fn say_profiles(&mut self) -> Result<()> {
        let entries = self.profiles()?.list()?;
        let items = entries.into_iter().map(|entry| match entry {
            Entry::Good(profile) => ShelfItem::Ready(Arc::new(profile)),
            Entry::Damaged(damaged) => ShelfItem::Damaged(damaged),
        });
        self.say(LibraryNews::Profiles(items.collect()));
        Ok(())
    }

    fn fulfil(&mut self, order: Order) -> Result<()> {
        match order {
            Order::Load => {
                self.say_settings();
                if self.dirs.read_only().is_none() {
                    // Without them a first-time user would look at an empty list.
                    if let Err(error) = self.profiles()?.ensure_samples() {
                        self.say(LibraryNews::Failed(error));
                    }
                }
                self.say_profiles()?;
                self.say_runs()
            }
            Order::Refresh => {
                let changed = self.profiles()?.changed();
                if changed { self.say_profiles() } else { Ok(()) }
            }
            Order::Create(profile) => {
                let made = self.profiles()?.add(&profile)?;
                self.say_profiles()?;
                self.say(LibraryNews::Made(made.id));
                Ok(())
            }
            Order::Save(profile) => {
                let saved = self.profiles()?.save(&profile);
                // What is on the disk counts, also when it could not be saved.
                self.say_profiles()?;
                saved
            }
            Order::Duplicate(id) => {
                let made = self.profiles()?.duplicate(&id)?;
                self.say_profiles()?;
                self.say(LibraryNews::Made(made.id));
                Ok(())
            }
            Order::Delete(id) => {
                let deleted = self.profiles()?.delete(&id);
                self.say_profiles()?;
                self.deleted.push(deleted?);
                Ok(())
            }
            Order::Restore(id) => self.restore(&id),
            Order::Reorder(order) => {
                self.profiles()?.reorder(&order)?;
                self.say_profiles()
            }
            Order::Runs => self.say_runs(),
            Order::Allow(host, consent) => self.change(|settings| {
                settings.hosts.insert(host, consent);
            }),
            Order::Look(look) => self.change(|settings| {
                settings.theme = match look {
                    Look::System => Theme::System,
                    Look::Light => Theme::Light,
                    Look::Dark => Theme::Dark,
                };
            }),
            Order::Selected(id) => self.change(|settings| settings.last_profile = Some(id)),
            Order::Window(window) => self.change(|settings| settings.window = Some(window)),
        }
    }

    fn restore(&mut self, id: &ProfileId) -> Result<()> {
        let Some(at) = self.deleted.iter().rposition(|deleted| deleted.id == *id) else {
            return Ok(());
        };
        let deleted = self.deleted.remove(at);
        self.profiles()?.restore(&deleted)?;
        self.say_profiles()?;
        self.say(LibraryNews::Restored(id.clone()));
        Ok(())
    }

    /// Changes the settings as they are on the disk now: another window may have changed others.
    fn change(&mut self, change: impl FnOnce(&mut AppSettings)) -> Result<()> {
        if self.dirs.read_only().is_some() {
            return Ok(());
        }
        let (mut settings, _) = AppSettings::load(&self.dirs);
        let before = settings.clone();
        change(&mut settings);
        if settings == before {
            Ok(())
        } else {
            settings.save(&self.dirs)
        }
    }

    fn say_settings(&self) {
        let AppSettings {
            theme,
            last_profile,
            hosts,
            ..
        } = AppSettings::load(&self.dirs).0;
        let look = match theme {
            Theme::System => Look::System,
            Theme::Light => Look::Light,
            Theme::Dark => Look::Dark,
        };
        let settings = Settings {
            look,
            hosts,
            last: last_profile,
        };
        self.say(LibraryNews::Settings(settings));
        if let Some(error) = self.dirs.read_only() {
            self.say(LibraryNews::Failed(error.clone()));
        }
    }

    fn say_runs(&mut self) -> Result<()> {
        if self.history.is_none() {
            self.history = Some(History::open(&self.dirs.database())?);
        }
        let history = self.history.as_mut().expect("it was opened above");
        let jobs = history.jobs(RUNS)?;
        let run = |job: &crate::store::history::Job| {
            let (outcome, report) = job.record.end.clone()?;
            let spec = &job.record.spec;
            Some(Run {
                job: spec.id,
                profile: spec.profile.clone().filter(|_| !spec.dry_run),
                title: spec.title.clone(),
                dry_run: spec.dry_run,
                ended: job.ended_ms.unwrap_or(job.created_ms) / 1000,
                outcome,
                report,
            })
        };
        let mut runs: Vec<Run> = jobs.iter().filter_map(run).collect();
        runs.sort_by_key(|run| std::cmp::Reverse(run.ended));
        self.say(LibraryNews::Runs(runs));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver as Woken, sync_channel};

    use super::*;
    use crate::model::profile::Profile;

    /// Waits for the next news as the window does: woken, then looking.
    fn next(library: &mut DiskLibrary, woken: &Woken<()>) -> LibraryNews {
        loop {
            if let Some(news) = library.news() {
                return news;
            }
            woken
                .recv_timeout(Duration::from_secs(20))
                .expect("the library wakes the window");
        }
    }

    fn names(news: &LibraryNews) -> Vec<String> {
        let LibraryNews::Profiles(shelf) = news else {
            panic!("not the profiles but {news:?}");
        };
        let name = |item: &ShelfItem| match item {
            ShelfItem::Ready(profile) => profile.name.clone(),
            ShelfItem::Damaged(damaged) => damaged.to_string(),
        };
        shelf.iter().map(name).collect()
    }

    #[test]
    fn what_a_person_changed_is_on_the_disk_when_the_window_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let dirs = Dirs::below(folder.path()).unwrap();
        let (wake, woken) = sync_channel(64);
        let wake: Wake = Arc::new(move || {
            // A full channel wakes as well.
            let _ = wake.try_send(());
        });
        let mut library = DiskLibrary::start(dirs.clone(), wake).unwrap();
        library.send(Order::Load);
        assert!(matches!(
            next(&mut library, &woken),
            LibraryNews::Settings(_)
        ));
        let samples = names(&next(&mut library, &woken)).len();
        assert!(samples > 0, "a new folder has the starter profiles");
        assert!(matches!(next(&mut library, &woken), LibraryNews::Runs(runs) if runs.is_empty()));

        let profile = Profile {
            name: "New profile".to_owned(),
            ..Profile::default()
        };
        library.send(Order::Create(Box::new(profile.clone())));
        assert_eq!(names(&next(&mut library, &woken)).len(), samples + 1);
        let LibraryNews::Made(id) = next(&mut library, &woken) else {
            panic!("the new profile is named");
        };
        let named = Profile {
            id: id.clone(),
            name: "Photos".to_owned(),
            ..profile
        };
        library.send(Order::Save(Box::new(named)));
        assert!(names(&next(&mut library, &woken)).contains(&"Photos".to_owned()));

        library.send(Order::Delete(id.clone()));
        assert!(!names(&next(&mut library, &woken)).contains(&"Photos".to_owned()));
        library.send(Order::Restore(id.clone()));
        library.send(Order::Look(Look::Dark));
        library.send(Order::Selected(id.clone()));
        drop(library);

        assert_eq!(
            Profiles::open(&dirs).unwrap().get(&id.0).unwrap().name,
            "Photos"
        );
        let (settings, warnings) = AppSettings::load(&dirs);
        assert_eq!(
            (settings.theme, settings.last_profile),
            (Theme::Dark, Some(id))
        );
        assert!(warnings.is_empty());
    }
}
