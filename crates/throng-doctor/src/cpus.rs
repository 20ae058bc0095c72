//! Who used the CPUs, second by second.

use throng_report::MachineUse;

use crate::history::Sample;
use crate::run_view::{Endpoint, RunView};

/// One machine's CPUs over one interval. Amounts are in CPUs: 1.5 is one and a half of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CpuUse {
    /// The interval's beginning.
    pub(crate) from_ms: u64,
    /// Its end.
    pub(crate) at_ms: u64,
    /// CPUs on line.
    pub(crate) cpus: f64,
    /// Neither idle nor stolen.
    pub(crate) busy: f64,
    /// Given to others by the hypervisor.
    pub(crate) stolen: f64,
    /// The server, where it is on this machine and known.
    pub(crate) server: Option<ProcessCpus>,
    /// The generator, where it is on this machine.
    pub(crate) client: Option<ProcessCpus>,
    /// Time in soft interrupts, some of which is in the three above.
    pub(crate) softirq: Option<f64>,
}

/// One of the two programs over one interval, in CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessCpus {
    /// Taken by all of its threads.
    pub(crate) taken: f64,
    /// That its threads, all together, were ready to use and did not have.
    pub(crate) missed: Option<f64>,
    /// That it may use: all, unless it is held to some of them.
    pub(crate) allowed: f64,
    /// How busy those are, 0 to 1, where they are not all of them.
    pub(crate) own_share: Option<f64>,
    /// Taken by its busiest thread; none where single threads are not known, nor the next two.
    pub(crate) busiest: Option<f64>,
    /// The share of the time that the thread that waited most was ready to run and had no CPU.
    pub(crate) most_delayed: Option<f64>,
    /// Threads that hardly ever rested.
    pub(crate) threads_busy: Option<f64>,
}

impl CpuUse {
    /// The machine of one end, interval by interval, as far as it is known.
    pub(crate) fn of(run: &RunView<'_>, end: Endpoint) -> Vec<Self> {
        // A watch may have longer intervals than the run: what it says spans several of those.
        let known = run.samples().iter().filter(|moment| run.machine(end, moment).is_some());
        let known: Vec<_> = known.collect();
        let pairs = known.windows(2);
        pairs.filter_map(|pair| Self::between(run, end, pair[0], pair[1])).collect()
    }

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
            let used = |moment| cpu_us(run, of, moment);
            let label = if of == Endpoint::Server { "server" } else { "client" };
            let gauge = |name: &str| {
                run.value(of, now, &format!("process.{label}.{name}")).map(|value| value as f64)
            };
            let delay = |moment| {
                run.value(of, moment, &format!("process.{label}.run_delay_us")).map(|us| us as u64)
            };
            Some(ProcessCpus {
                taken: share(used(before)?, used(now)?),
                missed: delay(before).zip(delay(now)).map(|(from, to)| share(from, to)),
                allowed: gauge("cpus_allowed").map_or(cpus, |allowed| allowed.min(cpus)),
                own_share: own_share(run, of, before, now),
                busiest: gauge("busiest_thread_permille").map(|permille| permille / 1000.0),
                most_delayed: gauge("most_delayed_thread_permille")
                    .map(|permille| permille / 1000.0),
                threads_busy: gauge("threads_busy"),
            })
        };
        let (server, client) = (process(Endpoint::Server), process(Endpoint::Client));
        // The kernel samples what a machine is busy with at its ticks, and counts exactly for processes: what sleeps between ticks is seen by
        // the second alone.
        let of_ends: f64 = [server, client].into_iter().flatten().map(|used| used.taken).sum();
        let softirq = |moment| run.value(end, moment, "cpu.softirq_us").map(|us| us as u64);
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

    /// What the two ends took, and would have taken besides.
    pub(crate) fn wanted(&self) -> f64 {
        let ends = [self.server, self.client].into_iter().flatten();
        ends.map(|process| process.taken + process.missed.unwrap_or(0.0)).sum()
    }

    /// The share of the CPUs that somebody had, 0 to 1.
    pub(crate) fn taken_share(&self) -> f64 {
        (self.busy + self.stolen) / self.cpus
    }

    /// The share of the CPUs that was taken: of all, or of those that one of the ends is held to, where that is more.
    pub(crate) fn full_share(&self) -> f64 {
        let ends = [self.server, self.client].into_iter().flatten();
        ends.filter_map(|process| process.own_share).fold(self.taken_share(), f64::max)
    }

    /// What neither of the two ends took. Unknown where both could be here and one cannot be seen.
    pub(crate) fn others(&self, run: &RunView<'_>) -> Option<f64> {
        if run.header.target_is_here && (self.server.is_none() || self.client.is_none()) {
            return None;
        }
        let ends = [self.server, self.client].into_iter().flatten();
        Some((self.busy - ends.map(|process| process.taken).sum::<f64>()).max(0.0))
    }

    /// What others took that cannot be the kernel at work on packets of the run. That work is done in soft interrupts, which belong to
    /// whatever they interrupt, or to nobody.
    pub(crate) fn strangers(&self, run: &RunView<'_>) -> Option<f64> {
        Some((self.others(run)? - self.softirq.unwrap_or(0.0)).max(0.0))
    }
}

