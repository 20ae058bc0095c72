//! The load of a fleet, as a recorder and a control socket see it.

use std::sync::{Arc, Mutex};

use throng_driver::Clock;
use throng_measure::{LoadInterval, RunEventKind};
use throng_run::recorder::{GeneratorProbe, Interruption, KernelProbe, KernelReading};

use crate::coordinator_process::{CoordinatorProcess, lock};
use crate::fleet_state::FleetState;
use crate::message::Steering;

/// A load that several machines make.
pub struct FleetLoad {
    fleet: CoordinatorProcess,
    is_paused: bool,
}

/// The kernels of a fleet's machines. What the coordinator's own machine sees of the server stays.
pub struct FleetKernel {
    shared: Arc<Mutex<FleetState>>,
    own: Box<dyn KernelProbe>,
    /// True if the server is on the coordinator's machine.
    server_is_here: bool,
}

impl FleetLoad {
    pub(crate) fn new(fleet: CoordinatorProcess) -> Self {
        Self { fleet, is_paused: false }
    }

    /// Returns the probe of the machines' kernels; `own` sees the coordinator's machine, on which
    /// the server may be.
    pub fn kernel(
        &self,
        own: impl FnOnce() -> Box<dyn KernelProbe> + Send + 'static,
        server_is_here: bool,
    ) -> Box<dyn FnOnce() -> Box<dyn KernelProbe> + Send> {
        let shared = self.fleet.shared();
        Box::new(move || Box::new(FleetKernel { shared, own: own(), server_is_here }))
    }

    /// Returns the active users and the established connections, as of the last report.
    pub fn counts(&self) -> (u64, u64) {
        self.fleet.state().machines.as_ref().map_or((0, 0), |machines| machines.counts())
    }

    /// Changes the load. A number of users is split among the machines by their cores.
    pub fn steer(&mut self, steering: Steering) {
        let mut state = self.fleet.state();
        let cores: Vec<u64> =
            state.coordinator.members().iter().map(|it| it.share.cores() as u64).collect();
        let split = |count: u64| deal(count, &cores);
        let parts: Vec<Steering> = match steering {
            Steering::AddUsers(count) => split(count).map(Steering::AddUsers).collect(),
            Steering::StopUsers(count) => split(count).map(Steering::StopUsers).collect(),
            same => cores.iter().map(|_| same).collect(),
        };
        for (member, part) in parts.into_iter().enumerate() {
            state.coordinator.steer(member, part);
        }
        drop(state);
        match steering {
            Steering::Pause => self.is_paused = true,
            Steering::Resume => self.is_paused = false,
            _ => {}
        }
    }

    /// Ends the run: what the machines have reported is written. Waits until they know that.
    pub fn finish(self) {
        // The first call lets them forget what came before the last interval, the second the rest.
        for _ in 0..2 {
            self.fleet.state().coordinator.keep();
        }
        let until = Clock.now() + FAREWELL;
        while Clock.now() < until && self.fleet.state().coordinator.has_unsaid() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

impl GeneratorProbe for FleetLoad {
    fn snapshot(&mut self) -> LoadInterval {
        let mut interval = self.fleet.state().snapshot(Clock.now());
        interval.paused = self.is_paused && !interval.is_leaving();
        interval
    }

    fn is_finished(&self) -> bool {
        self.fleet.state().is_over(Clock.now())
    }

    fn ramp_down(&mut self) {
        self.steer(Steering::RampDown);
    }

    fn events(&mut self) -> Vec<RunEventKind> {
        self.fleet.state().events()
    }

    fn interruption(&self) -> Option<Interruption> {
        self.fleet.state().machines.as_ref().and_then(|machines| machines.interruption())
    }

    fn failure(&self) -> Option<String> {
        self.fleet.state().machines.as_ref().and_then(|machines| machines.failure())
    }
}

impl KernelProbe for FleetKernel {
    fn sample(&mut self) -> KernelReading {
        let mut reading = self.own.sample();
        if self.server_is_here {
            reading.server_machine = reading.machine.take();
            let own = std::mem::take(&mut reading.counters);
            // A server in a network namespace of its own has other counters already.
            if reading.server_counters.is_empty() {
                reading.server_counters = own;
            }
            reading.server_programs = std::mem::take(&mut reading.programs);
        }
        let state = lock(&self.shared);
        if let Some(machines) = &state.machines {
            let sum = machines.kernel();
            reading.machine = sum.machine;
            reading.counters = sum.counters;
            reading.programs = sum.programs;
        }
        reading
    }

    fn measure_between(&mut self, from: throng_base::Instant, to: throng_base::Instant) {
        self.own.measure_between(from, to);
    }

    fn step(&mut self) -> Vec<RunEventKind> {
        self.own.step()
    }

    fn set_server_pid(&mut self, pid: u32) {
        self.own.set_server_pid(pid);
    }
}

/// Deals a number to machines with so many cores each: the sum of the parts is the number.
fn deal(count: u64, cores: &[u64]) -> impl Iterator<Item = u64> {
    let all: u64 = cores.iter().sum::<u64>().max(1);
    let mut before = 0;
    cores.iter().map(move |cores| {
        let part = |cores: u64| (u128::from(count) * u128::from(cores) / u128::from(all)) as u64;
        let from = part(before);
        before += cores;
        part(before) - from
    })
}

/// Time that the last words to the agents may take.
const FAREWELL: std::time::Duration = std::time::Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_dealt_by_cores_and_none_is_lost() {
        let parts = |count, cores: &[u64]| deal(count, cores).collect::<Vec<_>>();
        assert_eq!(parts(6, &[1, 2, 3]), [1, 2, 3]);
        assert_eq!(parts(1, &[4, 4]), [0, 1]);
        assert_eq!(parts(7, &[2, 2, 2]).iter().sum::<u64>(), 7);
        assert_eq!(parts(u64::MAX, &[3, 5]).iter().sum::<u64>(), u64::MAX);
    }
}
