//! A record gives its arguments redacted (L1).

use world::*;

pub fn drive(record: &Record<'_>) -> Option<String> {
    record.redacted_args().map(|args| args.to_string())
}
