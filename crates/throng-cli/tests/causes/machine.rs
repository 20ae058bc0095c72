//! The CPUs that this test may use, and their load by other programs.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use throng_base::time::Instant as Moment;
use throng_machine::{Sampler, SamplerOptions};
use throng_measure::Metric;

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
    /// has started are its own.
    pub(crate) fn share(&self) -> f64 {
        self.share_of(busy_ticks(), own_ticks(), self.began.elapsed(), cpus_of_the_machine())
    }

    /// Returns the share that others used of the ticks of all CPUs since the start.
    fn share_of(&self, busy_ticks: u64, own_ticks: u64, elapsed: Duration, cpus: usize) -> f64 {
        let busy = busy_ticks.saturating_sub(self.busy_ticks);
        let own = own_ticks.saturating_sub(self.own_ticks);
        let all = elapsed.as_secs_f64() * TICKS_PER_S * cpus as f64;
        busy.saturating_sub(own) as f64 / all.max(1.0)
    }

    /// Returns what other programs used, if it was enough to cause a finding.
    pub(crate) fn disturb(&self) -> Option<String> {
        let share = self.share();
        let percent = share * 100.0;
        (share > OTHERS_DISTURB).then(|| format!("other programs used {percent:.0} % of the CPUs"))
    }
}

/// A thread that counts the seconds in which other programs left the CPUs alone.
pub(crate) struct QuietTime {
    is_over: Arc<AtomicBool>,
    counts: JoinHandle<(u32, u32)>,
}

impl QuietTime {
    pub(crate) fn watch() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let counts = thread::spawn(move || {
            let (mut quiet, mut all) = (0, 0);
            while !over.load(Ordering::Relaxed) {
                let others = Others::watch();
                thread::sleep(Duration::from_secs(1));
                all += 1;
                quiet += u32::from(quota_disturbs().is_none() && others.disturb().is_none());
            }
            (quiet, all)
        });
        Self { is_over, counts }
    }

    /// Ends the watch. Returns the share of the seconds that were quiet.
    pub(crate) fn share(self) -> f64 {
        self.is_over.store(true, Ordering::Relaxed);
        let (quiet, all) = self.counts.join().expect("it only counts");
        f64::from(quiet) / f64::from(all.max(1))
    }
}

/// Returns what the quota of the test's own control group is, if it is less than its CPUs.
pub(crate) fn quota_disturbs() -> Option<String> {
    let quota = quota().filter(|quota| *quota < cpus().len() as f64)?;
    Some(format!("the test has a quota of {quota} CPUs"))
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

/// Returns the CPU time of this process and of all processes below it, with those that have ended.
fn own_ticks() -> u64 {
    ticks_below(std::process::id())
}

fn ticks_below(pid: u32) -> u64 {
    // A process that ends meanwhile is counted by the one that waits for it.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    // `rest` starts at the third field; utime is the 14th, and three more follow it.
    let fields = rest.split_whitespace().skip(11).take(4);
    let own: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let below = children.flat_map(|list| {
        list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
    });
    own + below.map(ticks_below).sum::<u64>()
}

fn cpus_of_the_machine() -> usize {
    let text = fs::read_to_string("/proc/stat").expect("procfs");
    text.lines().filter(|line| line.starts_with("cpu")).count().saturating_sub(1).max(1)
}

/// USER_HZ, which is 100 on every architecture that throng supports.
const TICKS_PER_S: f64 = 100.0;

/// The share of the CPUs from which other programs may cause the finding.
const OTHERS_DISTURB: f64 = 0.1;

/// A test of [`Others`]: own work is not that of others, and a child's is own while it runs.
pub(crate) fn own_work_is_not_others() {
    let others = Others { began: Instant::now(), busy_ticks: 1_000, own_ticks: 500 };
    let share = |busy, own| others.share_of(busy, own, Duration::from_secs(1), 2);
    assert_eq!(share(1_100, 600), 0.0, "one CPU of two was busy with own work");
    assert_eq!(share(1_100, 500), 0.5, "one CPU of two was busy with others");
    assert_eq!(share(1_100, 550), 0.25);
    let spin = "i=0; while [ $i -lt 3000000 ]; do i=$((i+1)); done; exec sleep 1000";
    let mut child = Command::new("sh").args(["-c", spin]).spawn().expect("a shell");
    // It has not ended, so only its own entry has its time.
    while ticks_below(child.id()) < 5 {
        assert!(child.try_wait().expect("a child").is_none(), "it sleeps until it is killed");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(own_ticks() >= ticks_below(child.id()), "a child's time is own while it runs");
    child.kill().and_then(|()| child.wait()).expect("it ends");
}
