//! Typed tools: what a function, a method or a struct says of itself is what is advertised, and what is checked.
//!
//! | | on | makes |
//! |---|---|---|
//! | [`macro@tool`] | a function | `name::tool()`, the definition of a tool |
//! | [`macro@toolkit`] | an `impl` block | the tools among its methods, which share the value |
//! | [`derive@Arguments`] | a struct or an enum | a parameter; of a struct with named fields also all the arguments of a tool |
//! | [`derive@Output`] | a struct or an enum | a result with a schema |
//!
//! Each makes **one** constant, a [`Schema`](callgate_core::schema::Schema). The JSON Schema that a model reads, the check of
//! what comes, the clamps and the secrets are all made of it, so that none of them can say something else than the others.
//!
//! # What is said of a parameter
//!
//! In its doc comment, and in `#[param(...)]`:
//!
//! | | for | means |
//! |---|---|---|
//! | `description = "..."` | all | what it is, where the doc comment is not for the model |
//! | `clamp(1..=100)` | numbers | what is outside is brought in, and recorded (invariant K3) |
//! | `clamp_length(..=100)` | texts | what is longer is cut, and recorded |
//! | `range(1..=100)` | numbers | what is outside is refused |
//! | `length(1..=100)` | texts | refused by its length, in Unicode code points |
//! | `items(..=10)` | lists | refused by how many there are |
//! | `enum("asc", "desc")` | texts, numbers | one of these |
//! | `default = 10` | scalars | what it is when it is left out, told to the model |
//! | `default` | all | what `Default` says when it is left out |
//! | `secret` | all | kept out of records, plans and logs (invariant L1) |
//! | `rename = "..."` | named ones | its name on the wire |
//!
//! Names on the wire are the names in the source, unless `rename`, `#[arguments(rename_all = "camelCase")]` or serde's
//! `rename` and `rename_all` say otherwise. What else serde can be told is refused, because no schema here would tell it.

mod arguments;
mod bare;
mod choice;
mod kind;
mod number;
mod output;
mod param;
mod reader;
mod record;
mod serde_names;
mod signature;
mod text;
mod tool;
mod tool_attr;
mod toolkit;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a tool of a function: `search` stays what it is, and `search::tool()` is the definition of the tool.
///
/// ```ignore
/// use callgate_core::context::CallContext;
/// use callgate_macros::tool;
/// use callgate_std::{failure::Failure, registry::Registry};
///
/// /// Finds notes that contain a text
/// #[tool(name = "notes.search", scopes("notes:read"), read_only, timeout = "5s")]
/// fn search(
///     caller: &CallContext<'_>,
///     /// What to look for
///     #[param(length(1..=200))]
///     pattern: &str,
///     #[param(clamp(1..=100), default = 20)] max: u32,
/// ) -> Result<Vec<String>, Failure> {
///     todo!()
/// }
///
/// let registry = Registry::builder().add(search::tool()).build()?;
/// ```
///
/// # What is said of the tool
///
/// The description is the doc comment up to its first heading, unless `description = "..."` is there. Then: `name`, `version`,
/// `scopes("a", "b")`, `requires("network")`, `mutating`, `read_only`, `dangerous`, `idempotent`, `confirm(caller)` or
/// `confirm(approver = "scope")`, `timeout = "30s"`, `background = "10m"`, `concurrency(at_once = 4, line = 16)`, `cost = 3`,
/// `max_output = 65536`, `strict`. They mean what the methods of
/// `callgate_std::tool::ToolBuilder` mean.
///
/// # Parameters
///
/// Every parameter is one of the tool's arguments, with what its doc comment and its `#[param(...)]` say (see the [crate]),
/// but for those that the gate gives, which are told by the names of their types and which no caller sees:
///
/// | type | in | is |
/// |---|---|---|
/// | `&ToolCall<'_>` | `fn` | the call: who asks, clock, deadline, cancellation, progress, nested calls |
/// | `Cancelled<'_>` | `fn` | what tells that nobody waits any more |
/// | `Reporter<'_>` | `fn` | what takes progress, and parts of the result |
/// | `&OwnedCall`, `OwnedCall` | `async fn` | the call |
/// | `&Cancellation`, `Cancellation` | `async fn` | what tells that the caller is gone |
/// | `&CallContext<'_>` | both | who asks |
///
/// `&str`, `Option<&str>` and `&[T]` are lent for the call.
///
/// # Results
///
/// A type that is an [`Output`](callgate_core::typed::Output) gives the tool its output schema. A `Reply` gives none, and
/// nothing is `null`. A `Result` fails with whatever turns into `callgate_std::failure::Failure`.
///
/// # Without a heap
///
/// `#[tool(no_std)]` names core alone and makes a constant, `name::TOOL`, of type
/// [`BareTool`](callgate_core::typed::BareTool): definition, advertised text, check and function lie in flash. Texts are `&str`,
/// lists are arrays; what is given back implements [`ToolOutput`](callgate_core::tool::ToolOutput), and what it fails with
/// [`ToolFailure`](callgate_core::tool::ToolFailure).
///
/// ```
/// use callgate_core::typed::BareTool;
/// use callgate_macros::tool;
///
/// /// Opens a valve
/// #[tool(no_std, name = "valve.open", mutating, scopes("valves"))]
/// fn open(
///     #[param(length(1..=40))] valve: &str,
///     #[param(clamp(0..=100), default = 100)] percent: u8,
/// ) -> Result<u8, &'static str> {
///     if valve == "stuck" { Err("the valve is stuck") } else { Ok(percent) }
/// }
///
/// const TOOLS: [BareTool<u8, &'static str>; 1] = [open::TOOL];
/// # assert!(format!("{:?}", TOOLS[0]).contains("valve.open"));
/// ```
#[proc_macro_attribute]
pub fn tool(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let original = item.clone();
    told(tool::expand(attribute.into(), item.into()), original)
}

