//! What the machines of a fleet measure: their sum, and each by itself.
//!
//! The stats of all cores of all machines go into one [`Collector`], as those of one machine do. So
//! the sums are those of one machine with all these cores.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use throng_base::Instant;
use throng_doctor::troubles_of_kernel;
use throng_load::generator::CoreStats;
use throng_load::peers::{PeerHub, PeerMessage, PeerOrder};
use throng_load::run::{Collector, LoadPlan};
use throng_load::schedule::MachineShare;
use throng_measure::{
    Histogram, KernelCounters, LoadInterval, MachineInterval, MachineUse, Operation, RunEventKind,
    Tally,
};
use throng_run::recorder::{Interruption, KernelReading};

use crate::coordinator::{Coordinator, Member, MemberState};
use crate::machine_totals::MachineTotals;
use crate::message::LoadReport;

/// The machines of a running fleet.
pub(crate) struct Machines {
    collector: Collector,
    start_at: Instant,
    machines: Vec<Machine>,
    /// Where cores of several machines meet.
    hub: PeerHub,
    /// What cores are to hear of others.
    peer_orders: Vec<PeerOrder>,
    /// Events that no call has returned yet.
    events: Vec<RunEventKind>,
    /// The first request to end the load that an agent had.
    interruption: Option<Interruption>,
    /// The moment from which all machines are over or lost.
    only_lost_since: Option<Instant>,
    /// Time for which lost machines are awaited from then on.
    lost_wait: Duration,
    /// True while no machine can be heard.
    is_bus_away: bool,
}

/// One machine.
struct Machine {
    name: String,
    share: MachineShare,
    /// Agents with the same id of a kernel share its CPUs.
    boot_id: Option<String>,
    net_namespace: Option<String>,
    state: MachineState,
    /// Its last report, without its stats.
    last: LoadReport,
    /// Number of the last report whose measurements are counted.
    reports: u64,
    /// The end of the last report of the interval before, and the CPU time of each core then.
    before: (u64, Vec<u64>),
    /// The number of its last report that a coordinator before this one has recorded.
    recorded: u64,
    /// Its kernel's counters at its first report to this coordinator.
    kernel_before: Option<KernelCounters>,
    /// What went wrong there by the last line of the coordinator before this one.
    troubles_before: BTreeMap<String, u64>,
    /// True while its first core stands for all of them, with the sum that was recorded.
    is_summed: bool,
    lag: Histogram,
    connect: Histogram,
    /// Messages, pushes and HTTP requests.
    message: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum MachineState {
    Running,
    Lost,
    Over,
    Failed(String),
}

impl Machines {
    pub(crate) fn new(
        plan: &LoadPlan,
        start_at: Instant,
        members: &[Member],
        lost_wait: Duration,
    ) -> Self {
        let machine = |member: &Member| Machine {
            name: member.name.to_string(),
            share: member.share,
            boot_id: member.facts.boot_id.as_deref().map(str::to_owned),
            net_namespace: member.facts.net_namespace.as_deref().map(str::to_owned),
            state: MachineState::Running,
            last: LoadReport::default(),
            reports: 0,
            before: (0, Vec::new()),
            recorded: 0,
            kernel_before: None,
            troubles_before: BTreeMap::new(),
            is_summed: false,
            lag: Histogram::new(),
            connect: Histogram::new(),
            message: Histogram::new(),
        };
        let machines: Vec<_> = members.iter().map(machine).collect();
        let cores = machines.iter().map(|machine| machine.share.cores()).sum();
        let mut collector = plan.collector(cores);
        (0..cores).for_each(|core| collector.expect_stats(core));
        Self {
            collector,
            start_at,
            machines,
            hub: PeerHub::new(plan.program().cues(), cores),
            peer_orders: Vec::new(),
            events: Vec::new(),
            interruption: None,
            only_lost_since: None,
            lost_wait,
            is_bus_away: false,
        }
    }

