//! What a tool's body returns when it fails.

use std::error::Error;
use std::fmt;

use callgate_core::code::{Code, Effect};
use callgate_core::json::DeError;
use callgate_core::tool::ToolFailure;

/// The most bytes of a failure's text; the rest is cut off, and the text says so.
pub const MAX_FAILURE_TEXT: usize = 8 << 10;

/// Why a tool's body failed.
///
/// The text goes to the record, after redaction. The caller reads it only when the tool says that it is
/// [public](Self::public): what an error says may hold paths, queries or secrets (invariant L4). The code is one of those
/// that are free for tools; the effect is `unknown` unless the tool [says](Self::without_effect) that nothing happened.
///
/// Every error converts into a failure, so `?` works in a body; its text stays out of the answer. A failure can say one
/// thing to the caller and more to the record: [`Failure::with_detail`].
///
/// ```
/// use callgate_std::failure::Failure;
/// fn note(id: u32) -> Result<String, Failure> {
///     if id == 7 {
///         return Err(Failure::not_found("there is no note 7").public().without_effect());
///     }
///     Ok(std::fs::read_to_string("/there/is/no/such/file")?)
/// }
/// assert_eq!(note(7).unwrap_err().public_text(), Some("there is no note 7"));
/// assert_eq!(note(8).unwrap_err().public_text(), None);
/// ```
///
/// `Debug` does not show the text.
#[derive(Clone, PartialEq, Eq)]
#[must_use = "a failure that nobody returns did not happen"]
pub struct Failure {
    text: String,
    /// The text and what the record alone gets to know.
    record: Option<String>,
    code: Code,
    effect: Effect,
    public: bool,
    stopped: Option<Stopped>,
}

/// Why a body stopped before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stopped {
    /// It had no more time.
    Late,
    /// Its caller was gone.
    Cancelled,
}

impl Failure {
    /// A failure with this text, code `INTERNAL_ERROR`.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: cut_text(text.into(), MAX_FAILURE_TEXT),
            record: None,
            code: Code::InternalError,
            effect: Effect::Unknown,
            public: false,
            stopped: None,
        }
    }

    /// The body stopped because its [deadline](crate::tool::ToolCall::deadline) had passed. The call ends as `TIMEOUT` with
    /// effect `unknown` if that is so by the gate's clock, and as a plain failure otherwise (invariant X2).
    pub fn timed_out() -> Self {
        Self { stopped: Some(Stopped::Late), ..Self::new("stopped at the deadline") }
    }

    /// The body stopped because its caller [was gone](crate::tool::ToolCall::is_cancelled). The call ends as `CANCELLED` with
    /// effect `unknown` if the gate knows that too, and as a plain failure otherwise.
    pub fn cancelled() -> Self {
        Self { stopped: Some(Stopped::Cancelled), ..Self::new("stopped because the caller was gone") }
    }

    /// What was asked for does not exist: `NOT_FOUND`.
    pub fn not_found(text: impl Into<String>) -> Self {
        Self { code: Code::NotFound, ..Self::new(text) }
    }

    /// The arguments make no sense together, in a way that no schema tells: `VALIDATION_ERROR`.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self { code: Code::ValidationError, ..Self::new(text) }
    }

    /// The tool could not authenticate the caller elsewhere: `UNAUTHORIZED`.
    pub fn unauthorized(text: impl Into<String>) -> Self {
        Self { code: Code::Unauthorized, ..Self::new(text) }
    }

    /// The same failure, whose text the caller may read.
    pub fn public(mut self) -> Self {
        self.public = true;
        self
    }

    /// The same failure, of a run that changed nothing.
    pub fn without_effect(mut self) -> Self {
        self.effect = Effect::None;
        self
    }

    /// The same failure with what else is known. It goes to the record after the text, and never to the caller.
    pub fn with_detail(mut self, detail: &str) -> Self {
        self.record = Some(cut_text(format!("{}: {detail}", self.text), MAX_FAILURE_TEXT));
        self
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What the record gets to know: the text, and the [detail](Self::with_detail) if there is one.
    #[must_use]
    pub fn record_text(&self) -> &str {
        self.record.as_deref().unwrap_or(&self.text)
    }

    /// What the caller may read of the text.
    #[must_use]
    pub fn public_text(&self) -> Option<&str> {
        self.public.then_some(self.text.as_str())
    }

    /// The code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// What the failed run did.
    #[must_use]
    pub const fn effect(&self) -> Effect {
        self.effect
    }

    /// Why the body stopped before its end, if it says that it did.
    pub(crate) const fn stopped(&self) -> Option<Stopped> {
        self.stopped
    }

    /// The arguments are not what the body's type takes, though they fit the tool's schema. Names fields and never values,
    /// so the caller may read it.
    pub(crate) fn ill_typed(error: &DeError) -> Self {
        Self::invalid(error.to_string()).public().without_effect()
    }
}

