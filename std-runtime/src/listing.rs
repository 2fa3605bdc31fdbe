//! Listings: what a model or a person is told of the tools there are.

use std::fmt;
use std::sync::Arc;

use callgate_core::args::Args;
use callgate_core::context::{CallContext, Mode, Scopes};
use callgate_core::json::Object;
use callgate_core::json::write::Writer;
use callgate_core::policy::{Phase, PolicyGate, Subject};
use callgate_core::time::Timestamp;

use crate::registry::ToolSource;
use crate::tool::Tool;
use crate::view::shares_scope;

/// The tools that a caller is told of, in the order of the registry.
///
/// Starts with what the caller [can find](ToolSource::list) and only ever gets shorter, so nothing is listed that a call by
/// the same caller would not find.
///
/// ```
/// use callgate_core::context::CallContext;
/// use callgate_std::{listing::Listing, output::Reply, registry::Registry, tool::Tool};
/// let registry = Registry::builder()
///     .add(Tool::builder("time.now").description("Tells the time").handler(|_| Ok(Reply::new("now"))))
///     .build()?;
/// let listing = Listing::of(&registry, &CallContext::cli("r1"));
/// assert_eq!(
///     listing.to_string(),
///     r#"[{"name":"time.now","description":"Tells the time","inputSchema":{"type":"object"}}]"#
/// );
/// # Ok::<(), callgate_std::registry::RegistryError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Listing {
    tools: Vec<Arc<Tool>>,
}

impl Listing {
    /// What `caller` can find in `source`.
    #[must_use]
    pub fn of(source: &(impl ToolSource + ?Sized), caller: &CallContext<'_>) -> Self {
        Self { tools: source.list(caller) }
    }

    /// Only the tools that ask for one of these scopes or, unless the list is empty, for none. The scope `*` stands for every scope.
    #[must_use]
    pub fn with_scopes(self, scopes: Scopes<'_>) -> Self {
        self.only_if(|tool| shares_scope(tool, scopes))
    }

    /// Only the tools whose names start so.
    #[must_use]
    pub fn with_prefix(self, prefix: &str) -> Self {
        self.only_if(|tool| tool.name().starts_with(prefix))
    }

    /// Only the tools that `gate` does not refuse to `caller` before it knows any arguments: for a missing principal, scope
    /// or requirement. A tool that still needs a rule, a consent or a confirmation is listed.
    #[must_use]
    pub fn permitted(self, gate: &PolicyGate<'_>, caller: &CallContext<'_>) -> Self {
        // Consent can come with the call. As a plan, which runs nothing, the call is not refused for want of it.
        let caller = CallContext { mode: Mode::Plan, ..*caller };
        self.only_if(|tool| {
            let subject = Subject {
                caller,
                spec: tool.spec(),
                definition: tool.digest(),
                args: Args::EMPTY,
                arguments: None,
                now: Timestamp::default(),
            };
            matches!(gate.before_rules::<&'static str>(&subject), Phase::NeedsRule(_))
        })
    }

    /// Only the tools for which `condition` holds.
    #[must_use]
    pub fn only_if(mut self, mut condition: impl FnMut(&Tool) -> bool) -> Self {
        self.tools.retain(|tool| condition(tool));
        self
    }

    /// The tools.
    #[must_use]
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// The tools by value.
    #[must_use]
    pub fn into_tools(self) -> Vec<Arc<Tool>> {
        self.tools
    }

    /// Writes the listing as a JSON array of summaries, see [`write_summary`].
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        let mut json = Writer::new(out);
        json.start_array()?;
        for tool in &self.tools {
            json.raw(|out| write_summary(tool, out))?;
        }
        json.end_array()
    }
}

/// The JSON of [`Listing::write_json`].
impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_json(f)
    }
}

/// Writes what a model is told of one tool: `{"name","description","inputSchema"}`, and `version` and `outputSchema` where
/// the tool has them. Scopes, flags and limits are the gate's own business.
///
/// The input schema is the tool's, byte for byte but for white space and for the notes that tell what clamps do; that of a
/// tool without one is `{"type":"object"}`.
///
/// # Errors
/// Those of `out`.
pub fn write_summary(tool: &Tool, out: &mut dyn fmt::Write) -> fmt::Result {
    let spec = tool.spec();
    let mut summary = Object::begin(out)?;
    summary.text("name", spec.name)?;
    summary.text("description", tool.advertised_description())?;
    summary.raw("inputSchema", |out| out.write_str(tool.advertised_schema()))?;
    summary.optional("version", spec.version)?;
    if let Some(schema) = spec.output_schema {
        summary.raw("outputSchema", |out| out.write_str(schema))?;
    }
    summary.end()
}