/// Makes tools of the methods of an `impl` block that have [`macro@tool`]. They share one value behind an `Arc`, and their
/// names start with `prefix = "..."`.
///
/// The type becomes a `callgate_std::tool::Toolkit`, which shows an example.
#[proc_macro_attribute]
pub fn toolkit(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let original = item.clone();
    told(toolkit::expand(attribute.into(), item.into()), original)
}

/// Makes a struct or an enum a parameter of tools, and a struct with named fields all the arguments of one.
///
/// ```
/// use callgate_core::typed::{Arguments as _, Parameter as _};
/// use callgate_macros::Arguments;
///
/// /// How to sort
/// #[derive(Arguments)]
/// #[arguments(rename_all = "lowercase")]
/// enum Order {
///     Name,
///     Date,
/// }
///
/// #[derive(Arguments)]
/// struct Page<'a> {
///     /// How many to give back
///     #[param(clamp(1..=100), default = 20)]
///     size: u32,
///     order: Option<Order>,
///     #[param(secret)]
///     token: &'a str,
/// }
///
/// let mut schema = String::new();
/// Page::SCHEMA.write_json_schema(&mut schema).unwrap();
/// assert!(schema.contains(r#""required":["token"]"#));
/// assert_eq!(Page::FIELDS.len(), 2);
/// ```
///
/// An enum is on the wire what serde makes of it: a variant without content is its name, another one an object with one
/// member. A struct of one unnamed field is what the field is.
///
/// The type is read without serde's `Deserialize`, and may have that, too.
#[proc_macro_derive(Arguments, attributes(param, arguments, serde))]
pub fn arguments(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    arguments::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Gives a struct or an enum that serde writes the schema of what is written.
///
/// serde's `rename`, `rename_all`, `skip` and `skip_serializing_if` count; what else changes what is written is refused.
#[proc_macro_derive(Output, attributes(output, serde))]
pub fn output(item: TokenStream) -> TokenStream {
    let input = parse_macro_input!(item as DeriveInput);
    output::derive(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// What was made, or the errors and what can be left of the source, so that nothing else is complained of.
fn told(made: syn::Result<proc_macro2::TokenStream>, original: TokenStream) -> TokenStream {
    match made {
        Ok(made) => made.into(),
        Err(error) => {
            let mut tokens = error.into_compile_error();
            tokens.extend(text::without_own_attributes(original.into()));
            tokens.into()
        }
    }
}
