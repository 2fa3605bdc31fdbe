//! Definitions of tools as they were when they were first seen.
