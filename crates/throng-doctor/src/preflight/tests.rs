//! Recorded and made-up machines, and the connections that each of them holds.

use std::time::Duration;

use proptest::prelude::*;
use throng_driver::netlink::ListenerState;
use throng_machine::files::FileUse;
use throng_machine::machine_limits::Conntrack;
use throng_machine::meminfo::MachineMemory;
use throng_machine::ports::LocalPorts;
use throng_machine::slabinfo;
use throng_machine::{Fact, Reason, Unknown};

use super::*;
use crate::recorded_root;

/// A machine with 2 CPUs, 24 GB and a hard limit of 20,000 fds.
fn machine() -> MachineLimits {
    let recorded = MachineLimits::read(&recorded_root("linux-6.18"), 4242);
    MachineLimits {
        cpus: 2,
        private_fds: Fact::Known(true),
        listeners: Fact::Known(Vec::new()),
        threads: Fact::Known((190_000, "kernel.threads-max")),
        ..recorded
    }
}

fn both(connections: u64) -> Requirements {
    Requirements::new(connections, MachineRole::Both)
}

fn remote(connections: u64, addresses: u64) -> Requirements {
    let ports = PortRequirements {
        addresses,
        addresses_grow: false,
        on_loopback: false,
        targets: 1,
        chosen: PortChoice::Kernel,
        time_wait: Duration::from_secs(60),
    };
    Requirements { ports: Some(ports), ..Requirements::new(connections, MachineRole::Client) }
}

#[test]
fn a_driver_without_kernel_sockets_needs_memory_alone() {
    let own = Requirements {
        client_limits: &[],
        client_connection_bytes: Some(1_000),
        ..remote(1_000_000, 1)
    };
    let result = preflight(&own, &machine());
    let ids: Vec<_> = result.checks.iter().map(|check| check.id).collect();
    assert_eq!(ids, ["memory"]);
    assert_eq!(found(&result, "memory").needs, 1_000_000 * (1_000 + own.user_bytes));
    assert!(found(&result, "memory").because.starts_with("1000 B of driver + 256 B of program"));
    let with_server = preflight(&Requirements { role: MachineRole::Both, ..own }, &machine());
    assert!(with_server.checks.iter().any(|check| check.id == "fd_tables"), "the server's");
}

fn listens(addr: &str, backlog: u32) -> ListenerState {
    let addr = addr.parse().unwrap();
    ListenerState {
        addr,
        accept_queue: 0,
        backlog,
        inode: 1,
        uid: 0,
        drops: Some(0),
        v6_only: None,
    }
}

fn unknown<T>() -> Fact<T> {
    Fact::Unknown(Unknown::new("proc", Reason::Refused))
}

fn found<'a>(preflight: &'a Preflight, id: &str) -> &'a Check {
    preflight
        .checks
        .iter()
        .find(|check| check.id == id)
        .unwrap_or_else(|| panic!("{id}: {preflight}"))
}

/// Asserts that limit `id` alone stops `ask`, that it holds exactly `holds`, and that its remedy
/// contains `command`.
#[track_caller]
fn check(machine: &MachineLimits, required: &Requirements, id: &str, holds: u64, command: &str) {
    let at = |connections| preflight(&Requirements { connections, ..required.clone() }, machine);
    let whole = at(required.connections);
    let short: Vec<_> = whole.in_state(CheckState::Short).map(|check| check.id).collect();
    assert_eq!(short, [id], "{whole}");
    let check = found(&whole, id);
    assert_eq!(check.holds, Some(holds), "{whole}");
    let remedy = check.remedy.as_ref().unwrap();
    assert!(remedy.command.contains(command), "{}", remedy.command);
    assert_eq!(whole.nearest().map(|check| check.id), Some(id));
    assert_eq!(whole.holds(), Some(holds));
    assert!(at(holds).fits() && !at(holds + 1).fits(), "{}", at(holds + 1));
    assert!(
        whole.verdict().contains("do not fit")
            && at(holds).verdict().contains("is reached first, at")
    );
}

#[test]
fn a_million_pairs_fit_on_24_gigabytes() {
    let whole = preflight(&both(1_000_000), &machine());
    assert!(whole.fits(), "{whole}");
    assert_eq!(whole.nearest().unwrap().id, "memory");
    assert!((2_500_000..3_000_000).contains(&whole.holds().unwrap()), "{whole}");
    assert!(found(&whole, "fd_tables").because.contains("throng serve --cores 51"), "{whole}");
    assert_eq!(
        found(&whole, "tcp_hash").state,
        CheckState::Tight,
        "two million sockets in 262,144 buckets"
    );
}

