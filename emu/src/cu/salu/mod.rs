//! Scalar operations: SOP1, SOP2, SOPK, SOPC, SOPP.
