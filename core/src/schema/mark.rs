//! Clamps and secrets within a schema, and the rules for fields that they are to the gate.

use super::fit::bound;
use super::{Additional, Limit, Schema, number};
use crate::clamp::Clamp;
use crate::json::Number;
use crate::tool::FieldRule;

impl<'a> Schema<'a> {
    /// Values that are brought into `clamp` (invariants K1 to K3) instead of being refused. So that they reach the clamp, the
    /// schema gives up the bounds that it had on the sides where the clamp is the tighter one; one that is given later stays.
    ///
    /// The check of the schema does not clamp: it is [`rules`](Self::rules) that the gate goes by.
    #[must_use]
    pub const fn clamped(mut self, clamp: &'a Clamp) -> Self {
        if let (Some(min), Some(limit)) = (bound(clamp.min), self.minimum)
            && !limit.leaves_out_below(min)
        {
            self.minimum = None;
        }
        if let (Some(max), Some(limit)) = (bound(clamp.max), self.maximum)
            && !limit.leaves_out_above(max)
        {
            self.maximum = None;
        }
        if let (Some(most), Some(length)) = (clamp.max_length, self.max_length)
            && most <= length
        {
            self.max_length = None;
        }
        self.clamp = Some(clamp);
        self
    }

    /// A secret: the value, and all within it, is kept out of records, plans and logs, where the tool's rules are made with
    /// [`rules`](Self::rules).
    #[must_use]
    pub const fn secret(mut self) -> Self {
        self.secret = true;
        self
    }

    /// How many rules for fields the schema holds.
    #[must_use]
    pub const fn rule_count(&self) -> usize {
        Rules::<0, 0>::of(self).count
    }

    /// How many bytes the paths of these rules have together.
    #[must_use]
    pub const fn rule_bytes(&self) -> usize {
        Rules::<0, 0>::of(self).len
    }

    /// The rules for fields that the schema holds, each with its path. `COUNT` is [`Self::rule_count`], `BYTES` is
    /// [`Self::rule_bytes`]; what has no room is left out.
    ///
    /// ```
    /// use callgate_core::clamp::Clamp;
    /// use callgate_core::schema::{Property, Rules, Schema};
    /// use callgate_core::tool::FieldRule;
    ///
    /// const PAGE: Schema<'static> = Schema::object(&[
    ///     Property::optional("size", Schema::integer().clamped(&Clamp::range(1, 100))),
    ///     Property::optional("keys", Schema::array(&Schema::string().secret())),
    /// ]);
    /// const RULES: Rules<{ PAGE.rule_count() }, { PAGE.rule_bytes() }> = PAGE.rules();
    /// const FIELDS: &[FieldRule<'static>] = &RULES.as_rules();
    /// assert_eq!(FIELDS[0], FieldRule::clamp("/size", Clamp::range(1, 100)));
    /// assert_eq!(FIELDS[1], FieldRule::secret("/keys/*"));
    /// ```
    #[must_use]
    pub const fn rules<const COUNT: usize, const BYTES: usize>(&self) -> Rules<COUNT, BYTES> {
        Rules::of(self)
    }

    /// The clamp of the value itself.
    #[must_use]
    pub const fn clamp(&self) -> Option<&'a Clamp> {
        self.clamp
    }

    /// Whether the value itself is marked as a secret.
    #[must_use]
    pub const fn is_secret(&self) -> bool {
        self.secret
    }
}

impl Limit {
    /// Whether the limit refuses what is `at` or below it on this side.
    const fn leaves_out_below(self, at: Number) -> bool {
        number::compare(at, self.at).is_lt() || self.excludes(at)
    }

    const fn leaves_out_above(self, at: Number) -> bool {
        number::compare(at, self.at).is_gt() || self.excludes(at)
    }
}

/// Rules for fields with their paths, in a constant. Made by [`Schema::rules`].
#[derive(Clone, Copy, Debug)]
pub struct Rules<const COUNT: usize, const BYTES: usize> {
    /// The paths, one behind the other.
    paths: [u8; BYTES],
    /// How many bytes there are, or would be.
    len: usize,
    /// Where each path ends, and what holds for its field.
    marks: [(usize, Option<Clamp>, bool); COUNT],
    count: usize,
}

