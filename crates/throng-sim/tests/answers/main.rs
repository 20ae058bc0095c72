//! An answer belongs to its question, and a late generator does not make it late.

mod clocks;
mod dialogue;
mod room;
mod run;
