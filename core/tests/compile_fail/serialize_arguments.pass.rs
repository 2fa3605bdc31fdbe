//! Arguments leave through the gate's own writers, never through serde (L1).

use world::*;

pub fn drive(args: Args<'_>) {
    drop(args.write_json(&mut String::new()));
}
