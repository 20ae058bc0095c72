//! The probes that the recorder reads in each interval.

use throng_base::time::Instant;
use throng_measure::{
    KernelCounters, LoadInterval, MachineUse, ProgramUse, RunEventKind, ServerSnapshot,
};

/// The generator, as the recorder sees it.
pub trait GeneratorProbe: Send {
    /// Returns the counters as of now, and the histograms of the time since the last call.
    fn snapshot(&mut self) -> LoadInterval;

    /// Reports whether the load is over and every user has ended.
    fn is_finished(&self) -> bool;

    /// Ends the load early: starts no new users and ends the running ones.
    fn ramp_down(&mut self);

    /// Returns the events since the last call.
    fn events(&mut self) -> Vec<RunEventKind> {
        Vec::new()
    }

    /// Returns the request that another process has made to end the load early, if there is one.
    fn interruption(&self) -> Option<Interruption> {
        None
    }

    /// Returns the reason why the generator cannot go on; none while it can.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// A request to end the load early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The source of the request.
    pub by: String,
    /// Its time since the run began, in milliseconds.
    pub at_ms: u64,
}

/// The server, as the recorder sees it. The recorder calls it on a separate thread, so it may
/// block.
pub trait ServerProbe: Send {
    /// Returns the server's counters as of now.
    ///
    /// # Errors
    /// A sentence that says why there are none.
    fn snapshot(&mut self) -> Result<ServerSnapshot, String>;
}

/// The machine, as the recorder sees it. The recorder creates it on its own thread and keeps it
/// there: its readings depend on the thread's network namespace.
pub trait KernelProbe {
    /// Returns counters and gauges as of now.
    fn sample(&mut self) -> KernelReading;

    /// Measures what the server used between `_from` and `_to`; the next sample contains it.
    fn measure_between(&mut self, _from: Instant, _to: Instant) {}

    /// Follows the server's process between two samples. Returns the events since the last call.
    /// The recorder calls it about every 20 ms.
    fn step(&mut self) -> Vec<RunEventKind> {
        Vec::new()
    }

    /// Sets the server's process. The recorder calls it when it first learns the process id, and
    /// whenever the id changes. The server's kernel counters are those of this process's network
    /// namespace.
    fn set_server_pid(&mut self, _pid: u32) {}
}

/// The kernel's counters at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelReading {
    /// CPU time of the machine.
    pub machine: Option<MachineUse>,
    /// Counters and gauges of the generator's kernel by name.
    pub counters: KernelCounters,
    /// Counters and gauges of the server's kernel by name, where that is another machine or another
    /// network namespace.
    pub server_counters: KernelCounters,
    /// CPU time of the server's machine, where that is another one.
    pub server_machine: Option<MachineUse>,
    /// Other programs that took the most CPU of the generator's machine.
    pub programs: Vec<ProgramUse>,
    /// Other programs that took the most CPU of the server's machine, where that is another one.
    pub server_programs: Vec<ProgramUse>,
    /// The server's own counters, where a watch on its host forwards them.
    pub server: Option<ServerSnapshot>,
    /// Sources that could not be read, with the reason; none while this has not changed.
    pub unseen: Option<Vec<String>>,
    /// Events of the probes themselves.
    pub events: Vec<RunEventKind>,
}
