//! What a tool's body returns when it succeeds.

mod kept;

use std::borrow::Cow;
use std::fmt;
use std::sync::{LazyLock, OnceLock};

use callgate_core::digest::Digest;
use callgate_core::json::{KeySlot, Limits, MAX_DEPTH, Object, key_capacity, scan};
use callgate_core::outcome::is_reserved_meta;
use callgate_core::tool::ToolOutput;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::failure::{Failure, cut_text};
use crate::typed_text::typed_text;
use crate::value_text::{Size, cut, cut_text_of_json, dismantle, exact_size, size, size_of_members, write_value};

/// The most bytes of JSON text that a result may have where a tool sets no other cap: 1 MiB.
pub const DEFAULT_MAX_OUTPUT: usize = 1 << 20;
/// The most bytes of a reply's message; the rest is cut off, and the message says so.
pub const MAX_MESSAGE: usize = 16 << 10;
/// The most bytes of JSON text of a reply's own meta; beyond, all of it is left out, and the outcome says so.
pub const MAX_META: usize = 64 << 10;

/// The members of meta in which a reply says what became of it. Reserved like those of the gate.
const OWN_META: [&str; 4] = ["output_truncated", "output_bytes", "output_digest", "meta_dropped"];
/// Kinds of outcome that only the gate may claim: a tool can't pretend that nothing has run.
const GATE_TYPES: [&str; 4] = ["generic", "confirmation", "blocked", "error"];

/// A tool's result: data, a message for people, and members for the outcome's meta.
///
/// ```
/// use callgate_std::output::Reply;
/// use serde_json::json;
/// let reply = Reply::new(json!({"id": 7})).with_message("Created").with_meta("source", "cache");
/// assert_eq!(reply.data()["id"], 7);
/// assert_eq!(reply.message(), Some("Created"));
/// ```
///
/// # Names in meta
///
/// The gate's own names are the gate's ([`is_reserved_meta`]): a member that a tool gives such a name is written with
/// `tool_` before it, so it replaces nothing. `type` names the kind of the result (`list`, `detail` or the tool's own),
/// except for the kinds that only the gate gives: `generic`, `confirmation`, `blocked`, `error`.
///
/// # Bounds (invariants O2, X6)
///
/// A result is bounded when the body returns it, by the tool's cap ([`DEFAULT_MAX_OUTPUT`] unless it sets another):
///
/// - Of a tool without an output schema it is cut. The data becomes a text, the beginning of what it was (of the text,
///   for a text; of the JSON text, for anything else), and meta says `output_truncated`, with `output_bytes` and
///   `output_digest`: the length and the SHA-256 of the whole data's JSON text.
/// - Of a tool with an output schema it is refused as `OUTPUT_INVALID` with effect `done`, because no part of it would
///   fit the schema.
/// - Data that nests deeper than the gate's readers go (64) is refused likewise.
///
/// `Debug` shows nothing of the content (invariant L1).
#[derive(Clone, Default)]
pub struct Reply {
    data: Data,
    bounds: Bounds,
    /// What most replies do not have, elsewhere: a reply is moved some times on its way.
    extra: Option<Box<Extra>>,
}

/// What a reply has beside its data.
#[derive(Clone, Default, PartialEq)]
struct Extra {
    message: Option<String>,
    meta: Map<String, Value>,
    meta_dropped: bool,
}

/// A result, as the body gave it.
#[derive(Clone)]
enum Data {
    Value(Value),
    /// The text of a typed result; the value behind it is made when somebody asks for it.
    Text {
        text: String,
        value: OnceLock<Box<Value>>,
    },
}

impl Default for Data {
    fn default() -> Self {
        Self::Value(Value::Null)
    }
}

impl Data {
    fn value(&self) -> &Value {
        match self {
            Self::Value(value) => value,
            Self::Text { text, value } => value.get_or_init(|| Box::new(read(text))),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Self::Value(value) => value,
            Self::Text { text, value } => value.into_inner().map_or_else(|| read(&text), |value| *value),
        }
    }
}

