//! What a check may cost: how often schemas are looked at along one path of a value (invariant S5).
//!
//! A schema may refer to itself, as long as it goes deeper into the value each time. Then the value's depth bounds the
//! check, but two references to one place double it at every level. So the number of steps is counted for each depth, and
//! a value that is deeper than the steps allow is refused.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{MAX_EXPANDED, MAX_NESTED};

/// A schema, by the order of the walk.
pub(super) type NodeId = usize;

/// How a schema leads to another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Edge {
    /// The same value.
    Here,
    /// The same value; one of a group of alternatives.
    Alternative(usize),
    /// Nowhere by itself.
    Definition,
    /// The member of this name.
    Member(String),
    /// Members that are not named beside it.
    OtherMember,
    /// Members of any name.
    AnyMember,
    /// The names of members.
    Name,
    /// The item at this place.
    Item(usize),
    /// Items that are not placed beside it.
    OtherItem,
    /// Items at any place.
    AnyItem,
}

/// One schema and where it leads.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) edges: Vec<(Edge, NodeId)>,
    /// How many groups of alternatives it has.
    pub(super) groups: usize,
    /// Whether what it applies to the same value is looked at several times, to tell what was not looked at.
    pub(super) repeats: bool,
    /// Whether no object fits.
    pub(super) no_object: bool,
    /// Properties that an object must have to fit, with the values that they may have.
    pub(super) tags: Vec<(String, Vec<Value>)>,
}

/// All schemas of a document.
#[derive(Debug)]
pub(super) struct Graph {
    nodes: Vec<Node>,
}

/// Why the steps can't be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unbounded {
    /// This schema leads to itself without going into the value.
    Loop(NodeId),
}

impl Graph {
    pub(super) const fn new(nodes: Vec<Node>) -> Self {
        Self { nodes }
    }

    /// The steps for values of each depth, that of a value without parts first, up to `depths` of them; fewer when one more
    /// level takes more than [`MAX_EXPANDED`] steps, or more than [`MAX_NESTED`] within each other.
    ///
    /// Where alternatives exclude each other, one of them is counted, unless `all` are asked for: the validator looks at all
    /// to tell what is wrong.
    pub(super) fn steps(&self, depths: usize, all: bool) -> Result<Vec<u64>, Unbounded> {
        let mut choices = Choices { first: self.nodes.len(), options: Vec::new(), all };
        let looks = self.looks(&mut choices)?;
        let mut steps = Vec::new();
        // For each schema and then each choice, the cost of values one level less deep.
        let mut inner = vec![Cost::default(); looks.len()];
        for _ in 0..depths {
            choices.add_costs(&mut inner);
            let all: Vec<Cost> = looks.iter().map(|look| look.cost(&inner)).collect();
            match all.first() {
                Some(root) if root.steps <= MAX_EXPANDED && root.nested <= MAX_NESTED => steps.push(root.steps),
                _ => break,
            }
            inner = all;
        }
        Ok(steps)
    }

    /// What each schema looks at.
    fn looks(&self, choices: &mut Choices) -> Result<Vec<Look>, Unbounded> {
        let mut looks = vec![Look::default(); self.nodes.len()];
        for id in self.inside_out()? {
            let look = self.look(id, &looks, choices);
            if let Some(slot) = looks.get_mut(id) {
                *slot = look;
            }
        }
        Ok(looks)
    }

