//! What a core may be told over the bus.

use std::time::Duration;

use super::{AHEAD_MAX, ALL_USERS, CORE_USERS_MAX, PeerOrder};
use crate::generator::ProbeMessage;
use crate::program::{Cue, CueKind};
use crate::schedule::MachineShare;

/// The orders that the cores of one machine can get in a run.
#[derive(Clone, Debug)]
pub struct PeerBounds {
    share: MachineShare,
    cues: Vec<CueKind>,
}

impl PeerBounds {
    /// Returns the bounds for a machine with this share of a run that has these barriers and
    /// signals.
    pub fn new(share: MachineShare, cues: &[Cue]) -> Self {
        Self { share, cues: cues.iter().map(|cue| cue.kind).collect() }
    }

    /// Checks an order, `now` after the run began.
    ///
    /// # Errors
    /// No core of the machine can get it.
    pub fn check(&self, order: &PeerOrder, now: Duration) -> Result<(), String> {
        let slot = order.slot();
        if self.share.core_at(slot).is_none() {
            return Err(format!("an order for core {slot}, which is on another machine"));
        }
        match *order {
            PeerOrder::Probe { message: ProbeMessage::Opened { core, .. }, .. } => {
                self.check_core(core)
            }
            PeerOrder::Probe { message: ProbeMessage::Send { tried, .. }, .. } => {
                self.check_core(tried)
            }
            PeerOrder::Probe { .. } => Ok(()),
            PeerOrder::OpenCue { cue, users, at_us, .. } => {
                let all = self.cues.len();
                let kind = self.cues.get(usize::from(cue));
                let kind = kind.ok_or_else(|| format!("number {cue} of {all} barriers"))?;
                let is_all = users == ALL_USERS && *kind == CueKind::Signal;
                if users > CORE_USERS_MAX && !is_all {
                    return Err(format!(
                        "{users} users go on, a core has {CORE_USERS_MAX} at most"
                    ));
                }
                let ahead = Duration::from_micros(at_us).saturating_sub(now);
                if ahead > AHEAD_MAX {
                    return Err(format!("users go on {ahead:.0?} from now: {AHEAD_MAX:?} at most"));
                }
                Ok(())
            }
        }
    }

    fn check_core(&self, core: usize) -> Result<(), String> {
        let all = self.share.of();
        if core < all { Ok(()) } else { Err(format!("core {core} of {all}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_no_core_can_get_is_refused() {
        let cue = |kind| Cue { name: "a".into(), line: 1, kind };
        let share = MachineShare::deal(&[2, 3])[1];
        let cues = [cue(CueKind::Barrier { users: 3 }), cue(CueKind::Signal)];
        let bounds = PeerBounds::new(share, &cues);
        let now = Duration::from_secs(5);
        let check = |order, why: Option<&str>| match (bounds.check(&order, now), why) {
            (Ok(()), None) => {}
            (Err(error), Some(why)) => assert!(error.contains(why), "{error}"),
            (outcome, why) => panic!("{order:?}: {outcome:?}, {why:?}"),
        };
        let open = |to, cue, users, at_s: u64| {
            let at_us = at_s.saturating_mul(1_000_000);
            PeerOrder::OpenCue { to, cue, users, at_us }
        };
        check(open(2, 0, CORE_USERS_MAX, 65), None);
        check(open(4, 1, ALL_USERS, 0), None);
        check(open(1, 0, 1, 5), Some("core 1, which is on another machine"));
        check(open(usize::MAX, 0, 1, 5), Some("another machine"));
        check(open(2, 2, 1, 5), Some("number 2 of 2"));
        check(open(2, 0, CORE_USERS_MAX + 1, 5), Some("16777217 users"));
        check(open(2, 0, ALL_USERS, 5), Some("users go on"));
        check(open(2, 0, 1, 66), Some("61s from now: 60s at most"));
        check(open(2, 0, 1, u64::MAX), Some("from now"));
        let probe = |message| PeerOrder::Probe { to: 2, message };
        check(probe(ProbeMessage::Open(1)), None);
        check(probe(ProbeMessage::Send { number: 1, tried: 4 }), None);
        check(probe(ProbeMessage::Send { number: 1, tried: usize::MAX }), Some("of 5"));
        let opened = |core| ProbeMessage::Opened { number: 1, core, subscribers: 1 };
        check(probe(opened(5)), Some("core 5 of 5"));
    }
}
