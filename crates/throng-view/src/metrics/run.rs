//! The metrics of a run: the generator's, and those of the machines and programs that it watches.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;
use throng_measure::metric::MetricKind;
use throng_measure::{
    ClassCounters, CounterField, Endpoint, Interval, KernelCounters, LoadInterval, MachineInterval,
    MachineUse, Metric, Operation, PerOperation, ProcessMetric, StepInterval,
};

use super::buckets::BucketCounts;
use super::families::{Families, Labels, by_label, label_value};
use super::name::FamilyName;

/// The metrics of a run as of its last interval. The recorder's thread adds intervals and never
/// waits for a scrape.
#[derive(Debug, Default)]
pub struct RunMetrics {
    state: Mutex<Arc<RunState>>,
}

/// The run so far.
#[derive(Clone, Debug, Default)]
struct RunState {
    labels: Labels,
    /// The last interval, without its histograms; `None` before the first.
    last: Option<Interval>,
    latency: PerOperation<BucketCounts>,
    unanswered: PerOperation<BucketCounts>,
    lag: BucketCounts,
    /// Steps with a name and transactions.
    steps: Vec<StepBuckets>,
}

/// The histograms of the steps of a name so far.
#[derive(Clone, Debug, Default)]
struct StepBuckets {
    name: String,
    latency: BucketCounts,
    unanswered: BucketCounts,
}

impl RunMetrics {
    /// Begins a run. After another run, the counters begin at 0 again, as after a restart.
    pub fn begin(&self, target: &str, scenario: &str) {
        let labels = vec![("target", label_value(target)), ("scenario", label_value(scenario))];
        *self.lock() = Arc::new(RunState { labels, ..RunState::default() });
    }

    /// Adds the next interval.
    pub fn add(&self, interval: &Interval) {
        Arc::make_mut(&mut self.lock()).add(interval);
    }

    fn lock(&self) -> MutexGuard<'_, Arc<RunState>> {
        // An interval is added whole or not at all.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for RunMetrics {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let state = Arc::clone(&self.lock());
        state.write(&mut Families::new(encoder))
    }
}

impl RunState {
    fn add(&mut self, interval: &Interval) {
        if let Some(load) = &interval.load {
            for operation in Operation::ALL {
                self.latency[operation].add(load.latency(operation));
                self.unanswered[operation].add(&load.times.unanswered[operation]);
            }
            self.lag.add(&load.lag);
            for step in &load.steps {
                self.add_step(step);
            }
        }
        self.last = Some(Interval {
            at_ms: interval.at_ms,
            load: interval.load.as_ref().map(LoadInterval::without_measured),
            machine: interval.machine.clone(),
            kernel: interval.kernel.clone(),
            server_kernel: interval.server_kernel.clone(),
            server_machine: interval.server_machine.clone(),
            ..Interval::default()
        });
    }

    fn add_step(&mut self, step: &StepInterval) {
        let known = self.steps.iter().position(|known| known.name == step.name);
        let at = known.unwrap_or_else(|| {
            self.steps.push(StepBuckets { name: step.name.clone(), ..StepBuckets::default() });
            self.steps.len() - 1
        });
        self.steps[at].latency.add(step.best());
        self.steps[at].unanswered.add(&step.unanswered);
    }

    fn write(&self, out: &mut Families<'_>) -> fmt::Result {
        if !self.labels.is_empty() {
            out.info("throng_run", "The run: its target and its scenario.", &self.labels)?;
        }
        let Some(last) = &self.last else { return Ok(()) };
        out.write(
            &FamilyName {
                divisor: 1e3,
                ..FamilyName::with_unit("throng_run_elapsed", Unit::Seconds)
            },
            MetricKind::Gauge,
            "Time from the begin of the run to the end of its last interval.",
            [(Labels::new(), last.at_ms as f64)],
        )?;
        if let Some(load) = &last.load {
            write_load(out, load)?;
            self.write_histograms(out)?;
        }
        let machines = [
            ("generator", last.machine.as_ref(), &last.kernel),
            ("server", last.server_machine.as_ref(), &last.server_kernel),
        ];
        write_machines(out, &machines)?;
        write_programs(out, [&last.kernel, &last.server_kernel])
    }

    fn write_histograms(&self, out: &mut Families<'_>) -> fmt::Result {
        out.histograms(
            "throng_load_latency",
            "Time from the intended moment of an operation until its answer arrived, by the best \
             clock.",
            samples(&self.latency),
        )?;
        out.histograms(
            "throng_load_unanswered",
            "Waits that no answer ended, until they timed out or the user was stopped.",
            samples(&self.unanswered),
        )?;
        let lag = [(Labels::new(), &self.lag)];
        out.histograms("throng_load_lag", "Lag of the generator's own steps.", lag)?;
        if self.steps.is_empty() {
            return Ok(());
        }
        let label = |step: &StepBuckets| vec![("step", label_value(&step.name))];
        out.histograms(
            "throng_load_step_latency",
            "Time from the intended moment of a step with a name until its answer arrived; of a \
             transaction, until its last step ended.",
            self.steps.iter().map(|step| (label(step), &step.latency)),
        )?;
        out.histograms(
            "throng_load_step_unanswered",
            "Waits of steps with a name that no answer ended.",
            self.steps.iter().map(|step| (label(step), &step.unanswered)),
        )
    }
}

