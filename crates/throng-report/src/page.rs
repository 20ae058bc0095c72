//! The data of a page: what a report draws, from the run file alone.
//!
//! [`PageBuilder`] receives one interval after the other, as [`SummaryFold`](crate::SummaryFold)
//! does, and keeps columns of numbers, heat maps of latencies and the events. Its memory is
//! bounded: a long run is kept in coarser rows. [`Page`] is everything as one JSON object, and
//! [`html`] puts it into one file that needs no network. A page that
//! grows is read in parts: [`PagePart`] is what it has more than at a reader's [`PageCursor`].

mod builder;
mod columns;
mod heat;
mod html;
mod json;
mod model;
mod packed;
mod part;
mod series;

pub use builder::PageBuilder;
pub use html::{html, live_html};
pub use json::{json, write_json};
pub use model::{Page, PageEvent, PagePhase, SCHEMA};
pub use part::{PageCursor, PagePart};
