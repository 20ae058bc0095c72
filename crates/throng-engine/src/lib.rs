//! One event loop per core over a Driver.
