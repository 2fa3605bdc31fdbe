//! Registries: the tools of a gate, found by name.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use callgate_core::call::Lookup;
use callgate_core::context::CallContext;
use callgate_core::name::skeleton;
use foldhash::fast::RandomState;

use crate::lock::ArcSwap;
use crate::tool::{Tool, ToolBuilder, ToolError, Toolkit};

/// An immutable set of tools. Cheap to clone: clones share the tools.
///
/// Names compare byte for byte (invariant S2), and no two tools of a registry have names that a reader could take for each
/// other (invariant G3): [`RegistryBuilder::build`] refuses equal names, names equal but for case, and names that look
/// alike.
///
/// ```
/// use callgate_std::{output::Reply, registry::Registry, tool::Tool};
/// let registry = Registry::builder()
///     .add(Tool::builder("time.now").description("Tells the time").handler(|_| Ok(Reply::new("now"))))
///     .build()?;
/// assert!(registry.has("time.now"));
/// assert!(!registry.has("Time.Now"));
/// # Ok::<(), callgate_std::registry::RegistryError>(())
/// ```
#[derive(Clone, Default)]
pub struct Registry(Arc<Tools>);

#[derive(Default)]
struct Tools {
    by_name: HashMap<Box<str>, Arc<Tool>, RandomState>,
    in_order: Vec<Arc<Tool>>,
    warnings: Vec<RegistryWarning>,
}

impl Registry {
    /// Starts a registry.
    pub fn builder() -> RegistryBuilder {
        RegistryBuilder::default()
    }

    /// The tool of exactly this name, in the time that it takes to hash the name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.0.by_name.get(name)
    }

    /// Whether there is a tool of exactly this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The tools in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, Arc<Tool>> {
        self.0.in_order.iter()
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.in_order.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.in_order.is_empty()
    }

    /// What a host may want to change before others meet it.
    #[must_use]
    pub fn warnings(&self) -> &[RegistryWarning] {
        &self.0.warnings
    }
}

impl<'r> IntoIterator for &'r Registry {
    type Item = &'r Arc<Tool>;
    type IntoIter = std::slice::Iter<'r, Arc<Tool>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|tool| tool.name())).finish()
    }
}

/// What can be added to a registry: a tool, or a definition that is built then.
pub trait IntoTool {
    /// The tool.
    ///
    /// # Errors
    /// What is wrong with the definition.
    fn into_tool(self) -> Result<Arc<Tool>, ToolError>;
}

impl IntoTool for Tool {
    fn into_tool(self) -> Result<Arc<Tool>, ToolError> {
        Ok(Arc::new(self))
    }
}

impl IntoTool for Arc<Tool> {
    fn into_tool(self) -> Result<Self, ToolError> {
        Ok(self)
    }
}

impl IntoTool for &Arc<Tool> {
    fn into_tool(self) -> Result<Arc<Tool>, ToolError> {
        Ok(Arc::clone(self))
    }
}

impl IntoTool for ToolBuilder {
    fn into_tool(self) -> Result<Arc<Tool>, ToolError> {
        self.build().map(Arc::new)
    }
}

impl IntoTool for Result<Tool, ToolError> {
    fn into_tool(self) -> Result<Arc<Tool>, ToolError> {
        self.map(Arc::new)
    }
}

/// Collects the tools of a registry; [`build`](Self::build) tells everything that is wrong at once.
#[derive(Debug, Default)]
#[must_use = "a registry has to be built"]
pub struct RegistryBuilder {
    tools: Vec<Arc<Tool>>,
    faulty: Vec<ToolError>,
}

impl RegistryBuilder {
    /// Adds a tool.
    #[expect(clippy::should_implement_trait, reason = "a builder of many parts, and no sum")]
    pub fn add(mut self, tool: impl IntoTool) -> Self {
        match tool.into_tool() {
            Ok(tool) => self.tools.push(tool),
            Err(error) => self.faulty.push(error),
        }
        self
    }

    /// Adds tools.
    pub fn add_all<T: IntoTool>(self, tools: impl IntoIterator<Item = T>) -> Self {
        tools.into_iter().fold(self, Self::add)
    }

    /// Adds the tools of something that they share.
    pub fn toolkit<T: Toolkit>(self, toolkit: &Arc<T>) -> Self {
        self.add_all(toolkit.tools())
    }

