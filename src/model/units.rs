//! Quantities as people write them.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Bytes per second, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate(pub u64);

impl FromStr for Rate {
    type Err = String;

    /// Reads `20M`, `512K`, `1.5G` or plain bytes a second; K, M and G are powers of 1024.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}' is not a rate; write for example 20M for 20 MiB a second");
        let (digits, scale) = match text.as_bytes().last() {
            Some(b'K' | b'k') => (&text[..text.len() - 1], 1u64 << 10),
            Some(b'M' | b'm') => (&text[..text.len() - 1], 1 << 20),
            Some(b'G' | b'g') => (&text[..text.len() - 1], 1 << 30),
            _ => (text, 1),
        };
        let number: f64 = digits.trim().parse().map_err(|_| bad())?;
        let value = number * scale as f64;
        if !(1.0..1e15).contains(&value) {
            return Err(bad());
        }
        Ok(Self(value as u64))
    }
}

impl fmt::Display for Rate {
    /// Writes what `from_str` reads back as the same rate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, scale) in [("G", 1u64 << 30), ("M", 1 << 20), ("K", 1 << 10)] {
            if self.0 % scale == 0 {
                return write!(f, "{}{unit}", self.0 / scale);
            }
        }
        write!(f, "{}", self.0)
    }
}

impl TryFrom<String> for Rate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_read_back_as_written() {
        for text in ["1", "20M", "512K", "3G", "1000"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert_eq!("1.5M".parse::<Rate>().unwrap(), Rate(3 << 19));
        for bad in ["", "M", "-1", "0", "nan", "1T", "inf"] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }
}
