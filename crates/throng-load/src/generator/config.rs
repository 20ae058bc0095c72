//! What all cores of a generator share, and what follows from it for their users.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use throng_base::Instant;
use throng_driver::SocketOptions;

use super::tracer::TraceOptions;
use crate::cues::Cues;
use crate::peers::PeerMessage;
use crate::program::Program;
use crate::scenario::{Model, ScenarioLoad};
use crate::schedule::MachineShare;
use crate::source::SourcePlan;
use crate::user::{ClassTraits, Rules};

/// Configuration that all cores of a generator share.
#[derive(Debug)]
pub struct GeneratorConfig {
    /// Steps of the users.
    pub program: Program,
    /// Barriers and signals, by which users of all cores wait for one another: the only thing here
    /// that changes.
    pub cues: Arc<Cues>,
    /// Load of all users, or of each class.
    pub load: ScenarioLoad,
    /// Addresses to connect to: user `k` connects to target `k mod n`.
    pub targets: Vec<std::net::SocketAddr>,
    /// Source addresses and ports of the connections.
    pub sources: SourcePlan,
    /// True if the kernel can connect a socket to itself, because a target's own address and port
    /// are among the sources.
    pub self_connect_possible: bool,
    /// Options of the users' sockets.
    pub options: SocketOptions,
    /// Seed of everything random.
    pub seed: u64,
    /// Beginning of the first phase, the same on all cores.
    pub start_at: Instant,
    /// Number of the run, the same on all machines that make it.
    pub run: u64,
    /// Number of the first user.
    pub first_user: u64,
    /// Share of this machine in a run of several machines; `None` if the run is its own.
    pub share: Option<MachineShare>,
    /// The way to the cores of other machines; `None` if there are none.
    pub peers: Option<Sender<PeerMessage>>,
    /// Users that are watched, if there are any.
    pub trace: Option<TraceOptions>,
}

/// Phase of the run, as opposed to a phase of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunPhase {
    /// The schedule is running.
    Running,
    /// The schedule is over. Users in `stay` leave; busy users may finish until this moment.
    Finishing(Instant),
    /// All users leave. The measurement is over: no user begins a step, and latencies that the mass
    /// of closes distorts are not recorded.
    Leaving,
}

/// State of the run, as far as it concerns the users.
pub(super) struct RunState {
    pub(super) config: Arc<GeneratorConfig>,
    pub(super) classes: Vec<ClassTraits>,
    pub(super) model: Model,
    pub(super) phase: RunPhase,
    /// End of the schedule in the open model; [`Instant::FAR`] before.
    pub(super) schedule_over_at: Instant,
}

impl RunState {
    /// Creates the state of a run that begins.
    pub(super) fn new(config: Arc<GeneratorConfig>) -> Self {
        Self {
            classes: ClassTraits::of(&config.program, &config.load),
            model: config.load.model(),
            phase: RunPhase::Running,
            schedule_over_at: Instant::FAR,
            config,
        }
    }

    /// Returns this machine's core with number `slot` among those of all machines; `None` if
    /// another machine has it.
    pub(super) fn core_at(&self, slot: usize) -> Option<usize> {
        self.config.share.map_or(Some(slot), |share| share.core_at(slot))
    }

    /// Says something to the cores of other machines.
    pub(super) fn tell_peers(&self, message: PeerMessage) {
        if let Some(peers) = &self.config.peers {
            // The control thread may have ended already.
            let _ = peers.send(message);
        }
    }

    /// Reports whether users of this class wait for what comes unasked or for answers, or have
    /// rules for it.
    pub(super) fn receives(&self, class: u16) -> bool {
        let class = &self.classes[usize::from(class)];
        class.expects || class.has_rules
    }

    /// Returns what the users have in common.
    pub(super) fn rules(&self) -> Rules<'_> {
        Rules {
            program: &self.config.program,
            classes: &self.classes,
            seed: self.config.seed,
            is_scheduled: self.phase == RunPhase::Running,
            schedule_over_at: self.schedule_over_at,
            port_tries_max: self.config.sources.port_tries_max(),
        }
    }
}