    /// The registry.
    ///
    /// # Errors
    /// Everything that is wrong: definitions that can't be used, and names that can't stand beside each other
    /// (invariant G3). Nothing is overridden.
    pub fn build(self) -> Result<Registry, RegistryError> {
        let mut problems: Vec<_> = self.faulty.into_iter().map(RegistryProblem::Tool).collect();
        problems.extend(twins(&self.tools));
        if !problems.is_empty() {
            return Err(RegistryError { problems });
        }
        let by_name = self.tools.iter().map(|tool| (tool.name().into(), Arc::clone(tool))).collect();
        let warnings = lowered_twins(&self.tools);
        Ok(Registry(Arc::new(Tools { by_name, in_order: self.tools, warnings })))
    }
}

/// Each name that comes after one that it could be taken for.
fn twins(tools: &[Arc<Tool>]) -> Vec<RegistryProblem> {
    let mut exact: HashMap<&str, ()> = HashMap::new();
    let mut folded: HashMap<String, &str> = HashMap::new();
    let mut skeletons: HashMap<String, &str> = HashMap::new();
    let mut problems = Vec::new();
    for tool in tools {
        let name = tool.name();
        if exact.insert(name, ()).is_some() {
            problems.push(RegistryProblem::Duplicate { name: name.to_owned() });
            continue;
        }
        let fold = first(&mut folded, name.to_ascii_lowercase(), name);
        let skeleton = first(&mut skeletons, skeleton(name).collect(), name);
        if let Some(first) = fold {
            problems.push(RegistryProblem::CaseTwin { first: first.to_owned(), second: name.to_owned() });
        } else if let Some(first) = skeleton {
            problems.push(RegistryProblem::Lookalike { first: first.to_owned(), second: name.to_owned() });
        }
    }
    problems
}

/// The name that came first with this key, when it is another one.
fn first<'t>(seen: &mut HashMap<String, &'t str>, key: String, name: &'t str) -> Option<&'t str> {
    match seen.entry(key) {
        Entry::Occupied(first) => Some(*first.get()),
        Entry::Vacant(free) => {
            free.insert(name);
            None
        }
    }
}

/// Names that become one where only letters, digits and `_` are left, as some model interfaces want them.
fn lowered_twins(tools: &[Arc<Tool>]) -> Vec<RegistryWarning> {
    let mut seen: HashMap<String, &str> = HashMap::new();
    let lower = |name: &str| name.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    tools
        .iter()
        .filter_map(|tool| {
            let first = first(&mut seen, lower(tool.name()), tool.name())?;
            Some(RegistryWarning::SameWhenLowered { first: first.to_owned(), second: tool.name().to_owned() })
        })
        .collect()
}

/// Everything that keeps a registry from being built.
#[derive(Clone, PartialEq, Debug)]
pub struct RegistryError {
    problems: Vec<RegistryProblem>,
}

impl RegistryError {
    /// What is wrong; at least one thing.
    #[must_use]
    pub fn problems(&self) -> &[RegistryProblem] {
        &self.problems
    }
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.problems.as_slice() {
            [problem] => write!(f, "{problem}"),
            problems => {
                write!(f, "{} problems with the registered tools", problems.len())?;
                problems.iter().try_for_each(|problem| write!(f, "\n{problem}"))
            }
        }
    }
}

impl std::error::Error for RegistryError {}

/// One thing that keeps a registry from being built.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryProblem {
    /// A definition can't be used.
    #[error(transparent)]
    Tool(ToolError),
    /// A name comes twice.
    #[error("tool {name} is registered twice; remove one, or give it another name")]
    Duplicate {
        /// The name.
        name: String,
    },
    /// Two names are equal but for case.
    #[error("tools {first} and {second} differ only in case; give one another name")]
    CaseTwin {
        /// The name that came first.
        first: String,
        /// The other.
        second: String,
    },
    /// Two names look alike.
    #[error("tools {first} and {second} look alike (0 as O, 1 and I as l, m as rn); give one another name")]
    Lookalike {
        /// The name that came first.
        first: String,
        /// The other.
        second: String,
    },
}

