//! Raw TCP over a real sshd: what arrives is what was sent, in every byte, mode, time and link.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

#[path = "support/direct.rs"]
mod direct;
mod support;
#[path = "support/tree.rs"]
mod tree;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use direct::{Told, job, plan, run};
use support::sshd::Sshd;
use support::{agent_binary, temp_dir};
use transload::backend::tcp::Tcp;
use transload::model::digest::Algorithm;
use transload::model::entry::{Action, Reason};
use transload::model::job::JobSpec;
use transload::model::location::Location;
use transload::model::outcome::Route;
use transload::model::profile::Encrypt;
use transload::model::rules::Conflict;
use transload::model::verdict::{Verdict, When};

fn local(path: &Path) -> Location {
    Location::Local(path.as_os_str().as_bytes().to_vec())
}

/// A server with the agent installed, and a job with its ssh settings.
fn server() -> Sshd {
    Sshd::setup().agent_in_path(agent_binary()).start()
}

fn tcp(server: &Sshd, sources: Vec<Location>, destination: Location) -> JobSpec {
    let mut spec = job("tcp", sources, destination);
    spec.settings.ssh = server.settings();
    spec
}

#[test]
fn a_varied_tree_arrives_the_same_in_everything_and_comes_back_so() {
    let (server, dir) = (server(), temp_dir());
    let (source, there, back) = (
        dir.path().join("src"),
        dir.path().join("there"),
        dir.path().join("back"),
    );
    for folder in [&source, &there, &back] {
        fs::create_dir(folder).unwrap();
    }
    tree::varied(&source);
    let told = Told::default();
    let push = tcp(&server, vec![local(&source)], server.location(&there));
    let (tally, route) = run(&Tcp, &push, &told).unwrap();
    assert_eq!(route, Route::Direct);
    let files = tree::read(&source)
        .values()
        .filter(|e| e.kind == "file")
        .count() as u64;
    assert_eq!((tally.verified, tally.failed, tally.skipped), (files, 0, 0));
    tree::assert_same(&source, &there.join("src"));
    assert_eq!(
        fs::read_dir(&there).unwrap().count(),
        1,
        "something was left beside it"
    );

    let told = Told::default();
    let pull = tcp(
        &server,
        vec![server.location(there.join("src"))],
        local(&back),
    );
    let (tally, _) = run(&Tcp, &pull, &told).unwrap();
    assert_eq!(tally.verified, files);
    tree::assert_same(&source, &back.join("src"));

    // Once more: nothing is sent.
    let told = Told::default();
    let (tally, _) = run(&Tcp, &push, &told).unwrap();
    assert_eq!((tally.verified, tally.skipped, tally.failed), (0, files, 0));
    assert_eq!(told.counters.snapshot().bytes_done, 0);
}

#[test]
fn every_digest_is_told_with_the_value_that_other_programs_give() {
    let (server, dir) = (server(), temp_dir());
    let source = dir.path().join("f");
    fs::write(&source, b"abc").unwrap();
    let big = dir.path().join("big");
    fs::write(&big, tree::noise(1_500_000, 3)).unwrap();
    for (algorithm, want) in [
        (Algorithm::Md5, "900150983cd24fb0d6963f7d28e17f72"),
        (
            Algorithm::Sha256,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        ),
        (
            Algorithm::Blake3,
            "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
        ),
        (Algorithm::Xxh3, "06b05ab6733a618578af5f94892f3950"),
    ] {
        for read_back in [false, true] {
            let to = dir
                .path()
                .join(format!("to-{}-{read_back}", algorithm.name()));
            fs::create_dir(&to).unwrap();
            let mut spec = tcp(
                &server,
                vec![local(&source), local(&big)],
                server.location(&to),
            );
            spec.settings.verify = algorithm;
            spec.settings.read_back = read_back;
            let told = Told::default();
            let (tally, _) = run(&Tcp, &spec, &told).unwrap();
            assert_eq!(tally.verified, 2);
            let Some(Verdict::Verified { digest, when }) = told.verdict(b"f") else {
                panic!("{:?}", told.verdict(b"f"));
            };
            assert_eq!(digest.to_string(), want);
            assert_eq!(
                when,
                if read_back {
                    When::ReadBack
                } else {
                    When::InFlight
                }
            );
        }
    }
}

#[test]
fn size_only_and_none_say_so_and_never_claim_more() {
    let (server, dir) = (server(), temp_dir());
    let source = dir.path().join("f");
    fs::write(&source, tree::noise(700_000, 1)).unwrap();
    for (algorithm, want) in [
        (Algorithm::Size, "size_only"),
        (Algorithm::None, "unverified"),
    ] {
        let to = dir.path().join(want);
        let mut spec = tcp(&server, vec![local(&source)], server.location(&to));
        spec.settings.verify = algorithm;
        let told = Told::default();
        run(&Tcp, &spec, &told).unwrap();
        assert_eq!(told.verdict(want.as_bytes()).unwrap().name(), want);
        assert_eq!(fs::read(&to).unwrap(), fs::read(&source).unwrap());
    }
}

