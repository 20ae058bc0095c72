//! Who is asked in each interval.

use std::collections::BTreeMap;
use std::fmt;

use throng_base::time::Instant;
use throng_report::{LoadInterval, MachineUse, ProgramUse, RunEventKind, ServerSnapshot};

use super::LiveKernel;

/// The generator, as the recorder sees it.
pub trait GeneratorProbe: Send {
    /// Counters as of now, and histograms of the time since the last call.
    fn snapshot(&mut self) -> LoadInterval;

    /// Whether the load is over and every user has ended.
    fn is_finished(&self) -> bool;

    /// Ends the load early: no new users, and those that there are end.
    fn ramp_down(&mut self);

    /// What happened since the last call.
    fn events(&mut self) -> Vec<RunEventKind> {
        Vec::new()
    }

    /// Why the generator cannot go on, when it cannot.
    fn failure(&self) -> Option<String> {
        None
    }
}

/// The server, as the recorder sees it. It is asked on a thread of its own and may block.
pub trait ServerProbe: Send {
    /// Its counters as of now, or a sentence about why there are none.
    fn snapshot(&mut self) -> Result<ServerSnapshot, String>;
}

/// The machine, as the recorder sees it. It is made on the recorder's thread and stays there: what it
/// reads depends on the thread's network namespace.
pub trait KernelProbe {
    /// Counters and gauges as of now.
    fn sample(&mut self) -> KernelReading;

    /// Asks what the server used between two moments; the next sample says it.
    fn measure_between(&mut self, _from: Instant, _to: Instant) {}

    /// Follows the server's process between two samples; called every 20 ms or so. Returns what has
    /// happened to it.
    fn step(&mut self) -> Vec<RunEventKind> {
        Vec::new()
    }

    /// Says which process the server is, as soon as that is known and each time that it changes: its
    /// kernel counters are those of its network namespace.
    fn set_server_pid(&mut self, _pid: u32) {}
}

/// What the kernel said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelReading {
    /// CPU time of the machine.
    pub machine: Option<MachineUse>,
    /// Counters and gauges of the generator's kernel by name.
    pub counters: BTreeMap<String, i64>,
    /// The same of the server's, where that is another machine or another network namespace.
    pub server_counters: BTreeMap<String, i64>,
    /// CPU time of the server's machine, where that is another one.
    pub server_machine: Option<MachineUse>,
    /// Other programs that took the most CPU of the generator's machine.
    pub programs: Vec<ProgramUse>,
    /// The same on the server's machine, where that is another one.
    pub server_programs: Vec<ProgramUse>,
    /// What the server says itself, where somebody on its host passes it on.
    pub server: Option<ServerSnapshot>,
    /// What could not be read, and why; none where that is as it was.
    pub unseen: Option<Vec<String>>,
    /// What happened to those who were asked.
    pub events: Vec<RunEventKind>,
}

/// Everybody who is asked.
pub struct RunProbes {
    /// The generator.
    pub generator: Box<dyn GeneratorProbe>,
    /// The server, where there is one that answers.
    pub server: Option<Box<dyn ServerProbe>>,
    /// Makes the one that reads the machine.
    pub kernel: Box<dyn FnOnce() -> Box<dyn KernelProbe> + Send>,
}

impl RunProbes {
    /// `generator` and this machine, no server, listeners of every port.
    pub fn new(generator: impl GeneratorProbe + 'static) -> Self {
        let kernel = Box::new(|| Box::new(LiveKernel::new(Vec::new())) as Box<dyn KernelProbe>);
        Self { generator: Box::new(generator), server: None, kernel }
    }

    /// The same with a server.
    #[must_use]
    pub fn with_server(self, server: impl ServerProbe + 'static) -> Self {
        Self { server: Some(Box::new(server)), ..self }
    }

    /// The same with the listeners on `ports` alone, which are those of the target.
    #[must_use]
    pub fn with_ports(self, ports: Vec<u16>) -> Self {
        let kernel = Box::new(|| Box::new(LiveKernel::new(ports)) as Box<dyn KernelProbe>);
        Self { kernel, ..self }
    }
}

impl fmt::Debug for RunProbes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources").field("server", &self.server.is_some()).finish_non_exhaustive()
    }
}