/// Returns the histograms of operations that the run does. Every run connects.
fn samples(all: &PerOperation<BucketCounts>) -> impl Iterator<Item = (Labels, &BucketCounts)> {
    let is_done =
        |operation, counts: &BucketCounts| operation == Operation::Connect || counts.count() > 0;
    let done = all.iter().filter(move |(operation, counts)| is_done(*operation, counts));
    done.map(|(operation, counts)| (vec![("operation", operation.to_string())], counts))
}

fn write_load(out: &mut Families<'_>, load: &LoadInterval) -> fmt::Result {
    let phase = vec![("phase", label_value(&load.phase))];
    out.info("throng_load_phase", "The phase of the load.", &phase)?;
    let help = "Whether the load is paused: no user begins.";
    out.gauge("throng_load_paused", help, u64::from(load.paused))?;
    out.gauge("throng_load_cores", "Cores that run.", load.cores)?;
    out.gauge(
        "throng_load_cores_silent",
        "Cores that did not answer in time: their counters are as of their last answer.",
        load.cores_silent,
    )?;
    out.fields("throng_load", load.counters.fields(), |_| true)?;
    out.fields("throng_load_core", load.core.fields(), |_| true)?;
    out.fields("throng_load_probe", load.probe.fields(), |_| true)?;
    let help = "Failed connects by errno, or timeout.";
    out.tally("throng_load_connect_errors", help, "errno", &load.connect_failed)?;
    let help = "Errors of established connections by kind.";
    out.tally("throng_load_errors", help, "kind", &load.errors)?;
    let help = "Answers to HTTP requests by their status.";
    out.tally("throng_load_http_answers", help, "status", &load.http_statuses)?;
    write_classes(out, load)?;
    write_steps(out, load)?;
    write_agents(out, load)?;
    out.own_process(&load.process)
}

/// Writes the counters of each class of users, if there is more than one.
fn write_classes(out: &mut Families<'_>, load: &LoadInterval) -> fmt::Result {
    if load.classes.is_empty() {
        return Ok(());
    }
    for CounterField { name: field, kind, doc, .. } in ClassCounters::default().fields() {
        let of = |counters: &ClassCounters| {
            counters.fields().find(|of| of.name == field).map_or(0, |of| of.value)
        };
        let counts = load.classes.iter().map(|(class, counters)| (class.as_str(), of(counters)));
        let samples = by_label("class", counts);
        out.write(&FamilyName::of_field("throng_load_class", field), kind, doc, samples)?;
    }
    Ok(())
}

/// Returns a counter of the steps of a name.
type CounterOf = fn(&StepInterval) -> u64;

/// Writes the counters of each step with a name and each transaction, if there are any.
fn write_steps(out: &mut Families<'_>, load: &LoadInterval) -> fmt::Result {
    if load.steps.is_empty() {
        return Ok(());
    }
    let counters: [(&str, &str, CounterOf); 3] = [
        ("ok", "Steps with a name that ended as the scenario expects.", |step| step.ok),
        ("errors", "Steps with a name that an error ended.", |step| step.errors),
        ("waiting", "Steps with a name in progress when their user was stopped.", |s| s.waiting),
    ];
    for (field, help, of) in counters {
        let counts = load.steps.iter().map(|step| (step.name.as_str(), of(step)));
        let name = FamilyName::of_field("throng_load_step", field);
        out.write(&name, MetricKind::Counter, help, by_label("step", counts))?;
    }
    Ok(())
}

/// Writes what each machine of a fleet does, if there are several.
fn write_agents(out: &mut Families<'_>, load: &LoadInterval) -> fmt::Result {
    for AgentNumber { field, kind, help, of } in AGENT_NUMBERS {
        let known = load.machines.iter().filter_map(|it| Some((it.name.as_str(), of(it)?)));
        let samples: Vec<_> = by_label("agent", known).collect();
        if !samples.is_empty() {
            let name = FamilyName::of_field("throng_load_agent", field);
            out.write(&name, *kind, help, samples)?;
        }
    }
    Ok(())
}

/// A number of an agent's interval.
struct AgentNumber {
    field: &'static str,
    kind: MetricKind,
    help: &'static str,
    /// The number; `None` if it was not measured.
    of: fn(&MachineInterval) -> Option<u64>,
}

const fn agent_number(
    field: &'static str,
    kind: MetricKind,
    help: &'static str,
    of: fn(&MachineInterval) -> Option<u64>,
) -> AgentNumber {
    AgentNumber { field, kind, help, of }
}

const COUNTER: MetricKind = MetricKind::Counter;
const GAUGE: MetricKind = MetricKind::Gauge;

