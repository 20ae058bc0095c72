//! The text of a plan.

use std::fmt;

use throng_base::units::show_count;
use throng_report::render::{Align, Table, bytes, count, rate};

use super::line::{bits, micros, seconds};
use super::{
    Cost, CostSource, Costs, Fleet, FleetMachine, FleetPlan, FleetSide, FleetSpec, Line, Mesh,
    Scope,
};

impl FleetSpec {
    /// Describes the fleet in a sentence.
    pub fn sentence(&self) -> String {
        let mut parts = vec![format!("{} connections", show_count(self.connections))];
        if let Some(per_s) = self.connects_per_s {
            parts.push(format!("{} connects", rate(per_s)));
        }
        if self.messages_per_s > 0.0 {
            let messages = rate(self.messages_per_s);
            parts.push(format!("{messages} messages of {} B, each answered", self.message_bytes));
        }
        if let Some(every) = self.broadcast_every_s {
            let each = self.message_bytes;
            parts.push(format!("a broadcast of {each} B to all every {}", seconds(every)));
        }
        format!("{}; {}", parts.join(", "), self.machine)
    }
}

impl fmt::Display for FleetMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "machines of {}, {} cores, {}",
            bytes(self.memory_bytes),
            count(self.cores),
            bits(self.nic_bits_per_s)
        )
    }
}

impl fmt::Display for FleetPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fleet in [&self.servers, &self.generators] {
            write!(f, "{}\n{}\n", title(fleet), table(&fleet.lines))?;
        }
        write!(f, "addresses and ports\n{}\n", table(&self.addresses))?;
        write!(f, "time\n{}\n", table(&self.time))?;
        let mut assumptions = self.assumptions.iter();
        if let Some(weakest) = assumptions.next() {
            writeln!(f, "the weakest assumption: {weakest}")?;
        }
        writeln!(f, "then")?;
        assumptions.try_for_each(|assumption| writeln!(f, "  {assumption}"))
    }
}

/// Returns the heading for one side.
fn title(fleet: &Fleet) -> String {
    let what = match fleet.role {
        FleetSide::Server => "servers",
        FleetSide::Generator => "generators, to test them",
    };
    let machines = match fleet.machines {
        1 => "1 machine is enough".to_owned(),
        n => format!("{} machines; {} decides", count(n as f64), fleet.decided_by),
    };
    format!("{what}: {machines}")
}

/// Returns the table of a plan's lines.
fn table(lines: &[Line]) -> Table {
    let mut table = Table::new().aligned(&[Align::Left, Align::Right, Align::Left]);
    for Line { what, amount, formula } in lines {
        table.row([format!("  {what}"), amount.to_string(), format!("= {formula}")]);
    }
    table
}

impl fmt::Display for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["cost", "of a server", "", "of a generator", ""];
        let mut table = Table::with_head(head).aligned(&[
            Align::Left,
            Align::Right,
            Align::Left,
            Align::Right,
            Align::Left,
        ]);
        let mut row = |what: &str, show: fn(f64) -> String, one: Cost, other: Cost| {
            let source = match one.source {
                CostSource::Documented if self.server_is_other => "of throng's server".to_owned(),
                source => source.to_string(),
            };
            let (server, generator) = (show(one.value), show(other.value));
            table.row([what.to_owned(), server, source, generator, other.source.to_string()]);
        };
        let (server, generator) = (&self.server, &self.generator);
        row("kernel memory of a connection", bytes, self.kernel_bytes, self.kernel_bytes);
        row("its memory in the program", bytes, server.bytes, generator.bytes);
        row("CPU of a connect", micros, server.connect_us, generator.connect_us);
        row("CPU of a message", micros, server.message_us, generator.message_us);
        row("CPU of a delivery", micros, server.delivery_us, generator.delivery_us);
        table.fmt(f)
    }
}

impl fmt::Display for CostSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Documented => "documented",
            Self::Kernel => "this kernel",
            Self::Measured => "measured",
            Self::Run => "the run",
        })
    }
}

impl fmt::Display for Mesh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = match self.nodes_per_machine {
            None => "all on one machine".to_owned(),
            Some(1) => "each on a machine of its own".to_owned(),
            Some(n) => format!("{n} on a machine"),
        };
        writeln!(
            f,
            "x nodes, {machine} like this one, with {} connections each",
            self.connections_per_node
        )?;
        writeln!(f, "{}\n", self.verdict())?;
        let head = ["limit", "allows", "of a", "nodes at most", "because", ""];
        let mut table = Table::with_head(head).aligned(&[
            Align::Left,
            Align::Right,
            Align::Left,
            Align::Right,
            Align::Left,
            Align::Left,
        ]);
        for row in &self.rows {
            let scope = match row.of_each {
                Scope::Node => "node",
                Scope::Machine => "machine",
            };
            let most = row.nodes_most.map_or("any number".to_owned(), |most| most.to_string());
            let note = match row.needs {
                Some(needs) => format!("{needs} are needed; {}", row.note),
                None => row.note.clone(),
            };
            let allows = row.allows.to_string();
            table.row([
                row.limit.to_owned(),
                allows,
                scope.to_owned(),
                most,
                row.formula.clone(),
                note,
            ]);
        }
        table.fmt(f)
    }
}
