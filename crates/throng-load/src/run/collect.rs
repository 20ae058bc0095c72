//! Collecting the stats of all cores into intervals.
//!
//! Cores hand over their stats at different moments. So the stats carry the moment, and an interval
//! says over which time its counters have grown.

use std::net::SocketAddr;

use throng_base::Instant;
use throng_driver::CoreId;
use throng_measure::{
    AddressConnects, CoreCounters, CueWaits, LimitUse, LoadCounters, LoadInterval,
    OperationInterval, PerOperation, RunEventKind, StepInterval,
};

use super::first_errors::FirstErrors;
use super::probes::Probes;
use crate::generator::{
    AddressTally, CoreStats, CueTally, Incidents, LimitTally, gap_of_all, outage_of_all,
};
use crate::program::{Cue, CueKind, Probe, RateLimit};

/// Adds up the stats of all cores.
pub struct Collector {
    views: Vec<CoreView>,
    /// Boxed, because they travel in messages and are large.
    spare: Vec<Box<CoreStats>>,
    phases: Vec<String>,
    classes: Vec<String>,
    /// Names of the classes that a threshold is about.
    judged_classes: Vec<String>,
    /// Their operations since the last interval.
    operations: Vec<PerOperation<OperationInterval>>,
    /// Names of steps and transactions.
    steps: Vec<String>,
    /// Addresses of the target.
    addresses: Vec<SocketAddr>,
    /// The scenario's own limits, without their counters.
    limits: Vec<LimitUse>,
    /// The scenario's barriers and signals, without their counters.
    cues: Vec<CueWaits>,
    probes: Probes,
    first_errors: FirstErrors,
    /// Incidents of the cores that have answered since the last interval.
    incidents: Vec<Incidents>,
    /// Sum of the stats since the last interval.
    interval: LoadInterval,
}

/// The collector's state of one core.
#[derive(Default)]
struct CoreView {
    last: CoreStats,
    /// True while stats are on their way to the core or back.
    is_pending: bool,
    /// The work that it had done when the interval began, and the moment of that; none if it has
    /// not answered since.
    began: Option<(u64, Instant)>,
}

impl Collector {
    /// Creates a collector. `phases` are the names of the phases, the last one being that in which
    /// all users leave; `classes` are the names of the classes.
    pub fn new(
        cores: usize,
        phases: Vec<String>,
        classes: Vec<String>,
        addresses: Vec<SocketAddr>,
        probe: Option<&Probe>,
    ) -> Self {
        Self {
            views: (0..cores).map(|_| CoreView::default()).collect(),
            spare: Vec::new(),
            phases,
            classes,
            judged_classes: Vec::new(),
            operations: Vec::new(),
            steps: Vec::new(),
            addresses,
            limits: Vec::new(),
            cues: Vec::new(),
            probes: Probes::new(probe),
            first_errors: FirstErrors::default(),
            incidents: Vec::new(),
            interval: LoadInterval::default(),
        }
    }

    /// Sets the names of steps and transactions, in the order of their indexes.
    #[must_use]
    pub fn with_steps(mut self, names: &[String]) -> Self {
        self.steps = names.to_vec();
        self
    }

