//! Clamps as an overlay: what stands at a place of checked text instead of what was sent.

use super::limits::SMALL;
use super::number::Number;

/// The most values of one call that can be clamped. A call that needs more is refused (invariant F5).
pub const MAX_CLAMPS: usize = if SMALL { 4 } else { 16 };

/// One clamped value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Edit {
    /// The offset of the value's first byte in the text.
    pub at: u32,
    /// What stands there instead.
    pub to: Replacement,
}

/// What a clamp puts in a value's place.
#[derive(Clone, Copy, PartialEq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "whatever looks at clamped values has to deal with each kind of clamp")]
pub enum Replacement {
    /// Another number. Only ever in the place of a number.
    Number(Number),
    /// The string cut to its first characters. Only ever in the place of a string.
    Cut {
        /// How many characters (Unicode code points) are kept.
        chars: u32,
    },
}

/// The clamps of one call, in the order of their places. Room for [`MAX_CLAMPS`].
#[derive(Clone, PartialEq, Debug)]
pub struct Edits(List);

/// A list in place, where there is no heap.
#[cfg(not(feature = "alloc"))]
#[derive(Clone, PartialEq, Debug)]
struct List {
    places: [Edit; MAX_CLAMPS],
    len: usize,
}

#[cfg(not(feature = "alloc"))]
impl List {
    const fn new() -> Self {
        Self { places: [Edit { at: 0, to: Replacement::Cut { chars: 0 } }; MAX_CLAMPS], len: 0 }
    }

    fn as_slice(&self) -> &[Edit] {
        self.places.get(..self.len).unwrap_or_default()
    }

    fn as_mut_slice(&mut self) -> &mut [Edit] {
        self.places.get_mut(..self.len).unwrap_or_default()
    }

    fn push(&mut self, edit: Edit) -> Result<(), Full> {
        *self.places.get_mut(self.len).ok_or(Full)? = edit;
        self.len += 1;
        Ok(())
    }

    const fn clear(&mut self) {
        self.len = 0;
    }

    const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A list on the heap: most calls clamp nothing, and a call that is parked is not to hold the room for it.
#[cfg(feature = "alloc")]
#[derive(Clone, PartialEq, Debug)]
struct List(alloc::vec::Vec<Edit>);

#[cfg(feature = "alloc")]
impl List {
    const fn new() -> Self {
        Self(alloc::vec::Vec::new())
    }

    fn as_slice(&self) -> &[Edit] {
        &self.0
    }

    fn as_mut_slice(&mut self) -> &mut [Edit] {
        &mut self.0
    }

    fn push(&mut self, edit: Edit) -> Result<(), Full> {
        if self.0.len() >= MAX_CLAMPS {
            return Err(Full);
        }
        self.0.push(edit);
        Ok(())
    }

    fn clear(&mut self) {
        self.0.clear();
    }

    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// More values had to be clamped than [`MAX_CLAMPS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "more than {MAX_CLAMPS} values are out of bounds")
    }
}

impl core::error::Error for Full {}

impl Edits {
    /// No clamp.
    #[must_use]
    pub const fn new() -> Self {
        Self(List::new())
    }

    /// Adds a clamp, in whatever order; one at the same place is replaced.
    ///
    /// # Errors
    /// There is no room left.
    pub fn push(&mut self, edit: Edit) -> Result<(), Full> {
        if let Some(same) = self.0.as_mut_slice().iter_mut().find(|held| held.at == edit.at) {
            *same = edit;
            return Ok(());
        }
        self.0.push(edit)?;
        // The others are in order, so the new one moves down to its place.
        let mut moving = edit;
        let list = self.0.as_mut_slice();
        for held in &mut *list {
            if held.at > moving.at {
                core::mem::swap(held, &mut moving);
            }
        }
        if let Some(last) = list.last_mut() {
            *last = moving;
        }
        Ok(())
    }

    /// The clamps, in the order of their places.
    #[must_use]
    pub fn as_slice(&self) -> &[Edit] {
        self.0.as_slice()
    }

    /// Removes all clamps.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether there is no clamp.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Default for Edits {
    fn default() -> Self {
        Self::new()
    }
}

/// Those of `edits` at `at` or behind it.
pub(super) fn from(edits: &[Edit], at: usize) -> &[Edit] {
    let mut rest = edits;
    while let Some((first, behind)) = rest.split_first() {
        if first.at as usize >= at {
            break;
        }
        rest = behind;
    }
    rest
}

/// What replaces the value at `at`, if something does.
pub(super) fn at(edits: &[Edit], at: usize) -> Option<Replacement> {
    edits.iter().find(|edit| edit.at as usize == at).map(|edit| edit.to)
}