#[test]
fn each_limit_is_named_with_its_number_and_its_command() {
    let known = machine();
    check(
        &MachineLimits { epoll_watches_max: Fact::Known(1_800_000), ..known.clone() },
        &both(1_000_000),
        "epoll_watches",
        (1_800_000 - 1_024) / 2,
        "sysctl -w fs.epoll.max_user_watches=2001024",
    );
    let memory = MachineMemory {
        total_bytes: 8 << 30,
        available_bytes: Some(4 << 30),
        slab_bytes: 0,
        used_bytes: 0,
    };
    let pair = 2 * (kernel_bytes(known.slabs.known().unwrap(), 4_096).unwrap() + 256);
    check(
        &MachineLimits { memory: Fact::Known(memory), ..known.clone() },
        &both(1_000_000),
        "memory",
        ((4 << 30) / 100 * 90) / pair,
        "of memory, or",
    );
    check(
        &MachineLimits {
            cgroup_memory: Fact::Known(Some(throng_machine::cgroup::MemoryRoom {
                limit_bytes: 3 << 30,
                taken_bytes: 2 << 30,
            })),
            ..known.clone()
        },
        &both(200_000),
        "cgroup_memory",
        ((1 << 30) / 100 * 90) / pair,
        &format!("MemoryMax={}", 200_000 * pair * 100 / 90 + (2 << 30)),
    );
    check(
        &MachineLimits {
            conntrack: Fact::Known(Some(Conntrack { count: 12, max: 262_144 })),
            ..known.clone()
        },
        &both(1_000_000),
        "conntrack",
        262_132,
        "sysctl -w net.netfilter.nf_conntrack_max=1000012",
    );
    check(
        &MachineLimits {
            tcp_mem: Fact::Known([1_000, 40_000, 50_000]),
            tcp_mem_used_pages: Fact::Known(10),
            ..known.clone()
        },
        &both(1_000_000),
        "tcp_mem",
        49_990 * 16,
        "sysctl -w net.ipv4.tcp_mem=\"31255 46882 62510\"",
    );
    let plain_user = Fact::Unknown(Unknown::new("proc/self/status", Reason::Missing));
    check(
        &MachineLimits {
            files: Fact::Known(FileUse { open: 500, max: 3_524 }),
            status: plain_user,
            ..known.clone()
        },
        &both(2_000),
        "fs_file_max",
        1_000,
        "sysctl -w fs.file-max=5524",
    );
    check(
        &MachineLimits { private_fds: Fact::Known(false), ..known.clone() },
        &both(20_000),
        "fd_tables",
        20_000 - 64 - 128 - 10,
        "ulimit -n 20202",
    );
    check(
        &MachineLimits {
            threads: Fact::Known((40, "the control group's pids.max")),
            ..known.clone()
        },
        &both(300_000),
        "threads",
        12 * (20_000 - 64 - 36 - 1),
        "TasksMax",
    );
}

#[test]
fn contexts_of_compressed_messages_are_counted_where_the_generator_is() {
    let of = |role, context_bytes| {
        let required = Requirements { context_bytes, ..Requirements::new(1_000_000, role) };
        found(&preflight(&required, &machine()), "memory").clone()
    };
    for role in [MachineRole::Client, MachineRole::Both] {
        let (plain, contexts) = (of(role, 0), of(role, 40 << 10));
        assert_eq!(contexts.needs - plain.needs, 1_000_000 * (40 << 10));
        assert_eq!(contexts.state, CheckState::Short, "{contexts:?}");
        assert!(contexts.because.contains("40960 B of contexts of permessage-deflate"));
        assert!(!plain.because.contains("deflate"));
    }
    assert_eq!(of(MachineRole::Server, 40 << 10).needs, of(MachineRole::Server, 0).needs);
}

#[test]
fn memory_that_is_short_by_a_few_bytes_is_reported_with_what_is_enough() {
    let at = |available| {
        let memory = MachineMemory {
            total_bytes: 1 << 30,
            available_bytes: Some(available),
            slab_bytes: 0,
            used_bytes: 0,
        };
        let machine = MachineLimits { memory: Fact::Known(memory), ..machine() };
        found(&preflight(&both(1), &machine), "memory").clone()
    };
    let needs = at(0).needs;
    let enough = needs.div_ceil(90) * 100;
    let short = at(enough - 1);
    assert_eq!(short.state, CheckState::Short, "{short:?}");
    assert!(short.remedy.unwrap().command.starts_with("add 1.00 B of memory"));
    assert_eq!(at(enough).state, CheckState::Ok);
}

