//! What needs both ends: the labs and the reconciling of both counts.
