//! Walls of the CPUs: of the server, of the generator, and of other programs.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, available_parallelism, spawn};
use std::time::Duration;

use serde_json::Value;

use super::cgroup::Group;
use super::stage::Stage;
use super::{Cause, Provoked, foreign, machine};

pub(crate) const WALLS: &[Cause] = &[
    Cause {
        name: "one dispatcher",
        what: "a foreign server that does all work on one thread, 2 ms of CPU for each answer",
        expected: Some("hot_core"),
        says: &[],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: one_dispatcher,
    },
    Cause {
        name: "costly handler",
        what: "a foreign server with 10 ms of CPU for each answer, and a thread for each client",
        expected: Some("server_cpu_saturated"),
        says: &[],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: costly_handler,
    },
    Cause {
        name: "CPU hog",
        what: "busy loops of another program on all CPUs, at a higher priority",
        expected: Some("cpu_contended"),
        says: &[],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: cpu_hog,
    },
    Cause {
        name: "cgroup quota",
        what: "a control group with a third of the CPU time that the server needs",
        expected: Some("cgroup_throttled"),
        says: &[],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: cgroup_quota,
    },
    Cause {
        name: "too much to ask",
        what: "a generator on one CPU, with three times the random bytes that it can produce",
        expected: Some("generator_saturated"),
        says: &[],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: too_much_to_ask,
    },
];

fn one_dispatcher(stage: &mut Stage) -> Provoked {
    machine::needs_two_cpus()?;
    let addr = foreign::dispatcher(Duration::from_millis(2));
    stage.run_by(FIRST, &asking(&format!("{addr}"), 200, 4), &[])
}

/// Each answer a second takes a hundredth of a CPU, so this load needs four times the CPUs.
fn costly_handler(stage: &mut Stage) -> Provoked {
    if let Some(quota) = machine::quota() {
        return Err(format!("the quota of this test is {quota} CPUs: no CPU will be full"));
    }
    let addr = foreign::server(foreign::answers_at_a_cost(Duration::from_millis(10)));
    let per_second = 4 * machine::cpus().len() as u64;
    stage.run_by(FIRST, &asking(&format!("{addr}"), 100, per_second), &[])
}

fn cpu_hog(stage: &mut Stage) -> Provoked {
    if let Some(quota) = machine::quota() {
        return Err(format!("the quota of this test is {quota} CPUs, and the hogs share it"));
    }
    let addr = stage.serve_by(FIRST, &["echo"]);
    stage.keep(Hogs::new(2 * available_parallelism().map_or(2, usize::from)));
    stage.run_by(&["nice", "-n", "10"], &asking(&addr.to_string(), 200, 10), &[])
}

/// The CPU time of an answer was measured just before. A third of the time that the requested
/// answers need is a wall on every machine.
fn cgroup_quota(stage: &mut Stage) -> Provoked {
    let group = Rc::new(Group::new("cpu")?);
    stage.keep(Rc::clone(&group));
    let addr = stage.serve_by(&group.prefix(), &["echo"]).to_string();
    let most = stage.run(&asking_all_the_time(&addr))?;
    let answers = number(&most, "/message/rate_mean")?;
    let each_us = number(&most, "/server/cpu_us_per_message")?;
    let per_second = (answers * 0.3 / 200.0).max(1.0) as u64;
    let needed_us = (200 * per_second) as f64 * each_us;
    // The quota of each tenth of a second; the kernel accepts no less than a millisecond.
    let quota_us = ((needed_us / 10.0 / 3.0) as u64).max(1_000).to_string();
    let quota = (("cpu.cfs_quota_us", &*quota_us), ("cpu.max", &*format!("{quota_us} 100000")));
    group.limit(quota.0, quota.1)?;
    let run = stage.run(&asking(&addr, 200, per_second));
    assert!(group.throttled() > 0, "{quota_us} us a tenth of a second were enough");
    run
}

/// Random bytes cost the generator far more than the server, which discards them. The generator's
/// maximum was measured just before.
fn too_much_to_ask(stage: &mut Stage) -> Provoked {
    machine::needs_two_cpus()?;
    let [load, server] = [0, 1].map(|nth| machine::cpus()[nth].to_string());
    let addr = stage.serve_by(&["taskset", "-c", &server], &["hold"]);
    let on_one = ["taskset", "-c", &load];
    let flags = ["--cores", "1"];
    let send = "{send: {random: 16KiB}}";
    let most = format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 50, over: 500ms}}}}, {{hold: {{for: 2s}}}}]\n\
         user: [connect, {{repeat: {{for: 10s, do: [{send}]}}}}]\n"
    );
    let most = number(&stage.run_by(&on_one, &most, &flags)?, "/message/rate_mean")?;
    let scenario = format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 200, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n\
         user: [connect, every: {{rate: {}/s, do: [{send}]}}]\n",
        (most * 3.0 / 200.0).ceil()
    );
    stage.run_by(&on_one, &scenario, &flags)
}

/// Returns a scenario whose users each send requests at this rate.
fn asking(addr: &str, users: u64, per_second: u64) -> String {
    format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: {users}, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n\
         user: [connect, every: {{rate: {per_second}/s, \
         do: [send: hello, expect: {{bytes: 5}}]}}]\n"
    )
}

/// Returns a scenario whose users send the next request as soon as the answer arrives.
fn asking_all_the_time(addr: &str) -> String {
    format!(
        "target: tcp://{addr}\n\
         load: [{{ramp: {{to: 50, over: 500ms}}}}, {{hold: {{for: 2s}}}}]\n\
         user: [connect, {{repeat: {{for: 10s, do: [send: hello, expect: {{bytes: 5}}]}}}}]\n"
    )
}

/// Returns a number of a summary.
fn number(summary: &Value, pointer: &str) -> Result<f64, String> {
    let value = summary.pointer(pointer).and_then(Value::as_f64);
    value.ok_or_else(|| format!("the calibration has no {pointer}"))
}

/// The prefix of a higher priority, so that the process does not wait for a CPU.
const FIRST: &[&str] = &["nice", "-n", "-10"];

/// Threads that keep CPUs busy until this is dropped.
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
