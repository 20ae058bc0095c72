//! Facts about a server from a watch on its host: the stream is lost and comes back, and the run
//! goes on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use throng_measure::watch::{WATCH_SCHEMA, WatchHeader, WatchLine};
use throng_measure::{MachineUse, Metric, ProcessMetric, RunEventKind, ServerSnapshot};
use throng_run::recorder::{FactsStream, KernelProbe, KernelReading, LiveKernel};
use throng_run::watch::Publisher;

const WAIT_MAX: Duration = Duration::from_secs(60);

/// Starts a publisher whose first line names another machine.
fn publisher(addr: SocketAddr) -> Publisher {
    let header = WatchHeader {
        schema: WATCH_SCHEMA.into(),
        interval_ms: 100,
        boot_id: Some("another machine's".into()),
        ..Default::default()
    };
    // The port of an earlier publisher may be in use for a moment.
    let bound = until(|| Publisher::bind(addr).ok());
    bound.start(&header).unwrap()
}

fn line() -> WatchLine {
    WatchLine {
        at_ms: 100,
        machine: Some(MachineUse { cpus: 64, ..Default::default() }),
        kernel: [(Metric::TCPEXT_LISTEN_OVERFLOWS, 7), (ProcessMetric::RUN_US.server, 9)].into(),
        server: Some(ServerSnapshot { handler: "chat".into(), ..Default::default() }),
        unseen: vec!["sock_diag: permission denied".into()],
        ..Default::default()
    }
}

#[track_caller]
fn until<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(result) = poll() {
            return result;
        }
        assert!(began.elapsed() < WAIT_MAX, "it did not happen");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the first reading that is `is_so`, while the watch goes on.
#[track_caller]
fn sample_until(
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
fn the_servers_facts_are_kept_apart_from_the_generators() {
    let publisher = publisher("127.0.0.1:0".parse().unwrap());
    let facts = FactsStream::connect(&publisher.addr().to_string()).unwrap();
    assert!(!facts.is_same_machine());
    let mut kernel = LiveKernel::new(vec![SocketAddr::from(([127, 0, 0, 1], 1))]).with_facts(facts);
    let first =
        sample_until(&mut kernel, Some(&publisher), |sample| !sample.server_counters.is_empty());
    assert_eq!(first.server_counters[Metric::TCPEXT_LISTEN_OVERFLOWS], 7);
    assert_eq!(first.server_counters[ProcessMetric::RUN_US.server], 9);
    assert_eq!(first.server_machine.unwrap().cpus, 64);
    assert_eq!(first.server.unwrap().handler, "chat");
    assert!(first.counters.get(ProcessMetric::RUN_US.client).is_some());
    assert!(first.counters.get(ProcessMetric::RUN_US.server).is_none(), "it is not this machine's");
    let refused = "the server's side: sock_diag: permission denied".to_owned();
    assert!(first.unseen.as_ref().unwrap().contains(&refused), "{:?}", first.unseen);
}

#[test]
fn a_stream_that_is_lost_and_comes_back_is_reported_and_the_run_goes_on() {
    let first = publisher("127.0.0.1:0".parse().unwrap());
    let addr = first.addr();
    let facts = FactsStream::connect(&addr.to_string()).unwrap();
    let mut kernel = LiveKernel::new(vec![SocketAddr::from(([127, 0, 0, 1], 1))]).with_facts(facts);
    sample_until(&mut kernel, Some(&first), |sample| !sample.server_counters.is_empty());

    drop(first);
    let lost = sample_until(&mut kernel, None, |sample| !sample.events.is_empty());
    let reason = "the watch has ended".to_owned();
    assert_eq!(lost.events, [RunEventKind::FactsLost { address: addr.to_string(), reason }]);
    assert!(
        lost.unseen.iter().flatten().any(|what| what.contains("the watch has ended")),
        "{:?}",
        lost.unseen
    );
    let without = sample_until(&mut kernel, None, |sample| sample.server_counters.is_empty());
    assert!(!without.counters.is_empty(), "the generator's own go on");
    assert_eq!((without.server_machine, without.server), (None, None));

    let second = publisher(addr);
    let back = sample_until(&mut kernel, Some(&second), |sample| !sample.events.is_empty());
    assert_eq!(back.events, [RunEventKind::FactsBack { address: addr.to_string() }]);
    sample_until(&mut kernel, Some(&second), |sample| !sample.server_counters.is_empty());
}

#[test]
fn a_watch_that_falls_silent_is_lost_as_well() {
    let publisher = publisher("127.0.0.1:0".parse().unwrap());
    let facts = FactsStream::connect(&publisher.addr().to_string()).unwrap();
    let mut kernel = LiveKernel::new(vec![SocketAddr::from(([127, 0, 0, 1], 1))]).with_facts(facts);
    // The stream is connected, but the publisher sends no line.
    let lost = sample_until(&mut kernel, None, |sample| !sample.events.is_empty());
    assert!(
        matches!(
            &lost.events[0],
            RunEventKind::FactsLost { reason, .. } if reason.contains("no line")
        ),
        "{:?}",
        lost.events
    );
}
