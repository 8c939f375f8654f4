//! BLAKE3 of a long message by way of its blocks: what a block gives is worth both the tag of its
//! frame and a part of the file's digest, so that no byte is hashed twice.
//!
//! BLAKE3 is a tree: a block of [`BLOCK`] bytes at a multiple of that is a subtree of it, and the
//! *chaining values* of all blocks, joined in pairs up to the root, are the digest of the whole
//! (BLAKE3 specification, section 2.1 and 5.1.2).

use blake3::hazmat::{
    ChainingValue, HasherExt as _, Mode, merge_subtrees_non_root, merge_subtrees_root,
};

/// Bytes of a block; a power of two.
pub const BLOCK: usize = 1024 * 1024;
/// Bytes that are moved and hashed in turn: they stay in the second-level cache meanwhile.
pub const STEP: usize = BLOCK / 4;

/// What one block gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The block's chaining value; of an empty block zeros.
    pub value: ChainingValue,
    /// Where it begins.
    offset: u64,
    len: usize,
    /// The digest if this block is the whole message.
    alone: [u8; 32],
}

/// Hashes one block of at most [`BLOCK`] bytes that begins at `offset`, a multiple of that.
///
/// # Panics
/// When length or offset are not so: whoever takes blocks from elsewhere checks them first.
pub fn leaf(bytes: &[u8], offset: u64) -> Leaf {
    let mut growing = Growing::new(offset);
    growing.update(bytes);
    growing.finish()
}

/// A block that is hashed as it comes, while what came is still in the cache.
pub struct Growing {
    hasher: blake3::Hasher,
    offset: u64,
    len: usize,
}

impl Growing {
    /// Starts the block at `offset`, a multiple of [`BLOCK`].
    ///
    /// # Panics
    /// When it is not.
    pub fn new(offset: u64) -> Self {
        assert!(offset % BLOCK as u64 == 0, "no block begins there");
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(offset);
        Self {
            hasher,
            offset,
            len: 0,
        }
    }

    /// Takes the next bytes, at most [`BLOCK`] in all.
    ///
    /// # Panics
    /// When it gets more.
    pub fn update(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        assert!(self.len <= BLOCK, "more than a block");
        self.hasher.update(bytes);
    }

    /// Returns what the block gives.
    pub fn finish(self) -> Leaf {
        Leaf {
            value: match self.len {
                0 => [0; 32],
                _ => self.hasher.finalize_non_root(),
            },
            offset: self.offset,
            len: self.len,
            alone: match self.offset {
                0 => *self.hasher.finalize().as_bytes(),
                _ => [0; 32],
            },
        }
    }
}

/// Joins the blocks of one message, which come in order.
#[derive(Default)]
pub(super) struct Joiner {
    /// Values of finished subtrees, from the largest to the smallest.
    subtrees: Vec<ChainingValue>,
    /// Blocks so far.
    blocks: u64,
    /// Bytes so far.
    len: u64,
    /// The digest if the first block was the only one.
    alone: Option<[u8; 32]>,
    /// A block did not follow the one before.
    broken: bool,
}

impl Joiner {
    /// Takes the next block; one that does not follow spoils the digest.
    pub fn push(&mut self, leaf: &Leaf) {
        if leaf.offset != self.len || self.len % BLOCK as u64 != 0 {
            self.broken = true;
        }
        if self.blocks == 0 {
            self.alone = Some(leaf.alone);
        } else if leaf.len == 0 {
            // Nothing came, and the tree has no place for it.
            return;
        }
        // Two subtrees of one size become one as soon as it is clear that more follows: as many
        // stay as the number of blocks has bits.
        while self.subtrees.len() > self.blocks.count_ones() as usize {
            self.join();
        }
        self.subtrees.push(leaf.value);
        self.blocks += 1;
        self.len += leaf.len as u64;
    }

    fn join(&mut self) {
        if let (Some(right), Some(left)) = (self.subtrees.pop(), self.subtrees.pop()) {
            let both = merge_subtrees_non_root(&left, &right, Mode::Hash);
            self.subtrees.push(both);
        }
    }

    /// Hashes and takes the next block.
    pub fn push_bytes(&mut self, bytes: &[u8]) {
        if bytes.len() <= BLOCK && self.len % BLOCK as u64 == 0 {
            self.push(&leaf(bytes, self.len));
        } else {
            self.broken = true;
        }
    }

    /// Returns the digest of the whole; `None` when the blocks were not those of one message.
    pub fn finish(mut self) -> Option<[u8; 32]> {
        if self.broken {
            return None;
        }
        while self.subtrees.len() > 2 {
            self.join();
        }
        match self.subtrees.as_slice() {
            [] => Some(*blake3::hash(b"").as_bytes()),
            [_] => self.alone,
            [left, right, ..] => Some(*merge_subtrees_root(left, right, Mode::Hash).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_joined_blocks_give_the_digest_of_the_whole() {
        let bytes: Vec<u8> = (0..9 * BLOCK as u64 + 5)
            .map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
            .collect();
        let mut lengths = vec![0, 1, 1023, 1024, 1025, BLOCK - 1];
        for n in 1..=9 {
            lengths.extend([n * BLOCK, n * BLOCK + 1, n * BLOCK + 1025]);
        }
        for len in lengths {
            let len = len.min(bytes.len());
            let mut joiner = Joiner::default();
            for block in bytes[..len].chunks(BLOCK) {
                joiner.push_bytes(block);
            }
            let want = *blake3::hash(&bytes[..len]).as_bytes();
            assert_eq!(joiner.finish(), Some(want), "{len}");
        }
    }

    #[test]
    fn blocks_that_do_not_follow_each_other_have_no_digest() {
        let bytes = vec![1; BLOCK];
        for wrong in [
            [leaf(&bytes, BLOCK as u64), leaf(&bytes, 0)],
            [leaf(&bytes[1..], 0), leaf(&bytes, BLOCK as u64)],
            [leaf(&bytes, 0), leaf(&bytes, 2 * BLOCK as u64)],
        ] {
            let mut joiner = Joiner::default();
            wrong.iter().for_each(|leaf| joiner.push(leaf));
            assert_eq!(joiner.finish(), None);
        }
    }

    #[test]
    fn an_empty_block_is_an_empty_message() {
        let mut joiner = Joiner::default();
        joiner.push(&leaf(b"", 0));
        assert_eq!(joiner.finish(), Some(*blake3::hash(b"").as_bytes()));
    }
}
