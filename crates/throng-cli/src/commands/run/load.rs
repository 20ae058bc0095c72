//! The load of a run: this machine's, or that of a fleet.

use throng_fleet::FleetLoad;
use throng_fleet::message::Steering;
use throng_load::run::RunningLoad;
use throng_measure::{LoadInterval, RunEventKind};
use throng_run::recorder::{GeneratorProbe, Interruption};

/// A running load.
pub(super) enum RunLoad {
    /// This machine makes it.
    Own(Box<RunningLoad>),
    /// Agents make it.
    Fleet(Box<FleetLoad>),
}

impl RunLoad {
    /// Returns the active users and the established connections, as of the last snapshot.
    pub(super) fn counts(&self) -> (u64, u64) {
        match self {
            Self::Own(load) => load.counts(),
            Self::Fleet(load) => load.counts(),
        }
    }

    /// Changes the load.
    pub(super) fn steer(&mut self, steering: Steering) {
        match self {
            Self::Fleet(load) => load.steer(steering),
            Self::Own(load) => match steering {
                Steering::AddUsers(count) => load.add_users(count),
                Steering::StopUsers(count) => load.stop_users(count),
                Steering::Pause => load.pause(),
                Steering::Resume => load.resume(),
                Steering::RampDown => load.ramp_down(),
            },
        }
    }

    /// Ends the load: its results are written.
    pub(super) fn finish(self) {
        match self {
            Self::Own(load) => _ = load.join(),
            Self::Fleet(load) => load.finish(),
        }
    }
}

impl GeneratorProbe for RunLoad {
    fn snapshot(&mut self) -> LoadInterval {
        match self {
            Self::Own(load) => load.snapshot(),
            Self::Fleet(load) => load.snapshot(),
        }
    }

    fn is_finished(&self) -> bool {
        match self {
            Self::Own(load) => load.is_finished(),
            Self::Fleet(load) => load.is_finished(),
        }
    }

    fn ramp_down(&mut self) {
        self.steer(Steering::RampDown);
    }

    fn events(&mut self) -> Vec<RunEventKind> {
        match self {
            Self::Own(load) => load.events(),
            Self::Fleet(load) => load.events(),
        }
    }

    fn interruption(&self) -> Option<Interruption> {
        match self {
            Self::Own(load) => load.interruption(),
            Self::Fleet(load) => load.interruption(),
        }
    }

    fn failure(&self) -> Option<String> {
        match self {
            Self::Own(load) => load.failure(),
            Self::Fleet(load) => load.failure(),
        }
    }
}
