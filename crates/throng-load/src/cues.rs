//! Cues: what the cores of a run share so that their users can wait for one another.
//!
//! A cue is one atomic number. Each core keeps its own waiting users (`waiters`). A core whose
//! user lets others go on tells the other cores by a message.

mod waiters;

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use throng_base::Instant;

use crate::program::{Cue, CueKind};
pub use waiters::GroupOpening;
pub(crate) use waiters::{CueAnswer, CueWaiters, ReadyUser};

/// The cues of a run, for all its cores.
#[derive(Debug)]
pub struct Cues(Box<[SharedCue]>);

#[derive(Debug)]
enum SharedCue {
    Barrier {
        users: u32,
        /// Number of the group that gathers, in the upper half; its users so far, in the lower.
        group: AtomicU64,
    },
    /// Nanoseconds of the moment of the first signal; [`UNRAISED`] before.
    Signal { raised_at: AtomicU64 },
}

/// What a user finds that comes to a cue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CueArrival {
    /// It waits, as one of this group, of which so many wait now; 0 for a signal.
    Waits { group: u32, waiting: u32 },
    /// It completes this group, which goes on.
    Completes { group: u32 },
    /// The cue was raised at this moment: it goes on.
    Raised(Instant),
}

impl Cues {
    /// Creates the cues of a run. No user has come, and none is raised.
    pub fn new(cues: &[Cue]) -> Self {
        let shared = |cue: &Cue| match cue.kind {
            CueKind::Barrier { users } => SharedCue::Barrier { users, group: AtomicU64::new(0) },
            CueKind::Signal => SharedCue::Signal { raised_at: AtomicU64::new(UNRAISED) },
        };
        Self(cues.iter().map(shared).collect())
    }

    /// Returns the number of cues.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Counts a user that comes to a cue.
    pub(crate) fn arrive(&self, cue: u16) -> CueArrival {
        match &self.0[usize::from(cue)] {
            SharedCue::Signal { raised_at } => match raised_at.load(SeqCst) {
                UNRAISED => CueArrival::Waits { group: 0, waiting: 0 },
                at => CueArrival::Raised(Instant::from_nanos(at)),
            },
            SharedCue::Barrier { users, group: shared } => {
                let next = |before: u64| {
                    let (group, count) = split(before);
                    if count + 1 < *users {
                        joined(group, count + 1)
                    } else {
                        joined(group.wrapping_add(1), 0)
                    }
                };
                let (group, count) = split(update(shared, |before| Some(next(before))).0);
                if count + 1 < *users {
                    CueArrival::Waits { group, waiting: count + 1 }
                } else {
                    CueArrival::Completes { group }
                }
            }
        }
    }

    /// Takes a user that waits off the count of its group. Returns false if the group has gone on.
    pub(crate) fn leave(&self, cue: u16, group: u32) -> bool {
        let SharedCue::Barrier { group: shared, .. } = &self.0[usize::from(cue)] else {
            return !self.has_gone_on(cue, group);
        };
        let less = |before: u64| {
            let (present, count) = split(before);
            debug_assert!(present != group || count > 0, "a user left that had not come");
            (present == group).then(|| joined(group, count - 1))
        };
        update(shared, less).1
    }

    /// Raises a cue. Returns false if it was raised before.
    pub(crate) fn raise(&self, cue: u16, at: Instant) -> bool {
        match &self.0[usize::from(cue)] {
            SharedCue::Signal { raised_at } => {
                raised_at.compare_exchange(UNRAISED, at.as_nanos(), SeqCst, SeqCst).is_ok()
            }
            SharedCue::Barrier { .. } => false,
        }
    }

    /// Reports whether a group has gone on.
    pub(crate) fn has_gone_on(&self, cue: u16, group: u32) -> bool {
        match &self.0[usize::from(cue)] {
            SharedCue::Signal { raised_at } => raised_at.load(SeqCst) != UNRAISED,
            SharedCue::Barrier { group: shared, .. } => split(shared.load(SeqCst)).0 != group,
        }
    }
}

/// Replaces the number by what `next` makes of it, unless that is `None`. Returns the number before
/// and whether it was replaced.
fn update(shared: &AtomicU64, next: impl Fn(u64) -> Option<u64>) -> (u64, bool) {
    match shared.fetch_update(SeqCst, SeqCst, next) {
        Ok(before) => (before, true),
        Err(before) => (before, false),
    }
}

/// Returns the group and its count.
fn split(shared: u64) -> (u32, u32) {
    ((shared >> 32) as u32, shared as u32)
}

fn joined(group: u32, count: u32) -> u64 {
    u64::from(group) << 32 | u64::from(count)
}

/// The moment of a signal that no user has given.
const UNRAISED: u64 = u64::MAX;

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn barrier(users: u32) -> Cues {
        Cues::new(&[Cue { name: "start".into(), line: 1, kind: CueKind::Barrier { users } }])
    }

    #[test]
    fn every_nth_user_completes_a_group() {
        let cues = barrier(3);
        let arrived: Vec<_> = (0..6).map(|_| cues.arrive(0)).collect();
        let group = |group| {
            let waits = |waiting| CueArrival::Waits { group, waiting };
            [waits(1), waits(2), CueArrival::Completes { group }]
        };
        assert_eq!(arrived, [group(0), group(1)].concat());
    }

    #[test]
    fn a_user_that_leaves_is_not_counted_unless_its_group_has_gone_on() {
        let cues = barrier(2);
        assert_eq!(cues.arrive(0), CueArrival::Waits { group: 0, waiting: 1 });
        assert!(cues.leave(0, 0));
        assert_eq!(cues.arrive(0), CueArrival::Waits { group: 0, waiting: 1 });
        assert_eq!(cues.arrive(0), CueArrival::Completes { group: 0 });
        assert!(cues.has_gone_on(0, 0) && !cues.leave(0, 0));
        assert_eq!(cues.arrive(0), CueArrival::Waits { group: 1, waiting: 1 });
    }

    #[test]
    fn the_first_signal_counts() {
        let cues = Cues::new(&[Cue { name: "go".into(), line: 1, kind: CueKind::Signal }]);
        assert_eq!(cues.arrive(0), CueArrival::Waits { group: 0, waiting: 0 });
        assert!(!cues.has_gone_on(0, 0));
        assert!(cues.raise(0, Instant::from_nanos(7)));
        assert!(!cues.raise(0, Instant::from_nanos(9)));
        assert_eq!(cues.arrive(0), CueArrival::Raised(Instant::from_nanos(7)));
    }

    #[test]
    fn threads_that_come_and_leave_complete_whole_groups() {
        let cues = barrier(4);
        let (completed, left) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (cues, completed, left) = (&cues, &completed, &left);
                scope.spawn(move || {
                    for turn in 0..10_000 {
                        match cues.arrive(0) {
                            CueArrival::Completes { .. } => _ = completed.fetch_add(1, SeqCst),
                            CueArrival::Waits { group, .. } if (turn + thread) % 3 == 0 => {
                                left.fetch_add(usize::from(cues.leave(0, group)), SeqCst);
                            }
                            _ => {}
                        }
                    }
                });
            }
        });
        let SharedCue::Barrier { group, .. } = &cues.0[0] else { unreachable!() };
        let (groups, waiting) = split(group.load(SeqCst));
        let completed = completed.load(SeqCst);
        assert_eq!(groups as usize, completed);
        assert_eq!(4 * completed + waiting as usize + left.load(SeqCst), 40_000);
    }
}
