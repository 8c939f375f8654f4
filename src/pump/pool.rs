//! Reused buffers: allocated once, handed from thread to thread, back in the pool when the last
//! holder lets go. The one that came back last goes out first: it is still in the cache.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::pump::CHUNK;
use crate::pump::abort::{Abort, LOOK};
use crate::verify::tree::{Leaf, leaf};

/// A bounded set of buffers.
pub struct Pool {
    shelf: Arc<Shelf>,
    most: usize,
    size: usize,
}

#[derive(Default)]
struct Shelf {
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    free: Vec<Box<[u8]>>,
    made: usize,
}

impl Shelf {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One buffer, of which the first `len` bytes are in use.
pub struct Chunk {
    buffer: Box<[u8]>,
    /// Bytes in use.
    pub len: usize,
    /// What was found of them already, when they are a block of a file.
    pub leaf: Option<Leaf>,
    home: Arc<Shelf>,
}

impl Pool {
    /// Makes a pool of at most `most` buffers of [`CHUNK`] bytes and a little more: a batch's table
    /// has to fit beside its files.
    pub fn new(most: usize) -> Self {
        Self {
            shelf: Arc::default(),
            most,
            size: CHUNK + 64 * 1024,
        }
    }

    /// Takes a buffer, waiting for one if need be; `None` when the run is ended.
    pub fn take(&self, abort: &Abort) -> Option<Chunk> {
        let mut state = self.shelf.lock();
        let buffer = loop {
            if let Some(buffer) = state.free.pop() {
                break buffer;
            }
            if state.made < self.most {
                state.made += 1;
                drop(state);
                break vec![0; self.size].into_boxed_slice();
            }
            let waited = self.shelf.returned.wait_timeout(state, LOOK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if abort.is_stopped() {
                return None;
            }
        };
        Some(Chunk {
            buffer,
            len: 0,
            leaf: None,
            home: self.shelf.clone(),
        })
    }
}

impl Chunk {
    /// Returns the bytes in use.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }

    /// Returns what is known of the bytes as the block at `offset`, or finds it.
    pub fn leaf_at(&self, offset: u64) -> Leaf {
        self.leaf.unwrap_or_else(|| leaf(self.bytes(), offset))
    }

    /// Returns the whole room.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.buffer
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.home.lock().free.push(buffer);
        self.home.returned.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_their_number_is_bounded() {
        let (pool, abort) = (Pool::new(2), Abort::default());
        let first = pool.take(&abort).unwrap();
        let second = pool.take(&abort).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(first));
            assert!(pool.take(&abort).is_some());
        });
        drop(second);
        assert_eq!(pool.shelf.lock().made, 2);
    }
}
