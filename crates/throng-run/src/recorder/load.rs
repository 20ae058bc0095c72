//! The real generator, owned by the recorder or shared with a control socket.

use std::sync::{Arc, Mutex};

use throng_load::run::RunningLoad;
use throng_measure::{LoadInterval, RunEventKind};

use super::lock::lock;
use super::probes::{GeneratorProbe, Interruption};

impl GeneratorProbe for RunningLoad {
    fn snapshot(&mut self) -> LoadInterval {
        RunningLoad::snapshot(self)
    }

    fn is_finished(&self) -> bool {
        RunningLoad::is_finished(self)
    }

    fn ramp_down(&mut self) {
        RunningLoad::ramp_down(self);
    }

    fn events(&mut self) -> Vec<RunEventKind> {
        RunningLoad::events(self)
    }

    fn failure(&self) -> Option<String> {
        self.is_broken().then(|| "a core of the generator ended unexpectedly".to_owned())
    }
}

/// A generator that a control socket steers during the run.
impl<G: GeneratorProbe> GeneratorProbe for Arc<Mutex<G>> {
    fn snapshot(&mut self) -> LoadInterval {
        lock(self).snapshot()
    }

    fn is_finished(&self) -> bool {
        lock(self).is_finished()
    }

    fn ramp_down(&mut self) {
        lock(self).ramp_down();
    }

    fn events(&mut self) -> Vec<RunEventKind> {
        lock(self).events()
    }

    fn interruption(&self) -> Option<Interruption> {
        lock(self).interruption()
    }

    fn failure(&self) -> Option<String> {
        lock(self).failure()
    }
}
