//! No stage from outside counts as checked (P4).

use world::*;

pub struct Trusted;

impl callgate_core::call::Checked for Trusted {} //~ E0277