    /// Goes on from what another coordinator has recorded. A machine that lives replaces its part
    /// by its next report.
    pub(crate) fn go_on_from<'a>(&mut self, recorded: impl Iterator<Item = &'a LoadInterval>) {
        let Some(last) = recorded.last() else { return };
        self.collector.go_on_from(last);
        self.hub.go_on_from(&last.cues);
        let mut cpu_us_per_core = last.cpu_us_per_core.as_slice();
        let cores: usize = self.machines.iter().map(|machine| machine.share.cores()).sum();
        for (machine, before) in self.machines.iter_mut().zip(&last.machines) {
            machine.go_on_from(before, self.start_at, &mut self.collector);
            // It is known which are whose only if all machines have told them.
            if last.cpu_us_per_core.len() == cores {
                let (own, rest) = cpu_us_per_core.split_at(machine.share.cores());
                machine.last.cpu_us_per_core = own.to_vec();
                cpu_us_per_core = rest;
            }
            machine.before = (machine.last.at_us, machine.last.cpu_us_per_core.clone());
            if before.lost {
                machine.state = MachineState::Lost;
                machine.slots().for_each(|slot| self.collector.lose(slot));
                self.hub.lose(machine.slots());
            }
        }
    }

    /// Adds the report of a machine. What was measured in a report counts once, although another
    /// coordinator may have recorded it before it was gone.
    ///
    /// # Errors
    /// No machine with that share can have measured this: nothing of it is added.
    pub(crate) fn add_report(
        &mut self,
        member: usize,
        report: LoadReport,
        now: Instant,
    ) -> Result<(), String> {
        let machine = &mut self.machines[member];
        if report.number < machine.last.number {
            return Ok(());
        }
        let own = self.collector.latest().skip(machine.slots().start);
        let own: Vec<_> = own.take(machine.share.cores()).collect();
        // A sum of cores is more than each of them has counted.
        let before = if machine.is_summed { &[][..] } else { &own[..] };
        report.check(machine.share, before, now.since(self.start_at))?;
        let is_counted = report.number <= machine.reports;
        let mut report = if is_counted { report.totals() } else { report };
        machine.reports = machine.reports.max(report.number);
        // A core that was too busy to answer is missing.
        machine.is_summed &= report.cores.len() < machine.share.cores();
        let start_there = Instant::from_nanos(report.start_nanos);
        let elapsed = Duration::from_micros(report.at_us);
        for mut stats in std::mem::take(&mut report.cores) {
            machine.lag.merge(&stats.lag);
            machine.connect.merge(&stats.times[Operation::Connect]);
            Operation::messages().for_each(|of| machine.message.merge(&stats.times[of]));
            stats.move_moments(start_there, self.start_at, elapsed);
            let slot = machine.share.slot(stats.core_id).0;
            if machine.is_summed {
                // The sum has the counters of this core, too.
                let mut summed = self.collector.latest().nth(slot).cloned().unwrap_or_default();
                summed.steps.resize_with(stats.steps.len(), Default::default);
                summed.judged_classes.resize_with(stats.judged_classes.len(), Default::default);
                stats.clone_counters_from(&summed);
            }
            stats.core_id = slot;
            self.collector.add_stats(stats.into());
        }
        let first = machine.share.slot(0).0 as u32;
        let at_ms = report.at_us / 1_000;
        let named = report.events.drain(..).filter_map(|event| match event {
            RunEventKind::Interrupted { by } => {
                self.interruption.get_or_insert(Interruption { by, at_ms });
                None
            }
            RunEventKind::PortsExhausted { source } => {
                let source = format!("{source} of {}", machine.name);
                Some(RunEventKind::PortsExhausted { source })
            }
            RunEventKind::GeneratorFdsExhausted { core } => {
                Some(RunEventKind::GeneratorFdsExhausted { core: first.saturating_add(core) })
            }
            other => Some(other),
        });
        self.events.extend(named);
        if machine.state == MachineState::Lost {
            machine.state = MachineState::Running;
            // The next interval has what it says now, and only then the run may be over.
            self.only_lost_since = None;
            self.hub.find(machine.slots());
            self.events.push(RunEventKind::AgentBack { agent: machine.name.clone() });
        }
        if report.is_last && !matches!(machine.state, MachineState::Failed(_)) {
            machine.state = MachineState::Over;
        }
        if machine.kernel_before.is_none() && !report.kernel.is_empty() {
            machine.kernel_before = Some(report.kernel.clone());
        }
        machine.last = report;
        Ok(())
    }

