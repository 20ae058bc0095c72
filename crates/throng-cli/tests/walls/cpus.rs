//! CPUs: of the server, of the generator, and of others beside them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism, spawn};
use std::time::Duration;

use super::cgroup::Group;
use super::stage::Stage;
use super::{Provoked, Wall, foreign};

pub(crate) const WALLS: &[Wall] = &[
    Wall {
        name: "one dispatcher",
        what: "a server of others, one thread of which does all the work, 2 ms of CPU an answer",
        expected: Some("hot_core"),
        stage: Stage::here,
        provoke: one_dispatcher,
    },
    Wall {
        name: "costly handler",
        what: "a server of others that takes 10 ms of CPU an answer, on as many threads as there are clients",
        expected: Some("server_cpu_saturated"),
        stage: Stage::here,
        provoke: costly_handler,
    },
    Wall {
        name: "CPU hog",
        what: "busy loops of another program on all CPUs, before the generator",
        expected: Some("cpu_contended"),
        stage: Stage::here,
        provoke: cpu_hog,
    },
    Wall {
        name: "cgroup quota",
        what: "a server that may use 4 % of a CPU",
        expected: Some("cgroup_throttled"),
        stage: Stage::here,
        provoke: cgroup_quota,
    },
    Wall {
        name: "too much to ask",
        what: "a generator on one CPU, with more random bytes to send than it can make",
        expected: Some("generator_saturated"),
        stage: Stage::here,
        provoke: too_much_to_ask,
    },
];

fn one_dispatcher(stage: &mut Stage) -> Provoked {
    let addr = foreign::dispatcher(Duration::from_millis(2));
    stage.run_by(FIRST, &asking(&format!("{addr}"), 200, 4), &[])
}

fn costly_handler(stage: &mut Stage) -> Provoked {
    let addr = foreign::server(foreign::answers_at_a_cost(Duration::from_millis(10)));
    stage.run_by(FIRST, &asking(&format!("{addr}"), 100, 8), &[])
}

fn cpu_hog(stage: &mut Stage) -> Provoked {
    let addr = stage.serve_by(FIRST, &["echo"]);
    stage.keep(Hogs::new(2 * available_parallelism().map_or(2, usize::from)));
    stage.run_by(&["nice", "-n", "10"], &asking(&addr.to_string(), 200, 10), &[])
}

fn cgroup_quota(stage: &mut Stage) -> Provoked {
    let [v1, v2] = [("cpu.cfs_quota_us", "4000"), ("cpu.max", "4000 100000")];
    let group = Group::new("cpu", v1, v2)?;
    let addr = stage.serve_by(&group.prefix(), &["echo"]);
    stage.keep(group);
    stage.run(&asking(&addr.to_string(), 200, 40))
}

/// Random bytes cost the generator far more than the server, which throws them away.
fn too_much_to_ask(stage: &mut Stage) -> Provoked {
    let addr = stage.serve_by(&["taskset", "-c", "1"], &["hold"]);
    let scenario = format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 200, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n\
         user: [connect, every: {{rate: 500/s, do: [send: {{random: 16KiB}}]}}]\n"
    );
    stage.run_by(&["taskset", "-c", "0"], &scenario, &["--cores", "1"])
}

/// Users who ask at this rate, each.
fn asking(addr: &str, users: u32, per_second: u32) -> String {
    format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: {users}, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n\
         user: [connect, every: {{rate: {per_second}/s, do: [send: hello, expect: {{bytes: 5}}]}}]\n"
    )
}

/// Runs before others: what it measures is the server and not its own wait for a CPU.
const FIRST: &[&str] = &["nice", "-n", "-10"];

/// Threads of this program that do nothing but take CPUs, until this is dropped.
struct Hogs {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Hogs {
    fn new(count: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let hog = |_| {
            let stop = Arc::clone(&stop);
            spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        Self { threads: (0..count).map(hog).collect(), stop: Arc::clone(&stop) }
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