/// The names are those of the run file.
const AGENT_NUMBERS: &[AgentNumber] = &[
    agent_number("lost", GAUGE, "1 while the agent is lost.", |it| Some(it.lost as u64)),
    agent_number("users_started", COUNTER, "Users that started.", |it| Some(it.users_started)),
    agent_number("users_active", GAUGE, "Users now.", |it| Some(it.users_active)),
    agent_number("connected", GAUGE, "Connections now.", |it| Some(it.connected)),
    agent_number("connects_ok", COUNTER, "Connects established.", |it| Some(it.connects_ok)),
    agent_number("connects_failed", COUNTER, "Connects that failed.", |it| {
        Some(it.connects_failed)
    }),
    agent_number("messages_sent", COUNTER, "Messages sent.", |it| Some(it.messages_sent)),
    agent_number("answered", COUNTER, "Answered requests of all kinds.", |it| Some(it.answered)),
    agent_number("errors", COUNTER, "Errors of established connections.", |it| Some(it.errors)),
    agent_number("cpu_us", COUNTER, "CPU time of its generator.", |it| Some(it.cpu_us)),
    agent_number("rss_bytes", GAUGE, "Resident memory of its generator.", |it| Some(it.rss_bytes)),
    agent_number("lag_us_p99", GAUGE, "p99 of its lag in the interval.", |it| it.lag_us_p99),
    agent_number("connect_us_p99", GAUGE, "p99 of its connects in the interval.", |it| {
        it.connect_us_p99
    }),
    agent_number(
        "message_us_p99",
        GAUGE,
        "p99 of its messages, pushes and HTTP requests in the interval.",
        |it| it.message_us_p99,
    ),
    agent_number("busiest_core_permille", GAUGE, "CPU use of its busiest core.", |it| {
        it.busiest_core_permille
    }),
];

/// A machine, its use, and the counters of its kernel.
type Machine<'a> = (&'static str, Option<&'a MachineUse>, &'a KernelCounters);

fn write_machines(out: &mut Families<'_>, machines: &[Machine<'_>]) -> fmt::Result {
    let used: Vec<_> = machines.iter().filter_map(|(name, of, _)| Some((*name, (*of)?))).collect();
    if !used.is_empty() {
        let cpus = used.iter().map(|(name, of)| (machine(name), of.cpus as f64));
        let name = FamilyName::plain("throng_machine_cpus");
        out.write(&name, MetricKind::Gauge, "CPUs online.", cpus)?;
        let name = FamilyName {
            divisor: 1e6,
            ..FamilyName::with_unit("throng_machine_cpu", Unit::Seconds)
        };
        let times = used.iter().flat_map(|(name, of)| {
            let modes =
                [("busy", of.cpu_busy_us), ("idle", of.cpu_idle_us), ("stolen", of.cpu_stolen_us)];
            modes.map(|(mode, us)| {
                (vec![("machine", (*name).to_owned()), ("mode", mode.to_owned())], us as f64)
            })
        });
        let help = "CPU time of the machine since it booted, over all CPUs.";
        out.write(&name, MetricKind::Counter, help, times)?;
    }
    for metric in Metric::all() {
        let known = machines
            .iter()
            .filter_map(|(name, _, kernel)| Some((machine(name), kernel.get(metric)? as f64)));
        let known = known.collect();
        write_metric(out, "throng_kernel", metric, metric.kind(), metric.name(), known)?;
    }
    Ok(())
}

fn machine(name: &str) -> Labels {
    vec![("machine", name.to_owned())]
}

/// Writes the metrics of generator and server as programs of their machines.
fn write_programs(out: &mut Families<'_>, kernels: [&KernelCounters; 2]) -> fmt::Result {
    for metric in ProcessMetric::all() {
        let ends = [(Endpoint::Client, "generator"), (Endpoint::Server, "server")];
        let known = ends.into_iter().filter_map(|(end, name)| {
            let value = kernels.iter().find_map(|kernel| kernel.get(metric.of(end)))?;
            Some((vec![("program", name.to_owned())], value as f64))
        });
        let recorded = metric.client.name();
        let name = recorded.rsplit('.').next().unwrap_or(recorded);
        let kind =
            if SHRINKING.contains(&metric) { MetricKind::Gauge } else { metric.client.kind() };
        write_metric(out, "throng_program", metric.client, kind, name, known.collect())?;
    }
    Ok(())
}

/// Writes a metric that is known of at least one machine or program.
fn write_metric(
    out: &mut Families<'_>,
    prefix: &str,
    metric: Metric,
    kind: MetricKind,
    name: &str,
    known: Vec<(Labels, f64)>,
) -> fmt::Result {
    if known.is_empty() {
        return Ok(());
    }
    let name = FamilyName::of_metric(prefix, name, metric.unit());
    out.write(&name, kind, metric.doc(), known)
}

/// Times of the threads that a program has now. A thread that ends takes its time with it, and a
/// counter that shrinks is a restart for Prometheus: these are gauges there.
const SHRINKING: [ProcessMetric; 2] = [ProcessMetric::RUN_US, ProcessMetric::RUN_DELAY_US];
