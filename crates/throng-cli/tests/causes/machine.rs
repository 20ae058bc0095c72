//! The CPUs that this test may use, and their load by other programs.

use std::fs;
use std::time::Instant;
use throng_report::Metric;

use throng_base::time::Instant as Moment;
use throng_doctor::{Sampler, SamplerOptions};

/// A measurement of the CPU time that other programs use, from its start.
pub(crate) struct Others {
    began: Instant,
    busy_ticks: u64,
    own_ticks: u64,
}

impl Others {
    pub(crate) fn watch() -> Self {
        Self { began: Instant::now(), busy_ticks: busy_ticks(), own_ticks: own_ticks() }
    }

    /// Returns the share of all CPUs that other programs have used. The processes that this test
    /// has started count as its own once it has waited for them.
    pub(crate) fn share(&self) -> f64 {
        let busy = busy_ticks().saturating_sub(self.busy_ticks);
        let own = own_ticks().saturating_sub(self.own_ticks);
        let all = self.began.elapsed().as_secs_f64() * TICKS_PER_S * cpus_of_the_machine() as f64;
        busy.saturating_sub(own) as f64 / all.max(1.0)
    }
}

/// Returns the numbers of the CPUs that this process may use.
pub(crate) fn cpus() -> Vec<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).expect("its own");
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Returns the quota of the test's own control group in CPUs, if it has one.
pub(crate) fn quota() -> Option<f64> {
    let sample = Sampler::new(SamplerOptions::default()).sample(Moment::ZERO);
    let millicpus = sample.counters.get(Metric::CGROUP_CPU_LIMIT_MILLICPUS)?;
    Some(millicpus as f64 / 1000.0)
}

/// Checks that there are two CPUs without a quota, which a wall about one CPU of several needs.
pub(crate) fn needs_two_cpus() -> Result<(), String> {
    if let Some(quota) = quota() {
        return Err(format!("the quota of this test is {quota} CPUs"));
    }
    match cpus()[..] {
        [] | [_] => Err("there is one CPU for server and generator".to_owned()),
        _ => Ok(()),
    }
}

/// Returns the CPU time of all CPUs without idle time, in ticks.
fn busy_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").expect("procfs");
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    // The fields are user nice system idle iowait irq softirq steal. The time of guests is part of
    // user.
    ticks.iter().take(8).enumerate().filter(|(i, _)| ![3, 4].contains(i)).map(|(_, t)| t).sum()
}

/// Returns the CPU time of this process and of its children that have ended.
fn own_ticks() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").expect("procfs");
    let (_, rest) = text.rsplit_once(')').expect("a name in parentheses");
    // `rest` starts at the third field; utime is the 14th.
    let fields: Vec<u64> =
        rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    fields[11..15].iter().sum()
}

fn cpus_of_the_machine() -> usize {
    let text = fs::read_to_string("/proc/stat").expect("procfs");
    text.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1).max(1)
}

/// USER_HZ, which is 100 on every architecture that throng supports.
const TICKS_PER_S: f64 = 100.0;

#[test]
fn own_work_is_not_others() {
    let others = Others::watch();
    let began = own_ticks();
    while own_ticks() < began + 20 {
        std::hint::spin_loop();
    }
    let took = others.began.elapsed().as_secs_f64();
    // All but these 0.2 s is idle time or the time of other programs.
    let most = (took * cpus_of_the_machine() as f64 - 0.2) / (took * cpus_of_the_machine() as f64);
    assert!(others.share() <= most + 0.1, "{} of at most {most}", others.share());
}
