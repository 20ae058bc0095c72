//! Topics and presence, on one node and on several.

mod nodes;
mod presence;
