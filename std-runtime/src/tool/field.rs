//! Whether a tool's clamps and secrets fit its schema.

use std::cmp::Ordering;

use callgate_core::clamp::{Bound, Clamp};
use callgate_core::fields::MAX_RULES;
use callgate_core::json::Number;
use callgate_core::schema::Schema;
use callgate_core::tool::FieldRule;
use serde_json::Value;

use super::definition::Field;
use super::error::{FieldProblem, Problem, SchemaProblem};
use super::place::{Parts, Place, find, may_be, spread};

/// Which sides of a clamp can act, because the schema lets such values through.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Acting {
    pub(super) min: bool,
    pub(super) max: bool,
    pub(super) length: bool,
}

/// The most bytes that the paths of a constant's clamps and secrets may have together.
const MAX_MARKED: usize = 16 << 10;

/// Adds the clamps and secrets that a constant carries.
pub(super) fn add_marks(schema: &Schema<'_>, fields: &mut Vec<Field>, problems: &mut Vec<Problem>) {
    if schema.rule_bytes() > MAX_MARKED {
        let text = format!("the paths of its clamps and secrets have more than {MAX_MARKED} bytes; mark fewer fields");
        problems.push(Problem::Schema { part: "input", problem: SchemaProblem::Unusable(text) });
        return;
    }
    // One more than there may be, so that the check of the rules finds that there are too many.
    let rules = schema.rules::<{ MAX_RULES + 1 }, MAX_MARKED>();
    let marked = rules.as_rules().into_iter().take(schema.rule_count());
    fields.extend(marked.map(|FieldRule { path, clamp, secret }| Field { path: path.to_owned(), clamp, secret }));
}

/// Checks all rules against the schema of the arguments, and tells for each what of its clamp can act.
pub(super) fn check(fields: &[Field], schema: &Value, problems: &mut Vec<Problem>) -> Vec<Acting> {
    let mut usable = Vec::new();
    let acting = fields.iter().map(|field| {
        let checked = field.rule().check().map_err(FieldProblem::Rule).and_then(|()| against_schema(field, schema));
        match checked {
            Ok(acting) => {
                usable.push(field);
                acting
            }
            Err(problem) => {
                problems.push(Problem::Field { path: field.path.clone(), problem });
                Acting::default()
            }
        }
    });
    let acting = acting.collect();
    together(&usable, problems);
    acting
}

/// What is wrong with rules only beside each other.
fn together(fields: &[&Field], problems: &mut Vec<Problem>) {
    let mut report = |field: &Field, problem| problems.push(Problem::Field { path: field.path.clone(), problem });
    let rules: Vec<_> = fields.iter().map(|field| field.rule()).collect();
    if let Err((position, fault)) = callgate_core::fields::check(&rules)
        && let Some(field) = fields.get(position)
    {
        report(field, FieldProblem::Rule(fault));
    }
    for (position, field) in fields.iter().enumerate() {
        for other in fields.iter().take(position) {
            if let (Some(a), Some(b)) = (field.clamp, other.clamp)
                && field.path != other.path
                && meet_paths(&field.path, &other.path)
                && leave_no_room(a, b)
            {
                report(field, FieldProblem::NoRoom { other: other.path.clone() });
            }
        }
    }
}

/// Whether some value is named by both paths.
fn meet_paths(a: &str, b: &str) -> bool {
    let (mut a, mut b) = (a.split('/'), b.split('/'));
    loop {
        match (a.next(), b.next()) {
            (None, None) => return true,
            (Some(x), Some(y)) if x == y || x == "*" || y == "*" => {}
            _ => return false,
        }
    }
}

fn leave_no_room(a: Clamp, b: Clamp) -> bool {
    let above = |min: Option<Bound>, max: Option<Bound>| matches!((min.and_then(number), max.and_then(number)), (Some(min), Some(max)) if min.cmp_value(max).is_gt());
    above(a.min, b.max) || above(b.min, a.max)
}

