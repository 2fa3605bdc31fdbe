//! An object of named members, written one after the other: how records, outcomes and plans are written.

use core::fmt;

use super::number::Number;
use super::write::Writer;

/// Writes one JSON object, member by member.
///
/// ```
/// use callgate_core::json::Object;
/// let mut text = String::new();
/// let mut object = Object::begin(&mut text)?;
/// object.text("tool", "fs.read")?;
/// object.optional("principal", None)?;
/// object.raw("data", |out| out.write_str("[1,2]"))?;
/// object.end()?;
/// assert_eq!(text, r#"{"tool":"fs.read","data":[1,2]}"#);
/// # Ok::<(), core::fmt::Error>(())
/// ```
///
/// Every method gives the error of the output.
#[derive(Debug)]
pub struct Object<'w> {
    json: Writer<'w>,
}

impl<'w> Object<'w> {
    /// Starts the object.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn begin(out: &'w mut dyn fmt::Write) -> Result<Self, fmt::Error> {
        let mut json = Writer::new(out);
        json.start_object()?;
        Ok(Self { json })
    }

    /// Ends the object.
    pub fn end(mut self) -> fmt::Result {
        self.json.end_object()
    }

    /// Gives the output back with the object still open, for a writer that ends it by itself.
    pub(crate) fn leave_open(self) {}

    /// Writes a string.
    pub fn text(&mut self, key: &str, value: &str) -> fmt::Result {
        self.json.key(key)?;
        self.json.string(value)
    }

    /// Writes a string, or nothing at all.
    pub fn optional(&mut self, key: &str, value: Option<&str>) -> fmt::Result {
        value.map_or(Ok(()), |value| self.text(key, value))
    }

    /// Writes a string, or `null`.
    pub fn nullable(&mut self, key: &str, value: Option<&str>) -> fmt::Result {
        self.json.key(key)?;
        match value {
            Some(value) => self.json.string(value),
            None => self.json.null(),
        }
    }

    /// Writes what `value` displays, as a string.
    pub fn display(&mut self, key: &str, value: &dyn fmt::Display) -> fmt::Result {
        self.json.key(key)?;
        self.json.display(value)
    }

    /// Writes an unsigned integer.
    pub fn number(&mut self, key: &str, value: u64) -> fmt::Result {
        self.json.key(key)?;
        self.json.u64(value)
    }

    /// Writes a signed integer.
    pub fn integer(&mut self, key: &str, value: i64) -> fmt::Result {
        self.json.key(key)?;
        self.json.number(if value < 0 { Number::I64(value) } else { Number::U64(value.unsigned_abs()) })
    }

    /// Writes `true` or `false`.
    pub fn boolean(&mut self, key: &str, value: bool) -> fmt::Result {
        self.json.key(key)?;
        self.json.bool(value)
    }

    /// Writes `null`.
    pub fn null(&mut self, key: &str) -> fmt::Result {
        self.json.key(key)?;
        self.json.null()
    }

    /// Writes a list of strings.
    pub fn strings<S: AsRef<str>>(&mut self, key: &str, items: impl IntoIterator<Item = S>) -> fmt::Result {
        self.json.key(key)?;
        self.json.start_array()?;
        items.into_iter().try_for_each(|item| self.json.string(item.as_ref()))?;
        self.json.end_array()
    }

    /// Writes whatever `value` writes, which must be one JSON text.
    pub fn raw(&mut self, key: &str, value: impl FnOnce(&mut dyn fmt::Write) -> fmt::Result) -> fmt::Result {
        self.json.key(key)?;
        self.json.raw(value)
    }
}
