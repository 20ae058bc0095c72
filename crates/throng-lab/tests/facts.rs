//! Facts about a server from a watch on its host: they come, are lost, and come again, and the run goes on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use throng_lab::recorder::{FactsStream, KernelProbe, KernelReading, LiveKernel};
use throng_lab::watch::Publisher;
use throng_report::watch::{WATCH_SCHEMA, WatchHeader, WatchLine};
use throng_report::{MachineUse, RunEventKind, ServerSnapshot};

const PATIENCE: Duration = Duration::from_secs(60);

/// A watch on another machine, as far as its first line tells.
fn publisher(addr: SocketAddr) -> Publisher {
    let header = WatchHeader {
        schema: WATCH_SCHEMA.into(),
        interval_ms: 100,
        boot_id: Some("another machine's".into()),
        ..Default::default()
    };
    // The port of the one before may be in use a moment longer.
    let bound = until(|| Publisher::bind(addr).ok());
    bound.start(&header).unwrap()
}

fn line() -> WatchLine {
    WatchLine {
        at_ms: 100,
        machine: Some(MachineUse { cpus: 64, ..Default::default() }),
        kernel: [("TcpExt.ListenOverflows".to_owned(), 7), ("process.server.run_us".to_owned(), 9)]
            .into(),
        server: Some(ServerSnapshot { handler: "chat".into(), ..Default::default() }),
        unseen: vec!["sock_diag: permission denied".into()],
        ..Default::default()
    }
}

#[track_caller]
fn until<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "it did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The first sample that `is_so`, while the watch goes on.
#[track_caller]
fn sampled(
    kernel: &mut LiveKernel,
    publisher: Option<&Publisher>,
    is_so: impl Fn(&KernelReading) -> bool,
) -> KernelReading {
    until(|| {
        publisher.inspect(|publisher| publisher.publish(&line()));
        Some(kernel.sample()).filter(&is_so)
    })
}

#[test]
fn the_servers_facts_stand_beside_the_generators_own() {
    let publisher = publisher("127.0.0.1:0".parse().unwrap());
    let facts = FactsStream::connect(&publisher.addr().to_string()).unwrap();
    assert!(!facts.is_same_machine());
    let mut kernel = LiveKernel::new(vec![1]).with_facts(facts);
    let first = sampled(&mut kernel, Some(&publisher), |sample| !sample.server_counters.is_empty());
    assert_eq!(first.server_counters["TcpExt.ListenOverflows"], 7);
    assert_eq!(first.server_counters["process.server.run_us"], 9);
    assert_eq!(first.server_machine.unwrap().cpus, 64);
    assert_eq!(first.server.unwrap().handler, "chat");
    assert!(first.counters.contains_key("process.client.run_us"));
    assert!(!first.counters.contains_key("process.server.run_us"), "it is not this machine's");
    let refused = "the server's side: sock_diag: permission denied".to_owned();
    assert!(first.unseen.as_ref().unwrap().contains(&refused), "{:?}", first.unseen);
}

#[test]
fn a_stream_that_is_lost_and_comes_back_is_told_and_stops_nobody() {
    let first = publisher("127.0.0.1:0".parse().unwrap());
    let addr = first.addr();
    let facts = FactsStream::connect(&addr.to_string()).unwrap();
    let mut kernel = LiveKernel::new(vec![1]).with_facts(facts);
    sampled(&mut kernel, Some(&first), |sample| !sample.server_counters.is_empty());

    drop(first);
    let lost = sampled(&mut kernel, None, |sample| !sample.events.is_empty());
    let reason = "the watch has ended".to_owned();
    assert_eq!(lost.events, [RunEventKind::FactsLost { address: addr.to_string(), reason }]);
    assert!(
        lost.unseen.iter().flatten().any(|what| what.contains("the watch has ended")),
        "{:?}",
        lost.unseen
    );
    let without = sampled(&mut kernel, None, |sample| sample.server_counters.is_empty());
    assert!(!without.counters.is_empty(), "the generator's own go on");
    assert_eq!((without.server_machine, without.server), (None, None));

    let second = publisher(addr);
    let back = sampled(&mut kernel, Some(&second), |sample| !sample.events.is_empty());
    assert_eq!(back.events, [RunEventKind::FactsBack { address: addr.to_string() }]);
    sampled(&mut kernel, Some(&second), |sample| !sample.server_counters.is_empty());
}

#[test]
fn a_watch_that_falls_silent_is_lost_as_well() {
    let publisher = publisher("127.0.0.1:0".parse().unwrap());
    let facts = FactsStream::connect(&publisher.addr().to_string()).unwrap();
    let mut kernel = LiveKernel::new(vec![1]).with_facts(facts);
    // It is connected, and says nothing.
    let lost = sampled(&mut kernel, None, |sample| !sample.events.is_empty());
    assert!(
        matches!(&lost.events[0], RunEventKind::FactsLost { reason, .. } if reason.contains("no line")),
        "{:?}",
        lost.events
    );
}
