//! One sample of the kernel a second: everything that a run records.
//!
//! The counters and gauges are the metrics of one table ([`Metric`]), so that rules, reports and
//! people use the same names. An absent metric is unknown in that second, never zero.

mod proc_files;
mod process_tree;
mod programs;
mod record;
mod reports;
mod stretches;
mod threads;
mod unread;

use std::collections::{BTreeSet, HashMap};
use std::marker::PhantomData;

use throng_base::time::Instant;
use throng_measure::{
    Endpoint, EndpointFacts, MachineUse, Metric, ProcessMetric, ProcessUse, RunEventKind,
};

use crate::cgroup::CgroupReader;
use crate::cpu::OneCpu;
use crate::endpoint_facts::kernel_facts;
use crate::fact::{Fact, Reason, Unknown};
use crate::fds::{FdKinds, count_fds, fd_kinds, is_full};
use crate::limits::limits;
use crate::listener_scope::ListenerScope;
use crate::listeners::{ListenerReader, ListenerSummary};
use crate::owner::holds_one;
use crate::proc_root::ProcRoot;
use crate::process::{cpus_allowed, is_there, process_use};
use crate::socket_count_meter::SocketCountMeter;

use proc_files::{NetworkCounters, ProcFiles};
use process_tree::ProcessTree;
use programs::ProgramMeter;
pub use record::{KernelSample, ProcessSample};
use reports::ReportsLeft;
use stretches::{STEP, StretchMeter};
use threads::{BUSY_PERMILLE, BusyThread, ThreadId, ThreadMeter};
use unread::UnreadMeter;

/// The sources of a sampler.
#[derive(Clone, Debug, Default)]
pub struct SamplerOptions {
    /// Where to read. A recorded machine has no listeners to query.
    pub root: ProcRoot,
    /// Listeners to sample.
    pub scope: ListenerScope,
    /// Processes to sample. Control groups are those of the first one, or of this process.
    pub processes: Vec<WatchedProcess>,
    /// True to count the established connections of the listeners, too. The kernel describes each
    /// one to the sampler.
    pub counts_established: bool,
}

/// A process to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedProcess {
    /// The program that it belongs to.
    pub program: Endpoint,
    /// Process id.
    pub pid: u32,
    /// Processes of the same program: workers that share its listener. Its children always count as
    /// part of it.
    pub also: Vec<u32>,
}

/// Reads a sample once a second.
///
/// It sees the network namespace of the thread that creates it, through files that stay open in
/// that thread's fd table. Hence it stays on that thread. It holds about 20 fds.
#[derive(Debug)]
pub struct Sampler {
    root: ProcRoot,
    scope: ListenerScope,
    processes: Vec<KnownProcess>,
    /// Processes that belong to the run and are sampled elsewhere.
    excluded: BTreeSet<u32>,
    programs: ProgramMeter,
    /// Range of the next sample's `gap_cpu_us`.
    gap: Option<(Instant, Instant)>,
    /// Each CPU, as of the last sample.
    cpus: Vec<OneCpu>,
    /// CPU time of the machine and of the sampled programs at the previous sample.
    before: Option<(MachineUse, u64)>,
    files: ProcFiles,
    /// Facts that each sample repeats.
    constants: EndpointFacts,
    /// Reasons why others are unknown.
    constants_unknown: Vec<Unknown>,
    cgroups: CgroupReader,
    listeners: ListenerReader,
    syn_recv: SocketCountMeter,
    /// Sockets that listen for the server, as of the last sample, if they are known.
    inodes: BTreeSet<u64>,
    /// Connections that the server does not read, if its listeners are known.
    unread: Option<UnreadMeter>,
    /// The schedule for established connections, if they are counted.
    established: Option<SocketCountMeter>,
    stays_on_its_thread: PhantomData<*const ()>,
}

