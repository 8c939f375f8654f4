//! The window by the names that a screen reader hears, without a display, on fakes.
//! Long because every page and dialog has its own things to press and to read.

#[path = "support/fake_ports.rs"]
mod fake_ports;
#[path = "support/stage.rs"]
mod stage;

use std::sync::Arc;

use egui::accesskit::Role;
use egui_kittest::kittest::{NodeT as _, Queryable as _};

use fake_ports::{World, ended, nas, running, totals, unreachable};
use stage::{Stage, open, open_sized, with_profiles};
use transload::engine::Command;
use transload::model::drop::{DropEvent, DroppedItem};
use transload::model::event::{Answer, Event, EventKind, Question, QuestionKind};
use transload::model::job::JobId;
use transload::model::location::Location;
use transload::model::outcome::{Abort, Outcome};
use transload::model::rules::Conflict;
use transload::store::profiles::Damaged;
use transload::ui::ports::{Order, Pick, Picked, ShelfItem};
use transload::ui::state::Tab;

#[test]
fn a_new_profile_is_named_filled_in_and_started() {
    let mut stage = open(World::default());
    stage.press("New profile");
    stage.type_into("Profile name", "Holiday");
    stage.type_into("Source", "/home/me/Holiday");
    stage.type_into("Destination", "nas:/volume1");
    stage.expect("first file lands in nas:/volume1/Holiday");
    stage.window.run_steps(8);
    let saved = stage.world.borrow().orders.iter().any(|order| match order {
        Order::Save(profile) => profile.name == "Holiday" && profile.sources.len() == 1,
        _ => false,
    });
    assert!(saved, "what was typed is saved without being asked for");

    stage.press("Simulate");
    let [Command::Submit(spec)] = &stage.commands()[..] else {
        panic!("one job is queued");
    };
    assert!(spec.dry_run && spec.attended);
    assert_eq!(stage.window.state().state.tab, Tab::Plan);

    stage.press("Start");
    let [Command::Submit(spec)] = &stage.commands()[..] else {
        panic!("one job is queued");
    };
    assert!(!spec.dry_run);
    assert_eq!(spec.title, "Holiday");
    assert_eq!(
        spec.sources,
        [Location::Local(b"/home/me/Holiday".to_vec())]
    );
    assert_eq!(spec.destination, nas("/volume1"));
    stage.expect("Job Holiday");
    stage.press("Cancel Holiday");
    assert!(matches!(stage.commands()[..], [Command::Cancel(_)]));
    stage.press("Go on Holiday");
    assert!(matches!(stage.commands()[..], [Command::Retry(_)]));
}

#[test]
fn a_wrong_place_says_what_is_wrong_and_keeps_start_away() {
    let mut stage = open(with_profiles());
    stage.type_into("Destination", "smb://nas/photo");
    assert!(!stage.shows("first file lands"));
    let start = stage.window.get_by_role_and_label(Role::Button, "Start");
    assert!(start.accesskit_node().is_disabled());
    stage.expect("Not saved");
    stage.window.run_steps(8);
    assert!(
        !stage
            .world
            .borrow()
            .orders
            .iter()
            .any(|order| matches!(order, Order::Save(_)))
    );
    stage.type_into("Destination", "ftp://nas/photo");
    stage.expect("Ftp is not available in this version");
    stage.expect("Not saved");
    stage.type_into("Destination", "nas:/elsewhere");
    stage.expect("first file lands in nas:/elsewhere/Pictures");
}

#[test]
fn sources_are_added_moved_and_taken_away() {
    let mut stage = open(with_profiles());
    stage.press("Add source");
    stage.type_into("Source 2", "/home/me/Video");
    stage.press("Move source 2 up");
    let sources = |stage: &Stage| {
        let draft = stage
            .window
            .state()
            .state
            .draft
            .clone()
            .expect("a profile is edited");
        draft
            .profile
            .sources
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(sources(&stage), ["/home/me/Video", "/home/me/Pictures"]);
    stage.press("Remove source 1");
    assert_eq!(sources(&stage), ["/home/me/Pictures"]);
    stage.press("Swap source and destination");
    assert_eq!(sources(&stage), ["nas:/volume1/photo"]);
}

#[test]
fn a_deleted_profile_comes_back_by_undo() {
    let mut stage = open(with_profiles());
    stage
        .window
        .key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::Delete);
    stage.settle();
    stage.expect("Deleted 'Photos'");
    assert!(stage.window.query_by_label("Photos, not run yet").is_none());
    stage.press("Undo");
    stage.expect("Photos, not run yet");
    assert!(!stage.shows("Deleted 'Photos'"));
}

