//! What is signed.

use std::fmt;

use callgate_core::json::write::Writer;
use callgate_core::json::{KeySlot, Kind, Limits, Object, Scanned, Value, key_capacity, scan};
use callgate_core::time::Timestamp;

/// The most bytes of a payload.
pub const MAX_PAYLOAD: usize = 1 << 20;
/// The most bytes of a host's name and of a nonce.
const MAX_NAME: usize = 256;
/// The fewest bytes of a nonce: 128 bits take 22 characters of Base64.
const MIN_NONCE: usize = 16;

/// One call that somebody consents to.
///
/// Its canonical text is compact JSON with the members `arguments, host, issuedAt, nonce, operation` in this order, the members of the
/// arguments sorted by their keys at every depth. What is verified is the text that was signed, byte for byte; that it is canonical is
/// not asked of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Operation {
    tool: String,
    arguments: String,
    host: String,
    issued_at: Timestamp,
    nonce: String,
}

/// Why a text is no operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperationError {
    /// The payload is longer than [`MAX_PAYLOAD`].
    #[error("a signed operation has at most {MAX_PAYLOAD} bytes")]
    TooLong,
    /// It is no JSON object of exactly the five members, or one of them is of another type.
    #[error(
        "the signed payload is not an operation authorization: it takes exactly arguments (an object), host, issuedAt, nonce and operation"
    )]
    Malformed,
    /// The time is none of RFC 3339.
    #[error("issuedAt is no time of RFC 3339, such as 2026-01-31T12:00:00Z")]
    Time,
    /// The host is empty or too long.
    #[error("the host has to be named, in at most {MAX_NAME} bytes")]
    Host,
    /// The nonce is too short or too long.
    #[error("a nonce has {MIN_NONCE} to {MAX_NAME} bytes")]
    Nonce,
    /// The arguments are no JSON object.
    #[error("the arguments are no JSON object that the gate reads")]
    Arguments,
}

impl Operation {
    /// A call of `tool` with these arguments, the JSON text of an object, on `host`.
    ///
    /// # Errors
    /// Says which part can't be signed.
    pub fn new(
        tool: &str,
        arguments: &str,
        host: &str,
        issued_at: Timestamp,
        nonce: &str,
    ) -> Result<Self, OperationError> {
        if host.trim().is_empty() || host.len() > MAX_NAME {
            return Err(OperationError::Host);
        }
        if !(MIN_NONCE..=MAX_NAME).contains(&nonce.len()) {
            return Err(OperationError::Nonce);
        }
        let mut keys = room(arguments);
        let scanned = read(arguments, &mut keys).ok_or(OperationError::Arguments)?;
        if scanned.value().kind() != Kind::Object {
            return Err(OperationError::Arguments);
        }
        Ok(Self {
            tool: tool.to_owned(),
            arguments: sorted(scanned.value()).map_err(|fmt::Error| OperationError::Arguments)?,
            host: host.to_owned(),
            issued_at,
            nonce: nonce.to_owned(),
        })
    }

    /// Reads a payload that was signed.
    ///
    /// # Errors
    /// It is no operation: duplicate or unknown members, a missing one, a time in other words.
    pub fn parse(payload: &str) -> Result<Self, OperationError> {
        if payload.len() > MAX_PAYLOAD {
            return Err(OperationError::TooLong);
        }
        let mut keys = room(payload);
        let scanned = read(payload, &mut keys).ok_or(OperationError::Malformed)?;
        let value = scanned.value();
        // Duplicates are refused by the reader, so five members that are all known are the five.
        if value.kind() != Kind::Object || value.members().count() != 5 {
            return Err(OperationError::Malformed);
        }
        let text = |key: &str| -> Result<String, OperationError> {
            let text = value.get(key).and_then(Value::as_text).ok_or(OperationError::Malformed)?;
            Ok(text.chars().collect())
        };
        let arguments = value.get("arguments").filter(|arguments| arguments.kind() == Kind::Object);
        let mut arguments_text = String::new();
        arguments
            .ok_or(OperationError::Malformed)?
            .write_json(&mut arguments_text)
            .map_err(|fmt::Error| OperationError::Malformed)?;
        let issued_at: jiff::Timestamp = text("issuedAt")?.parse().map_err(|_| OperationError::Time)?;
        let millis = u64::try_from(issued_at.as_millisecond()).map_err(|_| OperationError::Time)?;
        Self::new(
            &text("operation")?,
            &arguments_text,
            &text("host")?,
            Timestamp::from_unix_millis(millis),
            &text("nonce")?,
        )
    }

    /// The text to sign.
    #[must_use]
    pub fn canonical(&self) -> String {
        let mut text = String::new();
        let mut write = || {
            let mut object = Object::begin(&mut text)?;
            object.raw("arguments", |out| out.write_str(&self.arguments))?;
            object.text("host", &self.host)?;
            object.display("issuedAt", &self.issued_at)?;
            object.text("nonce", &self.nonce)?;
            object.text("operation", &self.tool)?;
            object.end()
        };
        // A string takes everything.
        let _ = write();
        text
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments, as JSON text.
    #[must_use]
    pub fn arguments(&self) -> &str {
        &self.arguments
    }

    /// The host on which the call is to run.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// When it was signed, as the signer says.
    #[must_use]
    pub const fn issued_at(&self) -> Timestamp {
        self.issued_at
    }

    /// The nonce.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.nonce
    }
}

/// Shows no argument (invariant L1).
impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("tool", &self.tool)
            .field("host", &self.host)
            .field("issued_at", &self.issued_at)
            .finish_non_exhaustive()
    }
}

pub(crate) fn room(text: &str) -> Vec<KeySlot> {
    vec![KeySlot::default(); key_capacity(text.as_bytes())]
}

/// Reads JSON with the gate's own reader, within the bounds of a call's arguments.
fn read<'a>(text: &'a str, keys: &mut [KeySlot]) -> Option<Scanned<'a>> {
    scan(text.as_bytes(), keys, &Limits::DEFAULT).ok()
}

/// The value as compact JSON, the members of each object sorted by their keys.
fn sorted(value: Value<'_>) -> Result<String, fmt::Error> {
    let mut text = String::new();
    let mut writer = Writer::new(&mut text);
    write_sorted(value, &mut writer)?;
    Ok(text)
}

fn write_sorted(value: Value<'_>, out: &mut Writer<'_>) -> fmt::Result {
    match value.kind() {
        Kind::Object => {
            let mut members: Vec<_> = value.members().collect();
            members.sort_by(|(one, _), (other, _)| one.bytes().cmp(other.bytes()));
            out.start_object()?;
            for (key, member) in members {
                out.key_text(key)?;
                write_sorted(member, out)?;
            }
            out.end_object()
        }
        Kind::Array => {
            out.start_array()?;
            value.items().try_for_each(|item| write_sorted(item, out))?;
            out.end_array()
        }
        Kind::Null | Kind::Bool | Kind::Number | Kind::String => out.events(value.events()),
    }
}
