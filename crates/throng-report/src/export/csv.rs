//! CSV: a row for each interval and metric, for spreadsheets and data frames.
//!
//! A metric has the name of its part of the run file before its own: `load.connects_ok`,
//! `server.open`, `kernel.TcpExt.ListenDrops`. What each core has gets the core's number after it:
//! `server.open_per_core.0`. What each machine of a fleet has gets its name:
//! `load.machines.agent-1.connected`. A latency has one row for each of its statistics, and no part
//! before it: `message.p99`. What was not measured has no row.

use std::io::{self, Write};

use throng_measure::CounterField;
use throng_measure::metric::{Metric, MetricUnit};
use throng_measure::{
    Histogram, Interval, KernelCounters, LatencyStats, LatencySummary, LoadInterval,
    MachineInterval, MachineUse, Operation, OperationCounts, OperationInterval, ProcessUse,
    ServerSnapshot, StepInterval, Tally,
};

use crate::render::escape;
use crate::summary::name_of_class_operation;

/// Writes intervals as CSV (RFC 4180, with plain line feeds) while they are read. Stores nothing.
#[derive(Debug)]
pub struct CsvExport<W> {
    out: W,
    at_s: String,
}

impl<W: Write> CsvExport<W> {
    /// Starts with the head.
    ///
    /// # Errors
    /// `out` cannot be written.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(b"at_s,metric,kind,unit,value\n")?;
        Ok(Self { out, at_s: String::new() })
    }

    /// Writes the rows of the next interval.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn add(&mut self, interval: &Interval) -> io::Result<()> {
        self.at_s = format!("{}.{:03}", interval.at_ms / 1000, interval.at_ms % 1000);
        self.row("span_ms", "gauge", "ms", interval.span_ms)?;
        if let Some(load) = &interval.load {
            self.load(load)?;
        }
        if let Some(server) = &interval.server {
            self.server(server)?;
        }
        for (side, machine) in
            [("machine", &interval.machine), ("server_machine", &interval.server_machine)]
        {
            if let Some(machine) = machine {
                self.machine(side, machine)?;
            }
        }
        self.kernel("kernel", &interval.kernel)?;
        self.kernel("server_kernel", &interval.server_kernel)
    }

    /// Returns the output, for its end.
    pub fn into_inner(self) -> W {
        self.out
    }

    fn load(&mut self, load: &LoadInterval) -> io::Result<()> {
        self.fields("load", load.counters.fields())?;
        self.fields("load.core", load.core.fields())?;
        self.row("load.cores", "gauge", "", load.cores)?;
        self.row("load.cores_silent", "gauge", "", load.cores_silent)?;
        self.row("load.paused", "gauge", "", u64::from(load.paused))?;
        self.process("load.process", &load.process)?;
        self.per_core("load.cpu_us_per_core", "counter", "us", &load.cpu_us_per_core)?;
        self.tally("load.connect_failed", &load.connect_failed)?;
        self.tally("load.errors", &load.errors)?;
        if load.probe != Default::default() {
            self.fields("load.probe", load.probe.fields())?;
        }
        for (class, counters) in &load.classes {
            self.fields(&format!("load.classes.{class}"), counters.fields())?;
        }
        for (class, operations) in &load.class_operations {
            for (operation, of) in operations.iter().filter(|(_, of)| !of.is_unused()) {
                self.operation_of_class(&name_of_class_operation(class, operation), of)?;
            }
        }
        load.machines.iter().try_for_each(|machine| self.machine_of_fleet(machine))?;
        for operation in Operation::ALL {
            self.latency(operation.name(), load.latency(operation))?;
        }
        self.latency("lag", &load.lag)?;
        for operation in Operation::with_waits() {
            self.latency(&format!("unanswered.{operation}"), &load.times.unanswered[operation])?;
        }
        for (name, stats) in &load.latency_stats {
            self.stats(name, stats)?;
        }
        load.steps.iter().try_for_each(|step| self.step(step))
    }

    fn machine_of_fleet(&mut self, of: &MachineInterval) -> io::Result<()> {
        let name = format!("load.machines.{}", of.name);
        for (field, kind, unit, value) in [
            ("lost", "gauge", "", u64::from(of.lost)),
            ("users_started", "counter", "", of.users_started),
            ("users_active", "gauge", "", of.users_active),
            ("connected", "gauge", "", of.connected),
            ("connects_ok", "counter", "", of.connects_ok),
            ("connects_failed", "counter", "", of.connects_failed),
            ("messages_sent", "counter", "", of.messages_sent),
            ("answered", "counter", "", of.answered),
            ("errors", "counter", "", of.errors),
            ("cpu_us", "counter", "us", of.cpu_us),
            ("rss_bytes", "gauge", "bytes", of.rss_bytes),
        ] {
            self.row(&format!("{name}.{field}"), kind, unit, value)?;
        }
        for (field, kind, unit, value) in [
            ("lag.p99", "latency", "us", of.lag_us_p99),
            ("connect.p99", "latency", "us", of.connect_us_p99),
            ("message.p99", "latency", "us", of.message_us_p99),
            ("busiest_core", "gauge", "permille", of.busiest_core_permille),
        ] {
            if let Some(value) = value {
                self.row(&format!("{name}.{field}"), kind, unit, value)?;
            }
        }
        match &of.machine {
            Some(machine) => self.machine(&format!("{name}.machine"), machine),
            None => Ok(()),
        }
    }

    fn operation_of_class(&mut self, name: &str, of: &OperationInterval) -> io::Result<()> {
        let OperationCounts { started, ok, failed, waiting, .. } = of.counts;
        for (field, n) in
            [("started", started), ("ok", ok), ("failed", failed), ("waiting", waiting)]
        {
            self.row(&format!("{name}.{field}"), "counter", "", n)?;
        }
        self.latency(name, of.best())?;
        self.latency(&format!("unanswered.{name}"), &of.unanswered)
    }

    fn step(&mut self, step: &StepInterval) -> io::Result<()> {
        let name = format!("step.{}", step.name);
        self.row(&format!("{name}.ok"), "counter", "", step.ok)?;
        self.row(&format!("{name}.errors"), "counter", "", step.errors)?;
        self.row(&format!("{name}.waiting"), "counter", "", step.waiting)?;
        self.latency(&name, step.best())?;
        self.latency(&format!("unanswered.{name}"), &step.unanswered)
    }

    fn server(&mut self, server: &ServerSnapshot) -> io::Result<()> {
        self.fields("server", server.counters.fields())?;
        self.fields("server.core", server.core.fields())?;
        self.row("server.cores", "gauge", "", server.cores)?;
        self.row("server.cores_silent", "gauge", "", server.cores_silent)?;
        self.tally("server.accept_errors", &server.accept_errors)?;
        self.tally("server.tls_errors", &server.tls_errors)?;
        self.per_core("server.open_per_core", "gauge", "", &server.open_per_core)?;
        self.per_core("server.mailbox_per_core", "gauge", "", &server.mailbox_per_core)?;
        self.per_core("server.cpu_us_per_core", "counter", "us", &server.cpu_us_per_core)?;
        self.process("server.process", &server.process)
    }

    fn per_core(&mut self, name: &str, kind: &str, unit: &str, of: &[u64]) -> io::Result<()> {
        for (core, value) in of.iter().enumerate() {
            self.row(&format!("{name}.{core}"), kind, unit, *value)?;
        }
        Ok(())
    }

    fn machine(&mut self, side: &str, machine: &MachineUse) -> io::Result<()> {
        let MachineUse { cpus, cpu_busy_us, cpu_idle_us, cpu_stolen_us } = machine;
        self.row(&format!("{side}.cpus"), "gauge", "", *cpus)?;
        self.row(&format!("{side}.cpu_busy_us"), "counter", "us", *cpu_busy_us)?;
        self.row(&format!("{side}.cpu_idle_us"), "counter", "us", *cpu_idle_us)?;
        self.row(&format!("{side}.cpu_stolen_us"), "counter", "us", *cpu_stolen_us)
    }

    fn process(&mut self, name: &str, process: &ProcessUse) -> io::Result<()> {
        if !process.is_known() {
            return Ok(());
        }
        self.row(&format!("{name}.cpu_user_us"), "counter", "us", process.cpu_user_us)?;
        self.row(&format!("{name}.cpu_system_us"), "counter", "us", process.cpu_system_us)?;
        self.row(&format!("{name}.rss_bytes"), "gauge", "bytes", process.rss_bytes)
    }

    fn tally(&mut self, name: &str, tally: &Tally) -> io::Result<()> {
        for (kind, n) in &tally.0 {
            self.row(&format!("{name}.{kind}"), "counter", "", *n)?;
        }
        Ok(())
    }

    fn latency(&mut self, name: &str, latency: &Histogram) -> io::Result<()> {
        if latency.is_empty() {
            return Ok(());
        }
        let LatencySummary { p50, p90, p95, p99, p999, max, mean, count } = latency.into();
        self.row(&format!("{name}.count"), "amount", "", count)?;
        for (statistic, us) in [
            ("p50", p50),
            ("p90", p90),
            ("p95", p95),
            ("p99", p99),
            ("p999", p999),
            ("max", max),
            ("mean", mean),
        ] {
            self.row(&format!("{name}.{statistic}"), "latency", "us", us)?;
        }
        Ok(())
    }

    /// Writes what is known of a latency without its values.
    fn stats(&mut self, name: &str, stats: &LatencyStats) -> io::Result<()> {
        self.row(&format!("{name}.count"), "amount", "", stats.count)?;
        let known = [
            ("mean", Some(stats.mean_us)),
            ("deviation", stats.deviation_us),
            ("min", stats.min_us),
            ("max", stats.max_us),
        ];
        let percentiles = &stats.percentiles_us;
        let percentiles = percentiles.iter().map(|(name, us)| (name.as_str(), Some(*us)));
        for (statistic, us) in percentiles.chain(known) {
            if let Some(us) = us {
                self.row(&format!("{name}.{statistic}"), "latency", "us", us.round())?;
            }
        }
        Ok(())
    }

    fn fields(&mut self, of: &str, fields: impl Iterator<Item = CounterField>) -> io::Result<()> {
        for CounterField { name, kind, value, .. } in fields {
            self.row(&format!("{of}.{name}"), &kind.to_string(), unit_of_field(name), value)?;
        }
        Ok(())
    }

    fn kernel(&mut self, side: &str, kernel: &KernelCounters) -> io::Result<()> {
        for (name, value) in kernel.iter() {
            // A newer version may have recorded metrics that this one does not know.
            let metric = Metric::named(name);
            let kind = metric.map_or_else(String::new, |metric| metric.kind().to_string());
            let unit = metric.map_or("", |metric| unit(metric.unit()));
            self.row(&format!("{side}.{name}"), &kind, unit, value)?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        metric: &str,
        kind: &str,
        unit: &str,
        value: impl std::fmt::Display,
    ) -> io::Result<()> {
        // Every metric begins with a word of ours, so that no spreadsheet takes it for a formula.
        writeln!(self.out, "{},{},{kind},{unit},{value}", self.at_s, quoted(metric))
    }
}

