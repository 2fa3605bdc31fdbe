//! No stage from outside counts as checked (P4).

use world::*;

pub struct Trusted;

impl Trusted {}
