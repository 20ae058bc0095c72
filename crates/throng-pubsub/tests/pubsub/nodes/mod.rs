//! Nodes that share topics, over a simulated bus that loses messages and splits.

mod presence;
mod publications;
mod world;
