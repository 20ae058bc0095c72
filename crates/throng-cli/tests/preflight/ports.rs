//! Source addresses times ports times targets, in network namespaces with a narrow port range.

use crate::bench::Bench;

const TEN: &str = "echo 40000 40009 > /proc/sys/net/ipv4/ip_local_port_range";

/// Creates a server on a port outside the range, and a generator with these sources.
fn bench(lines: &str, listen: &str, flags: &[&str]) -> Option<Bench> {
    let mut bench = Bench::in_namespace(lines)?.with(flags);
    bench.serve(listen, &[]);
    Some(bench)
}

#[test]
fn one_address_has_as_many_connections_as_ports() {
    let Some(bench) = bench(TEN, "127.0.0.1:5555", &["--source", "127.0.0.1"]) else { return };
    assert_eq!(bench.is_exact("ports"), 10);
    bench.fails_when_forced(11, "EADDRNOTAVAIL");
}

#[test]
fn reserved_ports_and_those_of_listeners_are_not_chosen() {
    let lines = format!("{TEN}; echo 40003-40004 > /proc/sys/net/ipv4/ip_local_reserved_ports");
    let Some(bench) = bench(&lines, "127.0.0.1:5555", &["--source", "127.0.0.1"]) else {
        return;
    };
    assert_eq!(bench.is_exact("ports"), 8);
    bench.fails_when_forced(9, "EADDRNOTAVAIL");
    // A foreign listener, on another address.
    let _listener = std::net::TcpListener::bind("127.0.0.9:40007").unwrap();
    assert_eq!(bench.is_exact("ports"), 7);
    bench.fails_when_forced(8, "EADDRNOTAVAIL");
}

#[test]
fn a_server_among_the_local_ports_costs_one_and_is_warned_of() {
    let Some(bench) = bench(TEN, "127.0.0.1:40001", &["--source", "127.0.0.1"]) else { return };
    let said = bench.preflight(1).to_string();
    assert!(said.contains("sysctl -w net.ipv4.ip_local_reserved_ports=40001"), "{said}");
    assert_eq!(bench.is_exact("ports"), 9);
    bench.fails_when_forced(10, "EADDRNOTAVAIL");
}

#[test]
fn each_source_address_has_all_the_ports() {
    let flags = ["--source", "127.0.0.1", "--source", "127.0.0.2", "--source", "127.0.0.3"];
    let Some(bench) = bench(TEN, "127.0.0.1:5555", &flags) else { return };
    assert_eq!(bench.is_exact("ports"), 30);
    bench.fails_when_forced(31, "EADDRNOTAVAIL");
}

#[test]
fn of_an_odd_range_what_is_sure_is_really_there() {
    let odd = "echo 40000 40010 > /proc/sys/net/ipv4/ip_local_port_range";
    let Some(bench) = bench(odd, "127.0.0.1:5555", &["--source", "127.0.0.1"]) else { return };
    assert_eq!(bench.is_exact("ports"), 10);
}

#[test]
fn ipv6_has_the_same_ports() {
    let Some(bench) = bench(TEN, "[::1]:5555", &["--source", "::1"]) else { return };
    assert_eq!(bench.is_exact("ports"), 10);
    bench.fails_when_forced(11, "EADDRNOTAVAIL");
}

#[test]
fn loopback_grows_past_any_range() {
    let Some(bench) = bench(TEN, "127.0.0.1:5555", &[]) else { return };
    assert_eq!(bench.preflight(1_000)["fits"], true);
    let came = bench.run(1_000, &[]);
    came.ran();
    assert_eq!(came.established(), 1_000, "{}", came.stderr);
}
