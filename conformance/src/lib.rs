//! The conformance suite: judges any implementation of the gate, in any language.
//!
//! - [`vector`], [`world`]: the format of vectors, which are data; [`library`]: those that come with this crate.
//! - [`event`], [`wire`]: the protocol that a subject speaks; [`process`]: a subject in a process of its own; [`serve`]: the
//!   other end.
//! - [`subject`], [`feature`]: what a subject under test says of itself; [`play`]: a script at a subject.
//! - [`compare`], [`run`], [`baseline`], [`report`]: the verdicts.
//! - [`random`]: scripts of chance at two subjects side by side.
//! - [`model`]: the reference model; [`wrong`]: models that are wrong on purpose.
//! - [`subjects`]: the gates of this workspace as subjects.
//!
//! ```
//! use callgate_conformance::library::Library;
//! use callgate_conformance::report::human;
//! use callgate_conformance::run::Runner;
//! use callgate_conformance::subjects::Blocking;
//!
//! let all = Library::built_in()?;
//! let report = Runner::new().run(&mut Blocking::new(), all.vectors(), all.vectors(), |_, _| ());
//! assert!(report.holds(), "{}", human(&report));
//! # Ok::<(), callgate_conformance::library::LibraryError>(())
//! ```
#![forbid(unsafe_code)]

pub mod baseline;
pub mod compare;
pub mod event;
pub mod feature;
#[cfg(feature = "fuzz")]
pub mod fuzz;
pub mod library;
pub mod model;
pub mod play;
pub mod process;
pub mod random;
pub mod report;
pub mod run;
pub mod serve;
pub mod stop;
pub mod subject;
pub mod subjects;
pub mod vector;
pub mod wire;
pub mod world;
pub mod wrong;