/// A segment of a path, and what leads to it.
struct Way<'w> {
    before: Option<&'w Way<'w>>,
    name: &'w str,
    /// Whether it is `*`, which stands for all, and no name.
    each: bool,
}

impl<const COUNT: usize, const BYTES: usize> Rules<COUNT, BYTES> {
    const fn of(schema: &Schema<'_>) -> Self {
        let mut rules = Self { paths: [0; BYTES], len: 0, marks: [(0, None, false); COUNT], count: 0 };
        // Deeper than this no schema can be used, and the walk would not end soon.
        if schema.depth <= super::MAX_DEPTH {
            rules.walk(schema, None);
        }
        rules
    }

    /// The rules.
    #[must_use]
    pub const fn as_rules(&self) -> [FieldRule<'_>; COUNT] {
        let mut rules = [FieldRule { path: "", clamp: None, secret: false }; COUNT];
        let mut bytes: &[u8] = &self.paths;
        let mut start = 0;
        let mut marks: &[_] = &self.marks;
        let mut left: &mut [_] = &mut rules;
        while let (Some(((end, clamp, secret), later)), Some((rule, others))) =
            (marks.split_first(), left.split_first_mut())
        {
            let Some((path, behind)) = bytes.split_at_checked(end.saturating_sub(start)) else { break };
            if let Ok(path) = str::from_utf8(path) {
                *rule = FieldRule { path, clamp: *clamp, secret: *secret };
            }
            (bytes, start, marks, left) = (behind, *end, later, others);
        }
        rules
    }

    const fn walk(&mut self, schema: &Schema<'_>, way: Option<&Way<'_>>) {
        if schema.clamp.is_some() || schema.secret {
            self.write_way(way);
            let position = self.count;
            if let Some((_, [mark, ..])) = self.marks.split_at_mut_checked(position) {
                *mark = (self.len, copied(schema.clamp), schema.secret);
            }
            self.count = self.count.saturating_add(1);
        }
        let mut rest = schema.properties;
        while let Some((property, others)) = rest.split_first() {
            self.walk(&property.schema, Some(&Way { before: way, name: property.name, each: false }));
            rest = others;
        }
        if let Additional::Each(values) = schema.additional {
            self.walk(values, Some(&Way { before: way, name: "", each: true }));
        }
        if let Some(items) = schema.items {
            self.walk(items, Some(&Way { before: way, name: "", each: true }));
        }
    }

    const fn write_way(&mut self, way: Option<&Way<'_>>) {
        let Some(way) = way else { return };
        self.write_way(way.before);
        self.push(b'/');
        if way.each {
            self.push(b'*');
        }
        let mut bytes = way.name.as_bytes();
        while let Some((byte, rest)) = bytes.split_first() {
            match byte {
                b'~' => self.escape(b'0'),
                b'/' => self.escape(b'1'),
                other => self.push(*other),
            }
            bytes = rest;
        }
    }

    const fn escape(&mut self, digit: u8) {
        self.push(b'~');
        self.push(digit);
    }

    const fn push(&mut self, byte: u8) {
        if let Some((_, [room, ..])) = self.paths.split_at_mut_checked(self.len) {
            *room = byte;
        }
        self.len = self.len.saturating_add(1);
    }
}