    /// Sets the names of the classes that a threshold is about, in the order of their places.
    #[must_use]
    pub fn with_judged_classes<'a>(mut self, names: impl Iterator<Item = &'a str>) -> Self {
        self.judged_classes = names.map(str::to_owned).collect();
        self
    }

    /// Sets the limits of the scenario, in the order of their indexes.
    #[must_use]
    pub fn with_limits(mut self, limits: &[RateLimit]) -> Self {
        let unused = |limit: &RateLimit| LimitUse {
            name: limit.to_string(),
            per_second: limit.per_second,
            ..LimitUse::default()
        };
        self.limits = limits.iter().map(unused).collect();
        self
    }

    /// Sets the barriers and signals of the scenario, in the order of their indexes.
    #[must_use]
    pub fn with_cues(mut self, cues: &[Cue]) -> Self {
        let unused = |cue: &Cue| CueWaits {
            name: cue.name.clone(),
            line: cue.line.into(),
            users: match cue.kind {
                CueKind::Barrier { users } => Some(users.into()),
                CueKind::Signal => None,
            },
            ..CueWaits::default()
        };
        self.cues = cues.iter().map(unused).collect();
        self
    }

    /// Returns the cores whose stats are to be requested, each with empty stats to continue in.
    /// Skips cores that have not answered the last request.
    pub fn request_stats(&mut self) -> Vec<(CoreId, Box<CoreStats>)> {
        let Self { views, spare, classes, .. } = self;
        let idle = views.iter_mut().enumerate().filter(|(_, view)| !view.is_pending);
        idle.map(|(core, view)| {
            view.is_pending = true;
            let new = || Box::new(CoreStats::new(core, classes.len()));
            (core, spare.pop().unwrap_or_else(new))
        })
        .collect()
    }

    /// Goes on with a run of which another collector has reported `last`: sums of what cores hand
    /// over once only.
    pub fn go_on_from(&mut self, last: &LoadInterval) {
        self.probes.go_on_from(&last.probe);
    }

    /// Expects stats of a core that hands them over by itself: a core of another machine. Until
    /// they come, the core counts as silent.
    pub fn expect_stats(&mut self, core: CoreId) {
        self.views[core].is_pending = true;
    }

    /// Notes that a core is lost: it is no longer expected, and has no users and no connections.
    pub fn lose(&mut self, core: CoreId) {
        let CoreView { last, is_pending, .. } = &mut self.views[core];
        *is_pending = false;
        last.counters = last.counters.without_gauges();
        last.core = last.core.without_gauges();
        last.resting = 0;
    }

    /// Reports whether a request is unanswered.
    pub fn is_waiting(&self) -> bool {
        self.views.iter().any(|view| view.is_pending)
    }

    /// Returns each core's counters as of its last answer.
    pub fn latest(&self) -> impl Iterator<Item = &CoreStats> {
        self.views.iter().map(|view| &view.last)
    }

    /// Returns the first errors of each kind that have not been returned before.
    pub fn first_errors(&mut self) -> Vec<RunEventKind> {
        self.first_errors.take_events()
    }

    /// Adds the stats that a core has handed over.
    pub fn add_stats(&mut self, mut stats: Box<CoreStats>) {
        let interval = &mut self.interval;
        interval.times.merge(&stats.times);
        interval.arrival.merge(&stats.arrival);
        interval.lag.merge(&stats.lag);
        interval.steps.resize_with(self.steps.len(), StepInterval::default);
        for (sum, step) in interval.steps.iter_mut().zip(&stats.steps) {
            sum.latency.merge(&step.latency);
            sum.arrival.merge(&step.arrival);
            sum.unanswered.merge(&step.unanswered);
        }
        self.operations.resize_with(self.judged_classes.len(), PerOperation::default);
        for (sum, class) in self.operations.iter_mut().zip(&stats.judged_classes) {
            sum.merge_measured(class);
        }
        self.probes.add_tallies(&stats.probes, interval);
        debug_assert!(interval.clocks_agree(), "each answer counts once by each clock");
        interval.core.turn_us_most = interval.core.turn_us_most.max(stats.core.turn_us_most);
        self.incidents.push(stats.incidents);
        self.first_errors.add_samples(&mut stats.samples);
        let room = EARLY_CLOSES_MAX.saturating_sub(interval.early_closes.len());
        interval.early_closes.extend(stats.early_closes.drain(..).take(room));
        stats.error_log.add_to(&mut interval.error_times);
        stats.clear_measured();
        let view = &mut self.views[stats.core_id];
        view.is_pending = false;
        view.began.get_or_insert((work_done(&view.last.counters), view.last.taken_at));
        // The used stats are reused, without the memory of their histograms.
        view.last.clone_counters_from(&stats);
        if self.spare.len() < self.views.len() {
            self.spare.push(stats);
        }
    }

    /// Ends the interval. Stats that a core has not handed over go into a later one.
    pub fn interval(&mut self) -> LoadInterval {
        let mut interval = std::mem::take(&mut self.interval);
        let turn_us_most = interval.core.turn_us_most;
        interval.cores = self.views.len() as u64;
        interval.cores_silent = self.views.iter().filter(|view| view.is_pending).count() as u64;
        interval.grown_us = grown_us(self.views.iter().filter_map(CoreView::growth));
        self.views.iter_mut().for_each(|view| view.began = None);
        let sum = CoreStats::sum(self.latest());
        interval.phase = self.phases.get(sum.phase).cloned().unwrap_or_default();
        sum.add_errors_to(&mut interval.errors);
        sum.add_connect_failures_to(&mut interval.connect_failed);
        for count in sum.statuses.iter() {
            interval.http_statuses.add(count.status.to_string(), count.answers);
        }
        let mut operations = std::mem::take(&mut self.operations);
        operations.resize_with(self.judged_classes.len(), PerOperation::default);
        for (of_class, counted) in operations.iter_mut().zip(&sum.judged_classes) {
            of_class.add_counts(counted);
        }
        interval.class_operations = self.judged_classes.iter().cloned().zip(operations).collect();
        self.name_parts(&sum, &mut interval);
        interval.counters = sum.counters;
        interval.core = CoreCounters { turn_us_most, ..sum.core };
        interval.followed = sum.followed;
        self.probes.report(&mut interval);
        interval.answer_gap = gap_of_all(&self.incidents, Instant::ZERO);
        interval.outage = outage_of_all(&self.incidents, Instant::ZERO);
        self.incidents.clear();
        interval
    }
}

