//! What only sftp has to prove, over a real sshd: servers that lack extensions, are full or mean
//! harm, connections that break, and files that are read back.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // tests run programs and may panic

#[path = "support/direct.rs"]
mod direct;
mod support;
#[path = "support/tree.rs"]
mod tree;

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use direct::{Told, job, plan, run};
use support::sshd::{Sshd, children_of};
use support::temp_dir;
use tempfile::TempDir;
use transload::backend::by_id;
use transload::backend::contract::Backend;
use transload::model::error::{ErrorKind, Result};
use transload::model::job::JobSpec;
use transload::model::location::Location;
use transload::model::outcome::Tally;
use transload::model::rules::Conflict;
use transload::model::verdict::{Verdict, When};

/// OpenSSH's own, which can be told to refuse requests.
const SERVER: &str = "/usr/lib/openssh/sftp-server";

fn sftp() -> &'static dyn Backend {
    by_id("sftp").expect("it is in the registry")
}

fn local(path: &Path) -> Location {
    Location::Local(path.as_os_str().as_bytes().to_vec())
}

fn spec(server: &Sshd, from: Location, to: Location) -> JobSpec {
    let mut spec = job("sftp", vec![from], to);
    spec.settings.ssh = server.settings();
    spec
}

fn go(spec: &JobSpec, told: &Told) -> Result<Tally> {
    run(sftp(), spec, told).map(|(tally, _)| tally)
}

