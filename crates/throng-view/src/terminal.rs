//! What people look at in a terminal. [`Screen`] owns the terminal; what is drawn there is pure.

pub mod key;
pub mod look;
pub mod screen;
