//! Digests over typed, length-prefixed encodings.

/// A 256-bit digest.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub struct Digest([u8; 32]);