/// A source folder with these files, and a place to copy it to.
fn folders(files: &[(&str, &[u8])]) -> (TempDir, std::path::PathBuf, std::path::PathBuf) {
    let dir = temp_dir();
    let (source, there) = (dir.path().join("src"), dir.path().join("there"));
    fs::create_dir(&source).unwrap();
    fs::create_dir(&there).unwrap();
    for (name, content) in files {
        tree::file(&source.join(name), content, 0o644, 1_500_000_000, 0);
    }
    (dir, source, there)
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|e| e.unwrap());
    let mut names: Vec<String> = entries
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Puts a program into a folder that sshd can start as its sftp server.
fn program(dir: &TempDir, script: &str) -> String {
    support::tool("perl", "perl-base");
    let path = dir.path().join("server");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_server_without_any_extension_gets_everything_and_loses_no_old_file() {
    let denied = "posix-rename,fsync,lsetstat,limits,statvfs,hardlink,expand-path";
    let server = Sshd::setup()
        .sftp_server(&format!("{SERVER} -P {denied}"))
        .start();
    let (_dir, source, there) = folders(&[("a", b"new a"), ("b", b"new b")]);
    symlink("a", source.join("link")).unwrap();
    fs::write(there.join("a"), "old").unwrap();
    symlink("nowhere", there.join("link")).unwrap();
    let mut push = spec(&server, local(&source), server.location(&there));
    push.settings.contents = true;
    let told = Told::default();
    let tally = go(&push, &told).unwrap();
    assert_eq!((tally.unchecked, tally.failed), (2, 0));
    assert_eq!(names_in(&there), ["a", "b", "link"]);
    assert_eq!(fs::read(there.join("a")).unwrap(), b"new a");
    assert_eq!(fs::read_link(there.join("link")).unwrap(), Path::new("a"));
    let notes = told.notes.lock().unwrap().join("\n");
    assert!(notes.contains("cannot flush files"), "{notes}");
}

#[test]
fn an_old_file_is_put_back_where_the_new_one_does_not_get_its_name() {
    // Nothing can be renamed out of the folder of parts but what was moved into it before.
    let dir = temp_dir();
    let script = FAKE.replace("MODE", "stubborn");
    let server = Sshd::setup().sftp_server(&program(&dir, &script)).start();
    let (_dir, source, _) = folders(&[("f", b"new")]);
    let push = spec(
        &server,
        local(&source.join("f")),
        server.location("/there/f"),
    );
    let told = Told::default();
    let tally = go(&push, &told).unwrap();
    assert_eq!(tally.failed, 1);
    let Some(Verdict::Failed(error)) = told.verdict(b"f") else {
        panic!("no row");
    };
    assert!(
        error.to_string().contains("give the file its name"),
        "{error}"
    );
    let log = fs::read_to_string(server.home().join("renames")).unwrap();
    let renames: Vec<&str> = log.lines().collect();
    // Plainly, the old one away, the new one, the old one back.
    assert_eq!(renames.len(), 4, "{log}");
    let (away, back) = (renames[1], renames[3]);
    let aside = away.strip_prefix("/there/f ").unwrap();
    assert!(aside.contains("/old-"), "{away}");
    assert_eq!(back, format!("{aside} /there/f"));
}

#[test]
fn a_place_that_cannot_be_written_is_told_and_left_as_it_was() {
    let server = Sshd::setup().sftp_server(&format!("{SERVER} -R")).start();
    let (_dir, source, there) = folders(&[("a", b"1")]);
    let push = spec(&server, local(&source), server.location(&there));
    let error = go(&push, &Told::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    assert!(!error.place.is_empty() && error.hint.is_some(), "{error}");
    assert!(names_in(&there).is_empty());
    // A dry run asks for nothing that it refuses.
    assert_eq!(plan(sftp(), &push, &Told::default()).unwrap().create, 2);
    let pull = spec(&server, server.location(&source), local(&there));
    assert_eq!(go(&pull, &Told::default()).unwrap().failed, 0);
}

#[test]
fn a_full_disk_ends_the_run_and_is_called_so() {
    let dir = temp_dir();
    let script = FAKE.replace("MODE", "full");
    let server = Sshd::setup().sftp_server(&program(&dir, &script)).start();
    let (_dir, source, _) = folders(&[("a", b"1"), ("b", b"2")]);
    let push = spec(&server, local(&source), server.location("/there/"));
    let error = go(&push, &Told::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::NoSpace, "{error}");
    assert!(error.to_string().contains("/there"), "{error}");
}

#[test]
fn where_sftp_is_switched_off_the_error_says_so() {
    let server = Sshd::setup().sftp_server("").start();
    let (_dir, source, there) = folders(&[]);
    let push = spec(&server, local(&source), server.location(&there));
    let error = go(&push, &Told::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("switched off on nas"), "{error}");
    let noisy = Sshd::setup().noise(b"Welcome!\r\nsecond line\n").start();
    let push = spec(&noisy, local(&source), noisy.location(&there));
    go(&push, &Told::default()).unwrap();
    let login = Sshd::setup().password_only().start();
    let push = spec(&login, local(&source), login.location(&there));
    let error = go(&push, &Told::default()).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Login, "{error}");
}

/// Ends every session of a server and leaves the server itself.
fn break_connections(server: &Sshd) {
    for pid in children_of(server.pid()) {
        let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[test]
fn a_connection_that_breaks_leaves_no_half_file_and_the_same_job_goes_on() {
    let server = Sshd::start();
    for far in [true, false] {
        let big = tree::noise(8_000_000, 7);
        let (_dir, source, there) = folders(&[("a", b"small"), ("big", &big), ("c", b"c")]);
        let (from, to) = match far {
            true => (local(&source), server.location(&there)),
            false => (server.location(&source), local(&there)),
        };
        let mut spec = spec(&server, from, to);
        spec.settings.contents = true;
        let told = Told::default();
        told.limit.0.store(2_000_000, Relaxed);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| go(&spec, &told));
            support::wait_until("bytes move", || {
                told.counters.snapshot().bytes_done > 500_000
            });
            break_connections(&server);
            let error = running.join().unwrap().unwrap_err();
            assert_eq!(error.kind, ErrorKind::Disconnected, "{far}: {error}");
        });
        assert!(!there.join("big").exists(), "{far}");
        spec.resume = true;
        let told = Told::default();
        let tally = go(&spec, &told).unwrap();
        assert_eq!(tally.failed, 0, "{far}");
        assert_eq!(names_in(&there), ["a", "big", "c"], "{far}");
        tree::assert_same(&source, &there);
    }
}

