//! Confirmations as the protocol's own questions.

use rmcp::model::{
    BooleanSchema, ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequests, InputRequiredResult, InputResponses,
};
use serde_json::Value;

/// The name of the one question in `inputRequests`.
const QUESTION: &str = "confirm";
/// The one field of its form. An acceptance counts only with it: a client that accepts forms by itself, without showing them, has
/// nothing to fill in.
const FIELD: &str = "confirm";

/// Whether a client with these capabilities can show a form. One that declares elicitation and no mode shows forms.
pub(super) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let Some(elicitation) = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref()) else {
        return false;
    };
    elicitation.form.is_some() || elicitation.url.is_none()
}

/// The form. `summary` is the gate's own text of what would run.
pub(super) fn form(summary: &str) -> ElicitRequestParams {
    let schema = ElicitationSchema::builder().required_bool_property(FIELD, |field: BooleanSchema| {
        field.title("Run it").description("Yes: run exactly this call, once. No: do not run it.")
    });
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: format!("A tool call needs your confirmation. Nothing has run yet.\n{summary}"),
        requested_schema: schema.build_unchecked(),
    }
}

/// The question of the stateless era.
pub(super) fn input_required(summary: &str, state: String) -> InputRequiredResult {
    let question = InputRequest::Elicitation(ElicitRequest::new(form(summary)));
    InputRequiredResult::new(Some(InputRequests::from([(QUESTION.to_owned(), question)])), Some(state))
}

/// What somebody said to the question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// Run it.
    Yes,
    /// Do not.
    No,
    /// Nothing that can be understood.
    None,
}

impl Answer {
    pub(super) fn of(result: &ElicitResult) -> Self {
        match result.action {
            ElicitationAction::Accept if agrees(result.content.as_ref()) => Self::Yes,
            _ => Self::No,
        }
    }

    pub(super) fn among(responses: Option<&InputResponses>) -> Self {
        let Some(response) = responses.and_then(|responses| responses.get(QUESTION)) else {
            return Self::None;
        };
        match response.get("action").and_then(Value::as_str) {
            Some("accept") if agrees(response.get("content")) => Self::Yes,
            Some("accept" | "decline" | "cancel") => Self::No,
            _ => Self::None,
        }
    }
}

fn agrees(content: Option<&Value>) -> bool {
    content.and_then(|content| content.get(FIELD)) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a3_only_a_filled_in_yes_counts() {
        let answer = |response: Value| Answer::among(Some(&InputResponses::from([(QUESTION.to_owned(), response)])));
        assert_eq!(answer(json!({"action": "accept", "content": {"confirm": true}})), Answer::Yes);
        for no in [
            json!({"action": "accept"}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept", "content": {"confirm": "true"}}),
            json!({"action": "accept", "content": {"confirm": false}}),
            json!({"action": "decline", "content": {"confirm": true}}),
            json!({"action": "cancel"}),
        ] {
            assert_eq!(answer(no.clone()), Answer::No, "{no}");
        }
        for none in [json!(true), json!({"action": "ok"}), json!({"confirm": true}), json!(null)] {
            assert_eq!(answer(none.clone()), Answer::None, "{none}");
        }
        assert_eq!(Answer::among(None), Answer::None);
    }
}
