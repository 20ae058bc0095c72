//! What observers publish, as the recorder of a run gets it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use throng_bus::{Bus, BusError, BusSubscription, Name, PAYLOAD_BYTES_MAX};
use throng_driver::Clock;
use throng_measure::watch::{WatchHeader, WatchLine};
use throng_run::recorder::{NextLine, WatchLines, WatchSource};

use crate::names::KnownNames;
use crate::observer::{ObserverHello, ObserverSample};
use crate::report_bounds::check_use;
use crate::subjects::{GroupSubjects, speaker};
use crate::within::{self, OBSERVER_BYTES_MAX};

/// The observers of a group, as far as they have been heard since the subscription.
pub struct Observers {
    hellos: BusSubscription,
    known: KnownNames<ObserverHello>,
}

impl Observers {
    /// Listens to the observers of a group.
    ///
    /// # Errors
    /// The bus is away.
    pub fn listen(bus: &dyn Bus, subjects: &GroupSubjects) -> Result<Self, BusError> {
        let hellos = bus.subscribe(&subjects.observers())?;
        Ok(Self { hellos, known: KnownNames::default() })
    }

    /// Returns those that have been heard so far, by their names.
    pub fn known(&mut self) -> &BTreeMap<String, ObserverHello> {
        while let Ok(Some(message)) = self.hellos.try_next() {
            let hello = within::read::<ObserverHello>(&message.payload, OBSERVER_BYTES_MAX);
            if let Ok(hello) = hello
                && hello.facts.name == speaker(&message.subject)
            {
                let name = hello.facts.name.clone();
                self.known.insert(&name, hello, Clock.now(), |_| false);
            }
        }
        self.known.known()
    }
}

/// The samples of one observer as those of a watch.
pub struct BusWatch {
    bus: Arc<dyn Bus>,
    subjects: GroupSubjects,
    observer: String,
}

impl BusWatch {
    /// Returns the watch of the observer with this name.
    pub fn new(bus: Arc<dyn Bus>, subjects: GroupSubjects, observer: String) -> Self {
        Self { bus, subjects, observer }
    }
}

impl WatchSource for BusWatch {
    fn name(&self) -> String {
        format!("observer {}", self.observer)
    }

    fn connect(&mut self) -> Result<(WatchHeader, Box<dyn WatchLines>), String> {
        let away = |error: BusError| error.to_string();
        let samples = self.bus.subscribe(&self.subjects.samples(&self.observer)).map_err(away)?;
        let mut observers = Observers::listen(&*self.bus, &self.subjects).map_err(away)?;
        let until = Instant::now() + HELLO_WITHIN;
        while Instant::now() < until {
            if let Some(hello) = observers.known().get(&self.observer) {
                let incarnation = hello.facts.incarnation.clone();
                let lines = SampleLines { samples, incarnation };
                return Ok((hello.observes.clone(), Box::new(lines)));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err(format!("it said nothing for {HELLO_WITHIN:?}"))
    }
}

/// The samples of one process. Those of another one with its name are passed over: its counters are
/// not the same.
struct SampleLines {
    samples: BusSubscription,
    incarnation: Name,
}

impl WatchLines for SampleLines {
    fn next(&mut self) -> Result<NextLine, String> {
        match self.samples.next_within(PATIENCE) {
            Ok(Some(message)) => {
                let sample = within::read::<ObserverSample>(&message.payload, PAYLOAD_BYTES_MAX);
                Ok(match sample {
                    Ok(sample) if sample.incarnation != self.incarnation => NextLine::Nothing,
                    Ok(sample) if !is_of_a_machine(&sample.line) => NextLine::Unknown,
                    Ok(sample) => NextLine::Line(sample.line.into()),
                    Err(_) => NextLine::Unknown,
                })
            }
            Ok(None) => Ok(NextLine::Nothing),
            Err(_) => Err("the bus has ended".to_owned()),
        }
    }
}

/// Reports whether a machine can have these numbers.
fn is_of_a_machine(line: &WatchLine) -> bool {
    let WatchLine { process, machine, programs, kernel, .. } = line;
    check_use(process.as_ref(), machine.as_ref(), programs, kernel).is_ok()
}

/// Time in which an observer says who it is: some of its hellos, in case the bus loses one.
const HELLO_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Time for which the recorder's thread waits for a line.
const PATIENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use throng_bus::MemoryBus;
    use throng_measure::MachineUse;

    use super::*;

    #[test]
    fn a_sample_that_no_machine_makes_is_passed_over() {
        let bus = MemoryBus::new();
        let samples = bus.subscribe("s").unwrap();
        let mut lines = SampleLines { samples, incarnation: Name::default() };
        let mut next = |cpu_busy_us| {
            let machine = Some(MachineUse { cpu_busy_us, ..MachineUse::default() });
            let line = WatchLine { machine, ..WatchLine::default() };
            let sample = ObserverSample { incarnation: Name::default(), line };
            bus.publish("s", &serde_json::to_vec(&sample).unwrap()).unwrap();
            lines.next().unwrap()
        };
        assert!(matches!(next(7), NextLine::Line(_)));
        assert!(matches!(next(u64::MAX), NextLine::Unknown));
    }
}