#[test]
fn search_finds_by_name_and_by_place() {
    let mut stage = open(with_profiles());
    stage.type_into("Search profiles", "mus");
    assert!(!stage.shows("Photos, not run yet"));
    stage.expect("Music, not run yet");
    stage.type_into("Search profiles", "volume1");
    stage.expect("Photos, not run yet");
    stage.type_into("Search profiles", "nothing like it");
    stage.expect("No profile has that");
}

#[test]
fn a_damaged_profile_is_listed_with_line_and_reason() {
    let mut world = with_profiles();
    world.shelf.push(ShelfItem::Damaged(Damaged {
        id: None,
        file: "/home/me/.config/transload/profiles/backup-1a2b3c4d.toml".into(),
        line: 7,
        column: 3,
        reason: "'mthod' is not a field".to_owned(),
    }));
    let stage = open(world);
    stage.expect("backup-1a2b3c4d.toml, line 7, column 3: 'mthod' is not a field");
    stage.expect("Photos, not run yet");
}

#[test]
fn a_drop_is_one_job_that_asks_before_it_replaces_and_names_what_it_cannot_take() {
    let mut world = with_profiles();
    if let ShelfItem::Ready(profile) = &mut world.shelf[0] {
        Arc::make_mut(profile).settings.conflict = Conflict::Overwrite;
    }
    let mut stage = open(world);
    let at = (300, 100);
    stage
        .drops
        .send(DropEvent::Hover {
            position: at,
            count: Some(3),
        })
        .unwrap();
    stage.settle();
    stage.expect("Send 3 items to nas:/volume1/photo; or Add to the sources of Photos");
    let items = vec![
        DroppedItem::Path("/home/me/a".into()),
        DroppedItem::Refused {
            text: "file:///gone".into(),
            why: "it is no longer there".into(),
        },
        DroppedItem::Path("/home/me/link".into()),
    ];
    stage
        .drops
        .send(DropEvent::Dropped {
            position: at,
            items,
        })
        .unwrap();
    stage.settle();
    let commands = stage.commands();
    let [Command::Submit(spec)] = &commands[..] else {
        panic!("one job is queued: {commands:?}");
    };
    assert_eq!(spec.sources.len(), 2);
    assert_eq!(spec.settings.conflict, Conflict::Ask);
    assert!(spec.attended && spec.settings.preserve.links && !spec.settings.contents);
    assert_eq!(spec.destination, nas("/volume1/photo"));
    stage.expect("1 item could not be taken");
    stage.expect("file:///gone");
    stage.expect("It is no longer there.");
    stage.press("OK");
    assert!(!stage.shows("could not be taken"));
}

#[test]
fn a_drop_on_the_lower_target_goes_into_the_profile() {
    let mut stage = open(with_profiles());
    let at = (500, 700);
    stage
        .drops
        .send(DropEvent::Hover {
            position: at,
            count: None,
        })
        .unwrap();
    stage.settle();
    stage.expect("Send the items to nas");
    let items = vec![DroppedItem::Path("/home/me/new".into())];
    stage
        .drops
        .send(DropEvent::Dropped {
            position: at,
            items,
        })
        .unwrap();
    stage.settle();
    assert!(stage.commands().is_empty());
    stage.expect("Added 1 item to the sources of Photos");
    let draft = stage.window.state().state.draft.clone().unwrap();
    assert_eq!(draft.profile.sources.len(), 2);
}

#[test]
fn a_drag_that_leaves_takes_the_targets_away() {
    let mut stage = open(with_profiles());
    stage
        .drops
        .send(DropEvent::Hover {
            position: (5, 5),
            count: Some(1),
        })
        .unwrap();
    stage.settle();
    stage.expect("Send 1 item");
    stage.drops.send(DropEvent::Leave).unwrap();
    stage.settle();
    assert!(!stage.shows("Send 1 item"));
}

