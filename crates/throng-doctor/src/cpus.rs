//! CPU use of the run's programs and of all others, second by second.

use throng_measure::{Endpoint, MachineUse, Metric, ProcessMetric};

use crate::history::Sample;
use crate::run_view::RunView;

/// CPU use of one machine over one interval. Amounts are in CPUs: 1.5 is one and a half CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuUse {
    /// Beginning of the interval.
    pub(crate) from_ms: u64,
    /// End of the interval.
    pub(crate) at_ms: u64,
    /// CPUs online.
    pub(crate) cpus: f64,
    /// CPUs neither idle nor stolen.
    pub(crate) busy: f64,
    /// CPUs that the hypervisor gave to other guests.
    pub(crate) stolen: f64,
    /// CPU use of the server, if it is on this machine and known.
    pub(crate) server: Option<ProcessCpus>,
    /// CPU use of the generator, if it is on this machine.
    pub(crate) client: Option<ProcessCpus>,
    /// CPUs in soft interrupts, some of which are in the three values above.
    pub(crate) softirq: Option<f64>,
}

/// CPU use of the server or the generator over one interval, in CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessCpus {
    /// CPUs that all of its threads used.
    pub(crate) taken: f64,
    /// CPUs that its threads together were ready to use and did not get.
    pub(crate) missed: Option<f64>,
    /// CPUs that it may use: all, unless an affinity or a quota limits it.
    pub(crate) allowed: f64,
    /// Busy share of those CPUs, 0 to 1, if they are not all CPUs.
    pub(crate) own_share: Option<f64>,
    /// CPUs that its busiest thread used. This and the next two are `None` if threads were not
    /// read.
    pub(crate) busiest: Option<f64>,
    /// Share of time for which the thread that waited most was ready to run and had no CPU.
    pub(crate) most_delayed: Option<f64>,
    /// Number of threads that hardly ever rested.
    pub(crate) threads_busy: Option<f64>,
    /// CPUs that its threads used that collect garbage.
    pub(crate) collector: Option<f64>,
}

impl CpuUse {
    /// Returns the CPU use of one side's machine, interval by interval, as far as it is known.
    pub(crate) fn of(run: &RunView<'_>, end: Endpoint) -> Vec<Self> {
        // A recording of the server may have longer intervals than the run: its values span several
        // of the run's.
        let known = run.samples().iter().filter(|sample| run.machine(end, sample).is_some());
        let known: Vec<_> = known.collect();
        let pairs = known.windows(2);
        pairs.filter_map(|pair| Self::between(run, end, pair[0], pair[1])).collect()
    }

    /// Returns the CPU use between two samples.
    fn between(run: &RunView<'_>, end: Endpoint, before: &Sample, now: &Sample) -> Option<Self> {
        let (from, to) = (run.machine(end, before)?, run.machine(end, now)?);
        let total = |machine: &MachineUse| {
            machine.cpu_busy_us + machine.cpu_idle_us + machine.cpu_stolen_us
        };
        let elapsed = total(to).saturating_sub(total(from));
        if elapsed == 0 || to.cpus == 0 {
            return None;
        }
        let wall_us = elapsed as f64 / to.cpus as f64;
        let share = |from: u64, to: u64| to.saturating_sub(from) as f64 / wall_us;
        let here = |of: Endpoint| run.header.target_is_here || of == end;
        let cpus = to.cpus as f64;
        let process = |of: Endpoint| {
            if !here(of) {
                return None;
            }
            let used = |sample| cpu_us(run, of, sample);
            let gauge =
                |gauge: ProcessMetric| run.value(of, now, gauge.of(of)).map(|value| value as f64);
            let delay = |sample| {
                run.value(of, sample, ProcessMetric::RUN_DELAY_US.of(of)).map(|us| us as u64)
            };
            Some(ProcessCpus {
                taken: share(used(before)?, used(now)?),
                missed: delay(before).zip(delay(now)).map(|(from, to)| share(from, to)),
                allowed: gauge(ProcessMetric::CPUS_ALLOWED)
                    .map_or(cpus, |allowed| allowed.min(cpus)),
                own_share: own_share(run, of, before, now),
                busiest: gauge(ProcessMetric::BUSIEST_THREAD_PERMILLE)
                    .map(|permille| permille / 1000.0),
                most_delayed: gauge(ProcessMetric::MOST_DELAYED_THREAD_PERMILLE)
                    .map(|permille| permille / 1000.0),
                threads_busy: gauge(ProcessMetric::THREADS_BUSY),
                collector: gauge(ProcessMetric::COLLECTOR_PERMILLE)
                    .map(|permille| permille / 1000.0),
            })
        };
        let (server, client) = (process(Endpoint::Server), process(Endpoint::Client));
        // The kernel samples a machine's busy time at its ticks, and counts exactly for processes:
        // only the second shows a thread that sleeps between ticks.
        let of_ends: f64 = [server, client].into_iter().flatten().map(|used| used.taken).sum();
        let softirq = |sample| run.value(end, sample, Metric::CPU_SOFTIRQ_US).map(|us| us as u64);
        Some(Self {
            from_ms: before.interval.at_ms,
            at_ms: now.interval.at_ms,
            cpus,
            busy: share(from.cpu_busy_us, to.cpu_busy_us).max(of_ends.min(cpus)),
            stolen: share(from.cpu_stolen_us, to.cpu_stolen_us),
            server,
            client,
            softirq: softirq(before).zip(softirq(now)).map(|(from, to)| share(from, to)),
        })
    }

