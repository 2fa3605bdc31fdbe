//! The reserved argument `confirm_token`: a token that a caller had to send among the arguments, taken out before anything
//! else looks at them (design 4.7). Only where a host switched it on.

use std::sync::Arc;

use callgate_core::args::Args;
use callgate_core::json::{Event, KeySlot, Limits, key_capacity};
use callgate_core::request::Request;

/// The name of the reserved argument.
pub(crate) const CONFIRM_TOKEN: &str = "confirm_token";

/// What was taken out.
#[derive(Debug)]
pub(crate) struct Reserved {
    /// The token, if the argument was not `null`.
    pub(crate) token: Option<Arc<str>>,
    /// The arguments without the reserved one.
    pub(crate) arguments: Arc<[u8]>,
}

/// Takes the reserved argument out; `None` when there is none, or the arguments cannot be read, which is for the gate to say.
///
/// `null` counts as no token. Any other value that is not a string counts as a token that is none, and is refused as such.
pub(crate) fn take(request: Request<'_>) -> Option<Reserved> {
    // A text that does not even hold the name has no such member; an escaped spelling of it holds a backslash.
    let text = request.arguments;
    let named = text.windows(CONFIRM_TOKEN.len()).any(|part| part == CONFIRM_TOKEN.as_bytes());
    if (!named && !text.contains(&b'\\')) || text.len() > Limits::DEFAULT.bytes as usize {
        return None;
    }
    let mut keys = vec![KeySlot::default(); key_capacity(text)];
    let args = Args::read(text, &mut keys, &Limits::DEFAULT).ok()?;
    let value = args.get(CONFIRM_TOKEN)?;
    let token = match value.as_text() {
        Some(text) => Some(Arc::from(text.to_string())),
        None if value.is_null() => None,
        None => Some(Arc::from("")),
    };
    Some(Reserved { token, arguments: without(args).into() })
}

/// The arguments without the reserved member, as text.
fn without(args: Args<'_>) -> Vec<u8> {
    let mut text = String::new();
    let mut json = callgate_core::json::write::Writer::new(&mut text);
    let mut depth = 0_u32;
    let mut skipping = false;
    for (_, event) in args.events() {
        match event {
            Event::Key(key) if depth == 1 => {
                skipping = key.eq_str(CONFIRM_TOKEN);
            }
            Event::StartObject | Event::StartArray => depth = depth.saturating_add(1),
            Event::EndObject | Event::EndArray => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    skipping = false;
                }
            }
            _ => {}
        }
        if !skipping && json.event(event).is_err() {
            // Only a text nested deeper than the reader lets through gets here.
            return Vec::new();
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(arguments: &str) -> Option<(Option<Arc<str>>, String)> {
        let request = Request { tool: "t", arguments: arguments.as_bytes(), token: None };
        take(request).map(|taken| {
            let text = String::from_utf8(taken.arguments.to_vec()).unwrap();
            (taken.token, text)
        })
    }

    #[test]
    fn the_reserved_argument_is_taken_out_whole() {
        assert_eq!(taken(r#"{"a":1}"#), None);
        assert_eq!(
            taken(r#"{"a":1,"confirm_token":"t0","b":{"confirm_token":"kept"}}"#),
            Some((Some("t0".into()), r#"{"a":1,"b":{"confirm_token":"kept"}}"#.into()))
        );
        assert_eq!(taken(r#"{"confirm_token":null}"#), Some((None, "{}".into())));
        assert_eq!(taken(r#"{"confirm_tok\u0065n":"t0"}"#), Some((Some("t0".into()), "{}".into())));
        assert_eq!(taken(r#"{"confirm_token":{"x":[1]},"a":2}"#), Some((Some("".into()), r#"{"a":2}"#.into())));
        assert_eq!(taken(r#"{"confirm_token":"#), None);
    }
}
