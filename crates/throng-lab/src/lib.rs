//! What needs both ends of a test: the recorder that joins their counts, and the labs.
//!
//! [`recorder`] watches a run and writes its run file.

pub mod isolate;
pub mod recorder;
