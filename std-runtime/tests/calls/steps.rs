//! The steps of a rotation, which a log tells as events, for those who kill it there.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Metadata, Subscriber, span};

/// Calls this with the name of each step, while the rotation stands there.
pub(crate) struct Steps<F>(pub(crate) F);

impl<F: Fn(&str) + Send + Sync + 'static> Subscriber for Steps<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "callgate::rotation"
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Step(&self.0));
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Step<'f, F>(&'f F);

impl<F: Fn(&str)> Visit for Step<'_, F> {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "step" {
            (self.0)(value);
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}
