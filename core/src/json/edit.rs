//! Clamps as an overlay: what stands at a place of checked text instead of what was sent.

use super::number::Number;

/// The most values of one call that can be clamped. A call that needs more is refused (invariant F5).
pub const MAX_CLAMPS: usize = 16;

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
pub struct Edits {
    list: [Edit; MAX_CLAMPS],
    len: usize,
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
        Self { list: [Edit { at: 0, to: Replacement::Cut { chars: 0 } }; MAX_CLAMPS], len: 0 }
    }

    /// Adds a clamp, in whatever order; one at the same place is replaced.
    ///
    /// # Errors
    /// There is no room left.
    pub fn push(&mut self, edit: Edit) -> Result<(), Full> {
        if let Some(same) = self.list.iter_mut().take(self.len).find(|held| held.at == edit.at) {
            *same = edit;
            return Ok(());
        }
        let Some(free) = self.list.get_mut(self.len) else {
            return Err(Full);
        };
        *free = edit;
        self.len += 1;
        // The others are in order, so the new one moves down to its place.
        let mut moving = edit;
        for held in self.list.iter_mut().take(self.len) {
            if held.at > moving.at {
                core::mem::swap(held, &mut moving);
            }
        }
        if let Some(last) = self.list.get_mut(self.len.wrapping_sub(1)) {
            *last = moving;
        }
        Ok(())
    }

    /// The clamps, in the order of their places.
    #[must_use]
    pub fn as_slice(&self) -> &[Edit] {
        self.list.get(..self.len).unwrap_or_default()
    }

    /// Removes all clamps.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// Whether there is no clamp.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
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