#[test]
fn a_destination_that_is_not_there_is_the_new_name_and_a_slash_means_into() {
    let (server, dir) = (server(), temp_dir());
    let source = dir.path().join("src");
    fs::create_dir(&source).unwrap();
    fs::write(source.join("a"), b"1").unwrap();
    let at = |tail: &str| Location::Ssh {
        host: server.host(),
        path: [dir.path().as_os_str().as_bytes(), tail.as_bytes()].concat(),
    };
    run(
        &Tcp,
        &tcp(&server, vec![local(&source)], at("/new")),
        &Told::default(),
    )
    .unwrap();
    run(
        &Tcp,
        &tcp(&server, vec![local(&source)], at("/into/")),
        &Told::default(),
    )
    .unwrap();
    let mut contents = tcp(&server, vec![local(&source)], at("/contents"));
    contents.settings.contents = true;
    run(&Tcp, &contents, &Told::default()).unwrap();
    run(
        &Tcp,
        &tcp(&server, vec![local(&source.join("a"))], at("/into/b")),
        &Told::default(),
    )
    .unwrap();
    for path in ["new/a", "into/src/a", "contents/a", "into/b"] {
        assert_eq!(fs::read(dir.path().join(path)).unwrap(), b"1", "{path}");
    }
    // Pull under a new name, and below the home folder.
    fs::write(server.home().join("in home"), b"2").unwrap();
    let home = Location::Ssh {
        host: server.host(),
        path: b"in home".to_vec(),
    };
    run(
        &Tcp,
        &tcp(&server, vec![home], local(&dir.path().join("pulled"))),
        &Told::default(),
    )
    .unwrap();
    assert_eq!(fs::read(dir.path().join("pulled")).unwrap(), b"2");
}

#[test]
fn without_a_port_the_data_goes_the_other_way_or_through_ssh_and_says_why() {
    let (server, dir) = (server(), temp_dir());
    let source = dir.path().join("src");
    fs::create_dir(&source).unwrap();
    tree::varied(&source);
    // Encryption: through ssh.
    let to = dir.path().join("ssh");
    let mut spec = tcp(&server, vec![local(&source)], server.location(&to));
    spec.settings.encrypt = Encrypt::Always;
    let told = Told::default();
    assert_eq!(run(&Tcp, &spec, &told).unwrap().1, Route::Ssh);
    tree::assert_same(&source, &to);
    // And back.
    let back = dir.path().join("back");
    let mut spec = tcp(&server, vec![server.location(&to)], local(&back));
    spec.settings.encrypt = Encrypt::Always;
    assert_eq!(run(&Tcp, &spec, &Told::default()).unwrap().1, Route::Ssh);
    tree::assert_same(&source, &back);
    // A port range that is taken: the agent connects to us.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let to = dir.path().join("reversed");
    let mut spec = tcp(&server, vec![local(&source)], server.location(&to));
    spec.settings.options.0.insert("ports".into(), port);
    let told = Told::default();
    assert_eq!(run(&Tcp, &spec, &told).unwrap().1, Route::Reversed);
    assert!(
        told.notes
            .lock()
            .unwrap()
            .iter()
            .any(|n| n.contains("other side connected"))
    );
    tree::assert_same(&source, &to);
}

#[test]
fn several_streams_carry_one_tree() {
    let (server, dir) = (server(), temp_dir());
    let source = dir.path().join("src");
    fs::create_dir(&source).unwrap();
    tree::varied(&source);
    let to = dir.path().join("to");
    let mut spec = tcp(&server, vec![local(&source)], server.location(&to));
    spec.settings.options.0.insert("streams".into(), "4".into());
    run(&Tcp, &spec, &Told::default()).unwrap();
    tree::assert_same(&source, &to);
}

#[test]
fn a_plan_writes_nothing_and_says_what_a_run_then_does() {
    let (server, dir) = (server(), temp_dir());
    let (source, to) = (dir.path().join("src"), dir.path().join("to"));
    fs::create_dir_all(to.join("src")).unwrap();
    fs::create_dir(&source).unwrap();
    for (name, here, there) in [
        ("new", "1", None),
        ("same", "2", Some("2")),
        ("other", "33", Some("4")),
    ] {
        tree::file(&source.join(name), here.as_bytes(), 0o644, 1_000, 0);
        if let Some(text) = there {
            tree::file(&to.join("src").join(name), text.as_bytes(), 0o644, 1_000, 0);
        }
    }
    let before = tree::read(&to);
    let told = Told::default();
    let spec = tcp(&server, vec![local(&source)], server.location(&to));
    let totals = plan(&Tcp, &spec, &told).unwrap();
    assert_eq!((totals.create, totals.update, totals.bytes), (1, 1, 3));
    assert_eq!(tree::read(&to), before);
    let steps = told.steps.lock().unwrap();
    let of = |name: &str| {
        steps
            .iter()
            .find(|s| s.path == format!("src/{name}").as_bytes())
            .map(|s| (s.action, s.reason))
    };
    assert_eq!(of("new"), Some((Action::Create, Reason::Missing)));
    assert_eq!(of("same"), Some((Action::Keep, Reason::Same)));
    assert_eq!(of("other"), Some((Action::Update, Reason::Size)));
    // What cannot be read is warned of once, whichever end finds it.
    let gone = dir.path().join("gone");
    let from = server.location(&gone);
    for (sources, to) in [
        (vec![local(&gone), local(&source)], server.location(&to)),
        (vec![from, server.location(&source)], local(&to)),
    ] {
        let told = Told::default();
        plan(&Tcp, &tcp(&server, sources, to), &told).unwrap();
        assert_eq!(told.warnings.lock().unwrap().len(), 1);
    }
    // A destination that is not there at all.
    let nowhere = tcp(
        &server,
        vec![local(&source)],
        server.location(dir.path().join("no/where/")),
    );
    assert_eq!(plan(&Tcp, &nowhere, &Told::default()).unwrap().create, 4);
    assert!(!dir.path().join("no").exists());
}

