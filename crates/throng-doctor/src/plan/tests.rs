use super::*;

fn spec() -> FleetSpec {
    FleetSpec {
        connections: 100_000_000,
        messages_per_s: 0.0,
        message_bytes: 64,
        broadcast_every_s: None,
        connects_per_s: None,
        machine: FleetMachine {
            memory_bytes: 64.0 * (1u64 << 30) as f64,
            cores: 32.0,
            nic_bits_per_s: 25e9,
            nic_is_known: true,
        },
        target_addresses: None,
        ports: 28_232,
    }
}

/// Returns round costs: 4,000 bytes in all, and a few microseconds for each kind of work.
fn costs() -> Costs {
    let mut costs = Costs::documented();
    let cost = |value| Cost { value, source: CostSource::Run };
    costs.kernel_bytes = cost(3_800.0);
    for end in [&mut costs.server, &mut costs.generator] {
        *end = EndCosts {
            bytes: cost(200.0),
            connect_us: cost(50.0),
            message_us: cost(10.0),
            delivery_us: cost(8.0),
        };
    }
    costs
}

#[track_caller]
fn check(spec: &FleetSpec, machines: u64, decided_by: &str) -> FleetPlan {
    let plan = plan(spec, &costs());
    assert_eq!((plan.servers.machines, plan.servers.decided_by), (machines, decided_by));
    plan
}

fn line<'a>(lines: &'a [Line], what: &str) -> &'a Line {
    lines.iter().find(|line| line.what == what).unwrap_or_else(|| panic!("{what} in {lines:#?}"))
}

#[test]
fn idle_connections_are_a_matter_of_memory() {
    // 400 GB in machines of 55 GB.
    let plan = check(&spec(), 8, "memory");
    let memory = line(&plan.servers.lines, "memory");
    assert_eq!(memory.amount, Amount::Bytes(4e11));
    assert!(memory.formula.starts_with("100M connections × (3.71 KiB"), "{}", memory.formula);
    let each = line(&plan.servers.lines, "connections each");
    assert_eq!(each.amount, Amount::Connections(12_500_000));
}

#[test]
fn small_machines_run_out_of_epoll_watches_before_memory() {
    let mut cheap = costs();
    cheap.kernel_bytes.value = 1_000.0;
    let servers = plan(&spec(), &cheap).servers;
    // 4 % of 64 GiB at 184 bytes each: 14.9M watches a machine.
    assert_eq!((servers.machines, servers.decided_by), (7, "epoll watches"));
}

#[test]
fn messages_are_a_matter_of_cpu() {
    let plan = check(&FleetSpec { messages_per_s: 30e6, ..spec() }, 14, "CPU");
    let busy = line(&plan.servers.lines, "cores busy");
    assert_eq!(busy.amount, Amount::Cores(300.0));
    assert_eq!(busy.formula, "30M/s messages × 10 µs");
    assert_eq!(
        line(&plan.servers.lines, "  machines for them").formula,
        "300 cores ÷ (32 cores × 70 %)"
    );
}

#[test]
fn large_messages_are_a_matter_of_the_network() {
    let plan = check(
        &FleetSpec { messages_per_s: 2e6, message_bytes: 100_000, ..spec() },
        98,
        "the network",
    );
    // 70 packets of at most 1448 bytes.
    let out = line(&plan.servers.lines, "network out");
    assert_eq!(out.amount, Amount::BitsPerS(2e6 * 106_300.0 * 8.0));
}

#[test]
fn one_of_everything_is_the_least() {
    let plan = check(&FleetSpec { connections: 10, ..spec() }, 1, "memory");
    assert_eq!(plan.generators.machines, 1);
    assert_eq!(
        line(&plan.addresses, "source addresses of a generator").amount,
        Amount::Addresses(1)
    );
}

#[test]
fn source_addresses_are_counted_against_every_target() {
    let found = |targets| {
        let plan = plan(&FleetSpec { target_addresses: targets, ..spec() }, &costs());
        let line = line(&plan.addresses, "source addresses of a generator");
        (line.amount, line.formula.clone())
    };
    let (amount, formula) = found(Some(1));
    assert_eq!(amount, Amount::Addresses(443));
    assert_eq!(formula, "12.5M connections ÷ (28.2k ports × 1 targets)");
    assert_eq!(found(None).0, Amount::Addresses(56), "8 servers, an address each");
}

#[test]
fn absurd_numbers_of_addresses_and_ports_have_an_answer() {
    let found = |targets, ports| {
        let plan = plan(&FleetSpec { target_addresses: Some(targets), ports, ..spec() }, &costs());
        line(&plan.addresses, "source addresses of a generator").amount
    };
    assert_eq!(found(u64::MAX, 28_232), Amount::Addresses(1));
    assert_eq!(found(1, 0), Amount::Addresses(12_500_000), "as if there were one port");
}

#[test]
fn a_broadcast_takes_what_its_slowest_resource_takes() {
    let found = plan(&spec(), &costs());
    // 12.5M deliveries of 8 us on 32 cores: 3.1 s; 154 bytes each at 25 Gbit/s: 0.6 s.
    assert_eq!(line(&found.time, "a broadcast to all").amount, Amount::Seconds(3.125));
    let often = FleetSpec { broadcast_every_s: Some(2.0), ..spec() };
    let found = plan(&often, &costs());
    assert_eq!(found.servers.decided_by, "CPU");
    let busy = line(&found.servers.lines, "cores busy");
    assert_eq!(busy.amount, Amount::Cores(400.0));
}

#[test]
fn the_slower_side_decides_when_all_have_connected() {
    let mut slow = costs();
    slow.generator.connect_us.value = 100.0;
    let found = plan(&spec(), &slow);
    let line_ = line(&found.time, "all have connected after");
    assert_eq!(line_.formula, "100M ÷ (8 generators × 32 cores × 70 % ÷ 100 µs)");
    let found = plan(&FleetSpec { connects_per_s: Some(50e3), ..spec() }, &slow);
    assert_eq!(line(&found.time, "all have connected after").amount, Amount::Seconds(2_000.0));
}

#[test]
fn the_weakest_assumption_is_about_what_decides() {
    let weakest = |spec: &FleetSpec, costs: &Costs| plan(spec, costs).assumptions.remove(0);
    assert!(weakest(&spec(), &costs()).contains("idle"));
    let busy = FleetSpec { messages_per_s: 30e6, ..spec() };
    assert!(weakest(&busy, &costs()).contains("from 2 CPUs: 32 CPUs are assumed to do 16 times"));
    let mut unknown = FleetSpec { messages_per_s: 2e6, message_bytes: 100_000, ..spec() };
    unknown.machine.nic_is_known = false;
    assert!(weakest(&unknown, &costs()).contains("no --nic"));
    assert!(
        plan(&spec(), &Costs::documented()).assumptions[0..2]
            .iter()
            .any(|a| a.contains("numbers.md"))
    );
}

#[test]
fn only_costs_that_are_used_are_assumed() {
    let mut partly = costs();
    partly.server.delivery_us.source = CostSource::Documented;
    let assumes = |spec: &FleetSpec| {
        plan(spec, &partly).assumptions.iter().any(|text| text.contains("another machine"))
    };
    let talk = FleetSpec { messages_per_s: 1e6, ..spec() };
    assert!(!assumes(&spec()) && !assumes(&talk));
    assert!(assumes(&FleetSpec { broadcast_every_s: Some(30.0), ..talk }));
}
