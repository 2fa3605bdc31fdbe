//! `requestState`: what a client brings back with its user's answer.

use callgate_core::confirm::caller_digest;
use callgate_core::confirm::{TOKEN_TEXT, Token};
use callgate_core::context::CallContext;
use callgate_core::digest::{Digest, DigestBuilder, DigestKey};
use callgate_core::json::{KeySlot, Limits, key_capacity, scan};

/// What the text begins with. Another version is not guessed at (invariant N6).
const VERSION: &str = "cg1.";
const DOMAIN: &str = "gate/mcp/request-state/v1";

/// Seals tokens for one call of one caller.
///
/// The text is `cg1.TOKEN.MAC`. The token is the store's: single use, expiry and what the ticket is bound to are enforced there
/// (invariants A1, A4, A5, A10). The MAC (HMAC-SHA-256, in core's typed encoding) binds it, beyond that, to the request that it came
/// with: a client that sends other arguments beside it is refused, where the gate alone would run those that were asked about.
#[derive(Clone, Debug)]
pub(super) struct StateKey(DigestKey);

impl StateKey {
    pub(super) fn new(key: [u8; 32]) -> Self {
        Self(DigestKey::new(key))
    }

    /// The text for a token.
    pub(super) fn seal(&self, token: Token, request: &Bound<'_>) -> Option<String> {
        let mac = self.mac(token, request)?;
        Some(format!("{VERSION}{token}.{mac}"))
    }

    /// The token of a text that was sealed for this very request.
    pub(super) fn open(&self, text: &str, request: &Bound<'_>) -> Option<Token> {
        let (token, mac) = text.strip_prefix(VERSION)?.split_once('.')?;
        if token.len() != TOKEN_TEXT {
            return None;
        }
        let token = Token::parse(token)?;
        let mac: Digest = mac.parse().ok()?;
        // Compares in constant time.
        (self.mac(token, request)? == mac).then_some(token)
    }

    fn mac(&self, token: Token, request: &Bound<'_>) -> Option<Digest> {
        let mut keys = vec![KeySlot::default(); key_capacity(request.arguments.as_bytes())];
        let arguments = scan(request.arguments.as_bytes(), &mut keys, &Limits::DEFAULT).ok()?;
        let arguments = self.0.digest("gate/mcp/request-arguments/v1", arguments.value(), &mut keys).ok()?;
        let mut mac = DigestBuilder::keyed(DOMAIN, &self.0);
        mac.digest(&token.hash()).digest(&caller_digest(&request.caller)).str(request.tool).digest(&arguments);
        Some(mac.finish())
    }
}

/// The request that a state belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound<'a> {
    pub(super) caller: CallContext<'a>,
    pub(super) tool: &'a str,
    /// As the client sent them.
    pub(super) arguments: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound<'a>(principal: &'a str, tool: &'a str, arguments: &'a str) -> Bound<'a> {
        Bound { caller: CallContext::new("mcp", "r").with_principal(principal), tool, arguments }
    }

    #[test]
    fn t7_a_state_is_good_for_its_own_request_alone() {
        let key = StateKey::new([7; 32]);
        let token = Token::from_random([9; 16]);
        let request = bound("ann", "notes.delete", r#"{"id":1,"all":false}"#);
        let state = key.seal(token, &request).unwrap();
        assert_eq!(key.open(&state, &request), Some(token));
        assert_eq!(key.open(&state, &bound("ann", "notes.delete", r#"{"all": false, "id": 1}"#)), Some(token));
        for other in [
            bound("bob", "notes.delete", r#"{"id":1,"all":false}"#),
            bound("ann", "notes.read", r#"{"id":1,"all":false}"#),
            bound("ann", "notes.delete", r#"{"id":1,"all":true}"#),
            bound("ann", "notes.delete", r#"{"id":1.0,"all":false}"#),
        ] {
            assert_eq!(key.open(&state, &other), None, "{other:?}");
        }
        assert_eq!(StateKey::new([8; 32]).open(&state, &request), None);
    }

    #[test]
    fn t7_every_change_of_the_text_is_noticed() {
        let key = StateKey::new([7; 32]);
        let request = bound("ann", "notes.delete", "{}");
        let state = key.seal(Token::from_random([9; 16]), &request).unwrap();
        for at in 0..state.len() {
            let mut changed = state.clone().into_bytes();
            changed[at] = if changed[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(key.open(std::str::from_utf8(&changed).unwrap(), &request), None, "byte {at}");
            assert_eq!(key.open(state.get(..at).unwrap(), &request), None, "cut at {at}");
        }
        assert_eq!(key.open(&format!("{state}0"), &request), None);
    }
}
