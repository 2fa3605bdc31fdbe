//! What the policy gate decides, seen from outside.
#![cfg(test)]

mod consent;
mod fixture;
mod properties;
mod rules;
mod scenarios;
