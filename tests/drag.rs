//! Drags onto a window under a real X server: what the window hears of them, whatever the program
//! at the other end does.
#![cfg(feature = "gui")]
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

mod support {
    pub mod display;
    pub mod drop_window;
    pub mod xdnd;
}

use std::path::PathBuf;

use transload::model::drop::{DropEvent, DroppedItem};
use x11rb::protocol::xproto::ConnectionExt as _;

use support::display::Display;
use support::drop_window::{Fixture, PATIENCE, take_drags};
use support::xdnd::{Drag, End, Hands, uri};

fn refusal(items: &[DroppedItem]) -> &str {
    match items {
        [DroppedItem::Refused { text, why }] if text.to_string() == "the whole drop" => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_drop_tells_where_it_hovers_how_many_it_holds_and_what_cannot_be_taken() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let fixture = Fixture::start();
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsStr::from_bytes(b"caf\xe9 \xff.txt"));
    let link = folder.path().join("link");
    let gone = folder.path().join("gone");
    std::fs::write(&odd, "x").unwrap();
    std::os::unix::fs::symlink(&odd, &link).unwrap();
    let uris = [uri(&odd), uri(&gone), "smb://nas/x".to_owned(), uri(&link)];
    let seen = fixture.drag(Drag {
        many_types: true,
        ..Drag::of(&uris)
    });
    assert!(seen.accepts && seen.copies, "{seen:?}");
    assert_eq!(
        (seen.statuses, seen.finished, seen.asked),
        (2, Some(true), 1)
    );

    let mut events = fixture.events();
    let position = (200, 150);
    let Some(DropEvent::Dropped {
        position: at,
        items,
    }) = events.pop()
    else {
        panic!("{events:?}");
    };
    assert_eq!(at, position);
    assert_eq!(items[0], DroppedItem::Path(odd));
    assert!(matches!(&items[1], DroppedItem::Refused { text, why }
        if text.to_string() == gone.display().to_string() && why == "it is no longer there"));
    assert!(matches!(&items[2], DroppedItem::Refused { why, .. } if why.contains("smb:")));
    assert_eq!(items[3], DroppedItem::Path(link));
    assert_eq!(
        events[0],
        DropEvent::Hover {
            position: (20, 20),
            count: None
        }
    );
    assert!(
        events.contains(&DropEvent::Hover {
            position,
            count: Some(4)
        }),
        "{events:?}"
    );
    assert!(fixture.undisturbed(), "the toolkit heard of it as well");
}

#[test]
fn ten_thousand_files_are_one_drop_in_one_piece_and_in_many() {
    let fixture = Fixture::start();
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..10_000)
        .map(|n| {
            folder
                .path()
                .join(format!("a rather long name of a file, number {n:05}.txt"))
        })
        .collect();
    for path in &paths {
        std::fs::write(path, "").unwrap();
    }
    let uris: Vec<String> = paths.iter().map(|path| uri(path)).collect();
    let want: Vec<_> = paths.into_iter().map(DroppedItem::Path).collect();
    for hands in [
        Hands::Whole,
        Hands::Pieces(64 << 10),
        Hands::Pieces(1 << 20),
    ] {
        let seen = fixture.drag(Drag {
            hands,
            ..Drag::of(&uris)
        });
        assert_eq!(seen.finished, Some(true));
        assert!(fixture.items() == want, "another list arrived");
    }
}

#[test]
fn moving_away_or_dying_ends_the_hover() {
    let fixture = Fixture::start();
    for end in [End::Leave, End::DieHovering] {
        fixture.drag(Drag {
            end,
            ..Drag::of(&["file:///etc/passwd"])
        });
        assert_eq!(fixture.events().pop(), Some(DropEvent::Leave));
    }
}

#[test]
fn a_list_that_is_refused_while_hovering_is_asked_for_again_by_the_drop() {
    let fixture = Fixture::start();
    let seen = fixture.drag(Drag {
        hands: Hands::AfterTheDrop,
        ..Drag::of(&["file:///etc/passwd"])
    });
    assert_eq!((seen.finished, seen.asked), (Some(true), 2));
    assert_eq!(fixture.items(), [DroppedItem::Path("/etc/passwd".into())]);
}

