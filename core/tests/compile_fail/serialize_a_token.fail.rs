//! A token is shown to its caller and written nowhere else (A11).

use world::*;

pub fn drive(token: Token) {
    serialize(&token); //~ E0277
}