impl ToolFailure for Failure {
    fn code(&self) -> Code {
        self.code
    }

    fn public_text(&self) -> Option<&str> {
        Self::public_text(self)
    }

    fn detail(&self) -> &str {
        self.record_text()
    }

    fn effect(&self) -> Effect {
        self.effect
    }
}

/// The error's text and those of its sources, a colon between two of them.
impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            // Errors that can't stop naming sources do not keep the gate.
            if text.len() > MAX_FAILURE_TEXT {
                break;
            }
            text.push_str(": ");
            text.push_str(&error.to_string());
            source = error.source();
        }
        Self::new(text)
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Failure")
            .field("code", &self.code)
            .field("effect", &self.effect)
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// A text of at most `max` bytes and the note that it was cut.
pub(crate) fn cut_text(mut text: String, max: usize) -> String {
    let bytes = text.len();
    if bytes <= max {
        return text;
    }
    text.truncate(text.floor_char_boundary(max));
    text.push_str(&format!(" ... cut after {} of {bytes} bytes", text.len()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Layer(&'static str, Option<Box<Layer>>);

    impl fmt::Display for Layer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Layer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_deref().map(|source| source as &dyn Error)
        }
    }

    // L4: an error's text reaches the caller only when the tool says so.
    #[test]
    fn l4_texts_are_private_until_they_are_public() {
        let failure = Failure::from(Layer("no answer", Some(Box::new(Layer("password is hunter2", None)))));
        assert_eq!(failure.text(), "no answer: password is hunter2");
        assert_eq!(failure.public_text(), None);
        assert_eq!((failure.code(), failure.effect()), (Code::InternalError, Effect::Unknown));
        assert!(!format!("{failure:?}").contains("hunter2"));
        for failure in [Failure::new("x"), Failure::not_found("x"), Failure::invalid("x"), Failure::unauthorized("x")] {
            assert_eq!(failure.public_text(), None);
            assert_eq!(failure.public().public_text(), Some("x"));
        }
    }

    // L4: the caller and the record are told different things.
    #[test]
    fn l4_a_detail_is_for_the_record_alone() {
        let failure = Failure::invalid("path: it is not there").public().with_detail("ENOENT in /srv/secret");
        assert_eq!(failure.public_text(), Some("path: it is not there"));
        assert_eq!(ToolFailure::detail(&failure), "path: it is not there: ENOENT in /srv/secret");
        assert!(!format!("{failure:?}").contains("ENOENT"));
        let long = Failure::new("x").with_detail(&"y".repeat(2 * MAX_FAILURE_TEXT));
        assert!(long.record_text().len() < MAX_FAILURE_TEXT + 64);
    }

    // X6
    #[test]
    fn x6_texts_are_bounded() {
        let failure = Failure::new("é".repeat(MAX_FAILURE_TEXT));
        assert!(failure.text().len() < MAX_FAILURE_TEXT + 64);
        assert!(failure.text().ends_with(" ... cut after 8192 of 16384 bytes"), "{}", failure.text().len());
    }
}
