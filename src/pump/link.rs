//! Data connections: listening, connecting, and the handshake that proves who is there.
//!
//! Every wait has an absolute deadline that the other end cannot stretch.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::model::error::{Error, ErrorKind, Result};
use crate::wire::frame::FrameKey;
use crate::wire::hello::{ANSWER, End, JobKey, Nonces, OPENING, PROOF, opening, read_opening};

/// How long a connection may take to be made.
pub const CONNECT: Duration = Duration::from_secs(3);
/// How long a handshake may take in all.
pub const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a port stays open for its connections.
pub const OPEN: Duration = Duration::from_secs(30);
/// How many strangers are talked to at once.
const STRANGERS: usize = 8;
/// How long the right one is waited for once somebody failed.
const AFTER_REFUSAL: Duration = Duration::from_secs(2);
/// After so many that could not prove themselves the port closes.
const REFUSALS: usize = 16;

/// A data connection whose other end proved that it holds the key.
pub struct Link {
    /// The connection.
    pub stream: TcpStream,
    /// Its number.
    pub number: u16,
    /// The key of its frames.
    pub key: FrameKey,
}

/// Listens on an ephemeral port, or on the first free one of a range.
///
/// # Errors
/// `Io` or `Denied` when no port can be had.
pub fn listen(address: IpAddr, ports: (u16, u16)) -> Result<TcpListener> {
    let mut last = None;
    for port in ports.0..=ports.1.max(ports.0) {
        match TcpListener::bind(SocketAddr::new(address, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(error),
        }
    }
    let error = last.unwrap_or_else(|| std::io::ErrorKind::AddrNotAvailable.into());
    Err(Error::io("open a data port", &error)
        .at(format!("{address} ports {}-{}", ports.0, ports.1))
        .hint("free a port of that range, or set another range"))
}

/// Waits for exactly `count` proven connections; then the port is closed.
///
/// # Errors
/// `Unreachable` when they do not come in time, `Cancelled` by `stop`.
pub fn accept(
    listener: TcpListener,
    count: u16,
    key: &JobKey,
    patience: Duration,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Link>> {
    let mut deadline = Instant::now() + patience;
    let mut failed = 0;
    listener
        .set_nonblocking(true)
        .map_err(|e| Error::io("watch the data port", &e))?;
    // Proven links, and how many strangers failed.
    let state: Mutex<(Vec<Link>, usize)> = Mutex::new((Vec::new(), 0));
    let lock = || {
        state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    };
    let busy = std::sync::atomic::AtomicUsize::new(0);
    let result = std::thread::scope(|scope| {
        loop {
            {
                let state = lock();
                if state.0.len() >= usize::from(count) {
                    return Ok(());
                }
                if state.1 > failed {
                    failed = state.1;
                    // The right one is connected already, or was cut off; others may be strangers.
                    deadline = deadline.min(Instant::now() + AFTER_REFUSAL);
                }
                if state.1 >= REFUSALS {
                    return Err(Error::new(
                        ErrorKind::Protocol,
                        "wait for the data connection",
                        "too many strangers connected to the data port",
                    ));
                }
            }
            if stop() {
                return Err(Error::cancelled());
            }
            if Instant::now() >= deadline {
                return Err(Error::new(
                    ErrorKind::Unreachable,
                    "wait for the data connection",
                    "nobody connected to the data port in time",
                ));
            }
            let mut fds = [PollFd::new(&listener, PollFlags::IN)];
            let _ = poll(
                &mut fds,
                Some(&Timespec {
                    tv_sec: 0,
                    tv_nsec: 20_000_000,
                }),
            );
            let Ok((stream, _)) = listener.accept() else {
                continue;
            };
            if busy.load(std::sync::atomic::Ordering::SeqCst) >= STRANGERS {
                // Dropped: whoever holds the other places has at most the handshake's time.
                continue;
            }
            busy.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let (busy, state) = (&busy, &state);
            let until = deadline.min(Instant::now() + HANDSHAKE);
            let spawned = std::thread::Builder::new()
                .name("handshake".into())
                .spawn_scoped(scope, move || {
                    let proven = answer(stream, key, until);
                    let mut state = state
                        .lock()
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    match proven {
                        Ok(link)
                            if link.number < count
                                && state.0.iter().all(|l| l.number != link.number) =>
                        {
                            state.0.push(link);
                        }
                        _ => state.1 += 1,
                    }
                    drop(state);
                    busy.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
                });
            if spawned.is_err() {
                busy.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
            }
        }
    });
    drop(listener);
    result?;
    let mut links = state
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .0;
    links.truncate(count.into());
    links.sort_by_key(|link| link.number);
    Ok(links)
}

/// Connects to the first of the addresses that answers, within [`CONNECT`] in all.
///
/// # Errors
/// `Unreachable` with the last reason.
pub fn reach(addresses: &[SocketAddr]) -> Result<(TcpStream, SocketAddr)> {
    let until = Instant::now() + CONNECT;
    let mut last = Error::new(
        ErrorKind::Unreachable,
        "connect to the data port",
        "no address is known",
    );
    for (n, address) in addresses.iter().enumerate() {
        // The time is shared by the addresses that are left.
        let left = until.saturating_duration_since(Instant::now()) / (addresses.len() - n) as u32;
        if left.is_zero() {
            break;
        }
        match TcpStream::connect_timeout(address, left) {
            Ok(stream) => return Ok((stream, *address)),
            Err(error) => {
                last = Error::io("connect to the data port", &error).at(address.to_string());
                last.kind = ErrorKind::Unreachable;
            }
        }
    }
    Err(last)
}

/// Proves a connection, and opens and proves the others up to `count`.
///
/// # Errors
/// `Protocol` when the other end does not hold the key, or what keeps it from answering.
pub fn prove(reached: (TcpStream, SocketAddr), count: u16, key: &JobKey) -> Result<Vec<Link>> {
    let (first, address) = reached;
    let until = Instant::now() + HANDSHAKE;
    let at = |e: Error| e.at(address.to_string());
    let mut links = vec![ask(first, 0, key, until).map_err(at)?];
    for number in 1..count {
        let stream = TcpStream::connect_timeout(&address, CONNECT)
            .map_err(|e| Error::io("open another data connection", &e).at(address.to_string()))?;
        links.push(ask(stream, number, key, until).map_err(at)?);
    }
    Ok(links)
}

/// The connector's side of the handshake.
fn ask(mut stream: TcpStream, number: u16, key: &JobKey, until: Instant) -> Result<Link> {
    let nonce = random()?;
    write_by(&mut stream, &opening(number, &nonce), until)?;
    let mut reply = [0; ANSWER];
    read_by(&mut stream, &mut reply, until)?;
    let mut nonces = Nonces {
        stream: number,
        connector: nonce,
        acceptor: [0; 32],
    };
    let (theirs, proof) = reply.split_at(32);
    nonces.acceptor.copy_from_slice(theirs);
    let mut given = [0; PROOF];
    given.copy_from_slice(proof);
    if !nonces.check(key, End::Acceptor, &given) {
        return Err(refused());
    }
    write_by(&mut stream, &nonces.proof(key, End::Connector), until)?;
    settle(stream, nonces, key)
}

/// The acceptor's side of the handshake.
fn answer(mut stream: TcpStream, key: &JobKey, until: Instant) -> Result<Link> {
    let _ = stream.set_nonblocking(false);
    let mut first = [0; OPENING];
    read_by(&mut stream, &mut first, until)?;
    let (number, theirs) = read_opening(&first)?;
    let nonces = Nonces {
        stream: number,
        connector: theirs,
        acceptor: random()?,
    };
    let mut reply = [0; ANSWER];
    reply[..32].copy_from_slice(&nonces.acceptor);
    reply[32..].copy_from_slice(&nonces.proof(key, End::Acceptor));
    write_by(&mut stream, &reply, until)?;
    let mut proof = [0; PROOF];
    read_by(&mut stream, &mut proof, until)?;
    if !nonces.check(key, End::Connector, &proof) {
        return Err(refused());
    }
    settle(stream, nonces, key)
}

fn refused() -> Error {
    Error::new(
        ErrorKind::Protocol,
        "prove the data connection",
        "whoever is at the other end does not hold this job's key",
    )
}

/// Gets a proven connection ready for data.
fn settle(stream: TcpStream, nonces: Nonces, key: &JobKey) -> Result<Link> {
    let failed = |e| Error::io("set up the data connection", &e);
    stream.set_read_timeout(None).map_err(failed)?;
    stream.set_write_timeout(None).map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    let set = |done: rustix::io::Result<()>| done.map_err(|e| failed(e.into()));
    // A peer that vanished without a word is found by unanswered probes or data.
    set(rustix::net::sockopt::set_socket_keepalive(&stream, true))?;
    set(rustix::net::sockopt::set_tcp_keepidle(
        &stream,
        Duration::from_secs(10),
    ))?;
    set(rustix::net::sockopt::set_tcp_keepintvl(
        &stream,
        Duration::from_secs(5),
    ))?;
    set(rustix::net::sockopt::set_tcp_keepcnt(&stream, 4))?;
    set(rustix::net::sockopt::set_tcp_user_timeout(&stream, 30_000))?;
    Ok(Link {
        stream,
        number: nonces.stream,
        key: nonces.frame_key(key),
    })
}

/// Returns 32 random bytes.
///
/// # Errors
/// `Io` when the system has none.
pub fn random() -> Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| Error::new(ErrorKind::Io, "get random bytes", e.to_string()))?;
    Ok(bytes)
}