#[test]
fn memory_that_users_hold_at_times_makes_a_limit_tight_and_never_short() {
    let memory = MachineMemory {
        total_bytes: 1 << 30,
        available_bytes: Some(1 << 30),
        slab_bytes: 0,
        used_bytes: 0,
    };
    let machine = MachineLimits { memory: Fact::Known(memory), ..machine() };
    let at = |held_bytes| {
        let whole = preflight(&Requirements { held_bytes, ..both(1_000) }, &machine);
        found(&whole, "memory").clone()
    };
    assert_eq!(at(128 << 20).state, CheckState::Ok);
    assert!(at(128 << 20).because.contains("up to 128 MiB for messages"), "{:?}", at(128 << 20));
    let tight = at(1 << 30);
    assert_eq!((tight.state, tight.holds), (CheckState::Tight, at(0).holds));
    let remedy = tight.remedy.unwrap().command;
    assert!(remedy.ends_with("or smaller messages and `held_bytes_max`"), "{remedy}");
}

#[test]
fn ports_are_addresses_times_ports_times_targets() {
    let range = |first, last, reserved: &[(u16, u16)]| MachineLimits {
        local_ports: Fact::Known(LocalPorts { first, last, reserved: reserved.to_vec() }),
        ..machine()
    };
    let widen = "sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\"";
    check(&range(32_768, 60_999, &[]), &remote(50_000, 1), "ports", 28_232, widen);
    check(&range(40_000, 40_099, &[(40_000, 40_009)]), &remote(1_000, 2), "ports", 180, widen);
    check(&range(1_024, 65_535, &[]), &remote(100_000, 1), "ports", 64_512, "for 1 more address;");
    // The kernel skips a port with a listener, whatever the listener's address.
    let busy = MachineLimits {
        listeners: Fact::Known(vec![
            listens("127.0.0.1:40001", 128),
            listens("[::]:40002", 128),
            listens("0.0.0.0:22", 128),
        ]),
        ..range(40_000, 40_009, &[])
    };
    check(&busy, &remote(20, 1), "ports", 8, widen);
    // One parity, then the other: in a range of odd length one port may not be found.
    check(&range(40_000, 40_010, &[]), &remote(20, 1), "ports", 10, widen);
    check(&range(40_000, 40_000, &[]), &remote(20, 1), "ports", 1, widen);
}

#[test]
fn on_loopback_more_addresses_need_only_be_given() {
    let mut required = remote(100_000, 1);
    required.ports.as_mut().unwrap().on_loopback = true;
    check(&machine(), &required, "ports", 28_232, "--source 127.1.0.0/29");
}

#[test]
fn from_half_of_an_addresss_ports_on_they_are_tight() {
    let state =
        |connections| found(&preflight(&remote(connections, 1), &machine()), "ports").clone();
    assert_eq!(state(14_116).state, CheckState::Ok);
    let tight = state(14_117);
    assert_eq!(tight.state, CheckState::Tight);
    assert!(
        tight.because.contains("with half of them in use") && tight.remedy.is_some(),
        "{tight:?}"
    );
}

#[test]
fn closed_connections_that_keep_their_ports_make_them_tight() {
    let required = Requirements { ends_per_s: 1_000.0, ..remote(10_000, 1) };
    let whole = preflight(&required, &machine());
    let ports = found(&whole, "ports");
    assert_eq!((ports.state, ports.needs), (CheckState::Tight, 70_000), "{whole}");
    assert!(ports.because.contains("60k may be in TIME-WAIT, for 1m"), "{whole}");
    assert_eq!(found(&whole, "time_wait").state, CheckState::Ok, "{whole}");
    assert!(whole.fits());
}

#[test]
fn named_source_ports_lose_those_with_a_listener_on_every_address() {
    let mut required = remote(1_000, 3);
    required.ports.as_mut().unwrap().chosen = PortChoice::Generator(40_000..=40_009);
    let busy = MachineLimits {
        listeners: Fact::Known(vec![
            listens("127.0.0.1:40001", 128),
            listens("0.0.0.0:40002", 128),
        ]),
        ..machine()
    };
    check(&busy, &required, "ports", 27, "--source-ports 1024-65535");
}

#[test]
fn loopback_has_as_many_addresses_as_are_needed() {
    let mut required = both(2_000_000);
    required.ports = remote(1, 1).ports;
    assert!(!preflight(&required, &machine()).fits());
    required.ports.as_mut().unwrap().addresses_grow = true;
    assert!(preflight(&required, &machine()).fits());
}

