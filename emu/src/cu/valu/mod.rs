//! Vector ALU operations.
