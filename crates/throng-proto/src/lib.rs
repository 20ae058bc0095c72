//! Sans-IO protocols.