fn number(bound: Bound) -> Option<Number> {
    match bound {
        Bound::Integer(value) => Some(integer(value)),
        Bound::Float(value) => Number::from_f64(value),
        _ => None,
    }
}

fn integer(value: i64) -> Number {
    if value < 0 { Number::I64(value) } else { Number::U64(value.unsigned_abs()) }
}

fn against_schema(field: &Field, schema: &Value) -> Result<Acting, FieldProblem> {
    let nodes = match find(schema, &field.path) {
        Place::Missing { name, nearest } => return Err(FieldProblem::Undeclared { name, nearest }),
        Place::Free => Vec::new(),
        Place::Described(nodes) => nodes,
    };
    let Some(clamp) = field.clamp else { return Ok(Acting::default()) };
    let set = Acting { min: clamp.min.is_some(), max: clamp.max.is_some(), length: clamp.max_length.is_some() };
    let admits = |kinds: &[&str]| {
        nodes.is_empty() || nodes.iter().any(|node| kinds.iter().any(|kind| group_may_be(schema, node, kind)))
    };
    if (set.min || set.max) && !admits(&["number", "integer"]) {
        return Err(FieldProblem::NotOfType { clamp: "numbers" });
    }
    if set.length && !admits(&["string"]) {
        return Err(FieldProblem::NotOfType { clamp: "texts" });
    }
    // Where a value has to fit one of several schemas, none of them says alone what is refused.
    match nodes.as_slice() {
        [node] => Bounds::of(schema, node).meet(clamp, set),
        _ => Ok(set),
    }
}

/// Whether a value that fits `node` with all its parts can be a `kind`.
fn group_may_be(root: &Value, node: &Value, kind: &str) -> bool {
    let typed: Vec<_> =
        spread(root, &[node], Parts::All).into_iter().filter(|part| part.get("type").is_some()).collect();
    typed.is_empty() || typed.iter().any(|part| may_be(part, kind))
}

/// What a schema says about a number or a text.
#[derive(Default)]
struct Bounds {
    least: Option<Number>,
    greatest: Option<Number>,
    /// Whether the bound itself is refused.
    above: bool,
    below: bool,
    whole: bool,
    step: Option<i128>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    listed: bool,
}

