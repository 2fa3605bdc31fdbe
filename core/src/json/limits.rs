//! The bounds of the reader (invariant S5).

/// The deepest nesting of arrays and objects that any limits can allow. The reader keeps one small entry for each open container
/// on the stack, so the bound is fixed: 64; 8 in a [small](crate::json#small-devices) gate.
pub const MAX_DEPTH: u16 = if SMALL { 8 } else { 64 };

/// Whether the gate is built for a device whose memory is counted in kilobytes. See [`crate::json`].
pub(crate) const SMALL: bool = cfg!(callgate_small);

/// What a text may cost to read. Reaching a bound refuses the text (invariants S5, F5); nothing is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The most arrays and objects open at once. [`MAX_DEPTH`] is the highest value that has an effect.
    pub depth: u16,
    /// The most bytes of a whole text.
    pub bytes: u32,
    /// The most values in a text: each scalar, each array and each object counts one; keys do not count.
    pub nodes: u32,
    /// The most members of one object.
    pub members: u32,
    /// The most bytes of one key, in UTF-8 after unescaping.
    pub key_bytes: u32,
    /// The most characters of one number.
    pub number_bytes: u32,
}

impl Limits {
    /// 64 deep, 1 MiB, 100,000 values, 4,096 members in an object, keys of 256 bytes, numbers of 128 characters.
    pub const DEFAULT: Self =
        Self { depth: MAX_DEPTH, bytes: 1 << 20, nodes: 100_000, members: 4_096, key_bytes: 256, number_bytes: 128 };
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
