//! Views: the part of a registry that a caller or a session gets to see.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use callgate_core::context::{CallContext, Scopes};

use crate::registry::{Registry, Sight, ToolSource};
use crate::tool::Tool;

/// Part of a registry, by a rule. The rule is asked about a tool whenever the tool is, so a tool that was registered after
/// the view was made passes the same rule (case O3).
///
/// A view starts empty and grows by what it is given: names, prefixes, scopes. An empty list adds nothing (invariant F2).
/// Outside a view a tool looks like none at all, unless the view [admits](Self::admitting) that it exists.
///
/// ```
/// use callgate_std::{registry::Registry, view::View};
/// let registry = Registry::default();
/// let support = View::of(registry, "support").with_prefix("notes.").with_names(["time.now"]).only_if(|tool, caller| {
///     !tool.spec().mutating || caller.known_principal().is_some()
/// });
/// assert_eq!(support.name(), "support");
/// ```
#[derive(Clone)]
pub struct View {
    name: Arc<str>,
    source: Arc<dyn ToolSource>,
    all: bool,
    names: HashSet<Box<str>>,
    prefixes: Vec<Box<str>>,
    scopes: String,
    conditions: Vec<Arc<Condition>>,
    admits: bool,
}

type Condition = dyn Fn(&Tool, &CallContext<'_>) -> bool + Send + Sync;

impl View {
    /// A view of `source` that shows nothing yet; `name` is for records and people.
    #[must_use]
    pub fn of(source: impl ToolSource + 'static, name: &str) -> Self {
        Self {
            name: name.into(),
            source: Arc::new(source),
            all: false,
            names: HashSet::new(),
            prefixes: Vec::new(),
            scopes: String::new(),
            conditions: Vec::new(),
            admits: false,
        }
    }

    /// The same view, of all tools that the source shows.
    #[must_use]
    pub const fn with_all(mut self) -> Self {
        self.all = true;
        self
    }

    /// The same view and the tools of these names.
    #[must_use]
    pub fn with_names<N: AsRef<str>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.names.extend(names.into_iter().map(|name| name.as_ref().into()));
        self
    }

    /// The same view and the tools whose names start so. An empty prefix adds nothing; see [`Self::with_all`].
    #[must_use]
    pub fn with_prefix(mut self, prefix: &str) -> Self {
        if !prefix.is_empty() {
            self.prefixes.push(prefix.into());
        }
        self
    }

    /// The same view and the tools that ask for one of these scopes, or, unless the list is empty, for none. The scope `*`
    /// stands for every scope.
    #[must_use]
    pub fn with_scopes(mut self, scopes: Scopes<'_>) -> Self {
        for scope in scopes.iter() {
            self.scopes.push_str(scope);
            self.scopes.push(' ');
        }
        self
    }

    /// The same view, of those tools only for which `condition` holds, too.
    #[must_use]
    pub fn only_if(mut self, condition: impl Fn(&Tool, &CallContext<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.conditions.push(Arc::new(condition));
        self
    }

    /// The same view, which admits that tools outside of it exist: a call gets `CAPABILITY_DENIED` instead of
    /// `TOOL_NOT_FOUND`.
    #[must_use]
    pub const fn admitting(mut self) -> Self {
        self.admits = true;
        self
    }

    /// The name of the view.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The names that the view was given and the registry as it is now doesn't have, sorted: misspelt, or not there yet.
    #[must_use]
    pub fn missing(&self) -> Vec<&str> {
        let registry = self.source.registry();
        let mut missing: Vec<&str> = self.names.iter().map(AsRef::as_ref).filter(|name| !registry.has(name)).collect();
        missing.sort_unstable();
        missing
    }

    fn shows(&self, tool: &Tool, caller: &CallContext<'_>) -> bool {
        let name = tool.name();
        let granted = self.all
            || self.names.contains(name)
            || self.prefixes.iter().any(|prefix| name.starts_with(&**prefix))
            || shares_scope(tool, Scopes::new(&self.scopes));
        granted && self.conditions.iter().all(|condition| condition(tool, caller))
    }
}

/// Whether a tool asks for one of these scopes, or, unless there are none, for no scope. The scope `*` stands for every one.
pub(crate) fn shares_scope(tool: &Tool, scopes: Scopes<'_>) -> bool {
    let asked = tool.spec().scopes;
    !scopes.is_empty() && (asked.is_empty() || scopes.has_any(asked))
}

impl ToolSource for View {
    fn registry(&self) -> Registry {
        self.source.registry()
    }

    fn sight(&self, tool: &Tool, caller: &CallContext<'_>) -> Sight {
        // What the source hides, no view of it shows; and each has to admit what a caller is to know of.
        match self.source.sight(tool, caller) {
            Sight::Shown if self.shows(tool, caller) => Sight::Shown,
            Sight::Shown | Sight::Hidden if self.admits => Sight::Hidden,
            Sight::Shown | Sight::Hidden | Sight::Absent => Sight::Absent,
        }
    }
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("name", &self.name).field("admits", &self.admits).finish_non_exhaustive()
    }
}
