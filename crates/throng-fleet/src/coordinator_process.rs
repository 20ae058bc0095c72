//! The coordinator's process: connects the protocol with a bus and a clock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use throng_base::Instant;
use throng_bus::{Bus, BusDenial, BusError, BusSubscription};
use throng_driver::Clock;
use throng_load::run::LoadPlan;
use throng_load::schedule::MachineShare;
use throng_measure::LoadInterval;

use crate::coordinator::{Coordinator, MemberState};
use crate::fleet_load::FleetLoad;
use crate::fleet_state::FleetState;
use crate::known_agent::KnownAgent;
use crate::message::{Readiness, RunKey, RunOrder};
use crate::subjects::GroupSubjects;

/// The agents of a group, as one process sees them. A thread of its own listens to the bus.
pub struct CoordinatorProcess {
    shared: Arc<Mutex<FleetState>>,
    bus: Arc<dyn Bus>,
    is_ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Why the agents do not begin a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// These agents cannot, each with its reason.
    Refused(Vec<(String, String)>),
    /// The bus does not let this process give orders to them.
    Denied(BusDenial),
    /// The caller gave up.
    Interrupted,
}

impl CoordinatorProcess {
    /// Joins a group.
    ///
    /// # Errors
    /// The bus is away.
    pub fn join(bus: Arc<dyn Bus>, subjects: GroupSubjects, key: RunKey) -> Result<Self, BusError> {
        let answers = bus.subscribe(&subjects.from_agents(&key.coordinator))?;
        let hellos = bus.subscribe(&subjects.hellos())?;
        let coordinator = Coordinator::new(key, subjects);
        let shared = Arc::new(Mutex::new(FleetState::new(coordinator)));
        let is_ended = Arc::<AtomicBool>::default();
        let thread = {
            let (shared, bus, is_ended) =
                (Arc::clone(&shared), Arc::clone(&bus), Arc::clone(&is_ended));
            let run = move || {
                while !is_ended.load(Relaxed) {
                    turn(&shared, &*bus, &answers, &hellos);
                }
            };
            std::thread::Builder::new().name("fleet".into()).spawn(run)
        };
        let thread = thread.map_err(|error| BusError::Away(error.to_string()))?;
        Ok(Self { shared, bus, is_ended, thread: Some(thread) })
    }

    /// Sets the time for which lost machines are awaited once all others are over
    /// [default: [`crate::LOST_WAIT`]].
    #[must_use]
    pub fn with_lost_wait(self, lost_wait: Duration) -> Self {
        self.state().set_lost_wait(lost_wait);
        self
    }

    /// Asks the agents who they are, until `is_enough` says so, at most for `patience`. Each is
    /// asked several times, so that its clock's offset is as good as the bus allows.
    pub fn gather(
        &self,
        patience: Duration,
        is_enough: impl Fn(&BTreeMap<String, KnownAgent>) -> bool,
    ) -> BTreeMap<String, KnownAgent> {
        let until = Clock.now() + patience;
        let mut asked = 0;
        loop {
            self.ask();
            asked += 1;
            std::thread::sleep(ASK_EVERY);
            let state = self.state();
            let known = state.coordinator.known();
            let is_over = Clock.now() >= until;
            if is_over || asked >= QUESTIONS && is_enough(known) {
                return known.clone();
            }
        }
    }

    /// Returns what the bus does not let this process do, if it has refused anything: then agents
    /// may be silent because they hear nothing.
    pub fn denial(&self) -> Option<BusDenial> {
        self.bus.denial()
    }

    fn ask(&self) {
        let mut publish = |subject: &str, bytes: Vec<u8>| self.bus.publish(subject, &bytes).is_ok();
        self.state().coordinator.ask(Clock.now(), &mut publish);
    }

    /// Orders these agents to get ready.
    pub fn prepare(&self, orders: Vec<(String, RunOrder)>) {
        let now = Clock.now();
        let mut state = self.state();
        for (name, order) in orders {
            state.coordinator.prepare(&name, order, now);
        }
    }

