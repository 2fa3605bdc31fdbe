//! Clamps: bounds that a value is brought into.

/// A bound of a clamp.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Bound {
    /// An integer.
    Integer(i64),
    /// A finite floating-point number.
    Float(f64),
}

/// Bounds that a value of the fitting type is brought into (invariants K1 to K3).
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Clamp {
    /// The least number.
    pub min: Option<Bound>,
    /// The greatest number.
    pub max: Option<Bound>,
    /// The most characters (Unicode code points) of a string; the rest is cut off.
    pub max_length: Option<u32>,
}