    /// All schemas, each after those that it applies to the same value. Iterative: references may go a long way.
    fn inside_out(&self) -> Result<Vec<NodeId>, Unbounded> {
        #[derive(Clone, Copy, PartialEq)]
        enum State {
            New,
            Open,
            Done,
        }
        let mut states = vec![State::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in 0..self.nodes.len() {
            let mut way = vec![start];
            while let Some(id) = way.last().copied() {
                let Some(state) = states.get_mut(id) else { return Err(Unbounded::Loop(id)) };
                match *state {
                    State::New => {
                        *state = State::Open;
                        way.extend(self.here(id));
                    }
                    State::Open => {
                        *state = State::Done;
                        order.push(id);
                        way.pop();
                        continue;
                    }
                    State::Done => {
                        way.pop();
                        continue;
                    }
                }
                // An open one among those to come is one that this one came from.
                if let Some(again) = self.here(id).find(|next| states.get(*next) == Some(&State::Open)) {
                    return Err(Unbounded::Loop(again));
                }
            }
        }
        Ok(order)
    }

    /// What a schema applies to the same value.
    fn here(&self, id: NodeId) -> impl Iterator<Item = NodeId> {
        let edges = self.node(id).map_or(&[][..], |node| &node.edges);
        edges.iter().filter(|(edge, _)| matches!(edge, Edge::Here | Edge::Alternative(_))).map(|(_, target)| *target)
    }

    /// What a schema looks at, when that is known of those that it applies to the same value.
    fn look(&self, id: NodeId, looks: &[Look], choices: &mut Choices) -> Look {
        let Some(node) = self.node(id) else { return Look::default() };
        let of = |target: &NodeId| looks.get(*target).cloned().unwrap_or_default();
        let mut below = Look::default();
        for (edge, target) in &node.edges {
            if *edge == Edge::Here {
                below.add(&of(target));
            }
        }
        for group in 0..node.groups {
            let edges = node.edges.iter().filter(|(edge, _)| *edge == Edge::Alternative(group));
            let alternatives: Vec<NodeId> = edges.map(|(_, target)| *target).collect();
            let exclusive = !choices.all && self.exclusive(&alternatives);
            let mut one = Vec::new();
            for target in &alternatives {
                if exclusive && self.referred(*target).is_some_and(|node| !node.no_object) {
                    one.push(of(target));
                } else {
                    below.add(&of(target));
                }
            }
            below.add(&choices.one_of(&one));
        }
        if node.repeats {
            // Measured: each level of `unevaluated...` takes about three times as long as the one within it.
            for _ in 0..2 {
                let as_often = below.clone();
                below.add(&as_often);
            }
        }
        let mut look = Look::own(node);
        look.nested = below.nested.saturating_add(1);
        look.add(&below);
        look
    }

    fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id)
    }

    /// The schema, or the one that it does nothing but refer to.
    fn referred(&self, id: NodeId) -> Option<&Node> {
        let node = self.node(id)?;
        match node.edges.as_slice() {
            [(Edge::Here, target)] if node.tags.is_empty() => self.node(*target),
            _ => Some(node),
        }
    }

    /// Whether an object can fit one of the alternatives at most, and the validator sees which: there are three or more,
    /// and each that takes objects asks for a property with a value of its own.
    fn exclusive(&self, alternatives: &[NodeId]) -> bool {
        let of_objects: Vec<&Node> =
            alternatives.iter().filter_map(|id| self.referred(*id)).filter(|node| !node.no_object).collect();
        let Some((first, others)) = of_objects.split_first() else { return false };
        alternatives.len() >= 3
            && first.tags.iter().any(|(name, values)| {
                let mut seen: Vec<&Value> = values.iter().collect();
                others.iter().all(|other| {
                    let Some((_, values)) = other.tags.iter().find(|(other, _)| other == name) else { return false };
                    let apart = values.iter().all(|value| !seen.contains(&value));
                    seen.extend(values);
                    apart
                })
            })
    }
}

/// Schemas and choices, and how often each is looked at.
type Targets = BTreeMap<NodeId, u64>;

/// Where one of several sets of schemas looks at a part, and nobody knows which.
struct Choices {
    /// What the first choice is called among the schemas.
    first: NodeId,
    options: Vec<Vec<Targets>>,
    /// Whether there is no choice, since all are looked at.
    all: bool,
}

impl Choices {
    /// What is looked at when one of these looks.
    fn one_of(&mut self, looks: &[Look]) -> Look {
        Look {
            here: looks.iter().map(|look| look.here).max().unwrap_or(0),
            nested: looks.iter().map(|look| look.nested).max().unwrap_or(0),
            members: self.one_of_tables(&looks.iter().map(|look| &look.members).collect::<Vec<_>>()),
            items: self.one_of_tables(&looks.iter().map(|look| &look.items).collect::<Vec<_>>()),
            names: self.one_of_targets(&looks.iter().map(|look| &look.names).collect::<Vec<_>>()),
        }
    }

    fn one_of_tables<K: Ord + Clone>(&mut self, tables: &[&Table<K>]) -> Table<K> {
        let others: Vec<&Targets> = tables.iter().map(|table| &table.other).collect();
        let mut one = Table { known: BTreeMap::new(), other: self.one_of_targets(&others) };
        for key in tables.iter().flat_map(|table| table.known.keys()) {
            if !one.known.contains_key(key) {
                let targets: Vec<&Targets> = tables.iter().map(|table| table.at(key)).collect();
                one.known.insert(key.clone(), self.one_of_targets(&targets));
            }
        }
        one
    }

    fn one_of_targets(&mut self, options: &[&Targets]) -> Targets {
        let mut distinct: Vec<Targets> = Vec::new();
        for option in options.iter().filter(|option| !option.is_empty()) {
            if !distinct.contains(option) {
                distinct.push((*option).clone());
            }
        }
        if distinct.len() < 2 {
            return distinct.pop().unwrap_or_default();
        }
        self.options.push(distinct);
        Targets::from([(self.first.saturating_add(self.options.len()).saturating_sub(1), 1)])
    }