#[test]
fn a_given_number_of_cores_has_so_many_tables() {
    let required = Requirements { cores: Some(3), ..both(100_000) };
    check(&machine(), &required, "fd_tables", 3 * (20_000 - 64 - 9 - 1), "--cores 6");
    assert_eq!(cores_for(&both(1), &machine(), 1_000), 2);
    assert_eq!(cores_for(&both(1), &machine(), 200_000), 11);
    // 39 tables of 300 hold the most, 4,602: then only larger tables help.
    let small = MachineLimits { fds_hard: Fact::Known(Some(300)), ..machine() };
    check(&small, &required, "fd_tables", 3 * (300 - 64 - 9 - 1), "ulimit -n 33408");
}

#[test]
fn a_table_is_no_larger_than_nr_open() {
    let machine = MachineLimits {
        fds_hard: Fact::Known(None),
        nr_open: Fact::Known(1_000),
        private_fds: Fact::Known(false),
        ..machine()
    };
    check(
        &machine,
        &both(2_000),
        "fd_tables",
        1_000 - 202,
        "sysctl -w fs.nr_open=2202 && ulimit -n 2202",
    );
    let whole = preflight(&both(2_000), &machine);
    let besides = found(&whole, "fd_tables").remedy.as_ref().unwrap().besides_sysctl();
    assert!(besides.starts_with("ulimit -n 2202 "), "{besides:?}");
}

#[test]
fn what_root_is_exempt_from_does_not_stop_it() {
    let machine = MachineLimits { files: Fact::Known(FileUse { open: 0, max: 100 }), ..machine() };
    let whole = preflight(&both(1_000), &machine);
    assert!(whole.fits() && found(&whole, "fs_file_max").state == CheckState::Tight, "{whole}");
}

#[test]
fn a_burst_must_fit_into_the_queues() {
    let small = MachineLimits { backlog_max: Fact::Known(128), ..machine() };
    let mut required = Requirements { connects_per_s: 20_000.0, ..both(10_000) };
    let whole = preflight(&required, &small);
    let queue = found(&whole, "accept_queue");
    assert_eq!(
        (queue.needs, queue.has, queue.state),
        (2_000, Some(256), CheckState::Tight),
        "{whole}"
    );
    assert!(
        queue.remedy.as_ref().unwrap().command.starts_with("sysctl -w net.core.somaxconn=1024")
    );
    assert!(whole.fits(), "a queue that overflows makes connects slow");
    // A server that already listens has the queue that it has.
    required.listens = vec!["127.0.0.1:5555".parse().unwrap()];
    let running = MachineLimits {
        listeners: Fact::Known(vec![listens("0.0.0.0:5555", 4_096)]),
        ..small.clone()
    };
    assert_eq!(found(&preflight(&required, &running), "accept_queue").has, Some(4_096));
    assert_eq!(found(&whole, "syn_queue").state, CheckState::Ok, "cookies are on");
    let without = MachineLimits {
        syncookies: Fact::Known(0),
        syn_backlog_max: Fact::Known(1_024),
        ..machine()
    };
    let whole = preflight(&required, &without);
    assert_eq!(found(&whole, "syn_queue").has, Some(2 * 768), "{whole}");
}

#[test]
fn a_listening_port_among_the_local_ports_is_reported() {
    let required = Requirements { listens: vec!["127.0.0.1:40000".parse().unwrap()], ..both(10) };
    let whole = preflight(&required, &machine());
    let port = found(&whole, "listening_port");
    assert_eq!(port.state, CheckState::Tight);
    let remedy = port.remedy.as_ref().unwrap();
    assert_eq!(remedy.command, "sysctl -w net.ipv4.ip_local_reserved_ports=40000");
    assert_eq!(remedy.undo.as_deref(), Some("sysctl -w net.ipv4.ip_local_reserved_ports=\"\""));
    let outside = Requirements { listens: vec!["127.0.0.1:5555".parse().unwrap()], ..both(10) };
    assert_eq!(found(&preflight(&outside, &machine()), "listening_port").state, CheckState::Ok);
}

#[test]
fn where_nothing_can_be_read_nothing_is_refused_and_every_reason_is_reported() {
    let nothing = MachineLimits { cpus: 2, ..MachineLimits::read(&recorded_root("empty"), 1) };
    let required = Requirements {
        ports: remote(1, 1).ports,
        listens: vec!["127.0.0.1:1".parse().unwrap()],
        ..both(1_000_000_000)
    };
    let whole = preflight(&required, &nothing);
    assert!(whole.fits() && whole.holds().is_none(), "{whole}");
    assert!(whole.checks.iter().all(|check| check.state == CheckState::Unknown), "{whole}");
    assert!(whole.verdict().starts_with("no limit that could be read is too low for"), "{whole}");
    assert!(whole.to_string().contains("proc/meminfo: does not exist here"), "{whole}");
}

