//! Where both can check a schema, the core's schemas and JSON Schema must agree: generated schemas, exported, against
//! generated values.

#![expect(clippy::expect_used, clippy::panic, reason = "helpers of tests")]

#[path = "../../core/tests/generate/mod.rs"]
mod generate;

use callgate_core::args::Args;
use callgate_core::json::{KeySlot, Limits, key_capacity, scan};
use callgate_core::schema::Schema;
use callgate_std::schema::{JsonSchema, Profile};
use generate::{CANARY, Choices};
use proptest::prelude::*;
use serde_json::Value;

/// Whether the value fits the constant.
fn fits(schema: &Schema<'_>, value: &Value) -> bool {
    let text = value.to_string();
    let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
    let scanned = scan(text.as_bytes(), &mut keys, &Limits::DEFAULT).expect("readable");
    let mut fits = true;
    schema.validate_value(scanned.value(), &mut |_| fits = false);
    fits
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 700, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn s6_both_validators_agree(schema in generate::schemas(), seed in any::<u64>()) {
        let document = generate::document(&schema);
        let admitted = JsonSchema::new(&document, Profile::VALUE)
            .unwrap_or_else(|error| panic!("what is exported is admitted: {document}: {error}"));
        let mut choices = Choices::new(seed);
        for _ in 0..4 {
            let value = generate::instance(&document, &mut choices, 0);
            let mut violations = Vec::new();
            admitted.validate_value(&value, &mut |violation| violations.push(violation.to_string()));
            prop_assert_eq!(fits(&schema, &value), violations.is_empty(), "{} {} {:?}", document, value, violations);
            // L4.
            prop_assert!(violations.iter().all(|text| !text.contains(CANARY)), "{:?}", violations);
        }
    }

    /// The same for arguments, on the way that a call takes.
    #[test]
    fn s6_both_validators_agree_on_arguments(schema in generate::argument_schemas(), seed in any::<u64>()) {
        let document = generate::document(&schema);
        let admitted = JsonSchema::parse(&document.to_string(), Profile::ARGUMENTS)
            .unwrap_or_else(|error| panic!("what is exported is admitted: {document}: {error}"));
        let value = generate::instance(&document, &mut Choices::new(seed), 0);
        let text = value.to_string();
        let mut keys = vec![KeySlot::default(); key_capacity(text.as_bytes())];
        let Ok(args) = Args::read(text.as_bytes(), &mut keys, &Limits::DEFAULT) else { return Ok(()) };
        let mut fits = true;
        admitted.validate(args, &mut |_| fits = false);
        prop_assert_eq!(schema.accepts(args), fits, "{} {}", document, text);
    }
}