    /// Returns the CPUs that server and generator used or waited for.
    pub(crate) fn wanted(&self) -> f64 {
        let ends = [self.server, self.client].into_iter().flatten();
        ends.map(|process| process.taken + process.missed.unwrap_or(0.0)).sum()
    }

    /// Returns the share of the CPUs that any program or guest used, 0 to 1.
    pub(crate) fn taken_share(&self) -> f64 {
        (self.busy + self.stolen) / self.cpus
    }

    /// Returns the busy share of all CPUs, or of those that the server or the generator may use, if
    /// that is more.
    pub(crate) fn full_share(&self) -> f64 {
        let ends = [self.server, self.client].into_iter().flatten();
        ends.filter_map(|process| process.own_share).fold(self.taken_share(), f64::max)
    }

    /// Returns the CPUs that neither server nor generator used, or `None` if both could be on this
    /// machine and one cannot be read.
    pub(crate) fn others(&self, run: &RunView<'_>) -> Option<f64> {
        if run.header.target_is_here && (self.server.is_none() || self.client.is_none()) {
            return None;
        }
        let ends = [self.server, self.client].into_iter().flatten();
        Some((self.busy - ends.map(|process| process.taken).sum::<f64>()).max(0.0))
    }

    /// Returns the CPUs of other programs, without those that may be the kernel's work on packets
    /// of the run. The kernel does that work in soft interrupts, whose time counts for the
    /// interrupted program or for none.
    pub(crate) fn strangers(&self, run: &RunView<'_>) -> Option<f64> {
        Some((self.others(run)? - self.softirq.unwrap_or(0.0)).max(0.0))
    }
}

/// Returns the busy share of the CPUs that one side may use.
fn own_share(run: &RunView<'_>, end: Endpoint, before: &Sample, now: &Sample) -> Option<f64> {
    let grown = |counter: ProcessMetric| {
        let of = |sample| run.value(end, sample, counter.of(end));
        Some((of(now)? - of(before)?).max(0) as f64)
    };
    let (busy, idle) = (grown(ProcessMetric::CPUS_BUSY_US)?, grown(ProcessMetric::CPUS_IDLE_US)?);
    (busy + idle > 0.0).then(|| busy / (busy + idle))
}

/// Returns the intervals for which `is_so` is true, if they are enough to call it lasting.
pub(crate) fn lasting(uses: Vec<CpuUse>, is_so: impl Fn(&CpuUse) -> bool) -> Option<Vec<CpuUse>> {
    let found: Vec<_> = uses.into_iter().filter(is_so).collect();
    (found.len() >= INTERVALS_MIN).then_some(found)
}

