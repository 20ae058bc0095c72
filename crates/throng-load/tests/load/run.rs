//! Runs of the generator against plain servers of the standard library.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use throng_load::run::{LoadOptions, LoadPlan, RunningLoad};
use throng_load::scenario::Scenario;
use throng_measure::{EarlyClose, LoadInterval, OperationTimes, RunEventKind};

/// Longer than any run here takes, even on a busy machine.
pub(crate) const RUN_TIMEOUT: Duration = Duration::from_secs(300);

/// Measurements of a whole run.
pub(crate) struct Run {
    pub(crate) last: LoadInterval,
    pub(crate) times: OperationTimes,
    pub(crate) early_closes: Vec<EarlyClose>,
    pub(crate) events: Vec<RunEventKind>,
    pub(crate) took: Duration,
}

/// Starts a server that runs `serve` in a thread for each connection.
pub(crate) fn server(serve: fn(TcpStream)) -> SocketAddr {
    server_on(TcpListener::bind("127.0.0.1:0").unwrap(), serve)
}

pub(crate) fn server_on(listener: TcpListener, serve: fn(TcpStream)) -> SocketAddr {
    let addr = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            stream.set_nodelay(true).unwrap();
            std::thread::spawn(move || serve(stream));
        }
    });
    addr
}

pub(crate) fn run(target: SocketAddr, rest: &str) -> Run {
    run_with(target, rest, &LoadOptions { cores: Some(2), ..LoadOptions::default() })
}

pub(crate) fn run_with(target: SocketAddr, rest: &str, options: &LoadOptions) -> Run {
    run_scenario(&parsed(&format!("target: tcp://{target}\n{rest}")), options)
}

/// Runs a whole scenario on two cores.
pub(crate) fn run_text(text: &str) -> Run {
    run_scenario(&parsed(text), &LoadOptions { cores: Some(2), ..LoadOptions::default() })
}

/// Parses a scenario that has no mistakes.
pub(crate) fn parsed(text: &str) -> Scenario {
    Scenario::parse(text, "test").unwrap_or_else(|wrong| panic!("{wrong}"))
}

pub(crate) fn run_scenario(scenario: &Scenario, options: &LoadOptions) -> Run {
    let plan = LoadPlan::new(scenario, options).unwrap();
    let mut load = RunningLoad::start(plan).unwrap();
    let mut times = OperationTimes::default();
    let mut early_closes = Vec::new();
    let begun = Instant::now();
    let last = loop {
        std::thread::sleep(Duration::from_millis(50));
        let interval = load.snapshot();
        times.merge(&interval.times);
        early_closes.extend(interval.early_closes.iter().cloned());
        if load.is_finished() {
            break interval;
        }
        assert!(begun.elapsed() < RUN_TIMEOUT, "{:?}", interval.counters);
    };
    let events = load.events();
    assert!(load.join());
    Run { last, times, early_closes, events, took: begun.elapsed() }
}

pub(crate) fn answer_after(mut stream: TcpStream, delay: Duration) {
    let mut buffer = [0; 4096];
    while let Ok(1..) = stream.read(&mut buffer) {
        // Sleeping may be late. The last part spins, so that the delay is exact.
        let due = Instant::now() + delay;
        if let Some(most) = delay.checked_sub(Duration::from_millis(2)) {
            std::thread::sleep(most);
        }
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        if stream.write_all(b"ok").is_err() {
            return;
        }
    }
}

/// Runs a load that `control` controls meanwhile. Returns the last interval.
pub(crate) fn run_controlled(
    target: SocketAddr,
    rest: &str,
    control: impl FnOnce(&mut RunningLoad),
) -> LoadInterval {
    let scenario = parsed(&format!("target: tcp://{target}\n{rest}"));
    let options = LoadOptions { cores: Some(2), ..LoadOptions::default() };
    let mut load = RunningLoad::start(LoadPlan::new(&scenario, &options).unwrap()).unwrap();
    control(&mut load);
    let begun = Instant::now();
    let last = loop {
        let last = load.snapshot();
        if load.is_finished() {
            break last;
        }
        assert!(begun.elapsed() < RUN_TIMEOUT, "{:?}", last.counters);
        std::thread::sleep(Duration::from_millis(20));
    };
    assert!(load.join());
    last
}
