//! How much longer a file becomes when values stand in the places of their names.

use std::cell::{Cell, RefCell};

use throng_load::scenario::Diagnostic;

use crate::source::Span;

/// The bytes of all values that stand in the places of their names so far. A few names of names
/// would have no bound.
#[derive(Debug)]
pub(crate) struct Expansion {
    bytes: Cell<u64>,
    bytes_max: u64,
    /// The place of the name with which there are too many.
    place: RefCell<Option<Span>>,
}

impl Expansion {
    /// Returns none, with the limit for this text.
    pub(crate) fn of(text: &str) -> Self {
        let bytes_max = (EXPANSION_RATIO_MAX * text.len() as u64).max(EXPANDED_BYTES_MIN);
        Self { bytes: Cell::new(0), bytes_max, place: RefCell::default() }
    }

    /// Counts a value of this many bytes before it takes the place of its name, which stands at
    /// `span`. Returns false if there are too many: then the name stays.
    pub(crate) fn charge(&self, span: &Span, bytes: usize) -> bool {
        // The name itself counts, so that names of nothing have a bound, too.
        self.bytes.set(self.bytes.get().saturating_add(bytes as u64 + 1));
        if self.is_over() {
            self.place.borrow_mut().get_or_insert_with(|| span.clone());
        }
        !self.is_over()
    }

    /// Reports whether there are too many bytes.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes.get() > self.bytes_max
    }

    /// Moves the place to that of a text in which it was found.
    pub(crate) fn move_to(&self, span: &Span) {
        if let Some(place) = &mut *self.place.borrow_mut() {
            *place = span.clone();
        }
    }

    /// Returns the mistake of too many bytes, if there are.
    pub(crate) fn mistake(&self) -> Option<Diagnostic> {
        let place = self.place.borrow().clone()?;
        let max = self.bytes_max >> 20;
        let title = "the file is too long once values stand in the places of their names";
        let label = format!("more than {max} MiB by here: at most ten times the file, or 16 MiB");
        Some(Diagnostic::new(place, title, label))
    }
}

/// The most bytes of all values, as a multiple of those of the file.
const EXPANSION_RATIO_MAX: u64 = 10;

/// The most bytes of all values of a short file.
const EXPANDED_BYTES_MIN: u64 = 16 << 20;
