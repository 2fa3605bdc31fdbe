//! Randomness as an input: the gate never draws any (invariant N3). Hosts inject a source, and tokens come from it.

use core::fmt;

use crate::confirm::Token;

/// The source gave no randomness. Nothing is issued then (invariant F1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EntropyError;

impl fmt::Display for EntropyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the source of randomness failed")
    }
}

impl core::error::Error for EntropyError {}

/// A source of random bytes. In production it must be cryptographically secure: whoever can guess its bytes can guess
/// tokens (invariant A11).
pub trait Entropy {
    /// Fills all of `bytes`.
    ///
    /// # Errors
    /// The source failed; what `bytes` holds then means nothing.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError>;

    /// A fresh token: 128 bits.
    ///
    /// # Errors
    /// The source failed. A source that left the bits at zero counts as failed: it did not write, or cannot be trusted.
    fn token(&self) -> Result<Token, EntropyError> {
        let mut bits = [0; 16];
        self.fill(&mut bits)?;
        if bits == [0; 16] { Err(EntropyError) } else { Ok(Token::from_random(bits)) }
    }
}

impl<E: Entropy + ?Sized> Entropy for &E {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        (**self).fill(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Constant(Result<u8, EntropyError>);

    impl Entropy for Constant {
        fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
            bytes.fill(self.0?);
            Ok(())
        }
    }

    #[test]
    fn a11_a_source_that_fails_or_writes_nothing_gives_no_token() {
        assert_eq!(Constant(Err(EntropyError)).token(), Err(EntropyError));
        assert_eq!(Constant(Ok(0)).token(), Err(EntropyError));
        assert!(Constant(Ok(7)).token().is_ok());
    }
}
