//! A call that brings a token is validated only after the ticket was looked at (G5, A3).

use world::*;

pub fn drive(loading: Loading<Carried, Held>) -> Result<At<Validated>, End> {
    loading.validate() //~ E0599
}