/// The value of a text that this crate wrote.
fn read(text: &str) -> Value {
    // The result may have any size here; it is bounded when the body has returned it.
    let limits = Limits { bytes: u32::MAX, nodes: u32::MAX, members: u32::MAX, key_bytes: u32::MAX, ..Limits::DEFAULT };
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let scanned = scan(text.as_bytes(), &mut keys, &limits).ok();
    scanned.and_then(|scanned| scanned.value().parse().ok()).unwrap_or_default()
}

/// What bounding a reply came to.
#[derive(Clone, Default, PartialEq)]
enum Bounds {
    #[default]
    Unknown,
    Within,
    /// The data is a part of what it was.
    Cut(Box<Whole>),
    /// The data was too large, may not be cut, and is gone.
    TooLarge {
        bytes: usize,
    },
    /// The data was too deep, and is gone.
    TooDeep,
}

/// What cut data was.
#[derive(Clone, PartialEq)]
struct Whole {
    bytes: usize,
    digest: Digest,
}

impl Reply {
    /// A reply with this data.
    #[must_use]
    pub fn new(data: impl Into<Value>) -> Self {
        Self { data: Data::Value(data.into()), ..Self::default() }
    }

    /// A reply without data: `null`.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A reply whose data is `value`, serialized: its JSON text is written at once, members in the order in which the type
    /// gives them.
    ///
    /// # Errors
    /// Fails where JSON has no such value, as a map whose keys are no strings. The failure's text is not for the caller.
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Self, Failure> {
        let data = match typed_text(value)? {
            Some(text) => Data::Text { text, value: OnceLock::new() },
            None => Data::Value(serde_json::to_value(value)?),
        };
        Ok(Self { data, ..Self::default() })
    }

    /// One page of a list: meta gets `type: "list"` and `pagination` with `page, total_pages, total_items, limit,
    /// has_prev, has_next`. The items are the page's; nothing is sliced here.
    ///
    /// # Errors
    /// [`PageError`] when `page` or `limit` is 0: pages count from 1, and a page has room for one item at least.
    pub fn paginated(
        items: impl IntoIterator<Item = Value>,
        page: u64,
        total_items: u64,
        limit: u64,
    ) -> Result<Self, PageError> {
        if page == 0 {
            return Err(PageError::NoPage);
        }
        let total_pages = match limit {
            0 => return Err(PageError::NoLimit),
            limit => total_items.div_ceil(limit),
        };
        let pagination = json!({
            "page": page,
            "total_pages": total_pages,
            "total_items": total_items,
            "limit": limit,
            "has_prev": page > 1,
            "has_next": page < total_pages,
        });
        Ok(Self::new(items.into_iter().collect::<Vec<_>>())
            .with_meta("type", "list")
            .with_meta("pagination", pagination))
    }

    /// One item: meta gets `type: "detail"`, the `entity` that it is one of, and the `actions` that it offers.
    #[must_use]
    pub fn detail(item: impl Into<Value>, entity: &str, actions: impl IntoIterator<Item = Value>) -> Self {
        Self::new(item)
            .with_meta("type", "detail")
            .with_meta("entity", entity)
            .with_meta("actions", actions.into_iter().collect::<Vec<_>>())
    }

