//! The last notes of a world, which a failed run prints.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

use throng_base::{Instant, Key};
use throng_driver::{Errno, IoEvent};

/// Note of an event. Numbers name slots (drivers), keys name sockets.
#[derive(Clone, Copy, Debug)]
#[expect(dead_code, reason = "people read the notes, through Debug")]
pub(crate) enum Note {
    Turn { slot: usize },
    Event { slot: usize, event: IoEvent },
    Listen { socket: Key, addr: SocketAddr },
    Connect { socket: Key, from: SocketAddr, to: SocketAddr },
    SynLost { socket: Key, attempt: u32 },
    QueueFull { socket: Key, listener: Key },
    Established { socket: Key, child: Key },
    ConnectFailed { socket: Key, errno: Errno },
    Accept { slot: usize, socket: Key },
    Sent { socket: Key, bytes: usize, of: usize },
    Received { socket: Key, bytes: usize },
    Arrived { socket: Key, bytes: usize },
    FinArrived { socket: Key },
    ResetArrived { socket: Key },
    Cut { socket: Key },
    Closed { socket: Key, reset: bool },
    Passed { socket: Key, to: usize },
    PassLost { socket: Key },
}

/// Bounded list of the last notes.
pub(crate) struct Trace {
    notes: VecDeque<(Instant, Note)>,
    /// Number of notes that were dropped.
    dropped: u64,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Self { notes: VecDeque::with_capacity(NOTES_MAX), dropped: 0 }
    }

    pub(crate) fn add(&mut self, now: Instant, note: Note) {
        if self.notes.len() == NOTES_MAX {
            self.notes.pop_front();
            self.dropped += 1;
        }
        self.notes.push_back((now, note));
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "after {} earlier notes:", self.dropped)?;
        self.notes.iter().try_for_each(|(at, note)| writeln!(f, "{at:>14?}  {note:?}"))
    }
}

const NOTES_MAX: usize = 200;
