//! Tools as the interfaces of model providers want them: pure functions over what a tool says of itself.
//!
//! [`export`] makes the list that goes into a request. What it tells a model is never wider in names (V19: no two tools have
//! the same name), and in what is accepted it is as close as the provider's schemas allow: what they have no keyword for is said
//! in words, and what can't be said at all is refused. Whatever a model then sends is checked by the gate, which knows the
//! tool's own schema and no other.
//!
//! | | names | arguments |
//! |---|---|---|
//! | [`Provider::OpenAi`] | 64 of `A-Z a-z 0-9 _ -` | JSON Schema as the tool has it |
//! | [`Provider::OpenAiStrict`] | the same | the subset of Structured Outputs: closed objects, every property required |
//! | [`Provider::Anthropic`] | 128 of `A-Z a-z 0-9 _ -` | JSON Schema; no alternatives at the root, short property names |
//! | [`Provider::Gemini`] | 64 of `A-Z a-z 0-9 _ . -`, a letter or `_` first | the subset of `OpenAPI` 3.0 that is its `Schema` |
//!
//! In strict mode a model sends `null` for what it would leave out; [`restore`] takes that back before the gate sees it.

mod gemini;
mod name;
mod restore;
mod strict;
mod tree;
mod words;

use std::fmt;

pub use self::name::ToolNames;
pub use self::restore::restore;

use self::name::Grammar;
use self::tree::Tree;
use crate::tool::Tool;

/// The deepest nesting that is looked into; a schema that refers to itself nests without end.
const MAX_DEPTH: usize = 32;

/// An interface of a model provider.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Provider {
    /// `OpenAI`'s Responses API, and what is compatible with it, without `strict`.
    OpenAi,
    /// The same with `strict`: the model can't send anything else.
    OpenAiStrict,
    /// Anthropic's Messages API.
    Anthropic,
    /// Gemini's `functionDeclarations`.
    Gemini,
}

impl Provider {
    const fn grammar(self) -> Grammar {
        match self {
            Self::OpenAi | Self::OpenAiStrict => Grammar { longest: 64, dots: false, starts_with_letter: false },
            Self::Anthropic => Grammar { longest: 128, dots: false, starts_with_letter: false },
            Self::Gemini => Grammar { longest: 64, dots: true, starts_with_letter: true },
        }
    }
}

/// Why tools can't be told to a provider.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Two names become one.
    #[error("tools {first} and {second} would both be {wire}; rename one, or give the model one of the two")]
    SameName {
        /// The one.
        first: String,
        /// The other.
        second: String,
        /// What both become.
        wire: String,
    },
    /// A name has too many characters.
    #[error("tool {tool}: the provider admits names of at most {max} characters; use a shorter one")]
    LongName {
        /// The tool.
        tool: String,
        /// How many there may be.
        max: usize,
    },
    /// A name starts with what no name of the provider starts with.
    #[error("tool {tool}: the provider admits names that start with a letter or `_`; use one of these")]
    FirstCharacter {
        /// The tool.
        tool: String,
    },
    /// A part of the arguments' schema can't be said.
    #[error("tool {tool}: {at}: {problem}")]
    Schema {
        /// The tool.
        tool: String,
        /// Where in the schema, as a JSON Pointer.
        at: String,
        /// What is wrong, and what can be done.
        problem: Unsayable,
    },
}

/// What a provider's schemas can't say.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unsayable {
    /// A keyword that the provider does not have and that no words replace.
    #[error("the provider has no `{0}`; write the schema without, or use another interface")]
    Keyword(String),
    /// An object of whatever members.
    #[error("the provider wants objects whose members are all declared; declare them, or use another interface")]
    Open,
    /// A value of whatever type.
    #[error("the provider wants a type for everything; give it one")]
    Untyped,
    /// Alternatives at the root.
    #[error("the provider wants an object at the root, and no alternatives")]
    Root,
    /// The name of a property.
    #[error("the provider does not admit this name of a property; rename it")]
    PropertyName,
    /// A reference that leads nowhere, or around.
    #[error("the provider wants schemas without references here, and this one leads nowhere or nests without end")]
    Reference,
    /// More than the provider takes.
    #[error("the provider takes no more than {max} {what}")]
    TooMuch {
        /// What there is too much of.
        what: &'static str,
        /// How much there may be.
        max: usize,
    },
}

/// What goes wrong within a schema: where, as a pointer, and what.
type Fault = (String, Unsayable);

/// Tools for a provider. `Display` writes the JSON array that goes into a request: for [`Provider::Gemini`] the list of
/// function declarations.
#[derive(Clone, Debug)]
pub struct Exported {
    names: ToolNames,
    tools: Vec<Tree>,
}

impl Exported {
    /// The names, and the way back from what a model calls.
    #[must_use]
    pub const fn names(&self) -> &ToolNames {
        &self.names
    }

    /// Each tool as JSON text, in the order in which they were given.
    pub fn tools(&self) -> impl Iterator<Item = String> {
        self.tools.iter().map(ToString::to_string)
    }
}

