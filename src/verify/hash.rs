//! Hashes a stream of bytes with a chosen algorithm.

use sha2::Digest as _;

use crate::model::digest::{Algorithm, Digest};
use crate::verify::md5::Md5;
use crate::verify::md5_lanes::{self, Stream};
use crate::verify::tree::{Joiner, Leaf};

/// The state of one digest.
pub struct Hasher {
    algorithm: Algorithm,
    state: State,
}

/// The large states are boxed: a hasher is moved about with the file it belongs to.
enum State {
    Nothing,
    Md5(Md5),
    Sha256(sha2::Sha256),
    Blake3(Box<blake3::Hasher>),
    Xxh3(Box<xxhash_rust::xxh3::Xxh3>),
}

impl Hasher {
    /// Starts; for algorithms without digests it costs nothing and gives none.
    pub fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm {
            Algorithm::None | Algorithm::Size => State::Nothing,
            Algorithm::Md5 => State::Md5(Md5::new()),
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Blake3 => State::Blake3(Box::default()),
            Algorithm::Xxh3 => State::Xxh3(Box::default()),
        };
        Self { algorithm, state }
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.state {
            State::Nothing => {}
            State::Md5(state) => state.update(bytes),
            State::Sha256(state) => state.update(bytes),
            State::Blake3(state) => {
                state.update(bytes);
            }
            State::Xxh3(state) => state.update(bytes),
        }
    }

    /// Returns the value; `None` for `None` and `Size`.
    pub fn finish(self) -> Option<Digest> {
        let algorithm = self.algorithm;
        match self.state {
            State::Nothing => None,
            State::Md5(state) => Digest::new(algorithm, &state.finish()),
            State::Sha256(state) => Digest::new(algorithm, &state.finalize()),
            State::Blake3(state) => Digest::new(algorithm, state.finalize().as_bytes()),
            // As xxhsum prints it: the high half first.
            State::Xxh3(state) => Digest::new(algorithm, &state.digest128().to_be_bytes()),
        }
    }
}

/// The digest of a message that comes in the blocks of [`crate::verify::tree`]: what was found of
/// a block already is not found again.
pub struct BlockHasher(Blocks);

enum Blocks {
    Tree(Joiner),
    Stream(Hasher),
}

impl BlockHasher {
    /// Starts.
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match Self::is_tree(algorithm) {
            true => Blocks::Tree(Joiner::default()),
            false => Blocks::Stream(Hasher::new(algorithm)),
        })
    }

    /// Says whether the leaves of blocks are enough for this algorithm.
    pub fn is_tree(algorithm: Algorithm) -> bool {
        algorithm == Algorithm::Blake3
    }

    /// Takes the leaves of the next blocks, for an algorithm that is a tree.
    pub fn leaves(&mut self, leaves: &[Leaf]) {
        if let Blocks::Tree(state) = &mut self.0 {
            leaves.iter().for_each(|leaf| state.push(leaf));
        }
    }

    /// Returns the value; `None` for algorithms without digests, and when what came were not
    /// blocks that follow each other.
    pub fn finish(self) -> Option<Digest> {
        match self.0 {
            Blocks::Tree(state) => Digest::new(Algorithm::Blake3, &state.finish()?),
            Blocks::Stream(state) => state.finish(),
        }
    }
}

/// Hashes one message.
pub fn one(algorithm: Algorithm, message: &[u8]) -> Option<Digest> {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(message);
    hasher.finish()
}

/// Says whether several messages are digested faster side by side than one after the other.
pub fn has_lanes(algorithm: Algorithm) -> bool {
    algorithm == Algorithm::Md5
}

/// Hashes many independent short messages, in the order given.
pub fn many(algorithm: Algorithm, messages: &[&[u8]]) -> Vec<Option<Digest>> {
    if !has_lanes(algorithm) {
        return messages.iter().map(|m| one(algorithm, m)).collect();
    }
    let mut states = vec![Md5::new(); messages.len()];
    let streams = states.iter_mut().zip(messages);
    md5_lanes::update(
        streams
            .map(|(state, message)| Stream {
                state,
                parts: std::slice::from_ref(message),
            })
            .collect(),
    );
    states
        .into_iter()
        .map(|state| Digest::new(algorithm, &state.finish()))
        .collect()
}

/// A message in blocks, and the blocks that follow what was taken of it so far.
pub struct Next<'a> {
    /// The message.
    pub hasher: &'a mut BlockHasher,
    /// Its next blocks.
    pub blocks: Vec<&'a [u8]>,
}

/// Takes the next blocks of many messages.
pub fn blocks(list: &mut [Next<'_>]) {
    let mut streams = Vec::new();
    for next in list {
        match &mut next.hasher.0 {
            Blocks::Stream(Hasher {
                state: State::Md5(state),
                ..
            }) => streams.push(Stream {
                state,
                parts: &next.blocks,
            }),
            Blocks::Stream(state) => next.blocks.iter().for_each(|block| state.update(block)),
            Blocks::Tree(state) => next.blocks.iter().for_each(|block| state.push_bytes(block)),
        }
    }
    md5_lanes::update(streams);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(algorithm: Algorithm, message: &[u8]) -> String {
        one(algorithm, message).unwrap().to_string()
    }

    #[test]
    fn values_are_those_that_the_usual_programs_print() {
        assert_eq!(hex(Algorithm::Md5, b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(
            hex(Algorithm::Md5, b"abc"),
            "900150983cd24fb0d6963f7d28e17f72"
        );
        assert_eq!(
            hex(Algorithm::Sha256, b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(
            hex(Algorithm::Blake3, b""),
            "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
        );
        // What `xxhsum -H2` prints for an empty file.
        assert_eq!(
            hex(Algorithm::Xxh3, b""),
            "99aa06d3014798d86001c324468d497f"
        );
    }

    #[test]
    fn algorithms_without_digests_give_none() {
        assert_eq!(one(Algorithm::None, b"a"), None);
        assert_eq!(one(Algorithm::Size, b"a"), None);
    }

    #[test]
    fn pieces_give_what_the_whole_gives() {
        let bytes: Vec<u8> = (0..100_000_u32).map(|i| (i % 251) as u8).collect();
        for algorithm in Algorithm::ALL {
            let mut hasher = Hasher::new(algorithm);
            for piece in bytes.chunks(777) {
                hasher.update(piece);
            }
            assert_eq!(hasher.finish(), one(algorithm, &bytes), "{algorithm:?}");
        }
    }

    #[test]
    fn many_keep_their_order() {
        let messages: [&[u8]; 3] = [b"a", b"", b"abc"];
        for algorithm in Algorithm::ALL {
            let each: Vec<_> = messages.iter().map(|m| one(algorithm, m)).collect();
            assert_eq!(many(algorithm, &messages), each);
        }
    }
}
