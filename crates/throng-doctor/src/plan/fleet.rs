//! The machines of one side, and their need of each resource.

use serde::Serialize;
use throng_measure::Limit;
use throng_report::render::{bytes, count, rate};

use super::line::{Amount, Line, bits, micros, seconds};
use super::{CPU_SHARE, Cost, Costs, EndCosts, FleetSpec, MEMORY_SHARE, NIC_SHARE};

/// Servers or generators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FleetSide {
    /// The side that accepts connections.
    Server,
    /// The side that connects.
    Generator,
}

/// The machines of one side.
#[derive(Clone, Debug, Serialize)]
pub struct Fleet {
    /// Servers or generators.
    pub role: FleetSide,
    /// Number of machines.
    pub machines: u64,
    /// Resource that needs the most machines.
    pub decided_by: &'static str,
    /// Need of each resource.
    pub lines: Vec<Line>,
}

impl Fleet {
    /// Computes the machines of one side.
    pub(super) fn new(
        role: FleetSide,
        spec: &FleetSpec,
        costs: &EndCosts,
        kernel_bytes: Cost,
    ) -> Self {
        let mut lines = Vec::new();
        let needs = [
            memory(spec, costs, kernel_bytes, &mut lines),
            cpu(spec, costs, &mut lines),
            network(role, spec, &mut lines),
            watches(spec, &mut lines),
        ];
        // Of equal needs the first wins: memory.
        let first =
            needs.into_iter().reduce(|most, next| if next.1 > most.1 { next } else { most });
        let (decided_by, machines) = first.expect("there are four needs");
        let each = spec.connections.div_ceil(machines);
        let of_each = format!("{} ÷ {machines}", count(spec.connections as f64));
        lines.push(Line::new("connections each", Amount::Connections(each), of_each));
        let cores = spec.machine.cores;
        let fds = Amount::Fds(whole(each as f64 / cores));
        let formula = format!(
            "{} ÷ {} cores, each with a table of its own",
            count(each as f64),
            count(cores)
        );
        lines.push(Line::new("fds in a table", fds, formula));
        let (packets, formula) = packets(spec);
        let formula = format!("({formula}) ÷ {machines}");
        let packets = Amount::PacketsPerS(packets / machines as f64);
        lines.push(Line::new("packets each", packets, formula));
        Self { role, machines, decided_by, lines }
    }

    /// Returns the connections of each machine.
    pub fn connections_each(&self, spec: &FleetSpec) -> f64 {
        spec.connections as f64 / self.machines as f64
    }
}