    /// Reports whether the totals of a machine are as high as those that are recorded.
    pub(crate) fn has_totals(&self, member: usize) -> bool {
        let machine = &self.machines[member];
        machine.last.number >= machine.recorded.max(1)
    }

    /// Notes that the bus is away or back. No machine is given up meanwhile.
    pub(crate) fn set_bus_away(&mut self, is_away: bool) {
        self.is_bus_away = is_away;
        self.only_lost_since = None;
        self.events.push(if is_away { RunEventKind::BusLost } else { RunEventKind::BusBack });
    }

    /// Lets lost machines be awaited for so much longer: nothing could be heard in that time.
    pub(crate) fn await_longer(&mut self, time: Duration) {
        if let Some(since) = &mut self.only_lost_since {
            *since += time;
        }
    }

    /// Passes what cores of a machine say to those of other machines.
    ///
    /// # Errors
    /// No core of that machine can say this.
    pub(crate) fn exchange(
        &mut self,
        member: usize,
        messages: Vec<PeerMessage>,
        now: Instant,
    ) -> Result<(), String> {
        let (now, own) = (now.since(self.start_at), self.machines[member].slots());
        for message in messages {
            let orders = self.hub.take(message, &own, now)?;
            self.peer_orders.extend(orders);
        }
        Ok(())
    }

    /// Returns what cores are to hear of others, by the indexes of their machines.
    pub(crate) fn take_peer_orders(&mut self) -> BTreeMap<usize, Vec<PeerOrder>> {
        let mut all = BTreeMap::<usize, Vec<PeerOrder>>::new();
        for order in std::mem::take(&mut self.peer_orders) {
            let has = |machine: &Machine| machine.share.core_at(order.slot()).is_some();
            if let Some(member) = self.machines.iter().position(has) {
                all.entry(member).or_default().push(order);
            }
        }
        all
    }

    /// Notes which machines are lost and which have failed.
    pub(crate) fn find_lost(&mut self, coordinator: &Coordinator, now: Instant) {
        for (index, member) in coordinator.members().iter().enumerate() {
            let machine = &mut self.machines[index];
            let (state, reason) = match &member.state {
                MemberState::Failed(why) | MemberState::Refused(why) => {
                    (MachineState::Failed(why.clone()), why.clone())
                }
                _ if machine.state != MachineState::Running => continue,
                _ => match coordinator.why_lost(index, now) {
                    Some(why) => (MachineState::Lost, why),
                    None => continue,
                },
            };
            if machine.state == state {
                continue;
            }
            // A machine that is lost and fails then is missing from the same moment on.
            if machine.state != MachineState::Lost {
                self.events.push(RunEventKind::AgentLost {
                    agent: machine.name.clone(),
                    percent: machine.percent(),
                    from_ms: machine.last.at_us / 1_000,
                    reason,
                });
            }
            machine.state = state;
            machine.slots().for_each(|slot| self.collector.lose(slot));
            self.peer_orders.extend(self.hub.lose(machine.slots()));
        }
        let is_over = self.machines.iter().all(|machine| machine.state != MachineState::Running);
        if is_over && !self.is_bus_away {
            self.only_lost_since.get_or_insert(now);
        } else {
            self.only_lost_since = None;
        }
    }

    /// Ends the interval.
    pub(crate) fn interval(&mut self) -> LoadInterval {
        let mut interval = self.collector.interval();
        for machine in &self.machines {
            if machine.state == MachineState::Running {
                machine.slots().for_each(|slot| self.collector.expect_stats(slot));
            }
            let process = &machine.last.process;
            let sum = &mut interval.process;
            sum.pid = 0;
            sum.rss_bytes = sum.rss_bytes.saturating_add(process.rss_bytes);
            sum.rss_bytes_at_start =
                sum.rss_bytes_at_start.saturating_add(process.rss_bytes_at_start);
            sum.cpu_user_us = sum.cpu_user_us.saturating_add(process.cpu_user_us);
            sum.cpu_system_us = sum.cpu_system_us.saturating_add(process.cpu_system_us);
            interval.cpu_us_per_core.extend(&machine.last.cpu_us_per_core);
        }
        for (sum, (opened, waiting_most)) in interval.cues.iter_mut().zip(self.hub.cues()) {
            // A core knows its own users only.
            (sum.opened, sum.waiting_most) = (opened, waiting_most);
        }
        let collector = &self.collector;
        let each = self.machines.iter_mut().map(|machine| machine.interval(collector));
        interval.machines = each.collect();
        interval
    }

