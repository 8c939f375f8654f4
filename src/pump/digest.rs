//! The hash thread: digests the blocks of large files in order, beside reading and sending.

use std::collections::HashMap;
use std::sync::Arc;

use crossbeam_channel::Receiver;

use crate::model::digest::{Algorithm, Digest};
use crate::pump::abort::Abort;
use crate::pump::pool::Chunk;
use crate::verify::hash::{self, Hasher};

/// What the hash thread is given. Pieces of one attempt at one file come in order.
pub(super) enum Work<T> {
    /// The next bytes of an attempt.
    Piece(u64, u8, Arc<Chunk>),
    /// Whole small files that lie one after the other from this offset on, with their lengths.
    Batch(Arc<Chunk>, usize, Vec<(u32, T)>),
    /// The attempt is whole; the rest is handed on with the digest.
    Whole(u64, u8, T),
    /// What was hashed of this file so far is worth nothing.
    Forget(u64),
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
    let mut open: HashMap<u64, (u8, Hasher)> = HashMap::new();
    loop {
        if work.is_empty() {
            idle();
        }
        match abort.recv(work) {
            None => return idle(),
            Some(Work::Piece(file, attempt, chunk)) => {
                let slot = open
                    .entry(file)
                    .or_insert_with(|| (attempt, Hasher::new(algorithm)));
                if slot.0 != attempt {
                    *slot = (attempt, Hasher::new(algorithm));
                }
                slot.1.update(chunk.bytes());
            }
            Some(Work::Batch(chunk, start, files)) => {
                let mut left = &chunk.bytes()[start..];
                let mut messages = Vec::with_capacity(files.len());
                for (len, _) in &files {
                    let (head, tail) = left.split_at(*len as usize);
                    messages.push(head);
                    left = tail;
                }
                let digests = hash::many(algorithm, &messages);
                for ((_, rest), digest) in files.into_iter().zip(digests) {
                    done(rest, digest);
                }
            }
            Some(Work::Whole(file, attempt, rest)) => {
                let hasher = match open.remove(&file) {
                    Some((at, hasher)) if at == attempt => hasher,
                    _ => Hasher::new(algorithm),
                };
                done(rest, hasher.finish());
            }
            Some(Work::Forget(file)) => {
                open.remove(&file);
            }
        }
    }
}