    /// The same reply with this message for people. Cut after [`MAX_MESSAGE`] bytes.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.extra_mut().message = Some(cut_text(message.into(), MAX_MESSAGE));
        self
    }

    /// The same reply with one member more in meta; a later one of the same name replaces the earlier.
    #[must_use]
    pub fn with_meta(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        drop(self.extra_mut().meta.insert(name.into(), value.into()));
        if self.bounds == Bounds::Within {
            self.bounds = Bounds::Unknown;
        }
        self
    }

    /// The data. Of a reply made by [`of`](Self::of) the value is made when it is first asked for.
    #[must_use]
    pub fn data(&self) -> &Value {
        self.data.value()
    }

    /// The data by value.
    #[must_use]
    pub fn into_data(self) -> Value {
        self.data.into_value()
    }

    /// The JSON text of the data. Fails where the data nests too deep.
    pub(crate) fn data_text(&self) -> Result<Cow<'_, str>, fmt::Error> {
        match &self.data {
            Data::Text { text, .. } => Ok(Cow::Borrowed(text)),
            Data::Value(value) => {
                let mut text = String::new();
                write_value(value, &mut text)?;
                Ok(Cow::Owned(text))
            }
        }
    }

    /// The message for people.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.extra.as_ref()?.message.as_deref()
    }

    /// The tool's own members of meta, under the names that it gave them.
    #[must_use]
    pub fn meta(&self) -> &Map<String, Value> {
        static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
        self.extra.as_ref().map_or_else(|| &*NONE, |extra| &extra.meta)
    }

    fn extra_mut(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// The kind of the result: `list`, `detail`, the tool's own, else `generic`.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.meta().get("type").and_then(own_type).unwrap_or("generic")
    }

    /// Whether the data was cut because it was over the tool's cap.
    #[must_use]
    pub const fn is_cut(&self) -> bool {
        matches!(self.bounds, Bounds::Cut(_))
    }

    /// Brings the reply into its bounds; `may_cut` says whether a part of the data is better than none.
    pub(crate) fn bound(&mut self, cap: usize, may_cut: bool) {
        if let Some(extra) = &mut self.extra
            && size_of_members(&extra.meta, MAX_META) != Size::Within
        {
            dismantle(Value::Object(std::mem::take(&mut extra.meta)));
            extra.meta_dropped = true;
        }
        let size = match &self.data {
            // What is too deep was not written.
            Data::Text { text, .. } if text.len() <= cap => Size::Within,
            Data::Text { .. } => Size::Beyond,
            Data::Value(value) => size(value, cap),
        };
        if size == Size::Within {
            self.bounds = Bounds::Within;
            return;
        }
        let data = std::mem::take(&mut self.data);
        self.bounds = match (size, data) {
            (Size::Beyond, data) if may_cut => {
                let (kept, bytes, digest) = match data {
                    Data::Text { text, .. } if !text.starts_with('"') => cut_text_of_json(&text, cap),
                    data => cut(&data.into_value(), cap),
                };
                self.data = Data::Value(Value::String(kept));
                Bounds::Cut(Box::new(Whole { bytes, digest }))
            }
            (Size::Beyond, Data::Text { text, .. }) => Bounds::TooLarge { bytes: text.len() },
            (Size::Beyond, Data::Value(value)) => Bounds::TooLarge { bytes: exact_size(&value) },
            (_, data) => {
                dismantle(data.into_value());
                Bounds::TooDeep
            }
        };
    }

    /// Why the reply is no result that the gate hands out, if that is so. One that was never bounded (an interceptor's
    /// answer) is looked at here, and not cut.
    pub(crate) fn fault(&self, cap: usize) -> Option<OutputFault> {
        match self.bounds {
            Bounds::Within | Bounds::Cut(_) => None,
            Bounds::TooLarge { bytes } => Some(OutputFault::TooLarge { bytes, cap }),
            Bounds::TooDeep => Some(OutputFault::TooDeep),
            Bounds::Unknown => match (size(self.data(), cap), size_of_members(self.meta(), MAX_META)) {
                (Size::Within, Size::Within) => None,
                (Size::TooDeep, _) | (_, Size::TooDeep) => Some(OutputFault::TooDeep),
                (Size::Beyond, _) => Some(OutputFault::TooLarge { bytes: exact_size(self.data()), cap }),
                (Size::Within, Size::Beyond) => Some(OutputFault::Meta),
            },
        }
    }
}

impl ToolOutput for Reply {
    fn write_data(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match &self.data {
            Data::Value(value) => write_value(value, out),
            Data::Text { text, .. } => out.write_str(text),
        }
    }

    fn message(&self) -> Option<&str> {
        Self::message(self)
    }