impl Collector {
    /// Sets what the interval knows by name, with the counters of all cores: classes, steps,
    /// addresses, limits and cues.
    fn name_parts(&self, all: &CoreStats, interval: &mut LoadInterval) {
        if self.classes.len() > 1 {
            let counters = |class| all.classes.get(class).cloned().unwrap_or_default();
            let classes = self.classes.iter().enumerate();
            interval.classes =
                classes.map(|(class, name)| (name.clone(), counters(class))).collect();
        }
        interval.steps.resize_with(self.steps.len(), StepInterval::default);
        for (step, name) in interval.steps.iter_mut().zip(&self.steps) {
            step.name.clone_from(name);
        }
        for (step, sum) in interval.steps.iter_mut().zip(&all.steps) {
            (step.ok, step.errors, step.waiting) = (sum.ok, sum.errors, sum.waiting);
        }
        let addresses = self.addresses.iter().zip(&all.addresses);
        interval.addresses = addresses.map(|(address, tally)| connects(*address, tally)).collect();
        interval.limits.clone_from(&self.limits);
        for (limit, tally) in interval.limits.iter_mut().zip(&all.limits) {
            let LimitTally { steps, held, held_us } = *tally;
            (limit.steps, limit.held, limit.held_us) = (steps, held, held_us);
        }
        interval.cues.clone_from(&self.cues);
        for (cue, tally) in interval.cues.iter_mut().zip(&all.cues) {
            let CueTally { opened, waits, waiting, waiting_most, wait_us_most } = *tally;
            *cue = CueWaits { opened, waits, waiting, waiting_most, wait_us_most, ..cue.clone() };
        }
    }
}

impl CoreView {
    /// Returns the work since the interval began and the time that it took, in microseconds; `None`
    /// if the core has not answered since, or has started since.
    fn growth(&self) -> Option<(u128, u128)> {
        let (work, at) = self.began.filter(|(_, at)| *at > Instant::ZERO)?;
        let done = work_done(&self.last.counters).saturating_sub(work);
        Some((done.into(), self.last.taken_at.micros_since(at).into()))
    }
}

