//! Digests: which algorithm, and the value it gave.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How contents are checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// Nothing is compared.
    None,
    /// Lengths are compared.
    Size,
    /// MD5: finds accidental damage; promises nothing against whoever made the file.
    #[default]
    Md5,
    /// SHA-256.
    Sha256,
    /// BLAKE3, 32 bytes.
    Blake3,
    /// XXH3 with 128 bits: very fast, finds accidental damage only.
    Xxh3,
}

impl Algorithm {
    /// Every algorithm, in the order of the wire codes; append only.
    pub const ALL: [Self; 6] = [
        Self::None,
        Self::Size,
        Self::Md5,
        Self::Sha256,
        Self::Blake3,
        Self::Xxh3,
    ];

    /// Returns the name used on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Size => "size",
            Self::Md5 => "md5",
            Self::Sha256 => "sha256",
            Self::Blake3 => "blake3",
            Self::Xxh3 => "xxh3",
        }
    }

    /// Returns the length of a value in bytes; 0 where there is none.
    pub fn digest_len(self) -> usize {
        match self {
            Self::None | Self::Size => 0,
            Self::Md5 | Self::Xxh3 => 16,
            Self::Sha256 | Self::Blake3 => 32,
        }
    }

    /// Says whether contents are hashed.
    pub fn hashes(self) -> bool {
        self.digest_len() > 0
    }
}

impl std::str::FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|a| a.name() == text)
            .ok_or_else(|| format!("'{text}' is none of none, size, md5, sha256, blake3, xxh3"))
    }
}

/// A digest value with its algorithm. Two are equal only when algorithm, length and bytes agree.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest {
    algorithm: Algorithm,
    bytes: [u8; 32],
}

impl Digest {
    /// Makes a digest; `None` when the length does not fit the algorithm or it has no digests.
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Option<Self> {
        let len = algorithm.digest_len();
        if len == 0 || bytes.len() != len {
            return None;
        }
        let mut value = [0; 32];
        value[..len].copy_from_slice(bytes);
        Some(Self {
            algorithm,
            bytes: value,
        })
    }

    /// Returns the algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Returns the value.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.algorithm.digest_len()]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.as_bytes() {
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{self}", self.algorithm.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_algorithm_length_and_bytes_are_equal() {
        assert!(Digest::new(Algorithm::Md5, &[]).is_none());
        assert!(Digest::new(Algorithm::Md5, &[1; 15]).is_none());
        assert!(Digest::new(Algorithm::Size, &[]).is_none());
        let md5 = Digest::new(Algorithm::Md5, &[1; 16]).unwrap();
        assert_ne!(md5, Digest::new(Algorithm::Xxh3, &[1; 16]).unwrap());
        assert_eq!(md5.to_string(), "01".repeat(16));
    }
}