    /// Returns the sum of what the kernels of the machines count.
    pub(crate) fn kernel(&self) -> KernelReading {
        let mut sum = KernelReading::default();
        let (mut kernels, mut namespaces) = (BTreeSet::new(), BTreeSet::new());
        for machine in self.machines.iter().filter(|machine| machine.state != MachineState::Lost) {
            let LoadReport { kernel, machine: used, programs, .. } = &machine.last;
            let boot = machine.boot_id.as_deref().unwrap_or(&machine.name);
            let namespace = machine.net_namespace.as_deref().unwrap_or_default();
            let is_new_namespace = namespaces.insert((boot, namespace));
            let is_new_kernel = kernels.insert(boot);
            if is_new_namespace {
                sum.counters.add(kernel, is_new_kernel);
            }
            if !is_new_kernel {
                continue;
            }
            sum.programs.extend(programs.iter().cloned());
            if let Some(used) = used {
                let all = sum.machine.get_or_insert_with(MachineUse::default);
                all.cpus = all.cpus.saturating_add(used.cpus);
                all.cpu_busy_us = all.cpu_busy_us.saturating_add(used.cpu_busy_us);
                all.cpu_idle_us = all.cpu_idle_us.saturating_add(used.cpu_idle_us);
                all.cpu_stolen_us = all.cpu_stolen_us.saturating_add(used.cpu_stolen_us);
            }
        }
        sum.programs.sort_by_key(|program| std::cmp::Reverse(program.millicpus));
        sum.programs.truncate(PROGRAMS_MAX);
        sum
    }

    /// Returns the events that no call has returned yet.
    pub(crate) fn events(&mut self) -> Vec<RunEventKind> {
        let mut events = std::mem::take(&mut self.events);
        events.extend(self.collector.first_errors());
        events
    }

    /// Returns the active users and the established connections.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let latest = self.collector.latest();
        latest.fold((0, 0), |(users, connected), stats| {
            let counters = &stats.counters;
            (users + counters.users_active, connected + counters.connected)
        })
    }

    /// Reports whether every load has ended, and no lost machine is awaited any more.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        let awaits = self.machines.iter().any(|machine| machine.state == MachineState::Lost);
        self.only_lost_since.is_some_and(|since| !awaits || now.since(since) > self.lost_wait)
    }

    /// Returns the request to end the load that an agent had, if one had it.
    pub(crate) fn interruption(&self) -> Option<Interruption> {
        self.interruption.clone()
    }

    /// Returns why no machine is left that could go on.
    pub(crate) fn failure(&self) -> Option<String> {
        let why = self.machines.iter().map(|machine| match &machine.state {
            MachineState::Failed(why) => Some(format!("{}: {why}", machine.name)),
            _ => None,
        });
        why.collect::<Option<Vec<_>>>().map(|all| all.join("; "))
    }
}

impl Machine {
    /// Returns the numbers of its cores among those of all machines.
    fn slots(&self) -> Range<usize> {
        let first = self.share.slot(0).0;
        first..first + self.share.cores()
    }

    /// Returns its part of the load, in percent.
    fn percent(&self) -> u64 {
        (100 * self.share.cores() / self.share.of().max(1)) as u64
    }