#[test]
fn one_unknown_limit_hides_no_other() {
    let machine =
        MachineLimits { memory: unknown(), epoll_watches_max: Fact::Known(2_000), ..machine() };
    let whole = preflight(&both(10_000), &machine);
    assert!(!whole.fits());
    assert!(whole.verdict().ends_with("1 of 9 could not be read"), "{}", whole.verdict());
}

#[test]
fn sizes_of_the_documented_kernel_are_those_that_were_recorded() {
    let slabs =
        recorded_root("linux-6.18").read(slabinfo::PATH, slabinfo::parse).into_result().unwrap();
    assert_eq!(kernel_bytes(&slabs, 4_096), Some(KERNEL_BYTES));
    let mut without = slabs;
    without.remove("filp");
    assert_eq!(kernel_bytes(&without, 4_096), None, "a merged cache is not free of cost");
}

#[test]
fn a_control_group_without_a_limit_has_no_row() {
    assert!(preflight(&both(1), &machine()).checks.iter().all(|check| check.id != "cgroup_memory"));
}

/// Generates machines of any size.
fn any_machine() -> impl Strategy<Value = MachineLimits> {
    let sizes = (300_u64..100_000, 1_u64..8, any::<bool>(), 1_u64..(64 << 30), 0_u64..10_000_000);
    let rest = (0_u64..3_000_000, 0_u64..10_000_000, 1_u16..30_000, 0_u16..30_000, 16_u64..5_000);
    (sizes, rest).prop_map(
        |((fds, cpus, private, free, watches), (conntrack, files, first, span, threads))| {
            MachineLimits {
                cpus,
                fds_hard: Fact::Known(Some(fds)),
                private_fds: Fact::Known(private),
                memory: Fact::Known(MachineMemory {
                    total_bytes: free,
                    available_bytes: Some(free),
                    slab_bytes: 0,
                    used_bytes: 0,
                }),
                epoll_watches_max: Fact::Known(watches),
                conntrack: Fact::Known(Some(Conntrack { count: 7, max: conntrack })),
                files: Fact::Known(FileUse { open: 9, max: files }),
                local_ports: Fact::Known(LocalPorts {
                    first,
                    last: first + span,
                    reserved: Vec::new(),
                }),
                threads: Fact::Known((threads, "kernel.threads-max")),
                status: unknown(),
                ..machine()
            }
        },
    )
}

proptest! {
    #[test]
    fn what_it_holds_fits_and_one_more_does_not(machine in any_machine(), client in any::<bool>()) {
        let required = |connections| {
            if client {
                remote(connections, 3)
            } else {
                Requirements { ports: remote(1, 3).ports, ..both(connections) }
            }
        };
        let holds = preflight(&required(1), &machine).holds().unwrap();
        let at = preflight(&required(holds), &machine);
        prop_assert!(holds == 0 || at.fits(), "{}", at);
        prop_assert!(!preflight(&required(holds + 1), &machine).fits());
    }

    #[test]
    fn needs_are_within_the_limit_exactly_where_it_fits(
        machine in any_machine(),
        connections in 1_u64..2_000_000,
    ) {
        let linear = ["epoll_watches", "fs_file_max", "memory", "conntrack", "fd_tables"];
        for check in preflight(&both(connections), &machine).checks {
            if let Some(has) = check.has.filter(|_| linear.contains(&check.id)) {
                prop_assert_eq!(check.needs <= has, check.state == CheckState::Ok, "{:?}", check);
            }
        }
    }

    #[test]
    fn the_proposed_sysctls_are_enough(
        machine in any_machine(),
        connections in 1_u64..2_000_000,
    ) {
        let before = preflight(&both(connections), &machine);
        let mut after = machine;
        for sysctl in before.sysctls() {
            let max = sysctl.limit();
            prop_assert!(max > 0);
            match sysctl.name.as_str() {
                "fs.epoll.max_user_watches" => after.epoll_watches_max = Fact::Known(max),
                "fs.file-max" => after.files = Fact::Known(FileUse { open: 9, max }),
                "net.netfilter.nf_conntrack_max" => {
                    after.conntrack = Fact::Known(Some(Conntrack { count: 7, max }));
                }
                _ => {}
            }
        }
        for check in preflight(&both(connections), &after).checks {
            if let "epoll_watches" | "fs_file_max" | "conntrack" = check.id {
                prop_assert_eq!(check.state, CheckState::Ok, "{:?}", check);
            }
        }
    }
}
