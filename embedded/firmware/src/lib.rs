//! A device behind the gate: calls of an agent come over one serial line, an operator decides over another, and everything that
//! the gate needs lies in memory of a fixed size. No heap, no operating system, no `unsafe`.
//!
//! Programs: `valve` is the device, `subject` the same core as a subject of the conformance suite, `measure` what a gate costs; and
//! `microbit` the device on a board of 16 KiB, whose operator has two buttons.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(not(microbit))]
pub mod board;
pub mod device;
pub mod line;
#[cfg(microbit)]
pub mod microbit;
pub mod panel;
pub mod ten;
pub mod tools;