/// A sampled process, and what is kept of it since it was first seen.
#[derive(Debug)]
struct KnownProcess {
    watched: WatchedProcess,
    /// True if it has been seen, when it was named or in a sample.
    was_there: bool,
    rss_bytes_at_start: Option<u64>,
    /// Soft [`Limit::FDS`](throng_measure::Limit::FDS) of the process.
    fds_max: Option<u64>,
    /// Processes whose nearly full table was reported.
    fds_reported: BTreeSet<u32>,
    groups: CgroupReader,
    threads: ThreadMeter,
    process_tree: ProcessTree,
    /// The moment of the last sample of these processes.
    sampled_at: Option<Instant>,
    /// Whether a process holds a listener, for each that was looked at.
    holders: HashMap<u32, bool>,
    reports: ReportsLeft,
    stretches: StretchMeter,
    stepped_at: Option<Instant>,
}

impl Sampler {
    /// Opens the files that can be opened; each sample tries the others again.
    pub fn new(options: SamplerOptions) -> Self {
        let root = options.root;
        let pid = options.processes.first().map_or_else(std::process::id, |process| process.pid);
        let (constants, constants_unknown) = kernel_facts(&root);
        // Of all listeners, the count would include the clients' sockets on loopback.
        let is_scoped = options.scope != ListenerScope::All;
        let counts_established = options.counts_established && is_scoped;
        let meters = 1 + u32::from(is_scoped) + u32::from(counts_established);
        Self {
            files: ProcFiles::new(&root),
            constants,
            constants_unknown,
            scope: options.scope,
            processes: options
                .processes
                .into_iter()
                .map(|watched| KnownProcess::new(&root, watched))
                .collect(),
            excluded: BTreeSet::new(),
            programs: ProgramMeter::default(),
            gap: None,
            cpus: Vec::new(),
            before: None,
            cgroups: CgroupReader::locate(&root, pid),
            listeners: ListenerReader::default(),
            syn_recv: SocketCountMeter::new(meters),
            inodes: BTreeSet::new(),
            unread: is_scoped.then(|| UnreadMeter::new(SocketCountMeter::new(meters))),
            established: counts_established.then(|| SocketCountMeter::new(meters)),
            stays_on_its_thread: PhantomData,
            root,
        }
    }

    /// Reads a sample. `now` decides whether it counts half-open connections. `doctor.sample_us` is
    /// the time that the sample took.
    pub fn sample(&mut self, now: Instant) -> KernelSample {
        let began = std::time::Instant::now();
        let mut out = KernelSample::default();
        self.constants.of_kernel().for_each(|(metric, value)| out.counters.set(metric, value));
        out.unknown.extend(self.constants_unknown.iter().cloned());
        let network = self.files.network(&mut out);
        if let Some(cpus) = self.files.machine(&mut out) {
            self.cpus = cpus;
        }
        self.files.conntrack(&mut out);
        self.groups(&mut out);
        self.listeners(&mut out, now, network);
        self.watched(&mut out, now + began.elapsed());
        self.others(&mut out, now + began.elapsed());
        out.set(Metric::DOCTOR_SAMPLE_US, began.elapsed().as_micros() as u64);
        out
    }

    /// Samples this process from now on, in place of the one of the same program. Control groups
    /// are then this process's.
    pub fn watch(&mut self, watched: WatchedProcess) {
        self.cgroups = CgroupReader::locate(&self.root, watched.pid);
        self.processes.retain(|known| known.watched.program != watched.program);
        self.processes.insert(0, KnownProcess::new(&self.root, watched));
        // The CPU time of other programs is the machine's less that of the sampled ones, which have
        // changed.
        self.before = None;
    }

    /// Excludes a process from the other programs: it belongs to the run and is sampled elsewhere.
    pub fn exclude(&mut self, pid: u32) {
        self.excluded.insert(pid);
    }

    /// Requests the CPU time that the sampled programs used between two times. The next sample has
    /// it as `gap_cpu_us`.
    pub fn request_gap_cpu(&mut self, from: Instant, to: Instant) {
        self.gap = Some((from, to));
    }

