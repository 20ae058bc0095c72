//! What people look at in a terminal: the live view of a run or a lab.
//!
//! [`TerminalModel`] is what the view shows, and [`draw`] draws it: both are pure. [`TerminalView`]
//! is the thread that owns the [`Screen`], feeds the model and reads the keys.

mod chart;
mod charts;
mod controls;
mod cut;
mod draw;
mod figures;
pub mod key;
mod model;
mod panels;
mod pen;
mod queue;
mod rows;
pub mod screen;
mod steering;
pub mod style;
mod view;

pub use controls::ViewCommand;
pub use draw::draw;
pub use model::TerminalModel;
pub use screen::Screen;
pub use view::TerminalView;

#[cfg(test)]
mod tests;
