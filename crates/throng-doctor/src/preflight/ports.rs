//! Checks of addresses and ports: the four numbers of a connection, and how many combinations there
//! are.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;

use throng_base::units::{plural, show_count, show_duration};
use throng_machine::ports::LocalPorts;
use throng_machine::{Fact, MachineLimits};
use throng_measure::Limit;

use super::check::{Check, CheckState, LimitValue, Remedy, Sufficiency, both};
use super::{PortChoice, PortRequirements, Requirements};

/// Checks source addresses times ports times targets.
pub(super) fn ports(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let wanted = required.ports.as_ref()?;
    let each = match &wanted.chosen {
        PortChoice::Kernel => both(&machine.local_ports, &taken_of(machine))
            .map(|(ports, taken)| free_of_kernel(&ports, &taken)),
        PortChoice::Generator(range) => {
            let taken = machine.listeners.known().map_or(0, |all| taken_in(range, all));
            Fact::Known((u64::from(range.end() - range.start()) + 1).saturating_sub(taken))
        }
    };
    let addresses = if wanted.addresses_grow { LOOPBACK_ADDRESSES } else { wanted.addresses };
    let names = addresses.saturating_mul(wanted.targets);
    let found = each.clone().map(|each| LimitValue::linear(each.saturating_mul(names), 1, 0));
    let free = each.known().copied().unwrap_or(0);
    let because = if wanted.addresses_grow {
        format!("{free} ports of each address, and 127.0.0.0/8 has enough addresses")
    } else {
        format!(
            "{} source {} x {free} ports x {} {}",
            wanted.addresses,
            plural(wanted.addresses, "address", "addresses"),
            wanted.targets,
            plural(wanted.targets, "target", "targets")
        )
    };
    let limit = match &wanted.chosen {
        PortChoice::Kernel => Limit::PORTS.to_string(),
        PortChoice::Generator(range) => format!("source ports {}-{}", range.start(), range.end()),
    };
    let mut check = Check::stops("ports", limit, required.connections, required.connections, found);
    check = check.because(because);
    let waiting = (required.ends_per_s * wanted.time_wait.as_secs_f64()).ceil() as u64;
    let mut needs = required.connections.saturating_add(waiting);
    if check.state == CheckState::Ok && check.has.is_some_and(|has| has < needs) {
        check.state = CheckState::Tight;
        check.needs = needs;
        let span = show_duration(wanted.time_wait);
        check.because += &format!(
            "; {} may be in TIME-WAIT, for {span} each (EADDRNOTAVAIL)",
            show_count(waiting)
        );
    }
    let crowded = required.connections.saturating_mul(SEARCH_IS_SHORT);
    if check.state == CheckState::Ok
        && wanted.chosen == PortChoice::Kernel
        && check.has.is_some_and(|has| has < crowded)
    {
        check.state = CheckState::Tight;
        check.because += "; with half of them in use the kernel searches thousands for each \
                          connect";
        needs = crowded;
    }
    Some(check.else_do(|| more_names(needs, wanted, machine, free)))
}

/// Checks the TIME-WAIT table: closed connections keep their ports for a while.
pub(super) fn time_wait(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    if required.ends_per_s <= 0.0 || required.role == super::MachineRole::Server {
        return None;
    }
    let waiting = (required.ends_per_s * TIME_WAIT_S).ceil() as u64;
    let found = machine.time_wait_max.clone().map(|max| LimitValue::fixed(max, waiting));
    let check = Check::slows("time_wait", Limit::TIME_WAIT, required.connections, waiting, found);
    Some(
        check
            .because(format!(
                "{} closed a second, each remembered for {TIME_WAIT_S} s",
                show_count(required.ends_per_s.ceil() as u64)
            ))
            .else_do(|| {
                let max = machine.time_wait_max.known().copied().unwrap_or(0);
                Remedy::sysctl(Limit::TIME_WAIT, max, waiting)
            }),
    )
}

/// Checks whether the kernel may give a server's port to an outgoing connection.
pub(super) fn listening_port(required: &Requirements, machine: &MachineLimits) -> Option<Check> {
    let server = required.listens.first()?;
    if !required.accepts() {
        return None;
    }
    let port = server.port();
    let found = machine
        .local_ports
        .clone()
        .map(|ports| LimitValue { has: 0, enough: Sufficiency::Whatever(!ports.has(port)) });
    let mut check = Check::slows(
        "listening_port",
        format!("port {port} outside the local ports"),
        required.connections,
        0,
        found,
    );
    // There is nothing to count: the port is inside the range or not.
    check.has = None;
    let because = match machine.local_ports.known() {
        Some(ports) if ports.has(port) => {
            "an outgoing connection may have it when the server starts (EADDRINUSE)".to_owned()
        }
        Some(ports) => format!("outgoing connections use {} to {}", ports.first, ports.last),
        None => String::new(),
    };
    Some(check.because(because).else_do(|| {
        let reserved = machine
            .local_ports
            .known()
            .map(|ports| show_ranges(&ports.reserved))
            .unwrap_or_default();
        let with =
            if reserved.is_empty() { port.to_string() } else { format!("{reserved},{port}") };
        Remedy::sysctl(Limit::RESERVED_PORTS, reserved, with)
    }))
}

