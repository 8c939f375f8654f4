//! A proxy in the data path flips bits, cuts, and swallows: nothing wrong ever gets a final name.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)] // tests run programs and may panic

#[path = "support/direct.rs"]
mod direct;
mod support;
#[path = "support/tree.rs"]
mod tree;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use direct::{Told, job, run};
use support::sshd::Sshd;
use support::{agent_binary, temp_dir};
use transload::backend::tcp::Tcp;
use transload::model::error::ErrorKind;
use transload::model::job::JobSpec;
use transload::model::location::Location;
use transload::model::outcome::Route;

/// What the proxy does to the bytes that go to the receiver.
#[derive(Clone, Copy)]
enum Harm {
    Flip(usize),
    Cut(usize),
}

/// Listens on another loopback address at the agent's port, and passes on with harm.
struct Proxy {
    harmed: Arc<AtomicUsize>,
}

impl Proxy {
    /// Listens; the first connection that reaches the place is harmed there, later ones are not.
    /// Returns the port: one number on two loopback addresses, the agent's and the proxy's.
    fn start(harm: Harm) -> (Self, u16) {
        let (listener, target) = (0..100)
            .find_map(|_| {
                let free = TcpListener::bind("127.0.0.1:0").ok()?;
                let port = free.local_addr().ok()?.port();
                let listener = TcpListener::bind(("127.0.0.2", port)).ok()?;
                Some((listener, port))
            })
            .expect("a port is free on both addresses");
        let harmed = Arc::new(AtomicUsize::new(0));
        let count = harmed.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let Ok(other) = TcpStream::connect(("127.0.0.1", target)) else {
                    continue;
                };
                pass(
                    stream.try_clone().unwrap(),
                    other.try_clone().unwrap(),
                    Some((harm, count.clone())),
                );
                pass(other, stream, None);
            }
        });
        (Self { harmed }, target)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, harm: Option<(Harm, Arc<AtomicUsize>)>) {
    std::thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        let mut seen = 0;
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            let mut cut = false;
            if let Some((harm, count)) = &harm {
                let (Harm::Flip(at) | Harm::Cut(at)) = *harm;
                if (seen..seen + n).contains(&at) && count.fetch_add(1, SeqCst) == 0 {
                    match harm {
                        Harm::Flip(_) => buffer[at - seen] ^= 1 << (at % 8),
                        Harm::Cut(_) => cut = true,
                    }
                }
            }
            seen += n;
            if cut || to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
        let _ = from.shutdown(std::net::Shutdown::Both);
    });
}

/// Sends a tree through a proxy that harms the data, with as many attempts as a person would make.
fn through(harm: Harm, source: &Path, to: &Path, server: &Sshd) -> (usize, usize) {
    let (proxy, port) = Proxy::start(harm);
    let mut spec = push(server, source, to);
    spec.settings
        .options
        .0
        .insert("ports".into(), port.to_string());
    spec.settings
        .options
        .0
        .insert("data-host".into(), "127.0.0.2".into());
    for attempt in 1..=3 {
        match run(&Tcp, &spec, &Told::default()) {
            Ok((tally, route)) => {
                assert_eq!(route, Route::Direct);
                assert_eq!(tally.failed + tally.differs, 0);
                return (attempt, proxy.harmed.load(SeqCst));
            }
            Err(error) => {
                assert!(
                    matches!(error.kind, ErrorKind::Corrupt | ErrorKind::Disconnected),
                    "{error}"
                );
                assert_whole(source, to);
                spec.resume = true;
            }
        }
    }
    panic!("three attempts did not do");
}

fn push(server: &Sshd, source: &Path, to: &Path) -> JobSpec {
    let local = Location::Local(source.as_os_str().as_bytes().to_vec());
    let mut spec = job("tcp", vec![local], server.location(to));
    spec.settings.ssh = server.settings();
    spec
}

/// Whatever has its final name is whole and right.
fn assert_whole(source: &Path, to: &Path) {
    let want = tree::read(source);
    for (name, entry) in tree::read(to) {
        if entry.kind == "file" && !name.starts_with(b".transload-") {
            assert!(
                want[&name].content == entry.content,
                "{}",
                String::from_utf8_lossy(&name)
            );
        }
    }
}

fn sample(dir: &Path) -> std::path::PathBuf {
    let source = dir.join("src");
    fs::create_dir(&source).unwrap();
    for n in 0..40 {
        fs::write(
            source.join(format!("small-{n}")),
            tree::noise(n * 331, n as u64),
        )
        .unwrap();
    }
    fs::write(source.join("large"), tree::noise(1_300_000, 77)).unwrap();
    source
}

#[test]
fn each_of_a_hundred_flipped_bits_is_detected_and_the_files_sent_again() {
    let (server, dir) = (
        Sshd::setup().agent_in_path(agent_binary()).start(),
        temp_dir(),
    );
    let source = sample(dir.path());
    let total = 1_550_000;
    for n in 0..100 {
        let to = dir.path().join(format!("to-{n}"));
        // The first bytes are the handshake; from there on headers, tables, payload and tags.
        let at = 70 + n * (total - 70) / 100;
        let (attempts, harmed) = through(Harm::Flip(at), &source, &to, &server);
        assert!(harmed >= 1, "nothing was flipped at {at}");
        assert!(attempts >= 2, "a flip at {at} went unseen");
        tree::assert_same(&source, &to);
        fs::remove_dir_all(&to).unwrap();
    }
}

#[test]
fn a_connection_that_is_cut_anywhere_is_taken_up_again() {
    let (server, dir) = (
        Sshd::setup().agent_in_path(agent_binary()).start(),
        temp_dir(),
    );
    let source = sample(dir.path());
    for (n, at) in [
        0, 1, 37, 38, 69, 70, 109, 110, 5_000, 300_000, 900_000, 1_540_000,
    ]
    .into_iter()
    .enumerate()
    {
        let to = dir.path().join(format!("to-{n}"));
        through_any(Harm::Cut(at), &source, &to, &server);
        tree::assert_same(&source, &to);
    }
}

/// As `through`, but a cut within the handshake may also end in another route at once.
fn through_any(harm: Harm, source: &Path, to: &Path, server: &Sshd) {
    let (Harm::Flip(at) | Harm::Cut(at)) = harm;
    if at >= 70 {
        through(harm, source, to, server);
        return;
    }
    let (_proxy, port) = Proxy::start(harm);
    let mut spec = push(server, source, to);
    spec.settings
        .options
        .0
        .insert("ports".into(), port.to_string());
    spec.settings
        .options
        .0
        .insert("data-host".into(), "127.0.0.2".into());
    let (tally, route) = run(&Tcp, &spec, &Told::default()).unwrap();
    assert_ne!(route, Route::Direct);
    assert_eq!(tally.failed, 0);
}
