//! What of this machine matters to walls: the CPUs that this test may use, and who else has them.

use std::fs;
use std::time::Instant;

use throng_base::time::Instant as Moment;
use throng_doctor::{Sampler, SamplerOptions};

/// How much CPU time other programs take, from now on.
pub(crate) struct Others {
    began: Instant,
    busy_ticks: u64,
    own_ticks: u64,
}

impl Others {
    pub(crate) fn watch() -> Self {
        Self { began: Instant::now(), busy_ticks: busy_ticks(), own_ticks: own_ticks() }
    }

    /// Their share of all CPUs since then. What this test has started counts as its own once it was waited for.
    pub(crate) fn share(&self) -> f64 {
        let busy = busy_ticks().saturating_sub(self.busy_ticks);
        let own = own_ticks().saturating_sub(self.own_ticks);
        let all = self.began.elapsed().as_secs_f64() * TICKS_PER_S * cpus_of_the_machine() as f64;
        busy.saturating_sub(own) as f64 / all.max(1.0)
    }
}

/// The CPUs that this process may use, by number.
pub(crate) fn cpus() -> Vec<usize> {
    let allowed = rustix::thread::sched_getaffinity(None).expect("its own");
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// The CPUs that the test's own control group rations it to, where it does.
pub(crate) fn quota() -> Option<f64> {
    let sample = Sampler::new(SamplerOptions::default()).sample(Moment::ZERO);
    let millicpus = sample.counters.get("cgroup.cpu.limit_millicpus")?;
    Some(*millicpus as f64 / 1000.0)
}

/// Two CPUs or more, none of them rationed: where walls are about one CPU of several.
pub(crate) fn needs_two_cpus() -> Result<(), String> {
    if let Some(quota) = quota() {
        return Err(format!("this test is rationed to {quota} CPUs"));
    }
    match cpus()[..] {
        [] | [_] => Err("there is one CPU for both ends".to_owned()),
        _ => Ok(()),
    }
}

/// CPU time of everything but idleness, in ticks.
fn busy_ticks() -> u64 {
    let text = fs::read_to_string("/proc/stat").expect("procfs");
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; what guests take is in user already.
    ticks.iter().take(8).enumerate().filter(|(i, _)| ![3, 4].contains(i)).map(|(_, t)| t).sum()
}

/// CPU time of this process and of those of its children that have ended.
fn own_ticks() -> u64 {
    let text = fs::read_to_string("/proc/self/stat").expect("procfs");
    let (_, rest) = text.rsplit_once(')').expect("a name in parentheses");
    // From the third field on; utime is the 14th.
    let fields: Vec<u64> =
        rest.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
    fields[11..15].iter().sum()
}

fn cpus_of_the_machine() -> usize {
    let text = fs::read_to_string("/proc/stat").expect("procfs");
    text.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1).max(1)
}

/// USER_HZ, which is 100 on every architecture that throng runs on.
const TICKS_PER_S: f64 = 100.0;

#[test]
fn own_work_is_not_others() {
    let others = Others::watch();
    let began = own_ticks();
    while own_ticks() < began + 20 {
        std::hint::spin_loop();
    }
    let took = others.began.elapsed().as_secs_f64();
    // All but these 0.2 s is idle or somebody else's.
    let most = (took * cpus_of_the_machine() as f64 - 0.2) / (took * cpus_of_the_machine() as f64);
    assert!(others.share() <= most + 0.1, "{} of at most {most}", others.share());
}
