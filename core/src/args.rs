//! Arguments that were read: checked text and the clamps that apply to it.

/// Arguments that passed the strict reader, with clamps applied wherever they are looked at.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    #[expect(dead_code, reason = "replaced by the reader")]
    text: &'a str,
}

impl core::fmt::Debug for Args<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Args(..)")
    }
}