    /// Follows the CPU time of the sampled programs between two samples. Call it about every 20 ms:
    /// more often has no effect, less often loses detail.
    pub fn step(&mut self, now: Instant) {
        for known in &mut self.processes {
            let is_due = known.stepped_at.is_none_or(|at| now.since(at) >= STEP);
            if is_due && let Some(cpu_us) = known.process_tree.cpu_us_now(&self.root) {
                known.stretches.step(now, cpu_us);
                known.stepped_at = Some(now);
            }
        }
    }

    /// Reads the control groups of the first process.
    fn groups(&mut self, out: &mut KernelSample) {
        if let Some(found) = out.take(self.cgroups.cpu()) {
            out.set_some(Metric::CGROUP_CPU_LIMIT_MILLICPUS, found.limit_millicpus);
            out.set(Metric::CGROUP_CPU_THROTTLED, found.throttled);
            out.set(Metric::CGROUP_CPU_THROTTLED_US, found.throttled_us);
        }
        if let Some(found) = out.take(self.cgroups.memory()) {
            out.set_some(Metric::CGROUP_MEMORY_LIMIT_BYTES, found.limit_bytes);
            out.set(Metric::CGROUP_MEMORY_USED_BYTES, found.used_bytes);
            out.set(Metric::CGROUP_MEMORY_LIMIT_HITS, found.limit_hits);
            out.set(Metric::CGROUP_MEMORY_OOM_KILLS, found.oom_kills);
        }
    }

    /// Reads the listeners and, from time to time, their half-open and established connections.
    fn listeners(&mut self, out: &mut KernelSample, mut now: Instant, network: NetworkCounters) {
        if !self.root.is_live() {
            return;
        }
        let Some(all) = out.take(self.listeners.listeners()) else { return };
        let mine = self.scope.select(&all);
        if self.scope != ListenerScope::All {
            self.inodes = mine.iter().map(|listener| u64::from(listener.inode)).collect();
        }
        let mine = ListenerSummary::of(&mine);
        out.set(Metric::LISTENER_COUNT, mine.listeners);
        out.set(Metric::LISTENER_ACCEPT_QUEUE, mine.accept_queue);
        out.set(Metric::LISTENER_ACCEPT_QUEUE_MOST, mine.accept_queue_most);
        out.set(Metric::LISTENER_BEHIND, mine.behind);
        out.set(Metric::LISTENER_FULL, mine.full);
        if mine.listeners > 0 {
            out.set(Metric::LISTENER_BACKLOG, mine.backlog);
        }
        out.set_some(Metric::LISTENER_DROPS, mine.drops);
        if self.syn_recv.is_due(now, network.listen_drops, network.sockets) {
            let began = std::time::Instant::now();
            let count = out.take(self.listeners.syn_recv(&all, &self.scope));
            let cost = began.elapsed();
            now += cost;
            self.syn_recv.record(now, cost);
            out.set_some(Metric::LISTENER_SYN_RECV, count);
            out.set(Metric::DOCTOR_SYN_RECV_US, cost.as_micros() as u64);
        }
        if let Some(meter) = &mut self.unread {
            let listeners = (&all[..], &self.scope);
            meter.sample(out, now, network.sockets, &mut self.listeners, listeners);
        }
        // Drops say nothing about established connections.
        if let Some(meter) = &mut self.established
            && meter.is_due(now, None, network.sockets)
        {
            let began = std::time::Instant::now();
            let count = out.take(self.listeners.established(&all, &self.scope));
            let cost = began.elapsed();
            meter.record(now + cost, cost);
            out.set_some(Metric::LISTENER_ESTABLISHED, count);
        }
    }

