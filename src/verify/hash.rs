//! Hashes a stream of bytes with a chosen algorithm.

use sha2::Digest as _;

use crate::model::digest::{Algorithm, Digest};

/// The state of one digest.
pub struct Hasher {
    algorithm: Algorithm,
    state: State,
}

/// The large states are boxed: a hasher is moved about with the file it belongs to.
enum State {
    Nothing,
    Md5(md5::Md5),
    Sha256(sha2::Sha256),
    Blake3(Box<blake3::Hasher>),
    Xxh3(Box<xxhash_rust::xxh3::Xxh3>),
}

impl Hasher {
    /// Starts; for algorithms without digests it costs nothing and gives none.
    pub fn new(algorithm: Algorithm) -> Self {
        let state = match algorithm {
            Algorithm::None | Algorithm::Size => State::Nothing,
            Algorithm::Md5 => State::Md5(md5::Md5::new()),
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
            State::Md5(state) => Digest::new(algorithm, &state.finalize()),
            State::Sha256(state) => Digest::new(algorithm, &state.finalize()),
            State::Blake3(state) => Digest::new(algorithm, state.finalize().as_bytes()),
            // As xxhsum prints it: the high half first.
            State::Xxh3(state) => Digest::new(algorithm, &state.digest128().to_be_bytes()),
        }
    }
}

/// Hashes one message.
pub fn one(algorithm: Algorithm, message: &[u8]) -> Option<Digest> {
    let mut hasher = Hasher::new(algorithm);
    hasher.update(message);
    hasher.finish()
}

/// Hashes many independent short messages, in the order given.
pub fn many(algorithm: Algorithm, messages: &[&[u8]]) -> Vec<Option<Digest>> {
    messages.iter().map(|m| one(algorithm, m)).collect()
}