#[test]
fn pasted_paths_with_no_profile_ask_where_to() {
    let mut stage = open(World::default());
    let text = "copy\nfile:///home/me/a\n/home/me/b\n/gone/c".to_owned();
    stage.window.event(egui::Event::Paste(text));
    stage.settle();
    // What cannot be taken is told first.
    stage.expect("1 item could not be taken");
    stage.press("OK");
    stage.expect("Send 2 items where?");
    stage.type_into("Where to", "nas:/inbox");
    stage.press("Send");
    let commands = stage.commands();
    let [Command::Submit(spec)] = &commands[..] else {
        panic!("one job is queued: {commands:?}");
    };
    assert_eq!((spec.sources.len(), &spec.destination), (2, &nas("/inbox")));
    assert_eq!(spec.profile, None);
}

#[test]
fn text_pasted_into_a_field_is_no_drop() {
    let mut stage = open(with_profiles());
    stage
        .window
        .get_by_role_and_label(Role::TextInput, "Search profiles")
        .focus();
    stage.window.run();
    stage
        .window
        .event(egui::Event::Paste("/home/me".to_owned()));
    stage.settle();
    assert!(stage.world.borrow().chores.is_empty());
}

#[test]
fn a_question_is_asked_once_and_can_be_answered_for_the_host() {
    let mut stage = open(with_profiles());
    let mut job = running(1, "Photos");
    let ask = |id| {
        let kind = QuestionKind::UploadAgent {
            host: "nas".into(),
            bytes: 3 << 20,
        };
        Some(Question { id, kind })
    };
    job.question = ask(1);
    stage.set_jobs(vec![job.clone()]);
    stage.expect("Copy the helper program to nas?");
    stage.click("Remember for this host");
    stage.press("Copy and start");
    assert!(matches!(
        stage.commands()[..],
        [Command::Answer(_, 1, Answer::Yes(true))]
    ));
    assert!(!stage.shows("Copy the helper program"));
    let remembered = stage.world.borrow().orders.iter().any(|order| {
        matches!(order, Order::Allow(host, consent) if host == "nas" && consent.upload_agent)
    });
    assert!(remembered);
    // The next job that asks gets the same answer without a dialog.
    job.spec = Arc::new(fake_ports::spec(2, "Photos again"));
    job.question = ask(9);
    stage.set_jobs(vec![job]);
    assert!(matches!(
        stage.commands()[..],
        [Command::Answer(_, 9, Answer::Yes(true))]
    ));
    assert!(!stage.shows("Copy the helper program"));
}

#[test]
fn conflicts_are_shown_with_examples_and_every_rule() {
    let mut stage = open(with_profiles());
    let mut job = running(1, "Photos");
    let examples = vec![b"a.jpg".to_vec(), b"b\nc.jpg".to_vec()];
    let kind = QuestionKind::Conflicts {
        count: 1234,
        examples,
    };
    job.question = Some(Question { id: 4, kind });
    stage.set_jobs(vec![job]);
    stage.expect("1234 files are already at the destination");
    stage.expect("b\\nc.jpg");
    stage.expect("and 1232 more");
    for name in ["Overwrite", "Skip", "Newer", "Larger", "Cancel the job"] {
        stage.window.get_by_role_and_label(Role::Button, name);
    }
    stage.press("Keep both");
    assert!(matches!(
        stage.commands()[..],
        [Command::Answer(_, 4, Answer::Rule(Conflict::Rename))]
    ));
}

#[test]
fn a_running_job_shows_how_far_how_fast_and_how_long() {
    let mut stage = open(with_profiles());
    stage.set_jobs(vec![running(1, "Photos")]);
    stage.expect("61 % \u{b7} 13.0 GiB of 21.0 GiB");
    stage.expect("108 MiB/s");
    stage.expect("1 min 12 s left");
    stage.expect("Transferring \u{b7} Pictures/2024/");
    stage.expect("1 running \u{b7} 108 MiB/s \u{b7} 1 min 12 s left");
    stage.expect("Throughput of all jobs");
    stage.press("Pause Photos");
    stage.press("Resume Photos");
    assert!(matches!(
        stage.commands()[..],
        [Command::Pause(_), Command::Resume(_)]
    ));
    let mut job = running(1, "Photos");
    job.progress.listed = false;
    stage.set_jobs(vec![job]);
    stage.expect("so far");
}

#[test]
fn a_failed_job_says_why_and_what_to_do() {
    let mut stage = open(with_profiles());
    stage.set_jobs(vec![ended(1, "Photos", Outcome::Failed(unreachable()))]);
    stage.expect("Failed to connect: connection refused \u{2014} nas");
    stage.expect("Check that the host is on and that its name is right.");
}

