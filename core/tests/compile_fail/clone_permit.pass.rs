//! A permit is good for one run: it has no copy (G1).

use world::*;

pub fn drive(permit: Pass<'_>) {
    drop(permit);
}
