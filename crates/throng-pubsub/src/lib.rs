//! Topics and who listens to them: one hub per core, what cores tell each other, and who is present.

pub mod presence;