impl Bounds {
    fn of(root: &Value, node: &Value) -> Self {
        let mut bounds = Self::default();
        for part in spread(root, &[node], Parts::Required) {
            bounds.whole |= may_be(part, "integer") && !may_be(part, "number");
            bounds.listed |= part.get("enum").is_some() || part.get("const").is_some();
            for (keyword, exclusive) in [("minimum", false), ("exclusiveMinimum", true)] {
                if let Some(least) = part.get(keyword).and_then(number_of)
                    && bounds.least.is_none_or(|so_far| tighter(least, so_far, Ordering::Greater, exclusive))
                {
                    (bounds.least, bounds.above) = (Some(least), exclusive);
                }
            }
            for (keyword, exclusive) in [("maximum", false), ("exclusiveMaximum", true)] {
                if let Some(greatest) = part.get(keyword).and_then(number_of)
                    && bounds.greatest.is_none_or(|so_far| tighter(greatest, so_far, Ordering::Less, exclusive))
                {
                    (bounds.greatest, bounds.below) = (Some(greatest), exclusive);
                }
            }
            bounds.step = bounds.step.or(part.get("multipleOf").and_then(number_of).and_then(Number::as_i128));
            let length = |word: &str| part.get(word).and_then(number_of).and_then(Number::as_u64);
            bounds.min_length = bounds.min_length.max(length("minLength"));
            bounds.max_length = match (bounds.max_length, length("maxLength")) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        if bounds.whole {
            // The next integer is the bound.
            let shift = |bound: Option<Number>, by| match bound.and_then(Number::as_i128).map(|at| at + by) {
                Some(at) => u64::try_from(at).map(Number::U64).or_else(|_| i64::try_from(at).map(Number::I64)).ok(),
                None => bound,
            };
            if bounds.above {
                (bounds.least, bounds.above) = (shift(bounds.least, 1), false);
            }
            if bounds.below {
                (bounds.greatest, bounds.below) = (shift(bounds.greatest, -1), false);
            }
        }
        bounds
    }

    /// What of a clamp can act on values that the schema admits, when its results are ones that the schema admits, too.
    fn meet(&self, clamp: Clamp, set: Acting) -> Result<Acting, FieldProblem> {
        let (min, max) = (clamp.min.and_then(number), clamp.max.and_then(number));
        let length = clamp.max_length.map(u64::from);
        let too_low = matches!((max, self.least), (Some(max), Some(least)) if less(max, least, self.above));
        let too_high = matches!((min, self.greatest), (Some(min), Some(greatest)) if less(greatest, min, self.below));
        let too_short = matches!((length, self.min_length), (Some(length), Some(least)) if length < least);
        if too_low || too_high || too_short {
            return Err(FieldProblem::Refused);
        }
        if self.whole
            && let (Some(min), Some(max)) = (min, max)
            && !holds_integer(min, max)
        {
            return Err(FieldProblem::NoInteger);
        }
        let acting = Acting {
            min: min.is_some_and(|min| self.least.is_none_or(|least| least.cmp_value(min).is_lt())),
            max: max.is_some_and(|max| self.greatest.is_none_or(|greatest| greatest.cmp_value(max).is_gt())),
            length: length.is_some_and(|length| self.max_length.is_none_or(|greatest| greatest > length)),
        };
        if acting == Acting::default() && set != acting {
            return Err(FieldProblem::Shadowed);
        }
        if self.listed {
            return Err(FieldProblem::Listed);
        }
        let off = |bound: Option<Number>, acts| {
            acts && matches!((self.step, bound.and_then(Number::as_i128)), (Some(step), Some(at)) if at.checked_rem(step) != Some(0))
        };
        if off(min, acting.min) || off(max, acting.max) {
            return Err(FieldProblem::NoMultiple);
        }
        Ok(acting)
    }
}

fn number_of(value: &Value) -> Option<Number> {
    let number = value.as_number()?;
    number
        .as_u64()
        .map(Number::U64)
        .or_else(|| number.as_i64().map(integer))
        .or_else(|| Number::from_f64(number.as_f64()?))
}

fn tighter(bound: Number, so_far: Number, side: Ordering, exclusive: bool) -> bool {
    let order = bound.cmp_value(so_far);
    order == side || (order.is_eq() && exclusive)
}

fn less(a: Number, b: Number, or_equal: bool) -> bool {
    let order = a.cmp_value(b);
    order.is_lt() || (or_equal && order.is_eq())
}

fn holds_integer(min: Number, max: Number) -> bool {
    // Bounds that are whole are within themselves; others are far apart, or have an integer between them.
    if [min, max].iter().any(|bound| bound.is_whole()) {
        return true;
    }
    match (min.as_f64(), max.as_f64()) {
        (Some(min), Some(max)) => min.ceil() <= max.floor(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// What of a clamp on `/x` can act when the schema says this of it.
    fn meet(schema: &Value, clamp: Clamp) -> Result<Acting, FieldProblem> {
        let field = Field { path: "/x".to_owned(), clamp: Some(clamp), secret: false };
        against_schema(&field, &json!({"properties": {"x": schema}, "$defs": {"small": {"maximum": 5}}}))
    }

    fn acting(min: bool, max: bool) -> Result<Acting, FieldProblem> {
        Ok(Acting { min, max, length: false })
    }

    fn float(min: f64, max: f64) -> Clamp {
        Clamp { min: Some(Bound::Float(min)), max: Some(Bound::Float(max)), max_length: None }
    }

    #[test]
    fn k1_bounds_are_taken_exactly() {
        let whole = |rest: Value| {
            let mut schema = json!({"type": "integer"});
            schema.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
            schema
        };
        // The greatest integer below 11 is 10, so nothing is above it.
        assert_eq!(meet(&whole(json!({"exclusiveMaximum": 11})), Clamp::max(10)), Err(FieldProblem::Shadowed));
        assert_eq!(meet(&json!({"type": "number", "exclusiveMaximum": 11}), Clamp::max(10)), acting(false, true));
        assert_eq!(meet(&whole(json!({"exclusiveMinimum": 0})), Clamp::min(1)), Err(FieldProblem::Shadowed));
        assert_eq!(meet(&json!({"type": "number", "exclusiveMinimum": 0}), Clamp::min(1)), acting(true, false));
        assert_eq!(
            meet(&json!({"exclusiveMaximum": 10, "type": "number"}), Clamp::range(10, 20)),
            Err(FieldProblem::Refused)
        );
        assert_eq!(meet(&json!({"maximum": 10, "type": "number"}), Clamp::range(10, 20)), acting(true, false));
        assert_eq!(meet(&json!({"minimum": 5, "exclusiveMinimum": 5}), Clamp::max(5)), Err(FieldProblem::Refused));
        assert_eq!(meet(&json!({"minimum": 5, "exclusiveMinimum": 4}), Clamp::max(5)), acting(false, true));
        assert_eq!(
            meet(&json!({"maximum": 9_007_199_254_740_993_u64}), Clamp::max(9_007_199_254_740_992)),
            acting(false, true)
        );
        assert_eq!(meet(&json!({"maximum": u64::MAX}), Clamp::max(i64::MAX)), acting(false, true));
        assert_eq!(meet(&whole(json!({})), float(0.2, 0.8)), Err(FieldProblem::NoInteger));
        assert_eq!(meet(&whole(json!({})), float(0.2, 1.8)), acting(true, true));
        assert_eq!(meet(&json!({"type": "number"}), float(0.2, 0.8)), acting(true, true));
    }

    #[test]
    fn k1_a_bound_that_is_no_multiple_would_be_refused() {
        let tens = json!({"type": "integer", "multipleOf": 10});
        assert_eq!(meet(&tens, Clamp::range(10, 100)), acting(true, true));
        assert_eq!(meet(&tens, Clamp::range(1, 100)), Err(FieldProblem::NoMultiple));
        assert_eq!(meet(&tens, Clamp::max(99)), Err(FieldProblem::NoMultiple));
        let from_ten = json!({"type": "integer", "multipleOf": 10, "minimum": 10});
        assert_eq!(
            meet(&from_ten, Clamp::range(1, 100)),
            acting(false, true),
            "a bound that can't act does not matter"
        );
    }

    #[test]
    fn k1_what_every_value_has_to_fit_counts_and_alternatives_do_not() {
        let refers = json!({"$ref": "#/$defs/small", "type": "number"});
        assert_eq!(meet(&refers, Clamp::max(9)), Err(FieldProblem::Shadowed));
        assert_eq!(meet(&json!({"allOf": [{"maximum": 5}]}), Clamp::max(9)), Err(FieldProblem::Shadowed));
        assert_eq!(meet(&json!({"anyOf": [{"maximum": 5}, {"minimum": 50}]}), Clamp::max(9)), acting(false, true));
        let text_or_number = json!({"anyOf": [{"type": "string"}, {"type": "integer"}]});
        assert_eq!(meet(&text_or_number, Clamp::max(9)), acting(false, true));
        let neither = json!({"anyOf": [{"type": "boolean"}, {"type": "null"}]});
        assert_eq!(meet(&neither, Clamp::max(9)), Err(FieldProblem::NotOfType { clamp: "numbers" }));
        assert_eq!(meet(&json!({"type": ["integer", "null"]}), Clamp::max(9)), acting(false, true), "V6");
        assert_eq!(meet(&json!(true), Clamp::max(9)), acting(false, true));
    }

    #[test]
    fn paths_meet_where_some_value_is_named_by_both() {
        for (a, b, both) in [
            ("/a", "/a", true),
            ("/*", "/a", true),
            ("/a/*", "/*/b", true),
            ("/a/b", "/*", false),
            ("/a/*", "/b/*", false),
            ("", "/a", false),
        ] {
            assert_eq!((meet_paths(a, b), meet_paths(b, a)), (both, both), "{a} {b}");
        }
    }
}
