//! Reused buffers: allocated once, handed from thread to thread, back in the pool when the last
//! holder lets go.

use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::pump::CHUNK;
use crate::pump::abort::Abort;
use crate::verify::tree::{Leaf, leaf};

/// A bounded set of buffers.
pub struct Pool {
    free: Receiver<Box<[u8]>>,
    home: Sender<Box<[u8]>>,
    made: AtomicUsize,
    most: usize,
    size: usize,
}

/// One buffer, of which the first `len` bytes are in use.
pub struct Chunk {
    buffer: Box<[u8]>,
    /// Bytes in use.
    pub len: usize,
    /// What was found of them already, when they are a block of a file.
    pub leaf: Option<Leaf>,
    home: Sender<Box<[u8]>>,
}

impl Pool {
    /// Makes a pool of at most `most` buffers of [`CHUNK`] bytes and a little more: a batch's table
    /// has to fit beside its files.
    pub fn new(most: usize) -> Self {
        let (home, free) = bounded(most);
        Self {
            free,
            home,
            made: AtomicUsize::new(0),
            most,
            size: CHUNK + 64 * 1024,
        }
    }

    /// Takes a buffer, waiting for one if need be; `None` when the run is ended.
    pub fn take(&self, abort: &Abort) -> Option<Chunk> {
        let buffer = match self.free.try_recv() {
            Ok(buffer) => buffer,
            Err(_) if self.made.fetch_add(1, Ordering::Relaxed) < self.most => {
                vec![0; self.size].into_boxed_slice()
            }
            Err(_) => {
                self.made.fetch_sub(1, Ordering::Relaxed);
                abort.recv(&self.free)?
            }
        };
        Some(Chunk {
            buffer,
            len: 0,
            leaf: None,
            home: self.home.clone(),
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
        // The channel holds as many as were ever made, so this neither blocks nor fails while the
        // pool lives; afterwards the buffer is simply freed.
        let _ = self.home.try_send(std::mem::take(&mut self.buffer));
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
        assert_eq!(pool.made.load(Ordering::Relaxed), 2);
    }
}
