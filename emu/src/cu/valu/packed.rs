//! Packed operations.

use super::table::Entry;

/// The operations of this file.
pub const TABLE: &[Entry] = &[];