impl fmt::Display for Exported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (nth, tool) in self.tools.iter().enumerate() {
            if nth > 0 {
                f.write_str(",")?;
            }
            write!(f, "{tool}")?;
        }
        f.write_str("]")
    }
}

/// Tells tools to a provider: those of a [listing](crate::listing::Listing::tools), of a registry, or any others.
///
/// ```
/// use callgate_macros::tool;
/// use callgate_std::provider::{Provider, export};
///
/// /// Adds
/// #[tool(name = "math.add")]
/// fn add(a: u8, b: Option<u8>) -> u16 {
///     u16::from(a) + u16::from(b.unwrap_or(0))
/// }
///
/// let add = add::tool().build()?;
/// let exported = export(Provider::Anthropic, [&add])?;
/// assert_eq!(exported.names().tool("math_add"), Some("math.add"));
/// assert!(exported.to_string().starts_with(r#"[{"name":"math_add","description":"Adds","input_schema":{"type":"object","#));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The first tool that can't be told, and why.
pub fn export<T: AsRef<Tool>>(provider: Provider, tools: impl IntoIterator<Item = T>) -> Result<Exported, ExportError> {
    let tools: Vec<T> = tools.into_iter().collect();
    let names = ToolNames::new(provider, tools.iter().map(|tool| tool.as_ref().name()))?;
    let one = |tool: &T| {
        let tool = tool.as_ref();
        let name = names.wire(tool.name()).unwrap_or_default();
        declaration(provider, name, tool).map_err(|(at, problem)| ExportError::Schema {
            tool: tool.name().to_owned(),
            at: if at.is_empty() { "the root".to_owned() } else { at },
            problem,
        })
    };
    let tools = tools.iter().map(one).collect::<Result<_, _>>()?;
    Ok(Exported { names, tools })
}

fn declaration(provider: Provider, name: &str, tool: &Tool) -> Result<Tree, Fault> {
    let schema = Tree::parse(tool.advertised_schema()).unwrap_or(Tree::Null);
    let mut members = vec![
        ("name".to_owned(), Tree::text(name)),
        ("description".to_owned(), Tree::text(tool.advertised_description())),
    ];
    match provider {
        Provider::OpenAi | Provider::OpenAiStrict => {
            let strict = provider == Provider::OpenAiStrict;
            members.insert(0, ("type".to_owned(), Tree::text("function")));
            let parameters = if strict { strict::parameters(&schema)? } else { schema };
            members.push(("parameters".to_owned(), parameters));
            members.push(("strict".to_owned(), Tree::Bool(strict)));
        }
        Provider::Anthropic => {
            if ["anyOf", "oneOf", "allOf"].iter().any(|word| schema.get(word).is_some()) {
                return Err((String::new(), Unsayable::Root));
            }
            property_names(&schema, "", 0, &|name| {
                (1..=64).contains(&name.len())
                    && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
            })?;
            members.push(("input_schema".to_owned(), schema));
        }
        Provider::Gemini => {
            if let Some(parameters) = gemini::parameters(&schema)? {
                members.push(("parameters".to_owned(), parameters));
            }
        }
    }
    Ok(Tree::Object(members))
}

/// Looks at the names of all properties.
fn property_names(schema: &Tree, at: &str, depth: usize, admits: &dyn Fn(&str) -> bool) -> Result<(), Fault> {
    if depth > MAX_DEPTH {
        return Ok(());
    }
    for (keyword, value) in schema.members() {
        let here = pointer(at, keyword);
        match keyword.as_str() {
            "properties" => {
                for (name, property) in value.members() {
                    let here = pointer(&here, name);
                    if !admits(name) {
                        return Err((here, Unsayable::PropertyName));
                    }
                    property_names(property, &here, depth + 1, admits)?;
                }
            }
            "$defs" => {
                for (name, part) in value.members() {
                    property_names(part, &pointer(&here, name), depth + 1, admits)?;
                }
            }
            "enum" | "const" | "default" | "examples" => {}
            _ => {
                property_names(value, &here, depth + 1, admits)?;
                for (nth, part) in value.items().iter().enumerate() {
                    property_names(part, &format!("{here}/{nth}"), depth + 1, admits)?;
                }
            }
        }
    }
    Ok(())
}

/// The pointer to a member.
fn pointer(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

/// The part of `root` that a reference names.
fn referred<'s>(root: &'s Tree, reference: &str) -> Option<&'s Tree> {
    let mut node = root;
    for segment in reference.strip_prefix("#/")?.split('/') {
        node = node.get(&segment.replace("~1", "/").replace("~0", "~"))?;
    }
    Some(node)
}

/// The types that a schema names.
fn types(schema: &Tree) -> Vec<&str> {
    match schema.get("type") {
        Some(Tree::Text(name)) => vec![name],
        Some(list) => list.items().iter().filter_map(Tree::as_text).collect(),
        None => Vec::new(),
    }
}