/// The name of a resource, and the machines that it needs.
type Need = (&'static str, u64);

/// Computes the machines for memory.
fn memory(spec: &FleetSpec, costs: &EndCosts, kernel: Cost, lines: &mut Vec<Line>) -> Need {
    let each = kernel.value + costs.bytes.value;
    let all = spec.connections as f64 * each;
    let formula = format!(
        "{} connections × ({} of the kernel + {} of the program)",
        count(spec.connections as f64),
        bytes(kernel.value),
        bytes(costs.bytes.value)
    );
    lines.push(Line::new("memory", Amount::Bytes(all), formula));
    let machine = spec.machine.memory_bytes;
    let machines = whole(all / (machine * MEMORY_SHARE));
    let formula = format!("{} ÷ ({} × {})", bytes(all), bytes(machine), percent(MEMORY_SHARE));
    lines.push(Line::new("  machines for it", Amount::Machines(machines), formula));
    ("memory", machines)
}

/// Computes the machines for CPU time.
fn cpu(spec: &FleetSpec, costs: &EndCosts, lines: &mut Vec<Line>) -> Need {
    let deliveries = deliveries_per_s(spec);
    let parts = [
        (spec.connects_per_s.unwrap_or(0.0), "connects", costs.connect_us),
        (spec.messages_per_s, "messages", costs.message_us),
        (deliveries, "deliveries", costs.delivery_us),
    ];
    let busy: f64 = parts.iter().map(|(per_s, _, cost)| per_s * cost.value / 1e6).sum();
    let formula =
        sum(&parts.map(|(per_s, what, cost)| (per_s, format!("{what} × {}", micros(cost.value)))));
    lines.push(Line::new("cores busy", Amount::Cores(busy), formula));
    let machines = whole(busy / (spec.machine.cores * CPU_SHARE));
    let formula = format!(
        "{} cores ÷ ({} cores × {})",
        count(busy),
        count(spec.machine.cores),
        percent(CPU_SHARE)
    );
    lines.push(Line::new("  machines for them", Amount::Machines(machines), formula));
    ("CPU", machines)
}

/// Computes the machines for the busier direction of the network: out of a server, into a
/// generator.
fn network(role: FleetSide, spec: &FleetSpec, lines: &mut Vec<Line>) -> Need {
    let deliveries = deliveries_per_s(spec);
    let each = message_wire_bytes(spec);
    let per_s = (spec.messages_per_s + deliveries) * each * 8.0;
    let direction = match role {
        FleetSide::Server => "network out",
        FleetSide::Generator => "network in",
    };
    let what =
        [(spec.messages_per_s, "messages".to_owned()), (deliveries, "deliveries".to_owned())];
    let packets = match message_packets(spec) {
        1 => format!("{WIRE_BYTES} B of headers"),
        n => format!("{n} packets × {WIRE_BYTES} B of headers"),
    };
    let formula = format!("({}) × ({} B + {packets}) × 8", sum(&what), spec.message_bytes);
    lines.push(Line::new(direction, Amount::BitsPerS(per_s), formula));
    let nic = spec.machine.nic_bits_per_s;
    let machines = whole(per_s / (nic * NIC_SHARE));
    let formula = format!("{} ÷ ({} × {})", bits(per_s), bits(nic), percent(NIC_SHARE));
    lines.push(Line::new("  machines for it", Amount::Machines(machines), formula));
    ("the network", machines)
}

/// Computes the machines for [`Limit::EPOLL_WATCHES`], at the kernel's default.
fn watches(spec: &FleetSpec, lines: &mut Vec<Line>) -> Need {
    let each = (spec.machine.memory_bytes * WATCHES_MEMORY_SHARE / WATCH_BYTES).floor().max(1.0);
    let machines = whole(spec.connections as f64 / each);
    let formula = format!(
        "{} connections ÷ ({} × {} ÷ {WATCH_BYTES} B), the default of {}",
        count(spec.connections as f64),
        bytes(spec.machine.memory_bytes),
        percent(WATCHES_MEMORY_SHARE),
        Limit::EPOLL_WATCHES
    );
    lines.push(Line::new("machines for epoll", Amount::Machines(machines), formula));
    ("epoll watches", machines)
}

/// Returns the packets a second of all connections in both directions, and the formula.
fn packets(spec: &FleetSpec) -> (f64, String) {
    let deliveries = deliveries_per_s(spec);
    let connects = spec.connects_per_s.unwrap_or(0.0);
    let segments = message_packets(spec) as f64;
    let all = connects * CONNECT_PACKETS
        + spec.messages_per_s * 2.0 * segments
        + deliveries * (segments + 1.0);
    let formula = sum(&[
        (connects, format!("connects × {CONNECT_PACKETS}")),
        (spec.messages_per_s, format!("messages × {}", 2.0 * segments)),
        (deliveries, format!("deliveries × {}", segments + 1.0)),
    ]);
    (all, formula)
}

/// Returns the addresses and ports.
pub(super) fn addresses(spec: &FleetSpec, servers: &Fleet, generators: &Fleet) -> Vec<Line> {
    let targets = spec.target_addresses.unwrap_or(servers.machines).max(1);
    let whose = if spec.target_addresses.is_some() { "as given" } else { "one a server" };
    let each = generators.connections_each(spec).ceil();
    // If all ports of a range are reserved there are none; count at least one for each address.
    let ports = spec.ports.max(1);
    let sources = whole(each / (ports as f64 * targets as f64));
    vec![
        Line::new("target addresses", Amount::Addresses(targets), whose),
        Line::new("ports", Amount::Ports(ports), "of one source address to one target address"),
        Line::new(
            "source addresses of a generator",
            Amount::Addresses(sources),
            format!(
                "{} connections ÷ ({} ports × {targets} targets)",
                count(each),
                count(ports as f64)
            ),
        ),
        Line::new(
            "source addresses in all",
            Amount::Addresses(sources.saturating_mul(generators.machines)),
            format!("{sources} × {} generators", generators.machines),
        ),
    ]
}

/// Returns the time of a broadcast to all clients, and of their connects.
pub(super) fn time(
    spec: &FleetSpec,
    costs: &Costs,
    servers: &Fleet,
    generators: &Fleet,
) -> Vec<Line> {
    let FleetSpec { machine, .. } = spec;
    let each = servers.connections_each(spec);
    let busy = each * costs.server.delivery_us.value / 1e6 / machine.cores;
    let wire = each * message_wire_bytes(spec) * 8.0 / machine.nic_bits_per_s;
    let formula = format!(
        "the longer of {} × {} ÷ {} cores and {} × {} × 8 ÷ {}",
        count(each),
        micros(costs.server.delivery_us.value),
        count(machine.cores),
        count(each),
        bytes(message_wire_bytes(spec)),
        bits(machine.nic_bits_per_s)
    );
    let mut lines = vec![Line::new("a broadcast to all", Amount::Seconds(busy.max(wire)), formula)];
    let (connects_per_s, why) = match spec.connects_per_s {
        Some(per_s) => (per_s, rate(per_s)),
        None => most_connects(spec, costs, servers, generators),
    };
    lines.push(Line::new(
        "all have connected after",
        Amount::Seconds(spec.connections as f64 / connects_per_s),
        format!("{} ÷ {why}", count(spec.connections as f64)),
    ));
    if let Some(every) = spec.broadcast_every_s.filter(|every| busy.max(wire) > *every) {
        lines.push(Line::new(
            "too late by",
            Amount::Seconds(busy.max(wire) - every),
            format!("a broadcast takes longer than the {} until the next", seconds(every)),
        ));
    }
    lines
}

/// Returns the connects a second that both sides can do with no other work, and the formula.
fn most_connects(
    spec: &FleetSpec,
    costs: &Costs,
    servers: &Fleet,
    clients: &Fleet,
) -> (f64, String) {
    let most = |fleet: &Fleet, cost: Cost| {
        fleet.machines as f64 * spec.machine.cores * CPU_SHARE * 1e6 / cost.value
    };
    let (by_servers, by_clients) =
        (most(servers, costs.server.connect_us), most(clients, costs.generator.connect_us));
    let (least, fleet, cost, who) = if by_servers <= by_clients {
        (by_servers, servers, costs.server.connect_us, "servers")
    } else {
        (by_clients, clients, costs.generator.connect_us, "generators")
    };
    let why = format!(
        "({} {who} × {} cores × {} ÷ {})",
        fleet.machines,
        count(spec.machine.cores),
        percent(CPU_SHARE),
        micros(cost.value)
    );
    (least, why)
}

/// Formats the rates that are not zero, such as `10k/s connects × 50 µs + 1M/s messages × 10 µs`.
fn sum(parts: &[(f64, String)]) -> String {
    let parts = parts.iter().filter(|(per_s, _)| *per_s > 0.0);
    let parts: Vec<_> = parts.map(|(per_s, what)| format!("{} {what}", rate(*per_s))).collect();
    if parts.is_empty() { "no load".to_owned() } else { parts.join(" + ") }
}

/// Returns the deliveries a second of all broadcasts.
fn deliveries_per_s(spec: &FleetSpec) -> f64 {
    spec.broadcast_every_s.map_or(0.0, |every| spec.connections as f64 / every)
}

/// Returns the packets of one message.
fn message_packets(spec: &FleetSpec) -> u64 {
    spec.message_bytes.div_ceil(SEGMENT_BYTES).max(1)
}

/// Returns the bytes of one message on the wire.
fn message_wire_bytes(spec: &FleetSpec) -> f64 {
    (spec.message_bytes + message_packets(spec) * WIRE_BYTES) as f64
}

/// Rounds up to whole machines, at least one.
fn whole(machines: f64) -> u64 {
    // Shares such as 0.8 are not exact in binary: a value just above a whole number is that number.
    (machines - 1e-9).ceil().max(1.0) as u64
}

/// Formats a share without decimals.
fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Bytes of a packet on the wire besides its payload: Ethernet with preamble and gap 38, IPv4 20,
/// TCP with timestamps 32.
const WIRE_BYTES: u64 = 90;
/// Bytes of payload in a packet, with an MTU of 1500.
const SEGMENT_BYTES: u64 = 1_448;
/// Packets of an open and a close: SYN, SYN-ACK, ACK, and FIN and ACK of each side.
const CONNECT_PACKETS: f64 = 7.0;
/// The share of low memory that the kernel allows a user's watches by default, and the bytes of
/// each.
const WATCHES_MEMORY_SHARE: f64 = 0.04;
const WATCH_BYTES: f64 = 184.0;