/// How busy the CPUs were that an end is held to.
fn own_share(run: &RunView<'_>, end: Endpoint, before: &Sample, now: &Sample) -> Option<f64> {
    let label = if end == Endpoint::Server { "server" } else { "client" };
    let grown = |name: &str| {
        let of = |moment| run.value(end, moment, &format!("process.{label}.{name}"));
        Some((of(now)? - of(before)?).max(0) as f64)
    };
    let (busy, idle) = (grown("cpus_busy_us")?, grown("cpus_idle_us")?);
    (busy + idle > 0.0).then(|| busy / (busy + idle))
}

/// The intervals of which `is_so` is true, where they are enough to say that it lasted.
pub(crate) fn lasting(uses: Vec<CpuUse>, is_so: impl Fn(&CpuUse) -> bool) -> Option<Vec<CpuUse>> {
    let found: Vec<_> = uses.into_iter().filter(is_so).collect();
    (found.len() >= INTERVALS_MIN).then_some(found)
}

/// The mean of several intervals, which is dated to the first of them; none of none.
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

/// `the server 55 %, the generator 40 %, others 3 %`: whoever is known, of all the machine's CPUs.
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

/// `42 %`: finer is no CPU time known.
pub(crate) fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// CPU time of one end's process since it began. The kernel's reader knows servers that are not throng's too.
fn cpu_us(run: &RunView<'_>, end: Endpoint, moment: &Sample) -> Option<u64> {
    let interval = &moment.interval;
    match end {
        Endpoint::Client => {
            let process = &interval.load.as_ref()?.process;
            (process.pid != 0 || process.cpu_us() > 0).then(|| process.cpu_us())
        }
        Endpoint::Server => {
            let seen = run.value(Endpoint::Server, moment, "process.server.cpu_us");
            let said = || Some(interval.server.as_ref()?.process.cpu_us());
            seen.map(|us| us as u64).or_else(said)
        }
    }
}

/// Above this share no CPU is left: the rest is what ticks of 10 ms and the samples between two threads leave.
pub(crate) const FULL_SHARE: f64 = 0.92;

/// So many intervals in which something is so are needed to say that it is: one of a second is the machine's neighbour.
pub(crate) const INTERVALS_MIN: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::fixture::Run;

    /// Seconds in which the server takes 0.5 CPUs, the generator 0.05 of two, and soft interrupts 0.1.
    fn run(busy_us: u64) -> Run {
        Run::quiet()
            .growing("process.server.cpu_us", 7_000, 500_000, 0)
            .growing("cpu.softirq_us", 0, 100_000, 0)
            .changed(move |interval, second| {
                let machine = interval.machine.as_mut().unwrap();
                machine.cpu_busy_us = busy_us * second;
                machine.cpu_idle_us = (2_000_000 - busy_us) * second;
            })
    }

    #[test]
    fn what_neither_end_took_was_others() {
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
    fn a_machine_that_is_heard_of_now_and_then_is_seen_over_all_the_time_between() {
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