#[test]
fn waiting_jobs_move_up_and_down_the_queue() {
    let mut stage = open_sized(with_profiles(), [1100.0, 1000.0], |builder| builder);
    let waiting = |n, title| fake_ports::job(fake_ports::spec(n, title));
    stage.set_jobs(vec![running(1, "A"), waiting(2, "B"), waiting(3, "C")]);
    stage.press("Move up C");
    stage.press("Move down B");
    let commands = stage.commands();
    assert!(
        matches!(commands[0], Command::Move(JobId([3, ..]), 0)),
        "{commands:?}"
    );
    assert!(
        matches!(commands[1], Command::Move(JobId([2, ..]), 1)),
        "{commands:?}"
    );
}

#[test]
fn verdicts_are_filtered_and_saved_as_a_list() {
    let mut stage = open(World {
        rows: 80,
        ..with_profiles()
    });
    stage.set_jobs(vec![ended(1, "Photos", Outcome::Completed)]);
    stage.click("Verification");
    stage.expect("80 files");
    stage.expect("Verified");
    stage.expect("evil\\u{202e}fdp.exe");
    stage
        .window
        .get_by_role_and_label(Role::ComboBox, "Verdict")
        .click();
    stage.settle();
    stage.press("Differs");
    stage.expect("10 files");
    assert!(!stage.shows("Verified"));
    stage
        .world
        .borrow_mut()
        .answers
        .push_back(Picked::Paths(vec!["/tmp/list.md5".into()]));
    stage.press("Save list");
    assert_eq!(stage.world.borrow().picks, [Pick::SaveList]);
    assert!(stage.world.borrow().chores[0].starts_with("save 0101"));
    stage.expect("Saved 7105 lines to /tmp/list.md5");
}

#[test]
fn without_a_portal_the_window_shows_its_own_dialog() {
    let mut stage = open(with_profiles());
    stage
        .world
        .borrow_mut()
        .answers
        .push_back(Picked::Unavailable);
    stage.press("Browse for destination");
    stage.expect("Choose a folder");
    stage.press("Music");
    stage.press("Choose this folder");
    let draft = stage.window.state().state.draft.clone().unwrap();
    assert!(
        draft.destination.text.ends_with("/Music"),
        "{}",
        draft.destination.text
    );
    assert!(!stage.shows("Choose a folder"));
}

#[test]
fn a_plan_lists_its_steps_with_counts() {
    let mut stage = open(World {
        steps: 60,
        ..with_profiles()
    });
    let mut job = ended(1, "Photos", Outcome::Completed);
    job.plan = Some(totals());
    stage.set_jobs(vec![job]);
    stage.click("Plan");
    stage.expect("12 to create, 3 to update");
    stage.expect("2 for the conflict rule to decide");
    stage.expect("not at the destination yet");
}

#[test]
fn a_tiny_window_shows_every_page_without_a_fault() {
    for size in [
        [200.0, 120.0],
        [80.0, 60.0],
        [560.0, 380.0],
        [2000.0, 200.0],
    ] {
        let world = World {
            rows: 80,
            steps: 60,
            ..with_profiles()
        };
        let mut stage = open_sized(world, size, |builder| builder);
        let mut job = running(1, "Photos");
        stage.set_jobs(vec![job.clone()]);
        for tab in Tab::ALL {
            stage.window.state_mut().state.tab = tab;
            stage.settle();
        }
        let drag = DropEvent::Hover {
            position: (3, 3),
            count: Some(2),
        };
        stage.drops.send(drag).unwrap();
        stage.settle();
        let kind = QuestionKind::PlainTcp { host: "nas".into() };
        job.question = Some(Question { id: 1, kind });
        stage.set_jobs(vec![job]);
    }
}

#[test]
fn an_idle_window_draws_nothing() {
    let mut stage = open(with_profiles());
    stage.set_jobs(vec![ended(1, "Photos", Outcome::Completed)]);
    stage.window.run_steps(60);
    let delay = stage
        .window
        .output()
        .viewport_output
        .values()
        .map(|v| v.repaint_delay)
        .min();
    assert_eq!(
        delay,
        Some(std::time::Duration::MAX),
        "nobody asks for a frame"
    );
}

#[test]
fn a_window_with_running_jobs_asks_before_it_ends() {
    let mut stage = open(with_profiles());
    stage.set_jobs(vec![running(1, "Photos")]);
    stage
        .window
        .key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::Q);
    stage.settle();
    stage.expect("1 job is still running");
    stage.press("Keep running");
    assert!(!stage.window.state().state.quitting);
}