/// Returns the mean time over which the counters of the cores grew, weighted by each core's work:
/// the total work divided by it is never more than the sum of the cores' own rates. 0 if unknown.
fn grown_us(growths: impl Iterator<Item = (u128, u128)>) -> u64 {
    let (mut work, mut work_us, mut cores, mut cores_us) = (0, 0, 0, 0);
    for (done, us) in growths {
        work += done;
        work_us += done * us;
        cores += 1;
        cores_us += us;
    }
    let mean = u128::checked_div(work_us, work);
    mean.or(u128::checked_div(cores_us, cores)).unwrap_or(0) as u64
}

/// Returns the connects to an address.
fn connects(address: SocketAddr, tally: &AddressTally) -> AddressConnects {
    let mut connects = AddressConnects { address: address.to_string(), ..Default::default() };
    connects.ok = tally.ok;
    for (why, count) in &tally.failed {
        connects.failed.add(why.to_string(), *count);
    }
    connects
}

/// Early closes in an interval, of all cores.
const EARLY_CLOSES_MAX: usize = 32;

/// Sum of all counters that have a rate.
fn work_done(grown: &LoadCounters) -> u64 {
    grown.connects_ok
        + grown.messages_sent
        + grown.messages_received
        + grown.joins_ok
        + grown.requests_answered()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Stats of `core`, handed over after `at_ms` with `connects` in all.
    fn stats(core: CoreId, at_ms: u64, connects: u64) -> Box<CoreStats> {
        let mut stats = Box::new(CoreStats::new(core, 1));
        stats.taken_at = Instant::ZERO + Duration::from_millis(at_ms);
        stats.counters.connects_ok = connects;
        stats
    }

    fn collector(cores: usize) -> Collector {
        Collector::new(cores, vec!["hold".into()], vec!["user".into()], Vec::new(), None)
    }

    #[test]
    fn an_interval_says_in_how_much_time_its_counters_grew() {
        let mut collector = collector(2);
        assert_eq!(collector.request_stats().len(), 2);
        collector.add_stats(stats(0, 100, 0));
        collector.add_stats(stats(1, 100, 0));
        assert_eq!(collector.interval().grown_us, 0, "it is not known");
        collector.request_stats();
        // One core took a second, the other longer because of a long turn. Nine tenths of the work
        // are the latter's.
        collector.add_stats(stats(0, 1_100, 100));
        collector.add_stats(stats(1, 1_200, 900));
        let interval = collector.interval();
        assert_eq!((interval.counters.connects_ok, interval.grown_us), (1_000, 1_090_000));
        collector.request_stats();
        collector.add_stats(stats(0, 2_100, 100));
        collector.add_stats(stats(1, 2_100, 900));
        assert_eq!(collector.interval().grown_us, 950_000, "nothing was done");
    }

    #[test]
    fn answers_that_come_late_count_with_all_of_their_time() {
        let mut collector = collector(1);
        collector.add_stats(stats(0, 1_000, 100));
        collector.interval();
        for second in 2..=6 {
            collector.add_stats(stats(0, second * 1_000, second * 100));
        }
        let interval = collector.interval();
        assert_eq!((interval.counters.connects_ok, interval.grown_us), (600, 5_000_000));
    }

    #[test]
    fn a_silent_core_is_counted_and_its_work_comes_with_the_time_that_it_took() {
        let mut collector = collector(2);
        collector.request_stats();
        (0..2).for_each(|core| collector.add_stats(stats(core, 1_000, 0)));
        collector.interval();
        collector.request_stats();
        collector.add_stats(stats(0, 2_000, 500));
        let interval = collector.interval();
        assert_eq!((interval.cores_silent, interval.counters.connects_ok), (1, 500));
        assert_eq!(collector.request_stats().len(), 1, "the silent one is asked once");
        collector.add_stats(stats(1, 3_000, 1_000));
        collector.add_stats(stats(0, 3_000, 1_000));
        let interval = collector.interval();
        assert_eq!((interval.cores_silent, interval.counters.connects_ok), (0, 2_000));
        // 500 in one second and 1,000 in two: 900/s, where the true rate is 1,000/s.
        assert_eq!(interval.grown_us, 1_666_666);
    }
}
