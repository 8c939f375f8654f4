//! The hash thread: digests what is read or written, beside reading, writing and sending.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;

use crate::model::digest::{Algorithm, Digest};
use crate::pump::abort::Abort;
use crate::pump::pool::Chunk;
use crate::pump::{BUFFERS, CHUNK};
use crate::verify::hash::{self, BlockHasher, Next};
use crate::verify::tree::Leaf;

/// Buffers that are taken together at most: several files side by side are digested faster than
/// one after the other, but whoever fills buffers must not wait for all of them.
const ROUND: usize = BUFFERS * 2 / 3;
/// How long a round waits for more while its files are short; then nothing can be coming.
const GATHER: Duration = Duration::from_millis(2);

/// Leaves that are given to the hash thread together.
const LEAVES: usize = 64;

/// What the hash thread is given. Pieces of one attempt at one file come in order.
pub(super) enum Work<T> {
    /// The next block of an attempt at a file of this length.
    Piece(u64, u8, u64, Arc<Chunk>),
    /// What the next blocks of an attempt at a file gave, for an algorithm that needs no more.
    Leaves(u64, u8, Vec<Leaf>),
    /// Whole small files.
    Batch(Batch<T>),
    /// The attempt is whole; the rest is handed on with the digest.
    Whole(u64, u8, T),
    /// What was hashed of this file so far is worth nothing.
    Forget(u64),
}

/// Whole small files that lie one after the other, with their lengths.
pub(super) struct Batch<T> {
    pub chunk: Arc<Chunk>,
    pub files: Vec<(u32, T)>,
}

/// Makes the work of one attempt at a file out of its blocks. Leaves are gathered: to wake the hash
/// thread for each would cost more than what it does with it.
pub(super) struct Feed {
    file: u64,
    attempt: u8,
    size: u64,
    algorithm: Algorithm,
    leaves: Vec<Leaf>,
}

impl Feed {
    /// Starts an attempt at a file of this length.
    pub fn new(algorithm: Algorithm, file: u64, attempt: u8, size: u64) -> Self {
        Self {
            file,
            attempt,
            size,
            algorithm,
            leaves: Vec::new(),
        }
    }

    /// Takes the next block, which begins at `offset`; returns the work that is due by it.
    pub fn block<T>(&mut self, offset: u64, chunk: Arc<Chunk>) -> Option<Work<T>> {
        if !self.algorithm.hashes() {
            return None;
        }
        if !BlockHasher::is_tree(self.algorithm) {
            return Some(Work::Piece(self.file, self.attempt, self.size, chunk));
        }
        self.leaves.push(chunk.leaf_at(offset));
        (self.leaves.len() >= LEAVES).then(|| self.gathered())
    }

    /// Returns the work that is left when the last block was taken.
    pub fn rest<T>(&mut self) -> Option<Work<T>> {
        (!self.leaves.is_empty()).then(|| self.gathered())
    }

    fn gathered<T>(&mut self) -> Work<T> {
        Work::Leaves(self.file, self.attempt, std::mem::take(&mut self.leaves))
    }
}

/// Digests until the channel ends; gives each digest to `done`, and calls `idle` when nothing
/// waits.
pub(super) fn digest<T>(
    algorithm: Algorithm,
    work: &Receiver<Work<T>>,
    abort: &Abort,
    mut done: impl FnMut(T, Option<Digest>),
    mut idle: impl FnMut(),
) {
    let mut open = HashMap::new();
    loop {
        if work.is_empty() {
            idle();
        }
        let Some(first) = abort.recv(work) else {
            return idle();
        };
        let mut round = Round {
            algorithm,
            files: Vec::new(),
            batches: Vec::new(),
            buffers: 0,
        };
        round.take(first, &mut open);
        while round.buffers < ROUND {
            let next = if round.gathers() {
                work.recv_timeout(GATHER).ok()
            } else {
                work.try_recv().ok()
            };
            let Some(next) = next else { break };
            round.take(next, &mut open);
        }
        round.digest(&mut open, &mut done);
    }
}

/// What is known of files that are not whole yet.
type Open = HashMap<u64, (u8, BlockHasher)>;

/// What is digested together.
struct Round<T> {
    algorithm: Algorithm,
    files: Vec<Attempt<T>>,
    batches: Vec<Batch<T>>,
    /// Buffers that it holds.
    buffers: usize,
}

/// An attempt at a file, and what came of it in this round.
struct Attempt<T> {
    file: u64,
    attempt: u8,
    hasher: BlockHasher,
    pieces: Vec<Arc<Chunk>>,
    whole: Option<T>,
    /// It fits into one round.
    short: bool,
}

impl<T> Round<T> {
    /// Says whether it is worth waiting for other files to lie beside these: that makes them faster,
    /// and all are short enough for others to fit into the round.
    fn gathers(&self) -> bool {
        hash::has_lanes(self.algorithm) && self.files.iter().all(|it| it.short)
    }

    fn take(&mut self, work: Work<T>, open: &mut Open) {
        self.buffers += usize::from(matches!(work, Work::Piece(..) | Work::Batch(..)));
        match work {
            Work::Piece(file, attempt, size, chunk) => {
                let it = self.at(file, attempt, open);
                it.short = size <= (ROUND * CHUNK) as u64;
                it.pieces.push(chunk);
            }
            Work::Leaves(file, attempt, leaves) => {
                self.at(file, attempt, open).hasher.leaves(&leaves)
            }
            Work::Whole(file, attempt, rest) => self.at(file, attempt, open).whole = Some(rest),
            Work::Batch(batch) => self.batches.push(batch),
            Work::Forget(file) => {
                open.remove(&file);
                self.files
                    .retain(|it| it.file != file || it.whole.is_some());
            }
        }
    }

    /// Returns the attempt, which goes on from where the last round left it.
    fn at(&mut self, file: u64, attempt: u8, open: &mut Open) -> &mut Attempt<T> {
        let here = |it: &Attempt<T>| (it.file, it.attempt) == (file, attempt) && it.whole.is_none();
        let n = self.files.iter().position(here).unwrap_or_else(|| {
            let hasher = match open.remove(&file) {
                Some((at, hasher)) if at == attempt => hasher,
                _ => BlockHasher::new(self.algorithm),
            };
            self.files.push(Attempt {
                file,
                attempt,
                hasher,
                pieces: Vec::new(),
                whole: None,
                short: true,
            });
            self.files.len() - 1
        });
        &mut self.files[n]
    }

    fn digest(mut self, open: &mut Open, done: &mut impl FnMut(T, Option<Digest>)) {
        let next = |it| {
            let Attempt { hasher, pieces, .. }: &mut Attempt<T> = it;
            Next {
                hasher,
                blocks: pieces.iter().map(|chunk| chunk.bytes()).collect(),
            }
        };
        hash::blocks(&mut self.files.iter_mut().map(next).collect::<Vec<_>>());
        for it in self.files {
            match it.whole {
                Some(rest) => done(rest, it.hasher.finish()),
                None => {
                    open.insert(it.file, (it.attempt, it.hasher));
                }
            }
        }
        let mut messages = Vec::new();
        for Batch { chunk, files } in &self.batches {
            let mut left = chunk.bytes();
            for (len, _) in files {
                let (head, tail) = left.split_at(*len as usize);
                messages.push(head);
                left = tail;
            }
        }
        let mut digests = hash::many(self.algorithm, &messages).into_iter();
        for Batch { files, .. } in self.batches {
            for ((_, rest), digest) in files.into_iter().zip(&mut digests) {
                done(rest, digest);
            }
        }
    }
}