#[test]
fn reading_back_finds_what_a_server_stored_wrongly() {
    // What is written is changed on its way into the server, at the same length.
    let dir = temp_dir();
    let script = format!(
        "#!/bin/sh\nperl -e '$| = 1; while (sysread(STDIN, $b, 65536)) \
         {{ $b =~ s/GOOD/EVIL/g; syswrite(STDOUT, $b) }}' | {SERVER}\n"
    );
    let server = Sshd::setup().sftp_server(&program(&dir, &script)).start();
    let (_dir, source, there) = folders(&[("bad", b"it is GOOD"), ("fine", b"fine")]);
    let mut push = spec(&server, local(&source), server.location(&there));
    push.settings.contents = true;
    let told = Told::default();
    assert_eq!(go(&push, &told).unwrap().unchecked, 2);
    assert!(matches!(told.verdict(b"bad"), Some(Verdict::Unverified(_))));
    push.settings.read_back = true;
    push.settings.conflict = Conflict::Overwrite;
    let told = Told::default();
    let tally = go(&push, &told).unwrap();
    assert_eq!((tally.differs, tally.verified), (1, 1));
    assert!(matches!(
        told.verdict(b"fine"),
        Some(Verdict::Verified {
            when: When::ReadBack,
            ..
        })
    ));
    let progress = told.counters.snapshot();
    assert_eq!(progress.bytes_done, progress.bytes_total);
}

#[test]
fn many_files_folders_and_links_go_there_and_back_with_every_byte_read_back() {
    let server = Sshd::start();
    let (dir, source, there) = folders(&[]);
    let back = dir.path().join("back");
    fs::create_dir(&back).unwrap();
    for n in 0..40 {
        let folder = source.join(format!("folder {n}/sub"));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..8 {
            let name = folder.join(format!("{file}"));
            tree::file(&name, &tree::noise(n * 100 + file, 1), 0o640, 1_234_567, 0);
        }
        symlink(format!("../{n}"), folder.join("link")).unwrap();
    }
    // As deep as a path may be, nearly.
    let name = "deep".repeat(10);
    let mut deep = std::path::PathBuf::from("deep");
    for _ in 0..60 {
        deep.push(&name);
    }
    fs::create_dir_all(source.join(&deep)).unwrap();
    fs::write(source.join(&deep).join("bottom"), "end").unwrap();
    let mut push = spec(&server, local(&source), server.location(&there));
    push.settings.contents = true;
    push.settings.read_back = true;
    let mut pull = spec(&server, server.location(&there), local(&back));
    pull.settings = push.settings.clone();
    for way in [&push, &pull] {
        let told = Told::default();
        let tally = go(way, &told).unwrap();
        assert_eq!((tally.verified, tally.failed), (321, 0));
        // Nothing is left to do, not even to links.
        let totals = plan(sftp(), way, &Told::default()).unwrap();
        assert_eq!((totals.create, totals.update), (0, 0));
    }
    let contents = |root: &Path| {
        let all = tree::read(root).into_iter();
        all.map(|(name, e)| (name, e.kind, e.mode, e.mtime.0, e.content))
            .collect::<Vec<_>>()
    };
    assert!(contents(&source) == contents(&there));
    assert!(contents(&source) == contents(&back));
}

#[test]
fn links_at_the_destination_are_obstacles_and_never_followed() {
    let server = Sshd::start();
    for far in [true, false] {
        let (dir, source, there) = folders(&[("file", b"new")]);
        let outside = dir.path().join("outside");
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("victim"), "old").unwrap();
        fs::create_dir(source.join("folder")).unwrap();
        fs::write(source.join("folder/f"), "1").unwrap();
        symlink(&outside, there.join("folder")).unwrap();
        symlink(outside.join("victim"), there.join("file")).unwrap();
        let (from, to) = match far {
            true => (local(&source), server.location(&there)),
            false => (server.location(&source), local(&there)),
        };
        let mut spec = spec(&server, from, to);
        spec.settings.contents = true;
        let told = Told::default();
        let tally = go(&spec, &told).unwrap();
        assert_eq!(names_in(&outside), ["victim"], "{far}");
        assert_eq!(fs::read(outside.join("victim")).unwrap(), b"old", "{far}");
        assert_eq!(fs::read(there.join("file")).unwrap(), b"new", "{far}");
        assert!(
            matches!(told.verdict(b"folder/f"), Some(Verdict::Failed(_))),
            "{far}"
        );
        assert!(tally.failed >= 1, "{far}");
    }
}