fn left(until: Instant) -> Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(Error::new(
            ErrorKind::Timeout,
            "prove the data connection",
            "no answer in time",
        ));
    }
    Ok(left)
}

fn read_by(stream: &mut TcpStream, buffer: &mut [u8], until: Instant) -> Result<()> {
    let mut got = 0;
    while got < buffer.len() {
        let _ = stream.set_read_timeout(Some(left(until)?));
        match stream.read(&mut buffer[got..]) {
            Ok(0) => {
                return Err(Error::io(
                    "prove the data connection",
                    &std::io::ErrorKind::UnexpectedEof.into(),
                ));
            }
            Ok(n) => got += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io("prove the data connection", &e)),
        }
    }
    Ok(())
}

fn write_by(stream: &mut TcpStream, bytes: &[u8], until: Instant) -> Result<()> {
    let _ = stream.set_write_timeout(Some(left(until)?));
    stream
        .write_all(bytes)
        .map_err(|e| Error::io("prove the data connection", &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(count: u16, theirs: JobKey, ours: JobKey) -> (Result<Vec<Link>>, Result<Vec<Link>>) {
        let listener = listen(IpAddr::from([127, 0, 0, 1]), (0, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            let accepted = scope.spawn(move || {
                accept(
                    listener,
                    count,
                    &theirs,
                    Duration::from_millis(700),
                    &|| false,
                )
            });
            let connected = reach(&[address]).and_then(|it| prove(it, count, &ours));
            (accepted.join().unwrap(), connected)
        })
    }

    #[test]
    fn both_ends_with_the_key_agree_on_every_stream() {
        let (a, c) = pair(3, JobKey([1; 32]), JobKey([1; 32]));
        let (a, c) = (a.unwrap(), c.unwrap());
        for (a, c) in a.iter().zip(&c) {
            assert_eq!(a.number, c.number);
            assert_eq!(a.key.0, c.key.0);
        }
        assert_eq!(a.len(), 3);
    }

    #[test]
    fn without_the_key_nobody_gets_in_and_the_port_closes() {
        let (a, c) = pair(1, JobKey([1; 32]), JobKey([2; 32]));
        assert!(a.is_err() && c.is_err());
    }

    #[test]
    fn strangers_do_not_keep_the_right_one_out() {
        let listener = listen(IpAddr::from([127, 0, 0, 1]), (0, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let key = JobKey([7; 32]);
        std::thread::scope(|scope| {
            let accepted = scope.spawn(|| accept(listener, 1, &key, OPEN, &|| false));
            let mut http = TcpStream::connect(address).unwrap();
            http.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n0123456789")
                .unwrap();
            let _silent = TcpStream::connect(address).unwrap();
            assert_eq!(prove(reach(&[address]).unwrap(), 1, &key).unwrap().len(), 1);
            assert_eq!(accepted.join().unwrap().unwrap().len(), 1);
        });
        assert!(
            TcpStream::connect(address).is_err(),
            "the port is still open"
        );
    }
}