    /// Reads the sampled processes.
    fn watched(&mut self, out: &mut KernelSample, now: Instant) {
        let between = self.gap.take();
        for known in &mut self.processes {
            let KnownProcess { watched, was_there, rss_bytes_at_start, fds_max, groups, .. } =
                known;
            let used = process_use(&self.root, watched.pid).map(|used| {
                let at_start = *rss_bytes_at_start.get_or_insert(used.rss_bytes);
                ProcessUse { rss_bytes_at_start: at_start, ..used }
            });
            let program = watched.program;
            // A process that has ended is not unknown: an event reports its end.
            let is_gone = used.why().is_some_and(|why| why.reason == Reason::Missing);
            *was_there |= used.known().is_some();
            if is_gone && *was_there {
                out.processes.push(ProcessSample { program, used });
                continue;
            }
            // A process may change its own limit, and `prlimit` that of another.
            if let Some(limits) = out.take(limits(&self.root, watched.pid)) {
                *fds_max = limits.open_files.soft;
            }
            out.set_some(ProcessMetric::FDS_MAX.of(program), *fds_max);
            // Errors of the control group are reported once, for the first process.
            if let Fact::Known(group) = groups.cpu() {
                out.set(ProcessMetric::THROTTLED_US.of(program), group.throttled_us);
                let limit = group.limit_millicpus;
                out.set_some(ProcessMetric::CPU_LIMIT_MILLICPUS.of(program), limit);
            }
            if let Fact::Known(allowed) = cpus_allowed(&self.root, watched.pid) {
                record_allowed_cpus(program, &allowed, &self.cpus, out);
            }
            out.processes.push(ProcessSample { program, used });
            let used = between.and_then(|(from, to)| known.stretches.used_between(from, to));
            out.set_some(ProcessMetric::GAP_CPU_US.of(program), used);
            known.record_process_tree(&self.root, out, now, &self.inodes);
            known.record_threads(&self.root, out, now);
            known.record_fds(&self.root, &mut self.listeners, out);
        }
    }

    /// Looks for other programs while the sampled ones do not explain how busy the machine is.
    fn others(&mut self, out: &mut KernelSample, now: Instant) {
        let used = |known: &KnownProcess| {
            out.counters.get(ProcessMetric::CPU_US.of(known.watched.program))
        };
        let ours_us: u64 = self.processes.iter().filter_map(used).map(|us| us as u64).sum();
        let Some(machine) = out.machine.clone() else { return };
        let before = self.before.replace((machine.clone(), ours_us));
        let is_busy = before.is_some_and(|(then, then_us)| {
            let busy_us = machine.cpu_busy_us.saturating_sub(then.cpu_busy_us);
            let idle_us = machine.cpu_idle_us.saturating_sub(then.cpu_idle_us);
            let others_us = busy_us.saturating_sub(ours_us.saturating_sub(then_us));
            others_us > (busy_us + idle_us) / OTHERS_ONE_IN
        });
        if self.programs.is_due(now, is_busy) {
            let watched = self.processes.iter().flat_map(|known| known.process_tree.members());
            let ours: BTreeSet<u32> = watched.chain(self.excluded.iter().copied()).collect();
            let found = self.programs.scan(&self.root, now, &ours);
            if is_busy {
                out.programs = found;
            }
        }
    }
}

impl KnownProcess {
    fn new(root: &ProcRoot, watched: WatchedProcess) -> Self {
        Self {
            was_there: is_there(root, watched.pid),
            rss_bytes_at_start: None,
            fds_max: None,
            fds_reported: BTreeSet::new(),
            groups: CgroupReader::locate(root, watched.pid),
            threads: ThreadMeter::default(),
            process_tree: ProcessTree::new(watched.pid, watched.also.clone()),
            sampled_at: None,
            holders: HashMap::new(),
            reports: ReportsLeft::default(),
            stretches: StretchMeter::default(),
            stepped_at: None,
            watched,
        }
    }

