//! The cost of a user: memory and CPU time.

use serde::Serialize;
use throng_measure::Interval;
use throng_report::Summary;

use crate::measure::MemoryEach;
use crate::sized_scenario::SizedScenario;

/// The cost of a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct UserCost {
    /// Users per CPU of this machine, which server and generator share.
    pub(crate) users_per_cpu: f64,
    /// Resident memory of the server per user.
    pub(crate) server_bytes_each: Option<f64>,
    /// Resident memory of the generator per user.
    pub(crate) load_bytes_each: Option<f64>,
    /// Growth of the machine's used memory per user: server, generator and kernel.
    pub(crate) machine_bytes_each: Option<f64>,
    /// CPU time of the server per user over the run, in microseconds.
    pub(crate) server_cpu_us_each: Option<f64>,
    /// CPU time of the generator per user over the run, in microseconds.
    pub(crate) load_cpu_us_each: Option<f64>,
}

impl UserCost {
    /// Computes the cost for the most users that were connected at one time.
    pub(crate) fn of(intervals: &[Interval], summary: &Summary, sized: &SizedScenario) -> Self {
        let cpus = sized.param("cpus").max(1.0);
        let users = summary.users.connected_most;
        let memory = MemoryEach::of(intervals, summary);
        let each = |us: Option<u64>| us.filter(|_| users > 0).map(|us| us as f64 / users as f64);
        let load = |interval: &Interval| interval.load.as_ref().map(|load| load.process.cpu_us());
        Self {
            users_per_cpu: users as f64 / cpus,
            server_bytes_each: memory.server,
            load_bytes_each: memory.load,
            machine_bytes_each: memory.machine,
            server_cpu_us_each: each(intervals.iter().filter_map(server_cpu_us).max()),
            load_cpu_us_each: each(intervals.iter().filter_map(load).max()),
        }
    }
}

/// Returns the CPU time of the server's process up to the end of the interval.
pub(crate) fn server_cpu_us(interval: &Interval) -> Option<u64> {
    interval.server.as_ref().map(|server| server.process.cpu_us())
}
