//! The arrays and objects around a position in a text.

/// The stack of open arrays and objects, one bit each: the innermost 64 here, the others on the
/// heap.
#[derive(Default)]
pub(super) struct Nesting {
    objects: u64,
    depth: usize,
    outer: Vec<u64>,
}

impl Nesting {
    pub(super) fn enter(&mut self, object: bool) {
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.outer.push(self.objects);
        }
        self.objects = self.objects << 1 | u64::from(object);
        self.depth += 1;
    }

    pub(super) fn leave(&mut self) {
        self.objects >>= 1;
        self.depth -= 1;
        if self.depth.is_multiple_of(64) && self.depth > 0 {
            self.objects = self.outer.pop().unwrap_or_default();
        }
    }

    /// Reports whether the innermost level is an object; `None` outside of all levels.
    pub(super) const fn is_in_object(&self) -> Option<bool> {
        if self.depth == 0 { None } else { Some(self.objects & 1 == 1) }
    }
}
