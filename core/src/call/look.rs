//! Arguments are read, checked and clamped in one walk, where the schema is one that the core can check.

use core::ops::ControlFlow;

use crate::args::{Args, Edits};
use crate::clamp::{self, ClampError, Finder};
use crate::json::{Event, KeySlot, Limits, Nobody, ReadError, SMALL, Seen, Watch};
use crate::schema::{Frame, MAX_DEPTH, SHALLOW, Schema, Walk};
use crate::tool::Tool;

/// The text of arguments: as it was sent, and as text if it is one.
#[derive(Clone, Copy)]
pub(super) struct Text<'a> {
    pub(super) sent: &'a [u8],
    pub(super) utf8: Option<&'a str>,
}

/// Why arguments were refused.
pub(super) enum Refused {
    /// They are not one JSON object within the limits.
    Malformed(ReadError),
    /// They do not fit the tool's schema.
    Invalid,
    /// They could not be brought into bounds.
    Unclampable(ClampError),
}

/// Reads the arguments of a call of `tool` and leaves its clamps in `edits`; none when they are refused. What is malformed
/// is said to be that, whatever else is wrong.
pub(super) fn read<T: Tool>(tool: &T, text: Text<'_>, keys: &mut [KeySlot], edits: &mut Edits) -> Result<(), Refused> {
    edits.clear();
    let read = match tool.schema() {
        Some(schema) if schema.is_shallow() || MAX_DEPTH as usize == SHALLOW => {
            look::<SHALLOW, T>(tool, schema, text, keys, edits)
        }
        Some(schema) => look::<{ MAX_DEPTH as usize }, T>(tool, schema, text, keys, edits),
        None => look_later(tool, text, keys, edits),
    };
    if read.is_err() {
        edits.clear();
    }
    read
}

#[inline(never)]
fn look<const DEPTH: usize, T: Tool>(
    tool: &T,
    schema: &Schema<'_>,
    text: Text<'_>,
    keys: &mut [KeySlot],
    edits: &mut Edits,
) -> Result<(), Refused> {
    let fields = tool.spec().fields;
    let mut fits = true;
    let mut refuse = |_: crate::tool::Violation<'_>| fits = false;
    let mut stack = [Frame::new(schema); DEPTH];
    let mut look =
        Look { walk: Walk::new(schema, &mut stack, &mut refuse), finder: Finder::new(fields, edits), clamps: Ok(()) };
    let read = if SMALL {
        let mut see = |at, event| look.see(at, event);
        Args::read_watched(text.sent, text.utf8, keys, &Limits::DEFAULT, &mut Seen(Some(&mut see)))
    } else {
        Args::read_watched(text.sent, text.utf8, keys, &Limits::DEFAULT, &mut look)
    };
    let args = read.map_err(Refused::Malformed)?;
    let Look { finder, clamps, .. } = look;
    let looks = finder.looks();
    if !fits {
        return Err(Refused::Invalid);
    }
    clamps.and_then(|()| if looks { Ok(()) } else { clamp::apply(args, fields, edits) }).map_err(Refused::Unclampable)
}

fn look_later<T: Tool>(tool: &T, text: Text<'_>, keys: &mut [KeySlot], edits: &mut Edits) -> Result<(), Refused> {
    let read = if SMALL {
        Args::read_watched(text.sent, text.utf8, keys, &Limits::DEFAULT, &mut Seen(None))
    } else {
        Args::read_watched(text.sent, text.utf8, keys, &Limits::DEFAULT, &mut Nobody)
    };
    let args = read.map_err(Refused::Malformed)?;
    if violates(tool, args) {
        return Err(Refused::Invalid);
    }
    clamp::apply(args, tool.spec().fields, edits).map_err(Refused::Unclampable)
}

/// Whether the tool finds anything wrong with the arguments.
pub(super) fn violates<T: Tool>(tool: &T, args: Args<'_>) -> bool {
    let mut verdict = ControlFlow::Continue(());
    tool.validate(args, &mut |_| verdict = ControlFlow::Break(()));
    verdict.is_break()
}

struct Look<'w, 'f> {
    walk: Walk<'w, 'f>,
    finder: Finder<'w, 'f>,
    clamps: Result<(), ClampError>,
}

impl<'w> Watch<'w> for Look<'w, '_> {
    // At each place at which the scanner shows a token its kind is known: inlined there, nothing has to be told apart again.
    #[inline(always)]
    fn see(&mut self, at: u32, event: Event<'w>) {
        self.walk.step(&event);
        if self.clamps.is_ok() {
            self.clamps = self.finder.step(at, &event);
        }
    }
}