    /// Counts the open fds. What they are is read once, when the server's table is nearly full.
    fn record_fds(
        &mut self,
        root: &ProcRoot,
        listeners: &mut ListenerReader,
        out: &mut KernelSample,
    ) {
        let program = self.watched.program;
        let count = |pid: u32| Some((*count_fds(root, pid).known()?, pid));
        let most = self.process_tree.members().into_iter().filter_map(count).max();
        out.set_some(ProcessMetric::FDS.of(program), most.map(|(open, _)| open));
        let Some((open, pid)) = most else { return };
        // The limit is that of the same process: a worker may have another than its parent.
        let own = limits(root, pid).known().and_then(|limits| limits.open_files.soft);
        let Some(fds_max) = own.or(self.fds_max) else { return };
        out.set(ProcessMetric::FDS_MAX.of(program), fds_max);
        if !is_full(open, fds_max) || program != Endpoint::Server || !self.fds_reported.insert(pid)
        {
            return;
        }
        let close_wait = listeners.close_wait().known().cloned().unwrap_or_default();
        let Some(kinds) = fd_kinds(root, pid, &close_wait).known().cloned() else { return };
        let FdKinds { sockets, close_wait, files, path, of_path } = kinds;
        out.events.push(RunEventKind::ServerFdsFull {
            pid,
            open,
            fds_max,
            sockets,
            close_wait,
            files,
            path,
            of_path,
        });
    }

    /// Reads the CPU time and memory of the program's processes. `inodes` are the sockets that
    /// listen for the server.
    fn record_process_tree(
        &mut self,
        root: &ProcRoot,
        out: &mut KernelSample,
        now: Instant,
        inodes: &BTreeSet<u64>,
    ) {
        let program = self.watched.program;
        if let Some(used) = self.process_tree.sample(root) {
            let mut set = |metric: ProcessMetric, value| out.set(metric.of(program), value);
            set(ProcessMetric::CPU_US, used.cpu_us);
            set(ProcessMetric::RSS_BYTES, used.rss_bytes);
            set(ProcessMetric::PROCESSES, used.processes);
            set(ProcessMetric::PROCESSES_ENDED, used.ended);
            set(ProcessMetric::STOPPED, used.stopped);
            set(ProcessMetric::UNINTERRUPTIBLE, used.uninterruptible);
            let before = self.sampled_at.replace(now);
            let holders = &mut self.holders;
            used.ended_now.iter().for_each(|(pid, _)| _ = holders.remove(pid));
            let mut holds = |pid| {
                !inodes.is_empty()
                    && *holders.entry(pid).or_insert_with(|| holds_one(root, pid, inodes))
            };
            let workers =
                before.and_then(|at| self.process_tree.workers(now.since(at), &mut holds));
            if let Some(workers) = workers {
                set(ProcessMetric::WORKERS, workers.workers);
                set(ProcessMetric::WORKERS_IDLE, workers.idle);
            }
            let left = self.reports.of_ends(program, used.ended_now.len());
            for (pid, program) in used.ended_now.into_iter().take(left) {
                out.events.push(RunEventKind::ServerWorkerEnded { pid, program });
            }
        }
        if let Some(stretches) = self.stretches.take() {
            out.set(ProcessMetric::BUSY_MS_MOST.of(program), stretches.busy_ms);
            out.set(ProcessMetric::IDLE_MS_MOST.of(program), stretches.idle_ms);
        }
    }

    /// Reads the threads of the program's processes, and reports which is the busiest.
    fn record_threads(&mut self, root: &ProcRoot, out: &mut KernelSample, now: Instant) {
        let program = self.watched.program;
        if !self.threads.is_due(now) {
            return;
        }
        let Some(found) = out.take(self.process_tree.threads(root)) else { return };
        let used = self.threads.measure(now, &found, |id| thread_name(root, id));
        used.record(program, out);
        let Some(BusyThread { id, name, permille }) = used.busiest else { return };
        if permille > BUSY_PERMILLE && self.reports.is_new_thread(program, id.pid, &name) {
            let program = self.process_tree.program(id.pid).unwrap_or_default().to_owned();
            let (pid, is_main) = (id.pid, id.pid == id.tid);
            let thread = name;
            let busy = RunEventKind::ServerThreadBusy { pid, program, thread, is_main, permille };
            out.events.push(busy);
        }
    }
}

