//! The handshake of a data connection: both ends prove that they hold the job's key.
//!
//! ```text
//! connector -> acceptor   "TLD1" | stream u16 | nonce (32)
//! acceptor  -> connector  nonce (32) | proof (32)
//! connector -> acceptor   proof (32)
//! ```
//! A proof is keyed BLAKE3 over the role, the stream and both nonces, so that neither end can be
//! shown its own proof and an old one is worth nothing. No address is part of it: translation on
//! the way may change them. The key itself never travels here.

use crate::model::error::Result;
use crate::wire::MAX_STREAMS;
use crate::wire::codec::{Decoder, broken};
use crate::wire::frame::FrameKey;

/// The first bytes on a data connection.
pub const MAGIC: [u8; 4] = *b"TLD1";
/// Bytes of the connector's first message.
pub const OPENING: usize = 38;
/// Bytes of the acceptor's message.
pub const ANSWER: usize = 64;
/// Bytes of a proof.
pub const PROOF: usize = 32;

/// The one-time key of a job.
#[derive(Clone)]
pub struct JobKey(pub [u8; 32]);

/// Which end of a data connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It opened the connection.
    Connector,
    /// It listened.
    Acceptor,
}

/// What both ends know after the first two messages.
#[derive(Clone, Copy, Debug)]
pub struct Nonces {
    /// The stream's number.
    pub stream: u16,
    /// The connector's.
    pub connector: [u8; 32],
    /// The acceptor's.
    pub acceptor: [u8; 32],
}

/// Returns the connector's first message.
pub fn opening(stream: u16, nonce: &[u8; 32]) -> [u8; OPENING] {
    let mut out = [0; OPENING];
    out[..4].copy_from_slice(&MAGIC);
    out[4..6].copy_from_slice(&stream.to_le_bytes());
    out[6..].copy_from_slice(nonce);
    out
}

/// Reads the connector's first message: stream and nonce.
///
/// # Errors
/// `Protocol` for anything else, such as a browser that found the port.
pub fn read_opening(bytes: &[u8; OPENING]) -> Result<(u16, [u8; 32])> {
    let mut d = Decoder::new(bytes);
    if d.array::<4>()? != MAGIC {
        return Err(broken("something else connected to the data port"));
    }
    let stream = u16::from_le_bytes(d.array()?);
    if stream >= MAX_STREAMS {
        return Err(broken("a stream number is beyond its limit"));
    }
    Ok((stream, d.array()?))
}

impl Nonces {
    fn mac(&self, key: &JobKey, label: &[u8]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&key.0);
        hasher.update(label);
        hasher.update(&self.stream.to_le_bytes());
        hasher.update(&self.connector);
        hasher.update(&self.acceptor);
        hasher.finalize()
    }

    /// Returns the proof of one end.
    pub fn proof(&self, key: &JobKey, end: End) -> [u8; PROOF] {
        let label: &[u8] = match end {
            End::Connector => b"transload 1 connector",
            End::Acceptor => b"transload 1 acceptor.",
        };
        *self.mac(key, label).as_bytes()
    }

    /// Says whether the other end's proof is right, in constant time.
    pub fn check(&self, key: &JobKey, end: End, proof: &[u8; PROOF]) -> bool {
        blake3::Hash::from_bytes(self.proof(key, end)) == blake3::Hash::from_bytes(*proof)
    }

    /// Returns the key of this stream's frames.
    pub fn frame_key(&self, key: &JobKey) -> FrameKey {
        FrameKey(*self.mac(key, b"transload 1 frames...").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCES: Nonces = Nonces {
        stream: 1,
        connector: [1; 32],
        acceptor: [2; 32],
    };

    #[test]
    fn each_end_has_its_own_proof_and_only_the_right_key_makes_it() {
        let key = JobKey([3; 32]);
        let proof = NONCES.proof(&key, End::Connector);
        assert!(NONCES.check(&key, End::Connector, &proof));
        assert!(!NONCES.check(&key, End::Acceptor, &proof));
        for bit in 0..256 {
            let mut other = key.0;
            other[bit / 8] ^= 1 << (bit % 8);
            assert!(!NONCES.check(&JobKey(other), End::Connector, &proof));
        }
        let other_stream = Nonces {
            stream: 2,
            ..NONCES
        };
        assert!(!other_stream.check(&key, End::Connector, &proof));
        assert_ne!(NONCES.frame_key(&key).0, other_stream.frame_key(&key).0);
    }

    #[test]
    fn foreign_protocols_are_refused() {
        assert_eq!(read_opening(&opening(5, &[9; 32])).unwrap(), (5, [9; 32]));
        assert!(read_opening(&opening(MAX_STREAMS, &[9; 32])).is_err());
        let mut http = [b' '; OPENING];
        http[..5].copy_from_slice(b"GET /");
        assert!(read_opening(&http).is_err());
    }

    #[test]
    fn proofs_and_keys_never_change_between_versions() {
        let hex = |b: &[u8]| {
            b[..8]
                .iter()
                .map(|b| format!("{b:02x}"))
                .collect::<String>()
        };
        let key = JobKey([3; 32]);
        let got = [
            hex(&NONCES.proof(&key, End::Connector)),
            hex(&NONCES.proof(&key, End::Acceptor)),
            hex(&NONCES.frame_key(&key).0),
        ];
        assert_eq!(
            got,
            ["08de19594769d3eb", "6a3430d5f6dc3dfd", "104333a477b26d41"]
        );
    }
}
