//! Blocking front-end of callgate.
