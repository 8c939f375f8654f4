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

    /// Reads `20M`, `20MiB`, `512 KiB/s`, `1.5G` or plain bytes a second; K, M and G are powers of
    /// 1024, and `KB`, `MB` and `GB` powers of 1000. Bits (`20Mb`, `20Mbit`) are refused: who reads
    /// them as bytes is off by eight.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            format!(
                "'{text}' is not a rate; write for example 20M for 20 MiB a second, or 20MB for \
                 20 million bytes"
            )
        };
        let plain = text.trim();
        let plain = plain.strip_suffix("/s").unwrap_or(plain);
        let end = plain
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(plain.len());
        let (digits, unit) = plain.split_at(end);
        let scale = match unit {
            "" | "B" => 1u64,
            "K" | "k" | "KiB" | "kiB" => 1 << 10,
            "M" | "m" | "MiB" => 1 << 20,
            "G" | "g" | "GiB" => 1 << 30,
            "KB" | "kB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => return Err(bad()),
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
        for (text, bytes) in [
            ("10MiB", 10 << 20),
            ("10 MiB/s", 10 << 20),
            ("10M/s", 10 << 20),
            ("10MB/s", 10_000_000),
            ("512 kB", 512_000),
            ("1GiB", 1 << 30),
            ("1GB", 1_000_000_000),
            ("7 B/s", 7),
        ] {
            assert_eq!(text.parse::<Rate>(), Ok(Rate(bytes)), "{text}");
            let written = Rate(bytes).to_string();
            assert_eq!(written.parse::<Rate>(), Ok(Rate(bytes)), "{written}");
        }
        for bad in [
            "", "M", "-1", "0", "nan", "1T", "inf", "10Mb", "10Mbit", "10Mbit/s", "10MiBs", "M10",
            "10M/min", "/s", "1e3", "10 M B",
        ] {
            assert!(bad.parse::<Rate>().is_err(), "{bad}");
        }
    }
}