#[test]
fn each_conflict_rule_does_what_it_says() {
    let (server, dir) = (server(), temp_dir());
    let source = dir.path().join("f.txt");
    tree::file(&source, b"new and longer", 0o644, 2_000, 0);
    for (rule, want, beside) in [
        (Conflict::Differs, "new and longer", false),
        (Conflict::Overwrite, "new and longer", false),
        (Conflict::Newer, "new and longer", false),
        (Conflict::Larger, "new and longer", false),
        (Conflict::Resume, "new and longer", false),
        (Conflict::Skip, "old", false),
        (Conflict::Fail, "old", false),
        (Conflict::Rename, "old", true),
    ] {
        let to = dir.path().join(rule.name());
        fs::create_dir(&to).unwrap();
        tree::file(&to.join("f.txt"), b"old", 0o644, 1_000, 0);
        let mut spec = tcp(&server, vec![local(&source)], server.location(&to));
        spec.settings.conflict = rule;
        let told = Told::default();
        let (tally, _) = run(&Tcp, &spec, &told).unwrap();
        assert_eq!(
            fs::read(to.join("f.txt")).unwrap(),
            want.as_bytes(),
            "{rule:?}"
        );
        assert_eq!(tally.failed, u64::from(rule == Conflict::Fail), "{rule:?}");
        let other = to.join("f (1).txt");
        assert_eq!(other.exists(), beside, "{rule:?}");
        if beside {
            assert_eq!(fs::read(other).unwrap(), b"new and longer");
            assert_eq!(told.verdict(b"f (1).txt").unwrap().name(), "verified");
        }
    }
}

#[test]
fn what_is_not_copied_is_named_and_the_rest_arrives() {
    let (server, dir) = (server(), temp_dir());
    let (source, to) = (dir.path().join("src"), dir.path().join("to"));
    fs::create_dir(&source).unwrap();
    fs::write(source.join("ok"), b"ok").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        source.join("pipe"),
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    fs::create_dir_all(to.join("src/in the way")).unwrap();
    fs::write(source.join("in the way"), b"x").unwrap();
    let told = Told::default();
    let gone = dir.path().join("gone");
    let spec = tcp(
        &server,
        vec![local(&source), local(&gone)],
        server.location(&to),
    );
    let (tally, _) = run(&Tcp, &spec, &told).unwrap();
    assert_eq!((tally.verified, tally.skipped, tally.failed), (1, 1, 2));
    assert_eq!(told.verdict(b"src/pipe").unwrap().name(), "skipped");
    assert_eq!(told.verdict(b"src/in the way").unwrap().name(), "failed");
    assert_eq!(
        told.verdict(gone.as_os_str().as_bytes()).unwrap().name(),
        "failed"
    );
    assert_eq!(fs::read(to.join("src/ok")).unwrap(), b"ok");
    assert!(to.join("src/in the way").is_dir());
}

#[test]
fn what_keeps_no_permissions_gets_those_that_any_program_would_give_it() {
    let (server, dir) = (server(), temp_dir());
    let source = dir.path().join("src");
    fs::create_dir(&source).unwrap();
    tree::file(&source.join("file"), b"1", 0o600, 1_000, 0);
    fs::create_dir(source.join("folder")).unwrap();
    fs::set_permissions(source.join("folder"), fs::Permissions::from_mode(0o700)).unwrap();
    // What a program of the same account makes there.
    let made = dir.path().join("made");
    fs::create_dir(&made).unwrap();
    fs::write(made.join("file"), b"1").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for push in [true, false] {
        let to = dir.path().join(format!("to-{push}/new"));
        let mut spec = match push {
            true => tcp(&server, vec![local(&source)], server.location(&to)),
            false => tcp(&server, vec![server.location(&source)], local(&to)),
        };
        spec.settings.preserve.permissions = false;
        run(&Tcp, &spec, &Told::default()).unwrap();
        assert_eq!(mode(&to.join("file")), mode(&made.join("file")), "{push}");
        for folder in [&to, &to.join("folder"), &to.parent().unwrap().to_owned()] {
            assert_eq!(mode(folder), mode(&made), "{push} {folder:?}");
        }
    }
}
