//! A record gives its arguments redacted (L1).

use world::*;

pub fn drive(record: &Record<'_>) -> Option<String> {
    record.args.map(|args| args.sent().to_owned()) //~ E0616
}