#[test]
fn a_drop_that_brings_no_list_says_why() {
    let fixture = Fixture::start();
    let drag = || Drag::of(&["file:///etc/passwd"]);

    let seen = fixture.drag(Drag {
        hands: Hands::No,
        ..drag()
    });
    assert_eq!(seen.finished, Some(false));
    assert!(refusal(&fixture.items()).ends_with("refused to hand it over"));

    fixture.drag(Drag {
        hands: Hands::Nothing,
        end: End::DieDropping,
        ..drag()
    });
    assert!(refusal(&fixture.items()).ends_with("ended before it handed it over"));

    let seen = fixture.drag(Drag {
        list: b"# nothing\r\n".to_vec(),
        ..drag()
    });
    assert_eq!(seen.finished, Some(false));
    assert!(refusal(&fixture.items()).ends_with("listed no files"));
}

#[test]
fn a_program_that_never_hands_over_does_not_hold_the_window() {
    let fixture = Fixture::start();
    let drag = || Drag::of(&["file:///etc/passwd"]);
    for hands in [Hands::Nothing, Hands::OnePieceOnly(5)] {
        let seen = fixture.drag(Drag { hands, ..drag() });
        assert_eq!(seen.finished, Some(false));
        assert!(refusal(&fixture.items()).ends_with("did not hand it over in time"));
        // And the next drop works.
        fixture.drag(drag());
        assert_eq!(fixture.items(), [DroppedItem::Path("/etc/passwd".into())]);
    }
}

#[test]
fn a_list_too_long_to_take_is_refused_as_a_whole() {
    let fixture = Fixture::start();
    let list = b"file:///etc/passwd\r\n".repeat((64 << 20) / 20 + 1);
    let hands = Hands::Pieces(8 << 20);
    let seen = fixture.drag(Drag {
        list,
        hands,
        ..Drag::of::<&str>(&[])
    });
    assert_eq!(seen.finished, Some(false));
    assert!(refusal(&fixture.items()).starts_with("its list is longer than 64 MiB"));
}

#[test]
fn what_is_no_list_of_files_is_not_accepted() {
    let fixture = Fixture::start();
    let seen = fixture.drag(Drag {
        no_list: true,
        ..Drag::of(&["file:///etc/passwd"])
    });
    assert_eq!((seen.statuses, seen.accepts, seen.asked), (2, false, 0));
    fixture.drag(Drag {
        end: End::Leave,
        ..Drag::of(&["file:///etc/passwd"])
    });
    assert_eq!(fixture.events().last(), Some(&DropEvent::Leave));
}

#[test]
fn a_program_that_ignores_the_stand_in_talks_to_the_window_alone() {
    let fixture = Fixture::start();
    // It comes and goes without waiting for answers, which this bare window does not give.
    fixture.drag(Drag {
        path: Vec::new(),
        end: End::Leave,
        ignores_proxy: true,
        ..Drag::of(&["file:///etc/passwd"])
    });
    assert!(!fixture.undisturbed(), "the window never heard of it");
    // A second drag proves that the stand-in is past the time of the first.
    fixture.drag(Drag {
        end: End::Leave,
        ..Drag::of(&["file:///etc/passwd"])
    });
    let events = fixture.events();
    assert!(matches!(events[0], DropEvent::Hover { .. }), "{events:?}");
    assert_eq!(events.last(), Some(&DropEvent::Leave));
}

#[test]
fn closing_gives_the_window_back_and_it_can_be_taken_again() {
    let mut fixture = Fixture::start();
    for _ in 0..3 {
        let proxy = fixture.proxy().unwrap();
        fixture.target = None;
        fixture.until(|| !fixture.exists(proxy));
        assert_eq!(fixture.proxy(), None);
        let (target, woken) = take_drags(&fixture.display, fixture.window);
        (fixture.target, fixture.woken) = (Some(target), woken);
        fixture.until(|| fixture.proxy().is_some());
        fixture.drag(Drag::of(&["file:///etc/passwd"]));
        assert_eq!(fixture.items(), [DroppedItem::Path("/etc/passwd".into())]);
    }
}

#[test]
fn a_window_that_goes_away_takes_its_stand_in_along_without_a_fault() {
    let fixture = Fixture::start();
    let proxy = fixture.proxy().unwrap();
    fixture.conn.destroy_window(fixture.window).unwrap();
    fixture.until(|| !fixture.exists(proxy));
    assert_eq!(fixture.target.as_ref().unwrap().fault(), None);
}

#[test]
fn a_window_that_was_never_there_is_a_fault_that_wakes_the_caller() {
    let display = Display::start();
    let (target, woken) = take_drags(&display, 0x0dea_d000);
    woken.recv_timeout(PATIENCE).unwrap();
    let fault = target.fault().unwrap().to_string();
    assert!(
        fault.starts_with("Failed to take drags from the desktop: "),
        "{fault}"
    );
}
