//! Outcomes as people see them.
#![cfg(test)]

use callgate_core::context::{CallContext, Scopes};
use callgate_core::request::Request;
use callgate_core::schema::{Property, Schema};
use callgate_core::tool::ConfirmBy;
use callgate_std::failure::Failure;
use callgate_std::gate::Gate;
use callgate_std::output::Reply;
use callgate_std::registry::Registry;
use callgate_std::render::{JsonRenderer, PlainRenderer, Renderer, Renderers, TerminalRenderer, View};
use callgate_std::tool::Tool;
use proptest::prelude::*;
use serde_json::{Value, json};

/// What the tool `t` of these tests does.
enum Does {
    Replies(Reply),
    Fails,
    Asks,
}

fn view(does: Does, channel: &'static str, arguments: &str) -> (View, String) {
    const PROPERTIES: &[Property<'static>] = &[Property::optional("n", Schema::integer())];
    let asks = matches!(does, Does::Asks);
    let mut tool = Tool::builder("t").description("Does what the test says").const_schema(Schema::object(PROPERTIES));
    tool = tool.clamp("/n", 0..=10);
    if asks {
        tool = tool.confirm(ConfirmBy::Caller).mutating();
    }
    let tool = tool.handler(move |_call| match &does {
        Does::Replies(reply) => Ok(reply.clone()),
        _ => Err(Failure::new("the disk said no")),
    });
    let registry = Registry::builder().add(tool).build().expect("a good tool");
    let gate = Gate::builder(registry).build().expect("a gate");
    let caller = CallContext::new(channel, "r1").with_principal("alice").with_scopes(Scopes::ALL);
    let outcome = gate.call(&caller, Request { tool: "t", arguments: arguments.as_bytes(), token: None });
    let mut json = String::new();
    outcome.write_json(&mut json).expect("a string takes all");
    (View::of(&outcome).expect("a string takes all"), json)
}

fn show(renderer: &dyn Renderer, does: Does) -> String {
    let mut text = String::new();
    renderer.render(&view(does, "cli", "{}").0, &mut text).expect("a string takes all");
    text
}

fn plain(reply: Reply) -> String {
    show(&PlainRenderer::new(), Does::Replies(reply))
}

fn terminal(reply: Reply) -> String {
    show(&TerminalRenderer::new(), Does::Replies(reply))
}

#[test]
fn the_first_that_is_made_for_a_channel_then_the_default_then_json() {
    struct For(&'static str, &'static str);
    impl Renderer for For {
        fn supports(&self, channel: &str) -> bool {
            channel == self.0
        }

        fn render(&self, _: &View, out: &mut dyn std::fmt::Write) -> std::fmt::Result {
            out.write_str(self.1)
        }
    }
    let show = |renderers: &Renderers, channel| {
        let (view, json) = view(Does::Replies(Reply::new(json!({"id": 7}))), channel, "{}");
        let mut text = String::new();
        renderers.render(&view, &mut text).expect("a string takes all");
        (text, json)
    };
    let renderers = Renderers::new().and(For("telegram", "chat")).and(For("cli", "one")).and(For("cli", "two"));
    assert_eq!(show(&renderers, "cli").0, "one");
    let (text, json) = show(&renderers, "web");
    assert_eq!(text, json, "nobody is made for it: the outcome as it is on the wire");
    assert!(renderers.supports("cli") && !renderers.supports("web"));
    let renderers = renderers.or(For("nothing", "default"));
    assert_eq!(show(&renderers, "web").0, "default");
    assert!(renderers.supports("web"));
}

#[test]
fn n1_json_is_the_wires_own() {
    for does in
        [Does::Replies(Reply::new(json!({"a": [1, "é\u{202e}"]})).with_message("Ready")), Does::Fails, Does::Asks]
    {
        let (view, json) = view(does, "cli", r#"{"n": 99}"#);
        let mut text = String::new();
        JsonRenderer::new().render(&view, &mut text).expect("a string takes all");
        assert_eq!(text, json);
    }
}

#[test]
fn plain_text_of_every_kind_of_result() {
    assert_eq!(plain(Reply::empty()), "Done.\n");
    assert_eq!(plain(Reply::empty().with_message("Saved")), "Saved\n");
    assert_eq!(plain(Reply::new(7)), "Done.\n\n7\n");
    assert_eq!(plain(Reply::new(json!([]))), "Done.\n\nNo results.\n");
    assert_eq!(plain(Reply::new(json!(["a", null, true, [1]]))), "Done.\n\n- a\n- -\n- true\n- [1]\n");
    let item = json!({"full_name": "Ana", "tags": ["a", "b"], "address": {"city": "Quito"}, "notes": "one\ntwo\n"});
    assert_eq!(
        plain(Reply::new(item)),
        "Done.\n\n- Address: {\"city\":\"Quito\"}\n- Full name: Ana\n- Notes:\n    | one\n    | two\n- Tags: [\"a\",\"b\"]\n"
    );
    let rows = [
        json!({"id": 3, "nombre": "Ana"}),
        json!({"id": "b-4", "name": "Beto"}),
        json!({"title": "Caro"}),
        json!({"id": 6}),
    ];
    assert_eq!(
        plain(Reply::paginated(rows, 1, 9, 4).expect("a page")),
        "Done.\n\n#3: Ana\n#b-4: Beto\n#3: Caro\n#6: {\"id\":6}\n\nPage 1 of 3 (9 items in all)\n"
    );
    assert!(show(&PlainRenderer::new(), Does::Fails).starts_with("Error: "));
    assert!(show(&PlainRenderer::new(), Does::Asks).contains("Confirm token: "));
}

#[test]
fn a_terminal_shows_every_kind_of_result() {
    let list =
        |rows: &[Value]| terminal(Reply::paginated(rows.to_vec(), 2, 12, 2).expect("a page").with_message("Clients"));
    let rows =
        [json!({"id": 3, "name": "Ana", "available": true}), json!({"id": 4, "name": "Beto", "available": false})];
    let rule = "-".repeat(40);
    assert_eq!(list(&rows), format!("Clients\n{rule}\n  [OK] #3: Ana\n  [--] #4: Beto\nPage 2/6 (12 items in all)\n"));
    assert!(list(&[]).contains("  No results.\n"));
    let item = json!({"active": true, "gone": false, "note": null, "tags": ["a"]});
    let actions = [json!({"label": "Edit", "action": "clients.edit"}), json!("clients.remove")];
    assert_eq!(
        terminal(Reply::detail(item, "Client", actions).with_message("record")),
        format!(
            "Client - record\n{rule}\n  Active: yes\n  Gone: no\n  Note: none\n  Tags: [\"a\"]\n\
             Actions:\n  Edit: clients.edit\n  clients.remove\n"
        )
    );
    assert_eq!(
        terminal(Reply::new(json!({"rows_affected": 3})).with_message("ready")),
        "✓ ready\n  Rows affected: 3\n"
    );
    let failed = show(&TerminalRenderer::new(), Does::Fails);
    assert!(
        failed.starts_with("✗ ") && failed.contains("(INTERNAL_ERROR)") && failed.contains("effect is not known"),
        "{failed}"
    );
    let asked = show(&TerminalRenderer::new(), Does::Asks);
    assert!(asked.starts_with("CONFIRMATION NEEDED\n  t(") && asked.contains("Nothing has run yet"), "{asked}");
    assert!(!asked.contains('\u{1b}'));
}

/// K3: what was clamped is said.
#[test]
fn k3_clamps_are_shown() {
    let (view, _) = view(Does::Replies(Reply::empty()), "cli", r#"{"n": 99}"#);
    for renderer in [&PlainRenderer::new() as &dyn Renderer, &TerminalRenderer::new()] {
        let mut text = String::new();
        renderer.render(&view, &mut text).expect("a string takes all");
        assert!(text.contains("n was brought from 99 to 10"), "{text}");
    }
}

#[test]
fn colours_come_only_when_they_are_asked_for() {
    let reply = || Reply::new(json!({"a": "b"})).with_message("ready");
    let coloured = show(&TerminalRenderer::new().with_colours(true), Does::Replies(reply()));
    assert!(coloured.starts_with("\u{1b}[32m✓\u{1b}[0m ready\n"));
    let (mut bare, mut rest) = (String::new(), coloured.as_str());
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        bare.push_str(before);
        rest = after.split_once('m').expect("a colour").1;
    }
    bare.push_str(rest);
    assert_eq!(bare, terminal(reply()), "colours change nothing but colours");
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<char>().prop_map(String::from),
        Just("\u{1b}[2J".to_owned()),
        Just("\u{1b}]0;title\u{7}".to_owned()),
        Just("\r".to_owned()),
        Just("\n✗ Error".to_owned()),
        Just("\u{202e}".to_owned()),
        Just("\u{200b}\u{9b}31m".to_owned()),
        Just("word ".to_owned()),
    ];
    prop::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// O3, A20: whatever a tool returns, wherever it stands, the text holds nothing that acts on a terminal, nothing
    /// invisible, and no line at the margin that the renderer did not write.
    #[test]
    fn o3_nothing_of_a_result_acts_on_a_terminal(
        texts in prop::array::uniform5(hostile()), kind in 0..5_u8, colours: bool,
    ) {
        let [one, two, three, four, five] = &texts;
        let item = json!({(one): two, "name": three, "id": four, "nested": {(five): [one]}});
        let reply = match kind {
            0 => Reply::new(two.as_str()),
            1 => Reply::new(item),
            2 => Reply::detail(item, one, [json!(two), json!({"label": three, "action": four})]),
            3 => Reply::paginated([item, json!(five)], 1, 2, 5).expect("a page"),
            _ => Reply::new(json!([one, two, item])),
        };
        let reply = reply.with_message(five.as_str());
        for text in [plain(reply.clone()), show(&TerminalRenderer::new().with_colours(colours), Does::Replies(reply))] {
            let bare = ["32", "31", "33", "1", "0"].iter().fold(text.clone(), |text, colour| {
                if colours { text.replace(&format!("\u{1b}[{colour}m"), "") } else { text }
            });
            for c in bare.chars() {
                let safe = matches!(c, '\n' | '\t' | '"' | '\\') || !callgate_core::json::write::must_escape(c);
                prop_assert!(safe, "{:?} in {:?}", c, text);
            }
            prop_assert!(!bare.lines().skip(1).any(|line| line.starts_with('✗')), "{}", bare);
            prop_assert!(bare.ends_with('\n'));
        }
    }
}
