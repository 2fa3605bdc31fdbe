//! A gate in front of one server.