#[test]
fn the_queue_keeps_what_can_go_on_and_the_history_shows_the_rest() {
    let cut_off = ended(1, "Photos", Outcome::Aborted(Abort::LeftRunning));
    let done = ended(2, "Music", Outcome::Completed);
    let world = World {
        jobs: Arc::new(vec![cut_off, done]),
        runs: vec![fake_ports::run(7)],
        rows: 80,
        ..with_profiles()
    };
    let mut stage = open(world);
    assert!(matches!(
        stage.commands()[..],
        [Command::Remove(JobId([2, ..]))]
    ));
    stage.expect("Cut off when the program was killed; it can go on");
    stage.click("History");
    // Photos of the list of profiles, and of the run.
    stage.window.get_by_label("64.7 MiB/s").click();
    stage.settle();
    assert_eq!(stage.window.state().state.tab, Tab::Verification);
    assert_eq!(stage.window.state().state.job, Some(JobId([7; 16])));
    stage.expect("80 files");
}

#[test]
fn a_long_title_is_cut_and_lies_over_nothing() {
    let title = "The whole of last year's pictures and films, ".repeat(3);
    let world = World {
        rows: 80,
        steps: 60,
        ..with_profiles()
    };
    let mut stage = open_sized(world, [900.0, 600.0], |builder| builder);
    let mut job = ended(1, &title, Outcome::Completed);
    job.plan = Some(totals());
    stage.set_jobs(vec![job]);
    for (tab, others) in [
        (
            "Plan",
            &["12 to create", "for the conflict rule to decide"][..],
        ),
        (
            "Verification",
            &["80 files", "Filter by name", "Verdict", "Save list"][..],
        ),
    ] {
        stage.click(tab);
        let list = stage.window.get_by_label("Music, not run yet").rect();
        let shown = stage.window.get_by_role_and_label(Role::Label, &title);
        let shown = shown.rect();
        assert!(
            shown.left() > list.right() && shown.right() < 900.0,
            "{shown} leaves the page {tab}"
        );
        assert!(shown.width() > 60.0, "{shown} is too little on {tab}");
        for other in others {
            for node in stage.window.query_all_by_label_contains(other) {
                let other_rect = node.rect();
                assert!(
                    !shown.shrink(1.0).intersects(other_rect),
                    "{shown} lies over '{other}' at {other_rect} on {tab}"
                );
            }
        }
    }
}

#[test]
fn jobs_that_are_not_over_stand_above_those_that_ended_last_ended_first() {
    let mut stage = open_sized(with_profiles(), [1100.0, 1400.0], |builder| builder);
    let waiting = fake_ports::job(fake_ports::spec(4, "Waits"));
    let done = |n, title| ended(n, title, Outcome::Completed);
    stage.set_jobs(vec![
        running(1, "Late"),
        done(2, "Early"),
        running(3, "Runs"),
        waiting.clone(),
    ]);
    stage.set_jobs(vec![
        done(1, "Late"),
        done(2, "Early"),
        running(3, "Runs"),
        waiting,
    ]);
    let tops = ["Runs", "Waits", "Late", "Early"].map(|title| {
        let name = format!("Job {title}");
        stage.window.get_by_label(&name).rect().top()
    });
    assert!(tops.is_sorted(), "{tops:?}");
}

#[test]
fn the_queue_scrolls_to_a_job_that_was_just_started() {
    let mut stage = open_sized(with_profiles(), [900.0, 600.0], |builder| builder);
    let jobs = (1..30).map(|n| running(n, &format!("Job {n}"))).collect();
    stage.set_jobs(jobs);
    assert!(!stage.shows("Job Job 29"));
    stage.press("Start");
    let card = stage.window.get_by_label("Job Photos").rect();
    let graph = stage.window.get_by_label_contains("Throughput of").rect();
    assert!(card.bottom() <= graph.top(), "{card} is behind {graph}");
}

#[test]
fn the_list_scrolls_to_a_profile_that_was_just_made() {
    let mut world = with_profiles();
    for n in 3..40 {
        let profile = fake_ports::profile(n, &format!("Profile {n}"));
        world.shelf.push(ShelfItem::Ready(Arc::new(profile)));
    }
    let mut stage = open_sized(world, [900.0, 600.0], |builder| builder);
    let copy = egui::Key::D;
    stage
        .window
        .key_press_modifiers(egui::Modifiers::COMMAND, copy);
    stage.settle();
    let row = stage.window.get_by_label("Photos (copy), not run yet");
    assert!(
        row.rect().bottom() < 600.0,
        "{} is out of sight",
        row.rect()
    );
}