const fn copied(clamp: Option<&Clamp>) -> Option<Clamp> {
    match clamp {
        Some(clamp) => Some(*clamp),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Property, SchemaFault};
    use super::*;
    use crate::clamp::ClampFault;
    use crate::fields;
    use std::vec::Vec;

    const CLAMP: Clamp = Clamp::range(1, 100);
    const SHORT: Clamp = Clamp::max_length(3);
    const ROW: Schema<'static> = Schema::object(&[
        Property::required("a/b", Schema::number().clamped(&CLAMP)),
        Property::optional("c", Schema::null()),
    ]);
    const ALL: Schema<'static> = Schema::object(&[
        Property::required("max", Schema::integer().clamped(&CLAMP).secret()),
        Property::required("rows", Schema::array(&ROW)),
        Property::required("map~", Schema::map(&Schema::string().clamped(&SHORT))),
        Property::required("tag", Schema::tagged(&["x"], &[Property::required("v", ROW.secret())])),
    ]);
    const RULES: Rules<{ ALL.rule_count() }, { ALL.rule_bytes() }> = ALL.rules();

    #[test]
    fn k3_l1_each_mark_becomes_a_rule_with_its_path() {
        let rules = RULES.as_rules();
        assert_eq!(
            rules,
            [
                FieldRule { path: "/max", clamp: Some(CLAMP), secret: true },
                FieldRule::clamp("/rows/*/a~1b", CLAMP),
                FieldRule::clamp("/map~0/*", SHORT),
                FieldRule::secret("/tag/v"),
                FieldRule::clamp("/tag/v/a~1b", CLAMP),
            ]
        );
        assert_eq!(fields::check(&rules), Ok(()));
        // What has no room is left out and not cut.
        let few = ALL.rules::<2, 5>();
        assert_eq!(few.as_rules().map(|rule| rule.path), ["/max", ""]);
    }

    /// The program counts and writes the rules as the compiler did.
    #[test]
    fn both_ways_to_make_rules_make_the_same() {
        let all = core::hint::black_box(ALL);
        assert_eq!((all.rule_count(), all.rule_bytes()), (5, "/max/rows/*/a~1b/map~0/*/tag/v/tag/v/a~1b".len()));
        assert_eq!(all.rules::<5, 64>().as_rules(), RULES.as_rules());
        assert_eq!((Schema::any().rule_count(), Schema::any().rule_bytes()), (0, 0));
        let secret = Schema::any().secret();
        assert_eq!(secret.rules::<1, 0>().as_rules(), [FieldRule::secret("")]);
        assert_eq!((Schema::integer().clamped(&CLAMP).clamp(), Schema::any().clamp()), (Some(&CLAMP), None));
        assert_eq!((secret.is_secret(), secret.clamp().is_some(), Schema::any().is_secret()), (true, false, false));
    }

    /// K1: what the clamp is to mend gets through, and what its result would break stays refused.
    #[test]
    fn k1_a_clamp_replaces_the_wider_bounds() {
        let byte = Schema::integer().minimum(0).maximum(255);
        let both = byte.clamped(&CLAMP);
        assert_eq!((both.minimum, both.maximum), (None, None));
        const WIDE: Clamp = Clamp::max(1_000);
        let wide = byte.clamped(&WIDE);
        assert_eq!((wide.minimum, wide.maximum), (byte.minimum, byte.maximum));
        let text = Schema::string().max_length(10);
        assert_eq!(text.clamped(&SHORT).max_length, None);
        assert_eq!(Schema::string().max_length(2).clamped(&SHORT).max_length, Some(2));
        let below = Schema::number().below(100);
        assert!(below.clamped(&CLAMP).maximum.is_some());
        // On each side alone, at the clamp's own bound and beside it.
        for (bound, kept) in [(99, true), (100, false), (101, false)] {
            assert_eq!(Schema::integer().maximum(bound).clamped(&CLAMP).maximum.is_some(), kept, "{bound}");
            assert_eq!(Schema::integer().below(bound).clamped(&CLAMP).maximum.is_some(), bound <= 100, "{bound}");
            let least = 101 - bound;
            assert_eq!(Schema::integer().minimum(least).clamped(&CLAMP).minimum.is_some(), kept, "{least}");
            assert_eq!(Schema::integer().above(least).clamped(&CLAMP).minimum.is_some(), bound <= 100, "{least}");
        }
    }

    #[test]
    fn s6_a_clamp_has_to_be_usable() {
        const SWAPPED: Clamp = Clamp::range(5, 1);
        let faults: Vec<_> =
            [Schema::integer().clamped(&SWAPPED), Schema::boolean().clamped(&CLAMP), Schema::integer().clamped(&SHORT)]
                .iter()
                .map(|schema| schema.check().unwrap_err().fault())
                .map(|fault| match fault {
                    SchemaFault::Clamp(ClampFault::Empty) => "empty",
                    SchemaFault::Idle { kind, .. } => kind,
                    _ => "other",
                })
                .collect();
        assert_eq!(faults, ["empty", "number", "string"]);
    }
}