    /// Takes its part from the last line that another coordinator has recorded.
    fn go_on_from(
        &mut self,
        before: &MachineInterval,
        start_at: Instant,
        collector: &mut Collector,
    ) {
        (self.reports, self.recorded) = (before.reports, before.reports);
        self.troubles_before.clone_from(&before.troubles);
        let Some(totals) = before.totals.as_ref().and_then(MachineTotals::of_line) else { return };
        let MachineTotals { at_us, cpu_user_us, mut stats } = totals;
        self.last.at_us = at_us;
        self.last.machine.clone_from(&before.machine);
        let process = &mut self.last.process;
        process.rss_bytes = before.rss_bytes;
        process.cpu_user_us = cpu_user_us;
        process.cpu_system_us = before.cpu_us.saturating_sub(cpu_user_us);
        stats.core_id = self.slots().start;
        stats.taken_at = start_at + Duration::from_micros(at_us);
        collector.add_stats(stats.into());
        self.is_summed = true;
    }

    /// Ends the interval.
    fn interval(&mut self, collector: &Collector) -> MachineInterval {
        let own = collector.latest().skip(self.slots().start).take(self.share.cores());
        let mut stats = CoreStats::sum(own);
        (stats.core_id, stats.taken_at) = (0, Instant::ZERO);
        let (at_us, cpu_user_us) = (self.last.at_us, self.last.process.cpu_user_us);
        let (counters, errors) = (stats.counters.clone(), stats.errors_total());
        let troubles = self.troubles(&stats);
        let totals = MachineTotals { at_us, cpu_user_us, stats };
        let is_lost = matches!(self.state, MachineState::Lost | MachineState::Failed(_));
        let p99 =
            |histogram: &Histogram| (!histogram.is_empty()).then(|| histogram.percentile(99.0));
        let (grown_us, busiest_core_permille) = self.grown();
        let interval = MachineInterval {
            name: self.name.clone(),
            lost: is_lost,
            reports: self.reports,
            grown_us,
            totals: (self.reports > 0).then(|| totals.to_line()).flatten(),
            users_started: counters.users_started,
            users_active: counters.users_active,
            connected: counters.connected,
            connects_ok: counters.connects_ok,
            connects_failed: counters.connects_failed,
            messages_sent: counters.messages_sent,
            answered: counters.requests_answered(),
            errors,
            lag_us_p99: p99(&self.lag),
            connect_us_p99: p99(&self.connect),
            message_us_p99: p99(&self.message),
            busiest_core_permille,
            cpu_us: self.last.process.cpu_us(),
            rss_bytes: self.last.process.rss_bytes,
            machine: self.last.machine.clone(),
            troubles,
        };
        for histogram in [&mut self.lag, &mut self.connect, &mut self.message] {
            histogram.clear();
        }
        interval
    }

    /// Returns what went wrong there since the run began, by the names that evidence has.
    fn troubles(&self, stats: &CoreStats) -> BTreeMap<String, u64> {
        let (mut failed, mut errors) = (Tally::default(), Tally::default());
        stats.add_connect_failures_to(&mut failed);
        stats.add_errors_to(&mut errors);
        let failed = failed.0.into_iter().map(|(why, n)| (format!("connect_failed.{why}"), n));
        let errors = errors.0.into_iter().map(|(kind, n)| (format!("errors.{kind}"), n));
        let mut troubles = self.troubles_before.clone();
        if let Some(before) = &self.kernel_before {
            for (name, by) in troubles_of_kernel(before, &self.last.kernel) {
                *troubles.entry(name.to_owned()).or_default() += by;
            }
        }
        // The users' totals have those before this coordinator, too.
        troubles.extend(failed.chain(errors));
        troubles
    }

    /// Returns the time since the last report of the interval before, and the use of the busiest
    /// core in it, in thousandths of a CPU.
    fn grown(&mut self) -> (u64, Option<u64>) {
        let now = (self.last.at_us, self.last.cpu_us_per_core.clone());
        let (before_us, before) = std::mem::replace(&mut self.before, now);
        let grown_us = self.last.at_us.saturating_sub(before_us);
        let used = self.last.cpu_us_per_core.iter().zip(&before);
        let busiest_us = used.map(|(now, before)| now.saturating_sub(*before)).max();
        (
            grown_us,
            busiest_us.filter(|_| grown_us > 0).map(|us| us.saturating_mul(1_000) / grown_us),
        )
    }
}

/// Other programs of all machines that an interval names.
const PROGRAMS_MAX: usize = 5;