/// What a host may want to change before others meet it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryWarning {
    /// Two names become one where only letters, digits and `_` are left. Exports to such interfaces refuse them.
    #[error("tools {first} and {second} become one name where only letters, digits and _ are allowed")]
    SameWhenLowered {
        /// The name that came first.
        first: String,
        /// The other.
        second: String,
    },
}

/// A registry that can be replaced while calls run: each call keeps the tool that it found (invariant G2). Clones share
/// what is replaced.
#[derive(Clone)]
pub struct SharedRegistry(Arc<ArcSwap<Tools>>);

impl SharedRegistry {
    /// Shares `registry`.
    #[must_use]
    pub fn new(registry: Registry) -> Self {
        Self(Arc::new(ArcSwap::new(registry.0)))
    }

    /// The registry as it is now.
    #[must_use]
    pub fn load(&self) -> Registry {
        Registry(self.0.load_full())
    }

    /// Puts `registry` in the place of the present one, which is given back. Calls that found their tool keep it.
    pub fn swap(&self, registry: Registry) -> Registry {
        Registry(self.0.swap(registry.0))
    }
}

impl fmt::Debug for SharedRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SharedRegistry").field(&self.load()).finish()
    }
}

/// What a caller may know of a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "a tool is shown, admitted to exist, or kept quiet about")]
pub enum Sight {
    /// The tool is there for the caller.
    Shown,
    /// It is not, and the caller may know that it exists.
    Hidden,
    /// It is not, and for the caller it does not exist.
    Absent,
}

/// Where a gate finds tools: a [`Registry`], a [`SharedRegistry`], a [`View`](crate::view::View) or a host's own.
///
/// One rule, [`sight`](Self::sight), decides for a call by name and for a listing alike, on every tool when it is asked for:
/// a tool that was registered after a view was made passes the same rule, and nothing is listed that a call would not find
/// (case O3).
pub trait ToolSource: Send + Sync {
    /// The registry as it is now.
    fn registry(&self) -> Registry;

    /// What `caller` may know of `tool`.
    fn sight(&self, tool: &Tool, caller: &CallContext<'_>) -> Sight {
        let _ = (tool, caller);
        Sight::Shown
    }

    /// Looks a name up for a caller, in the registry as it is now.
    fn find(&self, name: &str, caller: &CallContext<'_>) -> Lookup<Arc<Tool>> {
        seen(self, self.registry().get(name), caller)
    }

    /// The tools that a caller can find, in the order of the registry.
    fn list(&self, caller: &CallContext<'_>) -> Vec<Arc<Tool>> {
        let registry = self.registry();
        registry.iter().filter(|tool| self.sight(tool, caller) == Sight::Shown).cloned().collect()
    }
}

/// A tool as a look-up shows it.
fn seen<S: ToolSource + ?Sized>(source: &S, tool: Option<&Arc<Tool>>, caller: &CallContext<'_>) -> Lookup<Arc<Tool>> {
    match tool {
        None => Lookup::Unknown,
        Some(tool) => match source.sight(tool, caller) {
            Sight::Shown => Lookup::Found(Arc::clone(tool)),
            Sight::Hidden => Lookup::Hidden,
            Sight::Absent => Lookup::Unknown,
        },
    }
}

impl ToolSource for Registry {
    fn registry(&self) -> Registry {
        self.clone()
    }

    fn find(&self, name: &str, caller: &CallContext<'_>) -> Lookup<Arc<Tool>> {
        seen(self, self.get(name), caller)
    }
}

impl ToolSource for SharedRegistry {
    fn registry(&self) -> Registry {
        self.load()
    }

    fn find(&self, name: &str, caller: &CallContext<'_>) -> Lookup<Arc<Tool>> {
        // Borrowed while the name is looked up, so that threads do not contend for one count of references.
        seen(self, self.0.load().by_name.get(name), caller)
    }
}

impl<S: ToolSource + ?Sized> ToolSource for Arc<S> {
    fn registry(&self) -> Registry {
        self.deref().registry()
    }

    fn sight(&self, tool: &Tool, caller: &CallContext<'_>) -> Sight {
        self.deref().sight(tool, caller)
    }

    fn find(&self, name: &str, caller: &CallContext<'_>) -> Lookup<Arc<Tool>> {
        self.deref().find(name, caller)
    }
}
