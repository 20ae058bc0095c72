//! What goes wrong, and how often.

use std::time::Duration;

use throng_base::Prng;

/// Faults and limits of a simulated world. Chances are between 0 and 1.
///
/// The network's part is in force in every [`Sim`](crate::Sim); the part of the system calls only for drivers
/// that are wrapped in [`Faulty`](crate::Faulty).
#[derive(Clone, Debug)]
pub struct Faults {
    /// The shortest way from one end to the other.
    pub delay_min: Duration,
    /// The longest way.
    pub delay_max: Duration,
    /// The largest segment that arrives at once; every size from one byte on happens.
    pub segment_bytes_max: usize,
    /// The most that a send buffer, and a receive buffer, hold; each connection draws its own size below it.
    pub window_bytes_max: usize,
    /// The least that they hold.
    pub window_bytes_min: usize,
    /// The chance that a send is taken only in part although there is room.
    pub partial_send: f64,
    /// The chance that a SYN is lost; it is sent again 1 s, 3 s, 7 s, … after the first.
    pub syn_loss: f64,
    /// The chance that a connect is refused although somebody listens.
    pub refuse: f64,
    /// The chance that a connection is cut: both ends get a reset, somewhere within [`Self::cut_within`].
    pub cut: f64,
    /// After how long at most a connection is cut that is to be cut.
    pub cut_within: Duration,
    /// The longest that mail, a wake-up or a passed socket takes to another core.
    pub message_delay_max: Duration,
    /// The chance that a socket which is passed on is lost.
    pub pass_loss: f64,
    /// The longest that a turn keeps its core.
    pub turn_max: Duration,
    /// The chance that a turn takes longer, up to [`Self::stall_max`]: a core that the machine has taken away.
    pub stall: f64,
    /// The longest stall.
    pub stall_max: Duration,
    /// Most events that a wait returns; each wait draws its own number below it.
    pub batch_max: usize,
    /// The chance that a wait wakes a core's socket for which nothing has changed.
    pub spurious: f64,
    /// Files that the whole machine can open.
    pub files_max: usize,
    /// The ports from which connects leave, for each source address and target.
    pub ports: std::ops::RangeInclusive<u16>,
    /// How long a port stays taken after its connection was closed in order from this end.
    pub time_wait: Duration,

    /// Chance of a call: accept and connect find the fd table full.
    pub table_full: f64,
    /// Chance of a call: accept and connect find the system's table full.
    pub system_full: f64,
    /// Chance of a call: the connection has ended when it is accepted.
    pub accept_aborted: f64,
    /// Chance of a call: no port is left for a connect.
    pub no_port: f64,
    /// Chance of a call: no watch is left for a new socket.
    pub no_watch: f64,
    /// Chance of a receive: the kernel does not say when its bytes arrived.
    pub no_stamp: f64,
    /// Chance of a call: receive and send are interrupted.
    pub interrupted: f64,
    /// Chance of a call: a receive or send fails because the system is out of memory.
    pub no_memory: f64,
}

impl Faults {
    /// Nothing goes wrong: 50 us one way, large windows, turns that cost no time.
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

    /// Everything is late, small, out of turn or only partly done, and nothing is lost: no byte, no connection.
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

    /// As [`Self::rough`], and connections are refused and cut, and system calls fail.
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

    /// One of the three, by the generator: a test that draws its faults meets every mix.
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

/// Whether something of this chance happens. What cannot happen draws nothing.
pub(crate) fn happens(prng: &mut Prng, chance: f64) -> bool {
    chance > 0.0 && prng.unit() < chance
}

/// A span between the two.
pub(crate) fn random_span(prng: &mut Prng, least: Duration, most: Duration) -> Duration {
    Duration::from_nanos(prng.between(least.as_nanos() as u64, most.as_nanos() as u64))
}
