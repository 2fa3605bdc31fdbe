//! A call is not finished while somebody holds its permit (G1).

use world::*;

pub fn drive(mut executing: Executing<Carried, Held>, run: Run) -> End {
    let permit = executing.permit();
    (permit.is_some(), executing.finished(run)).1
}
