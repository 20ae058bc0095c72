//! The simulated network alone: queues, retries, limits, and one seed that decides everything.

use std::time::Duration;

use throng_base::{Instant, Key};
use throng_driver::{
    ConnectSpec, Errno, Interest, ListenSpec, Listeners, SocketClose, SocketOptions, Sockets,
    SourceAddress, Token,
};
use throng_sim::{Faults, Sim, SimCoresOptions, SimDriver, SimFd};

fn addr() -> std::net::SocketAddr {
    "127.0.0.1:7000".parse().unwrap()
}

fn listen(driver: &mut SimDriver<()>, backlog: u32, reuseport: bool) -> SimFd {
    let options = SocketOptions::default();
    driver.listen(&ListenSpec { addr: addr(), backlog, reuseport, options }).unwrap()
}

fn connect(driver: &mut SimDriver<()>) -> Result<SimFd, Errno> {
    let options = SocketOptions::default();
    driver.connect(&ConnectSpec { target: addr(), source: SourceAddress::Any, options })
}

fn drivers(sim: &Sim, options: SimCoresOptions) -> Vec<SimDriver<()>> {
    sim.cores(&options).drivers()
}

fn driver(sim: &Sim) -> SimDriver<()> {
    drivers(sim, SimCoresOptions::default()).remove(0)
}

/// Returns the result of the connect, if there is one.
fn connect_result(driver: &mut SimDriver<()>, fd: &SimFd) -> Option<Result<(), Errno>> {
    let mut events = Vec::new();
    driver.wait(Instant::ZERO, &mut events);
    if events.iter().any(|event| event.ready.writable) { Some(driver.error(fd)) } else { None }
}

#[test]
fn a_full_accept_queue_drops_the_syn_which_is_sent_again_after_1_and_2_more_seconds() {
    let mut sim = Sim::new(1);
    let (mut server, mut client) = (driver(&sim), driver(&sim));
    let listener = listen(&mut server, 1, false);
    // Linux accepts one connection more than the backlog.
    let waiting: Vec<SimFd> = (0..2).map(|_| connect(&mut client).unwrap()).collect();
    sim.run_for(Duration::from_millis(1));
    let late = connect(&mut client).unwrap();
    client.register(&late, Token::connection(Key::new(0, 0)), Interest::ReadWrite).unwrap();
    for second in [1, 2] {
        sim.run_for(Duration::from_millis(990) * second);
        assert_eq!(connect_result(&mut client, &late), None);
        if second == 2 {
            let accepted = server.accept(&listener).unwrap();
            server.close(accepted, SocketClose::Reset);
        }
        sim.run_for(Duration::from_millis(20) * second);
    }
    assert_eq!(connect_result(&mut client, &late), Some(Ok(())));
    drop(waiting);
}

#[test]
fn a_connect_whose_every_syn_is_lost_times_out_after_127_seconds() {
    let mut sim = Sim::new(1);
    sim.set_faults(Faults { syn_loss: 1.0, ..Faults::none() });
    let (mut server, mut client) = (driver(&sim), driver(&sim));
    let _listener = listen(&mut server, 1, false);
    let fd = connect(&mut client).unwrap();
    client.register(&fd, Token::connection(Key::new(0, 0)), Interest::ReadWrite).unwrap();
    sim.run_for(Duration::from_millis(126_999));
    assert_eq!(connect_result(&mut client, &fd), None);
    sim.run_for(Duration::from_millis(2));
    assert_eq!(connect_result(&mut client, &fd), Some(Err(Errno::TIMED_OUT)));
}

#[test]
fn connects_are_spread_over_the_listeners_of_a_group_only() {
    let mut sim = Sim::new(1);
    let options = SimCoresOptions { cores: 4, ..SimCoresOptions::default() };
    let mut servers = drivers(&sim, options);
    let listeners: Vec<SimFd> =
        servers.iter_mut().map(|server| listen(server, 1_000, true)).collect();
    let options = SocketOptions::default();
    let alone = ListenSpec { addr: addr(), backlog: 1, reuseport: false, options };
    assert_eq!(servers[0].listen(&alone).err(), Some(Errno::ADDR_IN_USE));
    let mut client = driver(&sim);
    let clients: Vec<SimFd> = (0..400).map(|_| connect(&mut client).unwrap()).collect();
    sim.run_for(Duration::from_millis(1));
    for (server, listener) in servers.iter_mut().zip(&listeners) {
        let mut count = 0;
        while server.accept(listener).is_ok() {
            count += 1;
        }
        assert!((60..140).contains(&count), "{count} of 400");
    }
    drop(clients);
}

