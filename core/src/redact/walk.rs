//! Which values of a JSON text are secrets.

use super::{Redaction, names};
use crate::fields::Matcher;
use crate::json::{Event, Text};
use crate::tool::FieldRule;

/// How far ahead an object is searched for a member that names the one called `value` before it, in events.
const LOOK_AHEAD: usize = 64;

/// What an event belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// No secret, as far as names and rules tell.
    Open,
    /// It is a secret value, or starts one that is an array or an object.
    Secret,
    /// It stands within a secret array or object, or ends it.
    Within,
}

/// The events of a value, each with its standing.
pub(super) struct Walk<'r, I> {
    events: I,
    redaction: Redaction<'r>,
    rules: Rules<'r>,
    /// How many arrays and objects are open within a secret value.
    within: u32,
    /// For each open array or object, the innermost at the lowest bit: in an object, that a member named it a secret, as in
    /// `{"name":"DB_PASSWORD","value":".."}`; in an array, that the last item was a flag such as `--password`.
    announced: u64,
    /// For each of them, whether it is an object.
    objects: u64,
    /// The key of the member whose value comes next, if it tells something.
    member: Member,
}

/// The tool's rules that mark secrets.
#[expect(clippy::large_enum_variant, reason = "there is no heap, and one of these at a time")]
enum Rules<'r> {
    None,
    Some(Matcher<'r>),
    /// There are more than can be followed, and so everything is a secret.
    TooMany,
}

impl<'r> Rules<'r> {
    fn of(fields: &'r [FieldRule<'r>]) -> Self {
        if fields.iter().all(|field| !field.secret) {
            return Self::None;
        }
        Matcher::new(fields).map_or(Self::TooMany, Self::Some)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    /// Not a key that means something here.
    Other,
    /// A sensitive key, so that the value is a secret.
    Sensitive,
    /// A key whose value can be the name of a secret: `name`.
    Name,
    /// A key whose value is a secret when another member names it so: `value`.
    Value,
}

impl<'r, 'e, I: Iterator<Item = (u32, Event<'e>)> + Clone> Walk<'r, I> {
    pub(super) fn new(events: I, redaction: Redaction<'r>, fields: &'r [FieldRule<'r>]) -> Self {
        Self { events, redaction, rules: Rules::of(fields), within: 0, announced: 0, objects: 0, member: Member::Other }
    }

    fn sensitive(&self, name: Text<'_>) -> bool {
        names::is_sensitive(name.chars(), self.redaction.names)
    }

    fn standing(&mut self, event: Event<'e>, marked: bool) -> Standing {
        let opens = matches!(event, Event::StartArray | Event::StartObject);
        let closes = matches!(event, Event::EndArray | Event::EndObject);
        if self.within > 0 {
            if opens {
                self.within = self.within.saturating_add(1);
            } else if closes {
                self.within = self.within.saturating_sub(1);
            }
            return Standing::Within;
        }
        if closes {
            self.announced >>= 1;
            self.objects >>= 1;
            return Standing::Open;
        }
        if let Event::Key(key) = event {
            self.member = self.member(key);
            return Standing::Open;
        }
        let in_object = self.objects & 1 == 1;
        let member = core::mem::replace(&mut self.member, Member::Other);
        let announced = self.announced & 1 == 1 && (!in_object || member == Member::Value);
        let secret = marked
            || announced
            || member == Member::Sensitive
            || member == Member::Value && self.is_named_behind(opens);
        if !in_object {
            self.announced &= !1;
        }
        if secret {
            self.within = u32::from(opens);
            return Standing::Secret;
        }
        match event {
            Event::String(text) if in_object && member == Member::Name && self.sensitive(text) => self.announced |= 1,
            Event::String(text) if !in_object && self.is_flag(text) => self.announced |= 1,
            Event::StartArray => self.open(0),
            Event::StartObject => self.open(1),
            _ => {}
        }
        Standing::Open
    }

    fn open(&mut self, object: u64) {
        self.announced <<= 1;
        self.objects = self.objects << 1 | object;
    }

    fn member(&self, key: Text<'_>) -> Member {
        if self.sensitive(key) {
            return Member::Sensitive;
        }
        let is_one_of = |list: &[&str]| list.iter().any(|name| key.eq_str(name));
        if is_one_of(&["name", "key", "header", "field", "variable", "Name", "Key"]) {
            Member::Name
        } else if is_one_of(&["value", "values", "val", "Value"]) {
            Member::Value
        } else {
            Member::Other
        }
    }

    /// Whether one of the next members of the same object names the value that starts now as a secret.
    fn is_named_behind(&self, opens: bool) -> bool {
        let mut depth = i32::from(opens);
        let mut names = false;
        for (_, event) in self.events.clone().take(LOOK_AHEAD) {
            match event {
                Event::StartArray | Event::StartObject => depth = depth.saturating_add(1),
                Event::EndArray | Event::EndObject => depth = depth.saturating_sub(1),
                Event::Key(key) => names = self.member(key) == Member::Name,
                Event::String(text) if depth == 0 && names && self.sensitive(text) => return true,
                _ => {}
            }
            if depth < 0 {
                break;
            }
        }
        false
    }

    /// Whether the item is an argument that says that the next one is a secret: `--password`.
    fn is_flag(&self, item: Text<'_>) -> bool {
        let mut letters = item.chars();
        letters.next() == Some('-')
            && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
            && self.sensitive(item)
    }
}

impl<'e, I: Iterator<Item = (u32, Event<'e>)> + Clone> Iterator for Walk<'_, I> {
    type Item = (Event<'e>, Standing);

    fn next(&mut self) -> Option<Self::Item> {
        let (_, event) = self.events.next()?;
        let marked = match &mut self.rules {
            Rules::None => false,
            Rules::Some(matcher) => matcher.step(&event).secret(),
            Rules::TooMany => true,
        };
        Some((event, self.standing(event, marked)))
    }
}