#[test]
fn a_time_with_a_fraction_is_the_same_time_for_a_source_that_has_none() {
    let server = Sshd::start();
    let (_dir, source, there) = folders(&[]);
    tree::file(&source.join("f"), b"1", 0o644, 1_500_000_000, 123_456_789);
    tree::file(&there.join("f"), b"1", 0o644, 1_500_000_000, 987_654_321);
    let pull = spec(&server, server.location(source.join("f")), local(&there));
    let told = Told::default();
    assert_eq!(go(&pull, &told).unwrap().skipped, 1);
}

/// A server behind a line on which everything takes 20 ms each way.
const FAR_AWAY: &str = r#"#!/usr/bin/perl
use strict; use IPC::Open2; use Time::HiRes qw(time);
my $pid = open2(my $out, my $in, '/usr/lib/openssh/sftp-server');
my @ways = ([\*STDIN, $in, []], [$out, \*STDOUT, []]);
my $open = 2;
while ($open) {
    my ($bits, $wait) = ('', undef);
    for (@ways) { vec($bits, fileno $_->[0], 1) = 1 if $_->[0] }
    for (map { $_->[2][0] || () } @ways) {
        my $left = $_->[0] - time; $left = 0 if $left < 0;
        $wait = $left if !defined $wait || $left < $wait;
    }
    select($bits, undef, undef, $wait);
    for my $way (@ways) {
        my ($from, $to, $queue) = @$way;
        if ($from && vec($bits, fileno $from, 1)) {
            my $got = sysread $from, my $data, 65536;
            push @$queue, [time + 0.02, $got ? $data : undef];
            $way->[0] = undef unless $got;
        }
        while (@$queue && $queue->[0][0] <= time) {
            my $data = (shift @$queue)->[1];
            if (!defined $data) { close $to; $open--; next }
            while (length $data) { substr($data, 0, syswrite($to, $data) // exit) = '' }
        }
    }
}
"#;

#[test]
fn a_long_line_costs_no_round_trip_for_each_file_link_or_digest() {
    let dir = temp_dir();
    let server = Sshd::setup().sftp_server(&program(&dir, FAR_AWAY)).start();
    let (dir, source, there) = folders(&[]);
    for n in 0..300 {
        fs::write(source.join(format!("{n}")), format!("{n}")).unwrap();
        symlink(format!("{n}"), source.join(format!("link {n}"))).unwrap();
    }
    let mut push = spec(&server, local(&source), server.location(&there));
    push.settings.contents = true;
    push.settings.durable = false; // the line is what is measured
    push.settings.read_back = true;
    let mut pull = spec(
        &server,
        server.location(&there),
        local(&dir.path().join("back")),
    );
    pull.settings = push.settings.clone();
    for way in [&push, &pull] {
        let began = std::time::Instant::now();
        assert_eq!(go(way, &Told::default()).unwrap().verified, 300);
        // A round trip for each would take 24 s; one for each request of each, much more.
        let took = began.elapsed();
        assert!(took < std::time::Duration::from_secs(10), "{took:?}");
    }
}

/// A server that answers what it likes.
const FAKE: &str = r#"#!/usr/bin/perl
use strict;
my $mode = 'MODE';
binmode STDIN; binmode STDOUT;
sub get { my ($n, $b) = (shift, ''); while (length $b < $n) {
    exit 0 unless sysread(STDIN, my $c, $n - length $b); $b .= $c } $b }
sub put { my $p = shift; syswrite(STDOUT, pack('N', length $p) . $p) }
sub text { pack('N/a*', shift) }
sub attrs { my ($mode, $size) = @_; pack('NQ>N', 5, $size, $mode) }
get(unpack 'N', get(4));
my @extensions = $mode eq 'full' ? ('statvfs@openssh.com', '2') : ();
put(pack('CN', 2, 3) . join '', map { text($_) } @extensions);
my ($listed, %there) = (0);
$there{'/there'} = $there{'/there/f'} = 1 if $mode eq 'stubborn';
while (1) {
    my $p = get(unpack 'N', get(4));
    my ($kind, $id) = unpack 'CN', $p;
    my $path = unpack 'N/a*', substr $p, 5;
    my $head = sub { pack('CN', shift, $id) };
    my $status = sub { put($head->(101) . pack('N', shift) . text('') . text('')) };
    if ($kind == 3) {
        $mode eq 'full' ? $status->(4) : put($head->(102) . text('f'));
    } elsif ($kind == 5 && $mode eq 'long') {
        put($head->(103) . text('x' x 300_000));
    } elsif ($kind == 5) {
        put($head->(103) . text('y' x 10));
    } elsif ($kind == 8) {
        put($head->(105) . attrs(0100644, $mode eq 'stubborn' ? 3 : 10));
    } elsif (($kind == 7 || $kind == 17) && $mode eq 'stubborn') {
        my $is = $path eq '/there' ? 040755 : 0100644;
        $there{$path} ? put($head->(105) . attrs($is, 3)) : $status->(2);
    } elsif ($kind == 7 || $kind == 17) {
        put($head->(105) . attrs(040755, 0));
    } elsif ($kind == 11) {
        $listed = $path ne '/served' && $mode eq 'names';
        put($head->(102) . text('d'));
    } elsif ($kind == 12 && !$listed++) {
        my @names = $mode eq 'names' ? (
            ['../evil', 0100644], ['..', 0100644], ['a/b', 0100644], ["nul\0l", 0100644],
            ['', 0100644], ['/etc/evil', 0100644], ['x' x 300, 0100644], ['good', 0100644],
            ['link', 0120777], ['link', 040755], ['link', 0100644])
            : $mode eq 'stubborn' ? (['f', 0100644]) : (['good', 0100644]);
        put($head->(104) . pack('N', scalar @names)
            . join '', map { text($_->[0]) . text('') . attrs($_->[1], 10) } @names);
    } elsif ($kind == 12) {
        $status->(1);
    } elsif ($kind == 16) {
        put($head->(104) . pack('N', 1) . text('/served') . text('') . pack('N', 0));
    } elsif ($kind == 19) {
        put($head->(104) . pack('N', 1) . text('/etc') . text('') . pack('N', 0));
    } elsif ($kind == 18) {
        my ($from, $to) = unpack 'N/a* N/a*', substr $p, 5;
        open my $log, '>>', 'renames'; print $log "$from $to\n"; close $log;
        $status->($from eq '/there/f' || $from =~ m{/old-} ? 0 : 4);
    } elsif ($kind == 200 && $mode eq 'full') {
        put($head->(201) . pack('Q>*', 4096, 4096, 1000, 0, 0, 1000, 500, 500, 0, 0, 255));
    } else {
        $status->(0);
    }
    if ($kind == 11 && $mode eq 'unasked') { put(pack('CNN', 101, 4_000_000_000, 0)) }
    if ($kind == 11 && $mode eq 'huge') { syswrite(STDOUT, pack('N', 0xffff_ffff)) }
    if ($kind == 11 && $mode eq 'liar') { put(pack('CNN', 104, $id + 1, 0x1000_0000)) }
}
"#;

#[test]
fn a_server_that_means_harm_writes_nowhere_else_and_breaks_nothing() {
    let inside = |mode: &str| {
        let dir = temp_dir();
        let server = Sshd::setup()
            .sftp_server(&program(&dir, &FAKE.replace("MODE", mode)))
            .start();
        let to = dir.path().join("here/to");
        fs::create_dir_all(&to).unwrap();
        let mut pull = spec(&server, server.location("/served"), local(&to));
        pull.settings.contents = true;
        let told = Told::default();
        let result = go(&pull, &told);
        assert_eq!(names_in(&dir.path().join("here")), ["to"], "{mode}");
        (result, told, names_in(&to))
    };
    let (result, told, names) = inside("names");
    let tally = result.unwrap();
    assert_eq!(names, ["good", "link"]);
    // Six names that are none, and one that is too long for any disk.
    assert!(tally.failed >= 7, "{tally:?}");
    assert!(matches!(
        told.verdict(b"good"),
        Some(Verdict::Unverified(_))
    ));
    let (result, _, names) = inside("long");
    assert_eq!(result.unwrap().failed, 1);
    assert!(names.is_empty());
    for mode in ["unasked", "huge", "liar"] {
        let (result, _, names) = inside(mode);
        assert_eq!(result.unwrap_err().kind, ErrorKind::Protocol, "{mode}");
        assert!(names.is_empty(), "{mode}");
    }
}
