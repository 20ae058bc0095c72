//! Faults of a simulated world, and their chances.

use std::time::Duration;

use throng_base::Prng;

/// Faults and limits of a simulated world. Chances are between 0 and 1.
///
/// The network's faults apply in every [`Sim`](crate::Sim); the faults of system calls apply only
/// to drivers inside a [`FaultyDriver`](crate::FaultyDriver).
#[derive(Clone, Debug)]
pub struct Faults {
    /// Shortest delay of one direction of the network.
    pub delay_min: Duration,
    /// Longest delay of one direction of the network.
    pub delay_max: Duration,
    /// Largest segment. Each segment has a random size from one byte on.
    pub segment_bytes_max: usize,
    /// Largest size of a send buffer, and of a receive buffer. Each connection has random sizes.
    pub window_bytes_max: usize,
    /// Smallest size of these buffers.
    pub window_bytes_min: usize,
    /// Chance that a send is taken only in part although there is room.
    pub partial_send: f64,
    /// Chance that a SYN is lost. It is sent again 1 s, 3 s, 7 s, … after the first.
    pub syn_loss: f64,
    /// Chance that a connect is refused although there is a listener.
    pub refuse: f64,
    /// Chance that a connection is cut: both peers get a reset, at a random time within
    /// [`Self::cut_within`].
    pub cut: f64,
    /// Longest time after which a connection is cut.
    pub cut_within: Duration,
    /// Longest delay of a message, a wake-up or a passed socket to another core.
    pub message_delay_max: Duration,
    /// Chance that a passed socket is lost.
    pub pass_loss: f64,
    /// Longest duration of a turn.
    pub turn_max: Duration,
    /// Chance that a turn takes longer, up to [`Self::stall_max`], as when the machine takes the
    /// CPU away.
    pub stall: f64,
    /// Longest duration of such a turn.
    pub stall_max: Duration,
    /// Most events that a wait returns. Each wait has a random limit up to it.
    pub batch_max: usize,
    /// Chance of a spurious event in a wait, for a socket whose state has not changed.
    pub spurious: f64,
    /// Limit of open files of the whole machine.
    pub files_max: usize,
    /// Local ports of connects, for each pair of source address and target.
    pub ports: std::ops::RangeInclusive<u16>,
    /// Time that a port stays in TIME-WAIT after its connection was closed in order by this side
    /// first.
    pub time_wait: Duration,

    /// Chance that an accept or connect finds the fd table full.
    pub table_full: f64,
    /// Chance that an accept or connect finds the system's file table full.
    pub system_full: f64,
    /// Chance that a connection has ended when it is accepted.
    pub accept_aborted: f64,
    /// Chance that no port is left for a connect.
    pub no_port: f64,
    /// Chance that no epoll watch is left for a new socket.
    pub no_watch: f64,
    /// Chance that a receive returns no arrival stamp.
    pub no_stamp: f64,
    /// Chance that a receive or send is interrupted.
    pub interrupted: f64,
    /// Chance that a receive or send fails because the system is out of memory.
    pub no_memory: f64,
}

impl Faults {
    /// Returns a world without faults: 50 us in each direction, large windows, turns that take no
    /// time.
    pub const fn none() -> Self {
        Self {
            delay_min: Duration::from_micros(50),
            delay_max: Duration::from_micros(50),
            segment_bytes_max: 64 << 10,
            window_bytes_max: 256 << 10,
            window_bytes_min: 256 << 10,
            partial_send: 0.0,
            syn_loss: 0.0,
            refuse: 0.0,
            cut: 0.0,
            cut_within: Duration::from_secs(1),
            message_delay_max: Duration::ZERO,
            pass_loss: 0.0,
            turn_max: Duration::ZERO,
            stall: 0.0,
            stall_max: Duration::from_millis(50),
            batch_max: 256,
            spurious: 0.0,
            files_max: usize::MAX,
            ports: 32_768..=60_999,
            time_wait: Duration::from_secs(60),
            table_full: 0.0,
            system_full: 0.0,
            accept_aborted: 0.0,
            no_port: 0.0,
            no_watch: 0.0,
            no_stamp: 0.0,
            interrupted: 0.0,
            no_memory: 0.0,
        }
    }

    /// Returns a world in which everything is late, small, reordered or partial, but no byte and no
    /// connection is lost.
    pub const fn rough() -> Self {
        Self {
            delay_min: Duration::from_micros(1),
            delay_max: Duration::from_millis(20),
            segment_bytes_max: 3_000,
            window_bytes_max: 8_000,
            window_bytes_min: 16,
            partial_send: 0.3,
            syn_loss: 0.05,
            message_delay_max: Duration::from_millis(3),
            turn_max: Duration::from_micros(500),
            stall: 0.01,
            batch_max: 5,
            spurious: 0.1,
            interrupted: 0.05,
            ..Self::none()
        }
    }

    /// Returns [`Self::rough`] with refused and cut connections, and failing system calls.
    pub const fn hostile() -> Self {
        Self {
            refuse: 0.05,
            cut: 0.2,
            pass_loss: 0.02,
            table_full: 0.02,
            system_full: 0.02,
            accept_aborted: 0.02,
            no_port: 0.02,
            no_watch: 0.02,
            no_stamp: 0.02,
            no_memory: 0.002,
            ..Self::rough()
        }
    }

    /// Returns one of the three at random, so that a test runs under every mix.
    pub fn random(prng: &mut Prng) -> Self {
        match prng.below(3) {
            0 => Self::none(),
            1 => Self::rough(),
            _ => Self::hostile(),
        }
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self::none()
    }
}

/// Draws whether an event with this chance happens. A chance of zero draws no number.
pub(crate) fn happens(prng: &mut Prng, chance: f64) -> bool {
    chance > 0.0 && prng.unit() < chance
}

/// Returns a random duration between `least` and `most`.
pub(crate) fn random_span(prng: &mut Prng, least: Duration, most: Duration) -> Duration {
    Duration::from_nanos(prng.between(least.as_nanos() as u64, most.as_nanos() as u64))
}