/// Returns the ports of all listeners: the kernel skips them, whatever their address.
fn taken_of(machine: &MachineLimits) -> Fact<Vec<u16>> {
    // Without the list, no port is known to be taken.
    let listeners = machine.listeners.known().map(Vec::as_slice).unwrap_or_default();
    let mut ports: Vec<u16> = listeners.iter().map(|listener| listener.addr.port()).collect();
    ports.sort_unstable();
    ports.dedup();
    Fact::Known(ports)
}

/// Returns the free ports that a connect certainly finds. The kernel looks at ports of one parity
/// and then at those of the other, and in a range of odd length it may skip one port of either.
fn free_of_kernel(ports: &LocalPorts, taken: &[u16]) -> u64 {
    let all = u64::from(ports.last - ports.first) + 1;
    let reserved = all - u64::from(ports.count());
    let taken = taken.iter().filter(|port| ports.has(**port)).count() as u64;
    let sure = if all > 1 { all & !1 } else { all };
    sure.saturating_sub(reserved + taken)
}

/// Returns the listeners that keep the generator from binding one of its own ports: those on every
/// address.
fn taken_in(
    range: &RangeInclusive<u16>,
    listeners: &[throng_driver::netlink::ListenerState],
) -> u64 {
    let everywhere = |addr: &SocketAddr| match addr.ip() {
        IpAddr::V4(v4) => v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_unspecified(),
    };
    let mut ports: Vec<u16> = listeners
        .iter()
        .filter(|listener| everywhere(&listener.addr) && range.contains(&listener.addr.port()))
        .map(|listener| listener.addr.port())
        .collect();
    ports.sort_unstable();
    ports.dedup();
    ports.len() as u64
}

/// Returns a change that adds ports if that is enough, else addresses.
fn more_names(needs: u64, wanted: &PortRequirements, machine: &MachineLimits, free: u64) -> Remedy {
    let names = wanted.addresses.saturating_mul(wanted.targets).max(1);
    let most = LOCAL_PORTS_MOST.saturating_sub(LOCAL_PORTS_SLACK);
    match (&wanted.chosen, machine.local_ports.known()) {
        (PortChoice::Kernel, Some(ports)) if names * most >= needs && free < most => {
            let old = format!("{} {}", ports.first, ports.last);
            let wide = format!("{} {}", ports.first.min(LOCAL_PORT_FIRST), u16::MAX);
            Remedy::sysctl(Limit::PORTS, old, wide).or("add addresses, each with --source")
        }
        (PortChoice::Generator(_), _) if names * most >= needs => {
            Remedy::command(format!("--source-ports {LOCAL_PORT_FIRST}-{}", u16::MAX))
        }
        _ => {
            let each = free.max(1) * wanted.targets;
            let more = needs.div_ceil(each).saturating_sub(wanted.addresses);
            if wanted.on_loopback {
                // A network with this many hosts, without its first and last address.
                let bits = 64 - (wanted.addresses + more + 1).leading_zeros();
                return Remedy::command(format!(
                    "--source 127.1.0.0/{}",
                    32_u32.saturating_sub(bits)
                ));
            }
            Remedy::command(format!(
                "ip address add ADDRESS/32 dev DEVICE   (for {} more {}; give each with --source)",
                show_count(more),
                plural(more, "address", "addresses")
            ))
        }
    }
}

/// Formats port ranges as the sysctl does.
fn show_ranges(ranges: &[(u16, u16)]) -> String {
    let show = |(first, last): &(u16, u16)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(",")
}

/// The share of ports, one in so many, up to which the search is short: the kernel looks at every
/// other port first.
const SEARCH_IS_SHORT: u64 = 2;
/// The addresses of 127.0.0.0/8 that throng uses.
const LOOPBACK_ADDRESSES: u64 = 1 << 23;
/// The lowest port that an unprivileged user may bind.
const LOCAL_PORT_FIRST: u16 = 1_024;
/// The most ports that an unprivileged user may bind.
const LOCAL_PORTS_MOST: u64 = u16::MAX as u64 - LOCAL_PORT_FIRST as u64 + 1;
/// An allowance for listeners and reserved ports in the wider range.
const LOCAL_PORTS_SLACK: u64 = 64;
/// `TCP_TIMEWAIT_LEN`, in seconds, in every Linux.
const TIME_WAIT_S: f64 = 60.0;
