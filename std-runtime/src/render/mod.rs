//! Renderers: an outcome as text for people, by channel. What a tool returned is foreign text: nothing of it can move a
//! cursor or hide itself, and a second line of it is indented, so that it does not look like one of the renderer's own
//! (invariant O3).

pub mod approver;
mod plain;
mod terminal;
mod value;

pub use plain::PlainRenderer;
pub use terminal::TerminalRenderer;

use std::fmt::{self, Write as _};

use callgate_core::code::{Code, Effect};
use callgate_core::json::Object;
use callgate_core::outcome::{Outcome, OutcomeType};
use callgate_core::request::Context;
use callgate_core::tool::Tool;

/// An outcome as the wire shows it, in owned texts. It is what renderers read, whatever the tools and contexts of a host are.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// The channel of the call.
    pub channel: String,
    /// Whether the call succeeded; a question is a success.
    pub success: bool,
    /// The kind of the outcome.
    pub kind: OutcomeType,
    /// Why it did not succeed.
    pub code: Option<Code>,
    /// What it did to the world.
    pub effect: Effect,
    /// The message for people.
    pub message: Option<String>,
    /// The error's text.
    pub error: Option<String>,
    /// The data, as JSON text.
    pub data: String,
    /// The meta, as JSON text.
    pub meta: String,
}

impl View {
    /// The view of an outcome.
    ///
    /// # Errors
    /// The tool's result cannot be written.
    pub fn of<C: Context, T: Tool>(outcome: &Outcome<C, T>) -> Result<Self, fmt::Error> {
        let (mut data, mut meta) = (String::new(), String::new());
        outcome.write_data(&mut data)?;
        outcome.write_meta(&mut meta)?;
        let text = |part: &dyn fmt::Display| {
            let mut text = String::new();
            write!(text, "{part}").map(|()| text)
        };
        Ok(Self {
            channel: outcome.context().caller().channel.to_owned(),
            success: outcome.success(),
            kind: outcome.kind(),
            code: outcome.code(),
            effect: outcome.effect(),
            message: outcome.message().map(|message| text(&message)).transpose()?,
            error: outcome.error().map(|error| text(&error)).transpose()?,
            data,
            meta,
        })
    }
}

/// Shows no content (invariant L1).
impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("channel", &self.channel)
            .field("kind", &self.kind)
            .field("code", &self.code)
            .field("effect", &self.effect)
            .finish_non_exhaustive()
    }
}

/// Turns outcomes into text.
pub trait Renderer: Send + Sync {
    /// Whether it is made for this channel.
    fn supports(&self, channel: &str) -> bool;

    /// Writes the outcome. A text of more than one line ends with a line break.
    ///
    /// # Errors
    /// Those of `out`.
    fn render(&self, view: &View, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// The outcome as it is on the wire: one line of JSON, without a line break. For every channel.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct JsonRenderer;

impl JsonRenderer {
    /// The renderer.
    #[must_use]
    pub const fn new() -> Self {
        Self
    }
}

impl Renderer for JsonRenderer {
    fn supports(&self, _: &str) -> bool {
        true
    }

    fn render(&self, view: &View, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut object = Object::begin(out)?;
        object.boolean("success", view.success)?;
        object.raw("data", |out| out.write_str(&view.data))?;
        object.nullable("message", view.message.as_deref())?;
        object.nullable("error", view.error.as_deref())?;
        object.raw("meta", |out| out.write_str(&view.meta))?;
        object.end()
    }
}

/// Renderers, the first that is made for a channel first; then the default one; then [`JsonRenderer`].
///
/// ```
/// use callgate_std::render::{PlainRenderer, Renderers, TerminalRenderer};
/// let renderers = Renderers::new().and(TerminalRenderer::new()).or(PlainRenderer::new());
/// assert!(renderers.supports("cli") && renderers.supports("telegram"));
/// ```
#[derive(Default)]
pub struct Renderers {
    renderers: Vec<Box<dyn Renderer>>,
    default: Option<Box<dyn Renderer>>,
}

impl Renderers {
    /// None: everything is JSON.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, and `renderer` for the channels that it supports and none before it does.
    #[must_use]
    pub fn and(mut self, renderer: impl Renderer + 'static) -> Self {
        self.renderers.push(Box::new(renderer));
        self
    }

    /// The same with this renderer for all other channels.
    #[must_use]
    pub fn or(mut self, renderer: impl Renderer + 'static) -> Self {
        self.default = Some(Box::new(renderer));
        self
    }

    /// Whether `channel` gets anything else than JSON.
    #[must_use]
    pub fn supports(&self, channel: &str) -> bool {
        self.default.is_some() || self.renderers.iter().any(|renderer| renderer.supports(channel))
    }

    /// Writes the outcome as its channel wants it.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn render(&self, view: &View, out: &mut dyn fmt::Write) -> fmt::Result {
        let made_for_it = self.renderers.iter().find(|renderer| renderer.supports(&view.channel));
        match made_for_it.or(self.default.as_ref()) {
            Some(renderer) => renderer.render(view, out),
            None => JsonRenderer::new().render(view, out),
        }
    }
}

impl fmt::Debug for Renderers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Renderers")
            .field("renderers", &self.renderers.len())
            .field("default", &self.default.is_some())
            .finish()
    }
}