/// Returns a cell, in quotes if it must be. A name from outside is one line, and no command to a
/// terminal.
pub(super) fn quoted(cell: &str) -> String {
    let cell = escape(cell);
    if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

fn unit_of_field(field: &str) -> &'static str {
    match () {
        () if field.ends_with("_us") || field.ends_with("_us_most") => "us",
        () if field.ends_with("_bytes") || field.starts_with("bytes_") => "bytes",
        () => "",
    }
}

/// Returns the unit as one word of ASCII.
fn unit(unit: MetricUnit) -> &'static str {
    match unit {
        MetricUnit::Number => "",
        MetricUnit::Bytes => "bytes",
        MetricUnit::Pages => "pages",
        MetricUnit::Us => "us",
        MetricUnit::Ms => "ms",
        MetricUnit::Permille => "permille",
        MetricUnit::Millicpus => "millicpus",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(interval: &Interval) -> String {
        let mut csv = CsvExport::new(Vec::new()).unwrap();
        csv.add(interval).unwrap();
        String::from_utf8(csv.into_inner()).unwrap()
    }

    #[test]
    fn an_interval_is_a_row_for_each_metric() {
        let mut load = LoadInterval::default();
        (load.counters.connects_ok, load.counters.connected) = (7, 5);
        load.times[Operation::Message].record_n(300, 10);
        load.errors.add("ECONNRESET", 2);
        load.cpu_us_per_core = vec![40, 70];
        let interval = Interval {
            at_ms: 61_050,
            span_ms: 1000,
            load: Some(load),
            kernel: [(Metric::TCPEXT_LISTEN_DROPS, 3), (Metric::MEMORY_USED_BYTES, 9)].into(),
            ..Interval::default()
        };
        let text = rows(&interval);
        for row in [
            "at_s,metric,kind,unit,value",
            "61.050,span_ms,gauge,ms,1000",
            "61.050,load.connects_ok,counter,,7",
            "61.050,load.connected,gauge,,5",
            "61.050,load.cpu_us_per_core.1,counter,us,70",
            "61.050,load.core.turn_us_most,maximum,us,0",
            "61.050,load.core.pending_bytes,gauge,bytes,0",
            "61.050,load.errors.ECONNRESET,counter,,2",
            "61.050,message.count,amount,,10",
            "61.050,message.p99,latency,us,300",
            "61.050,kernel.TcpExt.ListenDrops,counter,,3",
            "61.050,kernel.memory.used_bytes,gauge,bytes,9",
        ] {
            assert!(text.lines().any(|line| line == row), "{row:?} is not in\n{text}");
        }
        assert!(!text.contains(",server.") && !text.contains(",join."), "nothing is not zero");
    }

    #[test]
    fn each_machine_of_a_fleet_has_its_rows() {
        let machine = MachineInterval {
            name: "a1".to_owned(),
            connected: 5,
            lag_us_p99: Some(70),
            ..MachineInterval::default()
        };
        let load = LoadInterval { machines: vec![machine], ..LoadInterval::default() };
        let text = rows(&Interval { load: Some(load), ..Interval::default() });
        for row in [
            "0.000,load.machines.a1.connected,gauge,,5",
            "0.000,load.machines.a1.lag.p99,latency,us,70",
        ] {
            assert!(text.lines().any(|line| line == row), "{row:?} is not in\n{text}");
        }
        assert!(!text.contains("a1.message.p99"), "what was not measured has no row");
    }

    #[test]
    fn each_core_of_a_server_has_its_rows() {
        let server = ServerSnapshot {
            open_per_core: vec![5],
            mailbox_per_core: vec![1, 8],
            cpu_us_per_core: vec![9, 700],
            ..ServerSnapshot::default()
        };
        let text = rows(&Interval { server: Some(server), ..Interval::default() });
        for row in [
            "0.000,server.open_per_core.0,gauge,,5",
            "0.000,server.mailbox_per_core.1,gauge,,8",
            "0.000,server.cpu_us_per_core.1,counter,us,700",
        ] {
            assert!(text.lines().any(|line| line == row), "{row:?} is not in\n{text}");
        }
    }

    #[test]
    fn a_hostile_name_is_one_cell() {
        let mut load = LoadInterval::default();
        load.errors.add("a\",=1+1\n\u{1b}[2J\u{202e}", 2);
        let text = rows(&Interval { load: Some(load), ..Interval::default() });
        assert!(
            text.contains("\n0.000,\"load.errors.a\"\",=1+1\\n\\u{1b}[2J\\u{202e}\",counter,,2\n"),
            "{text}"
        );
    }
}