/// Returns the name of a thread, or an empty one if it has ended.
fn thread_name(root: &ProcRoot, ThreadId { pid, tid }: ThreadId) -> String {
    let name = root.text(&format!("proc/{pid}/task/{tid}/comm")).into_result();
    name.unwrap_or_default().trim_end().to_owned()
}

/// Records how many CPUs a program may use, and how busy they are if they are not all of the
/// machine's.
fn record_allowed_cpus(program: Endpoint, allowed: &[u32], all: &[OneCpu], out: &mut KernelSample) {
    let own: Vec<_> = all.iter().filter(|one| allowed.contains(&one.cpu)).collect();
    // A mask may name CPUs that the machine could have but does not have.
    let count = if own.is_empty() { allowed.len() } else { own.len() };
    out.set(ProcessMetric::CPUS_ALLOWED.of(program), count as u64);
    if !own.is_empty() && own.len() < all.len() {
        out.set_sum(ProcessMetric::CPUS_BUSY_US.of(program), own.iter().map(|one| one.busy_us));
        out.set_sum(ProcessMetric::CPUS_IDLE_US.of(program), own.iter().map(|one| one.idle_us));
    }
}

/// The share of the CPUs, one in so many, above which other programs are looked for.
const OTHERS_ONE_IN: u64 = 10;

#[cfg(test)]
mod tests {
    use throng_measure::{Endpoint, ProcessMetric};

    use super::*;
    use crate::fact::{Reason, Unknown};
    use crate::recorded_root;

    fn sample(kernel: &str) -> KernelSample {
        let root = recorded_root(kernel);
        let processes =
            vec![WatchedProcess { program: Endpoint::Server, pid: 4242, also: Vec::new() }];
        Sampler::new(SamplerOptions { root, processes, ..Default::default() })
            .sample(Instant::from_nanos(1))
    }

    #[test]
    fn a_recorded_machine_is_sampled_whole() {
        let found = sample("linux-6.18");
        assert_eq!(found.unknown, []);
        assert_eq!(found.machine.as_ref().unwrap().cpus, 2);
        assert_eq!(found.counters[ProcessMetric::THREADS.server], 2);
        assert_eq!(found.counters[ProcessMetric::FDS_MAX.server], 20_000);
        assert_eq!(found.counters[Metric::SYSCTL_NET_CORE_SOMAXCONN], 4096);
        assert_eq!(found.counters[ProcessMetric::RUN_US.server], 335_687);
        assert_eq!(found.counters[Metric::CONNTRACK_MAX], 262_144);
        let used = found.processes[0].used.known().unwrap();
        assert_eq!(used.rss_bytes_at_start, used.rss_bytes);
    }

    #[test]
    fn an_older_kernel_leaves_out_what_it_does_not_know() {
        let found = sample("linux-4.19");
        assert_eq!(found.counters[Metric::TCPEXT_LISTEN_OVERFLOWS], 311);
        assert_eq!(found.counters[Metric::SOFTNET_DROPPED], 0x502 + 0x81);
        assert!(found.counters.get(Metric::TCPEXT_TCP_MIGRATE_REQ_FAILURE).is_none());
        assert!(found.counters.get(Metric::PRESSURE_CPU_SOME_US).is_none());
        let source =
            |why: &Unknown| why.source == "proc/pressure/cpu" && why.reason == Reason::Missing;
        assert!(found.unknown.iter().any(source), "{:?}", found.unknown);
    }

    #[test]
    fn where_nothing_can_be_read_nothing_is_zero() {
        let found = sample("empty");
        assert_eq!(
            found.counters.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            [Metric::DOCTOR_SAMPLE_US.name()]
        );
        assert_eq!(found.machine, None);
        assert!(found.processes[0].used.known().is_none());
        assert!(found.unknown.len() >= 15, "{:?}", found.unknown);
        assert!(found.unknown.iter().all(|why| why.reason == Reason::Missing));
    }
}
