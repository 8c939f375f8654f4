//! Numbers and byte strings on the wire.
//!
//! Numbers are unsigned LEB128 (7 bits a byte, low first, at most 10 bytes), signed ones are
//! zigzag-folded first. Byte strings carry their length. A reader never allocates more than the
//! message is long, and each value has its own cap.

use crate::model::error::{Error, ErrorKind, Result};

/// Builds the body of a message.
#[derive(Debug, Default)]
pub struct Encoder {
    /// What was written so far.
    pub bytes: Vec<u8>,
}

impl Encoder {
    /// Writes one byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Writes a number.
    pub fn num(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Writes a signed number.
    pub fn signed(&mut self, value: i64) {
        self.num(((value << 1) ^ (value >> 63)) as u64);
    }

    /// Writes yes or no.
    pub fn flag(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Writes a byte string.
    pub fn blob(&mut self, bytes: &[u8]) {
        self.num(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }

    /// Writes bytes whose length both ends know.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }
}

/// Takes the body of a message apart.
#[derive(Debug)]
pub struct Decoder<'a> {
    rest: &'a [u8],
}

/// Makes the error for a peer that breaks the rules.
pub fn broken(what: &str) -> Error {
    Error::new(ErrorKind::Protocol, "understand the other side", what)
        .hint("the two programs may be of different versions; if it happens again, report it")
}

impl<'a> Decoder<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// `Protocol` at the end.
    pub fn u8(&mut self) -> Result<u8> {
        let (first, rest) = self
            .rest
            .split_first()
            .ok_or_else(|| broken("a message is too short"))?;
        self.rest = rest;
        Ok(*first)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// `Protocol` at the end or when it does not fit.
    pub fn num(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(broken("a number is too large"));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(broken("a number is too long"))
    }

    /// Reads a number that must not pass `max`.
    ///
    /// # Errors
    /// `Protocol` at the end or beyond the cap.
    pub fn capped(&mut self, max: u64) -> Result<u64> {
        let value = self.num()?;
        if value > max {
            Err(broken("a number is beyond its limit"))
        } else {
            Ok(value)
        }
    }

    /// Reads a signed number.
    ///
    /// # Errors
    /// `Protocol` at the end or when it does not fit.
    pub fn signed(&mut self) -> Result<i64> {
        let folded = self.num()?;
        Ok((folded >> 1) as i64 ^ -((folded & 1) as i64))
    }

    /// Reads yes or no.
    ///
    /// # Errors
    /// `Protocol` for anything else.
    pub fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(broken("a flag is neither 0 nor 1")),
        }
    }

    /// Reads a byte string of at most `max` bytes.
    ///
    /// # Errors
    /// `Protocol` beyond the cap or the end.
    pub fn blob(&mut self, max: usize) -> Result<&'a [u8]> {
        let len = self.capped(max as u64)? as usize;
        self.raw(len)
    }

    /// Reads bytes whose length both ends know.
    ///
    /// # Errors
    /// `Protocol` at the end.
    pub fn raw(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, rest) = self
            .rest
            .split_at_checked(len)
            .ok_or_else(|| broken("a message is too short"))?;
        self.rest = rest;
        Ok(head)
    }

    /// Reads bytes whose length both ends know.
    ///
    /// # Errors
    /// `Protocol` at the end.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.raw(N)?;
        bytes
            .try_into()
            .map_err(|_| broken("a message is too short"))
    }

    /// Returns what is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Ends the message.
    ///
    /// # Errors
    /// `Protocol` when something is left.
    pub fn end(&self) -> Result<()> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(broken("a message is too long"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_read_back_as_written(n in any::<u64>(), s in any::<i64>(), b in proptest::collection::vec(any::<u8>(), 0..50)) {
            let mut e = Encoder::default();
            e.num(n); e.signed(s); e.blob(&b); e.flag(true);
            let mut d = Decoder::new(&e.bytes);
            prop_assert_eq!(d.num().unwrap(), n);
            prop_assert_eq!(d.signed().unwrap(), s);
            prop_assert_eq!(d.blob(50).unwrap(), &b[..]);
            prop_assert!(d.flag().unwrap());
            prop_assert!(d.end().is_ok());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut d = Decoder::new(&bytes);
            let _ = d.num();
            let _ = d.blob(10);
            let _ = d.signed();
        }
    }

    #[test]
    fn overlong_and_oversized_numbers_are_refused() {
        assert!(Decoder::new(&[0xff; 11]).num().is_err());
        assert!(
            Decoder::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2])
                .num()
                .is_err()
        );
        assert!(Decoder::new(&[5]).capped(4).is_err());
        assert!(Decoder::new(&[5, 1]).blob(9).is_err());
    }
}