    fn write_meta(&self, meta: &mut Object<'_>) -> fmt::Result {
        let Some(extra) = &self.extra else { return self.write_bounds(meta) };
        for (name, value) in &extra.meta {
            let free = match name.as_str() {
                "type" => own_type(value).is_some(),
                name => !OWN_META.contains(&name) && !is_reserved_meta(name),
            };
            if free {
                meta.raw(name, |out| write_value(value, out))?;
                continue;
            }
            let renamed = format!("tool_{name}");
            if !extra.meta.contains_key(&renamed) {
                meta.raw(&renamed, |out| write_value(value, out))?;
            }
        }
        self.write_bounds(meta)?;
        if extra.meta_dropped {
            meta.boolean("meta_dropped", true)?;
        }
        Ok(())
    }
}

impl Reply {
    fn write_bounds(&self, meta: &mut Object<'_>) -> fmt::Result {
        if let Bounds::Cut(whole) = &self.bounds {
            meta.boolean("output_truncated", true)?;
            meta.number("output_bytes", whole.bytes as u64)?;
            meta.display("output_digest", &whole.digest)?;
        }
        Ok(())
    }
}

/// The kind that a tool gives its result, if it may.
fn own_type(value: &Value) -> Option<&str> {
    value.as_str().filter(|kind| !GATE_TYPES.contains(kind))
}

/// Replies are the same when their data is, however it came to be.
impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        // Taken apart by name, so that a field added later is compared, too.
        let Self { data, bounds, extra } = self;
        data.value() == other.data.value() && *bounds == other.bounds && *extra == other.extra
    }
}

impl From<Value> for Reply {
    fn from(data: Value) -> Self {
        Self::new(data)
    }
}

impl From<()> for Reply {
    fn from((): ()) -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("kind", &self.kind())
            .field("message", &Self::message(self).map(|_| ".."))
            .field("cut", &self.is_cut())
            .finish_non_exhaustive()
    }
}

/// Why a page can't be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PageError {
    /// The page is 0.
    #[error("pages count from 1, and page 0 was asked for")]
    NoPage,
    /// The limit is 0.
    #[error("a page of a limit of 0 items can't be; clamp the limit to 1 or more")]
    NoLimit,
}

/// Why a reply is not handed out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum OutputFault {
    #[error("the result has {bytes} bytes, and the tool's cap is {cap}")]
    TooLarge { bytes: usize, cap: usize },
    #[error("the result nests deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("the result's meta has more than {MAX_META} bytes")]
    Meta,
}

/// Whether a payload is a question of the gate: nothing has run, and a human is to be asked. `payload` is a whole outcome
/// or the data of one, as JSON text.
///
/// True when `meta.requires_confirmation` or the top-level `requires_confirmation` is the truth value `true`; it is not
/// looked for deeper, so a plan is no question. Text that the gate's reader refuses is no question either.
///
/// ```
/// use callgate_std::output::asks_for_confirmation;
/// assert!(asks_for_confirmation(r#"{"success":true,"meta":{"requires_confirmation":true}}"#));
/// assert!(!asks_for_confirmation(r#"{"plan":{"requires_confirmation":true}}"#));
/// ```
#[must_use]
pub fn asks_for_confirmation(payload: &str) -> bool {
    // As large as it may be: a question does not become none because much stands beside it.
    let limits = Limits { bytes: u32::MAX, nodes: u32::MAX, members: u32::MAX, ..Limits::DEFAULT };
    let mut keys = vec![KeySlot::default(); key_capacity(payload.as_bytes())];
    let Ok(scanned) = scan(payload.as_bytes(), &mut keys, &limits) else { return false };
    let root = scanned.value();
    [root.get("meta"), Some(root)]
        .into_iter()
        .flatten()
        .filter_map(|place| place.get("requires_confirmation"))
        .any(|asks| asks.as_bool() == Some(true))
}

/// [`asks_for_confirmation`] for a payload that was parsed already.
#[must_use]
pub fn value_asks_for_confirmation(payload: &Value) -> bool {
    let asks =
        |place: Option<&Value>| place.and_then(|place| place.get("requires_confirmation")) == Some(&Value::Bool(true));
    asks(payload.get("meta")) || asks(Some(payload))
}

#[cfg(test)]
mod tests;