#[test]
fn the_graph_takes_no_room_while_it_has_no_curve() {
    let mut stage = open_sized(with_profiles(), [900.0, 600.0], |builder| builder);
    let mut brief = ended(1, "Brief", Outcome::Completed);
    brief.series = Arc::default();
    stage.set_jobs(vec![brief.clone()]);
    assert!(!stage.shows("Throughput of"));
    let waiting = fake_ports::job(fake_ports::spec(2, "Waits"));
    stage.set_jobs(vec![brief, waiting]);
    stage.expect("Throughput of all jobs");
}

#[test]
fn a_note_about_a_failed_job_says_what_to_do() {
    let mut stage = open(with_profiles());
    let job = ended(1, "Photos", Outcome::Failed(unreachable()));
    let (outcome, report) = job.end.clone().unwrap();
    stage.set_jobs(vec![job]);
    let kind = EventKind::Finished(outcome, report);
    let job = JobId([1; 16]);
    stage
        .world
        .borrow_mut()
        .events
        .push_back(Event { job, kind });
    stage.settle();
    let toasts = &stage.window.state().state.toasts;
    let hint = "Check that the host is on and that its name is right.";
    assert!(
        toasts.iter().any(|toast| toast.text.ends_with(hint)),
        "{toasts:?}"
    );
}

#[test]
fn a_name_that_is_blank_or_taken_is_not_saved() {
    let mut stage = open(with_profiles());
    let saved = |stage: &Stage| {
        let orders = &stage.world.borrow().orders;
        orders.iter().any(|order| matches!(order, Order::Save(_)))
    };
    for (name, words) in [
        ("Music ", "Name: another profile has that name"),
        ("  ", "Name: a profile needs a name that can be seen"),
    ] {
        stage.type_into("Profile name", name);
        stage.expect(words);
        stage.expect("Not saved");
        stage.window.run_steps(8);
        assert!(!saved(&stage), "{name:?}");
    }
    stage.type_into("Profile name", "Pictures");
    stage.window.run_steps(8);
    assert!(saved(&stage) && !stage.shows("Not saved"));
    stage.press("New profile");
    stage.press("New profile");
    let names: Vec<String> = stage
        .window
        .state()
        .state
        .profiles()
        .map(|p| p.name.clone())
        .collect();
    assert!(names.contains(&"New profile 2".to_owned()), "{names:?}");
}

#[test]
fn what_was_just_duplicated_is_what_delete_means() {
    let mut stage = open(with_profiles());
    stage
        .window
        .key_press_modifiers(egui::Modifiers::COMMAND, egui::Key::D);
    stage.settle();
    stage.expect("Photos (copy), not run yet");
    stage.window.key_press(egui::Key::Escape);
    stage.settle();
    let delete = |stage: &mut Stage| {
        let keys = (egui::Modifiers::COMMAND, egui::Key::Delete);
        stage.window.key_press_modifiers(keys.0, keys.1);
        stage.settle();
    };
    // Until the copy is there, nothing is what is meant.
    stage.window.state_mut().state.making = true;
    delete(&mut stage);
    assert!(!stage.shows("Deleted"));
    stage.window.state_mut().state.making = false;
    delete(&mut stage);
    stage.expect("Deleted 'Photos (copy)'");
    stage.expect("Photos, not run yet");
}

#[test]
fn the_arrows_walk_through_the_menu() {
    let mut stage = open(with_profiles());
    stage.press("Menu");
    let focused = |stage: &Stage| {
        let all = stage.window.query_all_by(|node| node.is_focused());
        all.map(|node| node.accesskit_node().label().unwrap_or_default())
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (key, words) in [
        (egui::Key::ArrowDown, "Simulate"),
        (egui::Key::ArrowDown, "Start"),
        (egui::Key::ArrowDown, "New profile"),
        (egui::Key::ArrowUp, "Start"),
        (egui::Key::Home, "Simulate"),
        (egui::Key::ArrowUp, "Quit"),
        (egui::Key::ArrowDown, "Simulate"),
        (egui::Key::End, "Quit"),
    ] {
        stage.window.key_press(key);
        stage.settle();
        assert!(
            focused(&stage).starts_with(words),
            "{key:?}: {}",
            focused(&stage)
        );
    }
}