#[test]
fn a_shared_listener_refuses_only_when_the_last_core_has_closed_it() {
    let mut sim = Sim::new(1);
    let options = SimCoresOptions { cores: 2, ..SimCoresOptions::default() };
    let mut servers = drivers(&sim, options);
    let first = listen(&mut servers[0], 10, false);
    servers[0].share(&first, 1).unwrap();
    sim.run_for(Duration::from_millis(1));
    let second = servers[1].take_shared().unwrap();
    servers[0].close(first, SocketClose::Finish);
    let mut client = driver(&sim);
    let fd = connect(&mut client).unwrap();
    client.register(&fd, Token::connection(Key::new(0, 0)), Interest::ReadWrite).unwrap();
    sim.run_for(Duration::from_millis(1));
    assert_eq!(connect_result(&mut client, &fd), Some(Ok(())));
    servers[1].close(second, SocketClose::Finish);
    sim.run_for(Duration::from_millis(1));
    assert_eq!(connect_result(&mut client, &fd), Some(Err(Errno::CONN_RESET)));
}

#[test]
fn fd_tables_the_system_and_ports_run_out() {
    let sim = Sim::new(1);
    sim.set_faults(Faults { files_max: 7, ports: 1_000..=1_002, ..Faults::none() });
    let table = |max| SimCoresOptions { fds_max: max, ..SimCoresOptions::default() };
    let mut small = drivers(&sim, table(2)).remove(0);
    let fds: Vec<SimFd> = (0..2).map(|_| connect(&mut small).unwrap()).collect();
    assert_eq!(small.fd_room(), Some(0));
    assert_eq!(connect(&mut small).err(), Some(Errno::TABLE_FULL));
    let mut other = driver(&sim);
    let third = connect(&mut other).unwrap();
    assert_eq!(connect(&mut other).err(), Some(Errno::ADDR_NOT_AVAILABLE));
    let more: Vec<SimFd> = (0..4)
        .map(|port| {
            let options = SocketOptions::default();
            let addr = std::net::SocketAddr::new(addr().ip(), 8_000 + port);
            other.listen(&ListenSpec { addr, backlog: 1, reuseport: false, options }).unwrap()
        })
        .collect();
    assert_eq!(connect(&mut other).err(), Some(Errno::SYSTEM_FULL));
    other.close(third, SocketClose::Reset);
    assert!(connect(&mut other).is_ok());
    drop((fds, more));
}

#[test]
fn a_passed_socket_works_on_its_new_core() {
    let mut sim = Sim::new(1);
    let options = SimCoresOptions { cores: 2, ..SimCoresOptions::default() };
    let mut servers = drivers(&sim, options);
    let listener = listen(&mut servers[0], 10, false);
    let mut client = driver(&sim);
    let fd = connect(&mut client).unwrap();
    sim.run_for(Duration::from_millis(1));
    client.send(&fd, b"hello").unwrap();
    let accepted = servers[0].accept(&listener).unwrap();
    servers[0].hand_off(accepted, 1);
    let mut events = Vec::new();
    servers[0].wait(Instant::ZERO, &mut events);
    sim.run_for(Duration::from_millis(1));
    servers[1].wait(Instant::ZERO, &mut events);
    assert!(events.iter().any(|event| event.token == Token::PASSED));
    let passed = servers[1].take_passed().unwrap();
    let mut buffer = [0; 10];
    assert_eq!(servers[1].recv(&passed, &mut buffer), Ok(5));
}

#[test]
fn one_seed_decides_everything() {
    let run = |seed| {
        let mut sim = Sim::new(seed);
        sim.set_faults(Faults::hostile());
        let (mut server, mut client) = (driver(&sim), driver(&sim));
        let listener = listen(&mut server, 10, false);
        let fds: Vec<SimFd> = (0..20).map(|_| connect(&mut client).unwrap()).collect();
        for fd in &fds {
            sim.run_for(Duration::from_millis(20));
            let _ = client.send(fd, &[1; 5_000]);
            while let Ok(fd) = server.accept(&listener) {
                let _ = server.recv(&fd, &mut [0; 1_000]);
            }
        }
        sim.trace()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}
