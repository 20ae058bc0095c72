//! What a coordinator knows and decides: the protocol and what the machines measure, together.
//! Pure: time and messages are arguments.

use std::time::Duration;

use throng_base::Instant;
use throng_load::run::LoadPlan;
use throng_measure::{LoadInterval, RunEventKind};

use crate::agent_action::Publish;
use crate::coordinator::{Coordinator, MemberNews, MemberState};
use crate::machines::Machines;

/// The state of a coordinator, which the bus thread and the recorder share.
pub(crate) struct FleetState {
    pub(crate) coordinator: Coordinator,
    /// What the machines measure, once they run.
    pub(crate) machines: Option<Machines>,
    /// Time for which lost machines are awaited once all others are over.
    lost_wait: Duration,
    is_bus_away: bool,
    /// The moment until which this process has read what came over the bus.
    listened_at: Option<Instant>,
}

impl FleetState {
    pub(crate) fn new(coordinator: Coordinator) -> Self {
        let (lost_wait, listened_at) = (LOST_WAIT, None);
        Self { coordinator, machines: None, lost_wait, is_bus_away: false, listened_at }
    }

    /// Sets the time for which lost machines are awaited. Call it before the run begins.
    pub(crate) fn set_lost_wait(&mut self, lost_wait: Duration) {
        self.lost_wait = lost_wait;
    }

    /// Starts the load on all agents at the moment `at` of this machine's clock.
    pub(crate) fn start(&mut self, plan: &LoadPlan, at: Instant, run: u64, setup: &[Vec<u8>]) {
        self.coordinator.start(at, run, setup);
        let members = self.coordinator.members();
        self.machines = Some(Machines::new(plan, at, members, self.lost_wait));
    }

    /// Takes the run over that began at `start_at`, from its agents, which the coordinator knows as
    /// its members; `recorded` is what was recorded of it.
    pub(crate) fn go_on<'a>(
        &mut self,
        plan: &LoadPlan,
        start_at: Instant,
        recorded: impl Iterator<Item = &'a LoadInterval>,
    ) {
        let members = self.coordinator.members();
        let mut machines = Machines::new(plan, start_at, members, self.lost_wait);
        machines.go_on_from(recorded);
        self.machines = Some(machines);
    }

    /// Takes a message of the bus.
    pub(crate) fn take(&mut self, subject: &str, payload: &[u8], now: Instant) {
        self.listen(now);
        let news = self.coordinator.on_message(subject, payload, now);
        let Some(machines) = &mut self.machines else { return };
        for (member, news) in news {
            let taken = match news {
                MemberNews::Report(report) => machines.add_report(member, *report, now),
                MemberNews::Peers(messages) => machines.exchange(member, messages, now),
            };
            if let Err(why) = taken {
                self.coordinator.refuse(member, &why);
                break;
            }
        }
    }

    /// Notes that all that has come until now is read, and whether the bus can be reached. Time in
    /// which the bus was away is no silence of an agent.
    pub(crate) fn listened(&mut self, is_reachable: bool, now: Instant) {
        self.listen(now);
        if !is_reachable {
            self.coordinator.excuse_silence(Duration::MAX, now);
        }
        if is_reachable == self.is_bus_away {
            self.is_bus_away = !is_reachable;
            self.machines.iter_mut().for_each(|machines| machines.set_bus_away(!is_reachable));
        }
    }

    /// Notes that this process reads the bus now. Time in which it stood still is no silence of an
    /// agent, and no lost one was awaited in it.
    fn listen(&mut self, now: Instant) {
        let deaf = now.since(self.listened_at.replace(now).unwrap_or(now));
        if deaf > DEAF_AFTER {
            self.coordinator.excuse_silence(deaf, now);
            self.machines.iter_mut().for_each(|machines| machines.await_longer(deaf));
        }
    }

    /// Returns the moment until which this process knows what has come, at most `now`.
    fn known_until(&self, now: Instant) -> Instant {
        // A thread that has not listened for so long is gone.
        self.listened_at.filter(|at| now.since(*at) < LISTENER_LOST_AFTER).unwrap_or(now)
    }

    /// Returns why an agent is lost, as far as this process has listened.
    pub(crate) fn why_lost(&self, member: usize, now: Instant) -> Option<String> {
        self.coordinator.why_lost(member, self.known_until(now))
    }

    /// Passes what cores of one machine say to those of others, and sends what is due.
    pub(crate) fn send(&mut self, now: Instant, publish: Publish<'_>) {
        let orders = self.machines.as_mut().map(Machines::take_peer_orders).unwrap_or_default();
        for (member, orders) in orders {
            self.coordinator.tell_peers(member, orders);
        }
        self.coordinator.tick(now, publish);
    }

    /// Ends the interval. The caller has written the one before.
    pub(crate) fn snapshot(&mut self, now: Instant) -> LoadInterval {
        self.coordinator.keep();
        let until = self.known_until(now);
        let Some(machines) = &mut self.machines else { return LoadInterval::default() };
        machines.find_lost(&self.coordinator, until);
        machines.interval()
    }

    /// Returns the events that no call has returned yet.
    pub(crate) fn events(&mut self) -> Vec<RunEventKind> {
        self.machines.as_mut().map(Machines::events).unwrap_or_default()
    }

    /// Reports whether every load has ended, and no lost machine is awaited any more.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.machines.as_ref().is_some_and(|machines| machines.is_over(self.known_until(now)))
    }

    /// Reports whether every agent that is not lost has delivered totals.
    pub(crate) fn has_totals(&self, now: Instant) -> bool {
        let Some(machines) = &self.machines else { return false };
        let members = self.coordinator.members().iter().enumerate();
        let mut there = members.filter(|(at, member)| {
            let has_failed = matches!(member.state, MemberState::Failed(_));
            !has_failed && self.why_lost(*at, now).is_none()
        });
        there.all(|(at, _)| machines.has_totals(at))
    }
}

/// Time between two looks at the bus from which this process has stood still: a look takes some
/// milliseconds.
const DEAF_AFTER: Duration = Duration::from_millis(500);

/// Time without a look at the bus after which the thread that looks is taken for ended.
const LISTENER_LOST_AFTER: Duration = Duration::from_secs(60);

/// Time for which lost machines are awaited once all others are over, if no other is set.
pub const LOST_WAIT: Duration = Duration::from_secs(30);
