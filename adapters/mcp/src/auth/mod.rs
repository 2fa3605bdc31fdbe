//! Bearer tokens, and who they stand for.