    /// Adds the cost of each choice to those of the schemas. A choice is among earlier ones alone.
    fn add_costs(&self, inner: &mut Vec<Cost>) {
        for options in &self.options {
            let cost = options.iter().map(|targets| sum(targets, inner)).fold(Cost::default(), Cost::max);
            inner.push(cost);
        }
    }
}

/// What is looked at when a value is checked by one schema.
#[derive(Clone, Debug, Default)]
struct Look {
    /// How many schemas look at the value itself.
    here: u64,
    /// How many of them within each other.
    nested: u64,
    members: Table<String>,
    items: Table<usize>,
    names: Targets,
}

/// What looks at the parts of a value.
#[derive(Clone, Debug)]
struct Table<K> {
    /// By name or place, where one is given.
    known: BTreeMap<K, Targets>,
    /// Everywhere else.
    other: Targets,
}

impl<K> Default for Table<K> {
    fn default() -> Self {
        Self { known: BTreeMap::new(), other: Targets::new() }
    }
}

impl<K: Ord + Clone> Table<K> {
    /// What looks at the part of this name or at this place.
    fn at(&self, key: &K) -> &Targets {
        self.known.get(key).unwrap_or(&self.other)
    }

    /// Adds another table, place by place.
    fn add(&mut self, other: &Self) {
        for key in other.known.keys() {
            if !self.known.contains_key(key) {
                self.known.insert(key.clone(), self.other.clone());
            }
        }
        for (key, targets) in &mut self.known {
            add(targets, other.at(key));
        }
        add(&mut self.other, &other.other);
    }

    /// The cost of the place with the most.
    fn cost(&self, inner: &[Cost]) -> Cost {
        self.known.values().chain([&self.other]).map(|targets| sum(targets, inner)).fold(Cost::default(), Cost::max)
    }
}

fn sum(targets: &Targets, inner: &[Cost]) -> Cost {
    targets.iter().fold(Cost::default(), |all, (id, times)| {
        let one = inner.get(*id).copied().unwrap_or_default();
        Cost { steps: all.steps.saturating_add(times.saturating_mul(one.steps)), nested: all.nested.max(one.nested) }
    })
}

fn add(to: &mut Targets, from: &Targets) {
    for (id, times) in from {
        let held = to.entry(*id).or_default();
        *held = held.saturating_add(*times);
    }
}

impl Look {
    /// Both are looked at.
    fn add(&mut self, other: &Self) {
        self.here = self.here.saturating_add(other.here);
        self.nested = self.nested.max(other.nested);
        self.members.add(&other.members);
        self.items.add(&other.items);
        add(&mut self.names, &other.names);
    }

    /// The cost of a value, when that of its parts is known.
    fn cost(&self, inner: &[Cost]) -> Cost {
        let parts = self.members.cost(inner).max(self.items.cost(inner));
        let names = sum(&self.names, inner);
        Cost {
            steps: self.here.saturating_add(parts.steps).saturating_add(names.steps),
            nested: self.nested.saturating_add(parts.nested.max(names.nested)),
        }
    }

    /// What a schema looks at by itself.
    fn own(node: &Node) -> Look {
        let mut look = Look { here: 1, ..Look::default() };
        for (edge, target) in &node.edges {
            let one = Targets::from([(*target, 1)]);
            match edge {
                Edge::Member(name) => add(look.members.known.entry(name.clone()).or_default(), &one),
                Edge::OtherMember => add(&mut look.members.other, &one),
                Edge::Item(place) => add(look.items.known.entry(*place).or_default(), &one),
                Edge::OtherItem => add(&mut look.items.other, &one),
                Edge::Name => add(&mut look.names, &one),
                Edge::Here | Edge::Alternative(_) | Edge::Definition | Edge::AnyMember | Edge::AnyItem => {}
            }
        }
        // What looks at any part looks at the known ones as well.
        for (edge, target) in &node.edges {
            let one = Targets::from([(*target, 1)]);
            match edge {
                Edge::AnyMember => {
                    look.members.known.values_mut().chain([&mut look.members.other]).for_each(|to| add(to, &one));
                }
                Edge::AnyItem => {
                    look.items.known.values_mut().chain([&mut look.items.other]).for_each(|to| add(to, &one));
                }
                _ => {}
            }
        }
        look
    }
}

/// What a check takes, along the longest way into a value.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// How many schemas look.
    steps: u64,
    /// How many of them within each other.
    nested: u64,
}

impl Cost {
    fn max(self, other: Self) -> Self {
        Self { steps: self.steps.max(other.steps), nested: self.nested.max(other.nested) }
    }
}