    /// Waits until all agents are ready. Asks `is_interrupted` many times a second.
    ///
    /// # Errors
    /// An agent cannot make the run or is silent, the bus refuses the orders, or the caller gave
    /// up.
    pub fn await_ready(
        &self,
        mut is_interrupted: impl FnMut() -> bool,
    ) -> Result<Vec<(String, Readiness)>, NotReady> {
        let mut ask_at = Clock.now();
        let mut refused_by = None;
        loop {
            if is_interrupted() {
                return Err(NotReady::Interrupted);
            }
            if let Some(denial) = self.denial() {
                return Err(NotReady::Denied(denial));
            }
            // Their clocks may drift while they measure themselves.
            if ask_at <= Clock.now() {
                ask_at = Clock.now() + ASK_EVERY;
                self.ask();
            }
            let (mut ready, mut refused, mut waits) = (Vec::new(), Vec::new(), false);
            let state = self.state();
            let now = Clock.now();
            for (index, member) in state.coordinator.members().iter().enumerate() {
                let name = member.name.to_string();
                match &member.state {
                    MemberState::Ready(readiness) => ready.push((name, (**readiness).clone())),
                    MemberState::Refused(why) | MemberState::Failed(why) => {
                        refused.push((name, why.clone()));
                    }
                    _ => match state.why_lost(index, now) {
                        Some(why) => refused.push((name, why)),
                        None => waits = true,
                    },
                }
            }
            drop(state);
            if !refused.is_empty() {
                // Others may have reasons of their own, which are better known at once.
                let refused_by = *refused_by.get_or_insert(now + REFUSALS_WITHIN);
                if !waits || refused_by <= now {
                    return Err(NotReady::Refused(refused));
                }
            } else if !waits {
                return Ok(ready);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Lets the agents forget the run, which does not begin. Waits until they know it.
    pub fn abandon(self) {
        self.state().coordinator.abandon();
        let until = Clock.now() + ABANDON_WITHIN;
        while Clock.now() < until && self.state().coordinator.has_unheard() {
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Starts the load on all agents, at the same moment. Returns when it has begun, and the
    /// reports of the agents can be here: the moment from which a recorder begins.
    pub fn start(self, plan: &LoadPlan, run: u64, setup: &[Vec<u8>]) -> FleetLoad {
        let start_at = Clock.now() + START_AFTER;
        self.state().start(plan, start_at, run, setup);
        while Clock.now() < start_at + REPORTS_AFTER {
            std::thread::sleep(LOOK_EVERY);
        }
        FleetLoad::new(self)
    }

    /// Takes over a run whose coordinator is gone, from the machines with these names and shares;
    /// `recorded` is what was recorded of it. Returns its load and the moment at which it began;
    /// `None` if no agent has anything of it.
    pub fn resume<'a>(
        self,
        plan: &LoadPlan,
        machines: &[(String, MachineShare)],
        recorded: impl Iterator<Item = &'a LoadInterval>,
    ) -> Option<(FleetLoad, Instant)> {
        let start_at = {
            let mut state = self.state();
            let now = Clock.now();
            let began = machines
                .iter()
                .filter_map(|(name, share)| state.coordinator.resume(name, *share, now));
            // All agents are taken over, also those behind the first that has the run.
            let began: Vec<_> = began.collect();
            let start_at = began.into_iter().min()?;
            state.go_on(plan, start_at, recorded);
            start_at
        };
        let until = Clock.now() + TOTALS_WITHIN;
        while Clock.now() < until && !self.state().has_totals(Clock.now()) {
            std::thread::sleep(LOOK_EVERY);
        }
        Some((FleetLoad::new(self), start_at + REPORTS_AFTER))
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, FleetState> {
        lock(&self.shared)
    }

    pub(crate) fn shared(&self) -> Arc<Mutex<FleetState>> {
        Arc::clone(&self.shared)
    }
}

impl Drop for CoordinatorProcess {
    fn drop(&mut self) {
        self.is_ended.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// Locks the state. No call leaves it inconsistent, so it stays usable after a panic.
pub(crate) fn lock(shared: &Mutex<FleetState>) -> MutexGuard<'_, FleetState> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes what has come over the bus, and sends what is due.
fn turn(
    shared: &Mutex<FleetState>,
    bus: &dyn Bus,
    answers: &BusSubscription,
    hellos: &BusSubscription,
) {
    let mut message = answers.next_within(TURN);
    if message.is_err() {
        // The bus has ended.
        std::thread::sleep(TURN);
    }
    while let Ok(Some(found)) = message {
        // The time before the lock counts for the offset of a clock.
        let now = Clock.now();
        lock(shared).take(&found.subject, &found.payload, now);
        message = answers.try_next();
    }
    while let Ok(Some(found)) = hellos.try_next() {
        lock(shared).take(&found.subject, &found.payload, Clock.now());
    }
    let mut publish = |subject: &str, bytes: Vec<u8>| bus.publish(subject, &bytes).is_ok();
    let is_reachable = bus.is_reachable();
    let mut state = lock(shared);
    let now = Clock.now();
    state.listened(is_reachable, now);
    state.send(now, &mut publish);
}

/// Time for which the thread waits for a message before it looks at what is due.
const TURN: Duration = Duration::from_millis(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Time between two questions to all agents.
const ASK_EVERY: Duration = Duration::from_millis(100);
/// Questions that each agent gets at least.
const QUESTIONS: u32 = 8;
/// Time between the order to start and the start: orders may be lost once, and come again.
pub const START_AFTER: Duration = Duration::from_secs(4);
/// Time in which other agents may refuse a run, too, after the first has refused it.
const REFUSALS_WITHIN: Duration = Duration::from_secs(1);
/// Time in which the agents hear that a run does not begin.
const ABANDON_WITHIN: Duration = Duration::from_secs(2);
/// Time in which the agents of a run that is taken over deliver their totals.
const TOTALS_WITHIN: Duration = Duration::from_secs(30);
/// Time between the end of an interval on the agents and the end of that interval here, in which
/// their reports arrive.
const REPORTS_AFTER: Duration = Duration::from_millis(400);
