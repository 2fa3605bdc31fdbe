//! Scripts of chance: worlds and scripts that nobody thought of, at two subjects side by side.
//!
//! What must be seen is what the other subject shows: outcome, order, effects, decisions and records. [`Random`] has the model for
//! the other, makes a script at which a subject differs as small as it can, and writes it down as a vector.

mod agree;
mod fitted;
mod hunt;
mod scripts;
mod shrink;

pub use agree::{Apart, compare};
pub use fitted::fitted;
pub use hunt::{Chance, Hunted, Random};
pub use scripts::script;
