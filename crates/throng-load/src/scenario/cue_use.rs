//! The steps of a scenario that name a barrier or a cue.

use std::ops::Range;

/// The steps that name a barrier or a cue, in the order of the file.
#[derive(Debug, Default)]
pub(crate) struct CueUses {
    pub(super) uses: Vec<NamedUse>,
    /// Classes begun so far.
    pub(super) classes: usize,
}

/// What a step does with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CueUse {
    /// Waits at a barrier for this many users; `None` for all.
    Barrier { users: Option<u32> },
    /// Gives a signal.
    Signal,
    /// Waits for the signal.
    WaitFor,
}

/// A step that names a barrier or a cue.
#[derive(Debug)]
pub(super) struct NamedUse {
    pub(super) name: String,
    pub(super) span: Range<usize>,
    /// Number of its class.
    pub(super) class: usize,
    pub(super) does: CueUse,
}

impl CueUses {
    /// Returns the classes whose users come to a barrier, and the place that says for how many.
    pub(super) fn barrier(&self, name: &str) -> (Vec<usize>, Range<usize>) {
        let own = || self.uses.iter().filter(|it| it.name == name);
        let place = own().find(|it| it.users().is_some()).or(own().next());
        let span = place.map_or(0..0, |place| place.span.clone());
        (own().map(|it| it.class).collect(), span)
    }

    /// Begins another class.
    pub(super) fn begin_class(&mut self) {
        self.classes += 1;
    }
}

impl CueUse {
    pub(super) fn is_barrier(self) -> bool {
        matches!(self, Self::Barrier { .. })
    }
}

impl NamedUse {
    /// Returns the number of users of a barrier, if the step names it.
    pub(super) fn users(&self) -> Option<u32> {
        match self.does {
            CueUse::Barrier { users } => users,
            CueUse::Signal | CueUse::WaitFor => None,
        }
    }
}
