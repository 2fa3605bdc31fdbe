//! Where strings with escapes go when a type asks for them.

use serde::de::Visitor;

use super::error::{DeErrorKind, Fault};
use crate::json::Text;

/// Hands strings to visitors: those without escapes as they stand in the text.
pub(super) trait Scratch<'de> {
    /// Shows the unescaped string to `visitor`.
    fn visit<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value, Fault>;

    /// Shows the string with escapes whose inside starts at `at` of `source` to `visitor`; leaves `at` behind its closing
    /// quote.
    fn visit_escaped<V: Visitor<'de>>(
        &mut self,
        source: &'de str,
        at: &mut usize,
        visitor: V,
    ) -> Result<V::Value, Fault>;

    /// Shows the unescaped UTF-8 bytes to `visitor`.
    fn visit_bytes<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value, Fault>;
}

/// Room that the caller lends: each string with an escape takes a piece of it for good, so that it can be borrowed.
pub(super) struct Lent<'de>(pub(super) &'de mut [u8]);

impl<'de> Lent<'de> {
    fn unescape(&mut self, text: Text<'de>) -> Result<&'de str, Fault> {
        if let Some(plain) = text.as_plain() {
            return Ok(plain);
        }
        let (unescaped, rest) =
            text.unescape_into(core::mem::take(&mut self.0)).ok_or(Fault::new(DeErrorKind::NoRoom))?;
        self.0 = rest;
        Ok(unescaped)
    }
}

impl<'de> Scratch<'de> for Lent<'de> {
    fn visit<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_str(self.unescape(text)?)
    }

    fn visit_escaped<V: Visitor<'de>>(
        &mut self,
        source: &'de str,
        at: &mut usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        let (text, end) = Text::at(source, at.saturating_sub(1));
        *at = end;
        self.visit(text, visitor)
    }

    fn visit_bytes<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_borrowed_bytes(self.unescape(text)?.as_bytes())
    }
}

/// One buffer on the heap, used again for each string with an escape. Those cannot be borrowed.
#[cfg(feature = "alloc")]
#[derive(Default)]
pub(super) struct Heap(alloc::string::String);

#[cfg(feature = "alloc")]
impl<'de> Scratch<'de> for Heap {
    fn visit<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value, Fault> {
        if let Some(plain) = text.as_plain() {
            return visitor.visit_borrowed_str(plain);
        }
        self.0.clear();
        text.unescape_to(&mut self.0);
        visitor.visit_str(&self.0)
    }

    fn visit_escaped<V: Visitor<'de>>(
        &mut self,
        source: &'de str,
        at: &mut usize,
        visitor: V,
    ) -> Result<V::Value, Fault> {
        self.0.clear();
        *at = Text::unescape_from(source, *at, &mut self.0) + 1;
        visitor.visit_str(&self.0)
    }

    fn visit_bytes<V: Visitor<'de>>(&mut self, text: Text<'de>, visitor: V) -> Result<V::Value, Fault> {
        if let Some(plain) = text.as_plain() {
            return visitor.visit_borrowed_bytes(plain.as_bytes());
        }
        self.0.clear();
        text.unescape_to(&mut self.0);
        visitor.visit_bytes(self.0.as_bytes())
    }
}