/// Returns the mean of several intervals, with the time of the first, or `None` without intervals.
pub(crate) fn mean(uses: &[CpuUse]) -> Option<CpuUse> {
    let first = uses.first()?;
    let of =
        |value: &dyn Fn(&CpuUse) -> f64| uses.iter().map(value).sum::<f64>() / uses.len() as f64;
    let some = |value: &dyn Fn(&CpuUse) -> Option<f64>| {
        let known: Vec<f64> = uses.iter().filter_map(value).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let process = |value: fn(&CpuUse) -> Option<ProcessCpus>| {
        Some(ProcessCpus {
            taken: some(&|used| Some(value(used)?.taken))?,
            missed: some(&|used| value(used)?.missed),
            allowed: some(&|used| Some(value(used)?.allowed))?,
            own_share: some(&|used| value(used)?.own_share),
            busiest: some(&|used| value(used)?.busiest),
            most_delayed: some(&|used| value(used)?.most_delayed),
            threads_busy: some(&|used| value(used)?.threads_busy),
            collector: some(&|used| value(used)?.collector),
        })
    };
    Some(CpuUse {
        from_ms: first.from_ms,
        at_ms: first.at_ms,
        cpus: of(&|used| used.cpus),
        busy: of(&|used| used.busy),
        stolen: of(&|used| used.stolen),
        server: process(|used| used.server),
        client: process(|used| used.client),
        softirq: some(&|used| used.softirq),
    })
}

/// Formats the known parts of the machine's CPUs, such as `the server 55 %, the generator 40 %,
/// others 3 %`.
pub(crate) fn shares(run: &RunView<'_>, used: &CpuUse) -> String {
    let parts = [
        ("the server", used.server.map(|process| process.taken)),
        ("the generator", used.client.map(|process| process.taken)),
        ("others", used.others(run)),
        (
            "the hypervisor's other guests",
            Some(used.stolen).filter(|stolen| *stolen > 0.005 * used.cpus),
        ),
    ];
    let known = parts
        .iter()
        .filter_map(|(who, cpus)| Some(format!("{who} {}", whole_percent((*cpus)? / used.cpus))));
    known.collect::<Vec<_>>().join(", ")
}

/// Formats a share without decimals, such as `42 %`: CPU time is not known more finely.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Returns the CPU time of one side's process since it began. For servers other than throng the
/// kernel has it.
fn cpu_us(run: &RunView<'_>, end: Endpoint, sample: &Sample) -> Option<u64> {
    let interval = &sample.interval;
    match end {
        Endpoint::Client => {
            let process = &interval.load.as_ref()?.process;
            (process.pid != 0 || process.cpu_us() > 0).then(|| process.cpu_us())
        }
        Endpoint::Server => {
            let sampled = run.value(Endpoint::Server, sample, ProcessMetric::CPU_US.server);
            let reported = || Some(interval.server.as_ref()?.process.cpu_us());
            sampled.map(|us| us as u64).or_else(reported)
        }
    }
}

/// The busy share above which no CPU is left: ticks of 10 ms and scheduling leave the rest unused.
pub(crate) const FULL_SHARE: f64 = 0.92;

/// The share of time for which a thread is ready to run and waits for a CPU, above which its
/// program lacks CPU time and is late by that.
pub(crate) const LONG_DELAY_SHARE: f64 = 0.20;

/// The number of intervals that make something lasting: a single second may be another program on
/// the machine.
pub(crate) const INTERVALS_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    /// A run on two CPUs where the server uses 0.5, the generator 0.05, and soft interrupts 0.1.
    fn run(busy_us: u64) -> Run {
        Run::quiet()
            .growing(ProcessMetric::CPU_US.server, 7_000, 500_000, 0)
            .growing(Metric::CPU_SOFTIRQ_US, 0, 100_000, 0)
            .changed(move |interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                machine.cpu_busy_us = busy_us * second;
                machine.cpu_idle_us = (2_000_000 - busy_us) * second;
            })
    }

    #[test]
    fn cpu_time_of_neither_side_is_other_programs() {
        let run = run(1_200_000);
        let (history, summary) = run.whole();
        let run = RunView::new(&history, &summary);
        let uses = CpuUse::of(&run, Endpoint::Client);
        assert_eq!(uses.len(), 10);
        let used = mean(&uses[3..]).unwrap();
        let close = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-9;
        assert!(close(used.others(&run), 0.65), "{used:?}");
        assert!(close(used.strangers(&run), 0.55), "{used:?}");
        assert!((used.taken_share() - 0.6).abs() < 1e-9);
        assert_eq!(shares(&run, &used), "the server 25 %, the generator 2 %, others 32 %");
    }

    #[test]
    fn a_machine_that_reports_rarely_is_known_over_the_whole_time_between() {
        let mut run = run(1_200_000).changed(|interval, second| {
            let machine = interval.machine.clone().unwrap();
            interval.server_machine = (second % 4 == 0).then_some(machine);
        });
        run.header.target_is_here = false;
        let (history, summary) = run.whole();
        let uses = CpuUse::of(&RunView::new(&history, &summary), Endpoint::Server);
        let shares: Vec<_> = uses.iter().map(CpuUse::taken_share).collect();
        assert_eq!(shares.len(), 2, "{uses:?}");
        assert!(shares.iter().all(|share| (share - 0.6).abs() < 1e-9), "{shares:?}");
    }

    #[test]
    fn a_server_that_cannot_be_seen_might_be_the_others() {
        let mut run = Run::quiet();
        let (history, summary) = run.whole();
        let view = RunView::new(&history, &summary);
        assert_eq!(CpuUse::of(&view, Endpoint::Client)[0].others(&view), None);
        run.header.target_is_here = false;
        let (history, summary) = run.whole();
        let view = RunView::new(&history, &summary);
        assert!(CpuUse::of(&view, Endpoint::Client)[0].others(&view).is_some());
        assert_eq!(CpuUse::of(&view, Endpoint::Server), []);
    }
}
