//! Answers belong to their requests, and a late generator does not make them late.

mod clocks;
mod dialogue;
mod room;
mod run;
mod unfinished;
