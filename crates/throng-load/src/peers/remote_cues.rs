//! One core's barriers and signals in a run of several machines.

use std::mem::take;

use throng_base::Instant;

use super::{CueCount, PeerMessage};

/// What one core has told the hub, and has heard from it.
#[derive(Debug)]
pub(crate) struct RemoteCues {
    slot: usize,
    cues: Vec<RemoteCue>,
    messages: Vec<PeerMessage>,
}

#[derive(Clone, Copy, Debug, Default)]
struct RemoteCue {
    count: CueCount,
    /// True if the hub has not been told the count.
    is_changed: bool,
    /// True if a user of this core has given the signal.
    is_raised: bool,
    /// The moment of a signal.
    raised_at: Option<Instant>,
}

impl RemoteCues {
    /// Creates the state of a core that has said and heard nothing.
    pub(crate) fn new(slot: usize, cues: usize) -> Self {
        Self { slot, cues: vec![RemoteCue::default(); cues], messages: Vec::new() }
    }

    /// Counts a user that has come.
    pub(crate) fn come(&mut self, cue: u16) {
        self.change(cue, |count| count.come += 1);
    }

    /// Counts a user that has left.
    pub(crate) fn leave(&mut self, cue: u16) {
        self.change(cue, |count| count.left += 1);
    }

    /// Counts users that go on, and users that were to go on and have left before.
    pub(crate) fn gone_on(&mut self, cue: u16, users: u64, absent: u64) {
        self.change(cue, |count| {
            count.gone_on = count.gone_on.saturating_add(users);
            count.absent = count.absent.saturating_add(absent);
        });
    }

    /// Gives a signal. Returns false if it was given before, as far as this core knows.
    pub(crate) fn raise(&mut self, cue: u16) -> bool {
        let known = &mut self.cues[usize::from(cue)];
        let is_first = known.raised_at.is_none() && !known.is_raised;
        known.is_raised = true;
        if is_first {
            self.messages.push(PeerMessage::Raise { cue });
        }
        is_first
    }

    /// Notes the moment of a signal.
    pub(crate) fn raised(&mut self, cue: u16, at: Instant) {
        self.cues[usize::from(cue)].raised_at = Some(at);
    }

    /// Returns the moment of a signal.
    pub(crate) fn raised_at(&self, cue: u16) -> Option<Instant> {
        self.cues[usize::from(cue)].raised_at
    }

    /// Reports whether there is something to say.
    pub(crate) fn has_messages(&self) -> bool {
        !self.messages.is_empty() || self.cues.iter().any(|cue| cue.is_changed)
    }

    /// Returns what there is to say.
    pub(crate) fn take_messages(&mut self) -> Vec<PeerMessage> {
        let mut messages = take(&mut self.messages);
        for (cue, known) in self.cues.iter_mut().enumerate() {
            if take(&mut known.is_changed) {
                let (from, cue, count) = (self.slot, cue as u16, known.count);
                messages.push(PeerMessage::CueCount { from, cue, count });
            }
        }
        messages
    }

    fn change(&mut self, cue: u16, change: impl FnOnce(&mut CueCount)) {
        let known = &mut self.cues[usize::from(cue)];
        change(&mut known.count);
        known.is_changed = true;
    }
}
