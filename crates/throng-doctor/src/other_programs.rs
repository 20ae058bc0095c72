//! Other programs that used CPUs of the run's machines: their share, the times and their names.

use throng_measure::{Endpoint, ProgramUse};

use crate::cpus::{CpuUse, whole_percent};
use crate::history::Sample;
use crate::kernels::Kernel;
use crate::run_view::RunView;

/// CPU use of other programs on one machine, in the intervals in which it was high.
#[derive(Clone, Debug)]
pub(crate) struct OtherPrograms {
    /// Share of all CPUs of the machine, 0 to 1.
    pub(crate) share: f64,
    /// Intervals with high use.
    pub(crate) uses: Vec<CpuUse>,
    /// Time of the intervals as a phrase, such as `from 5.0 to 9.0 s`.
    pub(crate) when: String,
    /// Names of the programs with a space before them, such as ` (sh, pid 4711, 50 %)`. Empty if
    /// they are not known.
    pub(crate) who: String,
}

impl OtherPrograms {
    /// Returns the use by other programs in these intervals of a machine, or `None` if it is not
    /// known.
    pub(crate) fn of(run: &RunView<'_>, machine: &Kernel, uses: Vec<CpuUse>) -> Option<Self> {
        let shares: Vec<f64> =
            uses.iter().filter_map(|used| Some(used.strangers(run)? / used.cpus)).collect();
        let share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let cpus = uses.first()?.cpus;
        let who = who(run, machine.endpoint, &uses, cpus);
        Some(Self { share, when: when(run, &uses), who, uses })
    }

    /// Returns the first part of a sentence about them.
    pub(crate) fn describe(&self, machine: &Kernel) -> String {
        let first = self.uses.first().copied().unwrap_or_default();
        let ends = [first.server, first.client].into_iter().flatten();
        let allowed = ends.map(|process| process.allowed).fold(first.cpus, f64::min) as u64;
        let of = match first.cpus as u64 {
            1 => format!("the CPU of {}", machine.whose),
            cpus if allowed < cpus => {
                let whose = machine.whose;
                format!("the {cpus} CPUs of {whose}, {allowed} of which the run may use,")
            }
            cpus => format!("the {cpus} CPUs of {}", machine.whose),
        };
        format!(
            "Other programs had {} of {of} {}{}",
            whole_percent(self.share),
            self.when,
            self.who
        )
    }
}

/// Returns the time of these intervals as a phrase.
fn when(run: &RunView<'_>, uses: &[CpuUse]) -> String {
    let seconds = |ms: u64| ms as f64 / 1000.0;
    let from_ms = uses.iter().map(|used| used.from_ms).min().unwrap_or(0);
    let to_ms = uses.iter().map(|used| used.at_ms).max().unwrap_or(0);
    let covered_ms: u64 = uses.iter().map(|used| used.at_ms - used.from_ms).sum();
    let whole_ms = run.samples().last().map_or(0, |sample| sample.interval.at_ms);
    let is_most_of = |ms: u64| covered_ms as f64 >= MOST * ms as f64;
    if is_most_of(whole_ms) {
        "throughout".to_owned()
    } else if is_most_of(to_ms - from_ms) {
        format!("from {:.1} to {:.1} s", seconds(from_ms), seconds(to_ms))
    } else {
        format!(
            "for {:.0} s between {:.1} and {:.1} s",
            seconds(covered_ms),
            seconds(from_ms),
            seconds(to_ms)
        )
    }
}

/// A program, which may be several processes.
#[derive(Debug)]
struct Program<'a> {
    name: &'a str,
    /// Pid of its busiest process.
    pid: u32,
    processes: Vec<u32>,
    millicpus: u64,
    most: u64,
}

/// Returns a phrase with the programs, the busiest first.
fn who(run: &RunView<'_>, end: Endpoint, uses: &[CpuUse], cpus: f64) -> String {
    let is_in = |sample: &&Sample| uses.iter().any(|used| used.at_ms == sample.interval.at_ms);
    let lists = run.samples().iter().filter(is_in).map(|sample| run.programs(end, sample));
    let lists: Vec<&[ProgramUse]> = lists.filter(|list| !list.is_empty()).collect();
    let mut programs: Vec<Program<'_>> = Vec::new();
    for used in lists.iter().copied().flatten() {
        let at = programs.iter().position(|program| program.name == used.program);
        let at = at.unwrap_or_else(|| {
            programs.push(Program::named(&used.program));
            programs.len() - 1
        });
        programs[at].add(used);
    }
    programs.sort_by_key(|program| std::cmp::Reverse(program.millicpus));
    let share = |program: &Program<'_>| {
        program.millicpus as f64 / 1000.0 / lists.len().max(1) as f64 / cpus
    };
    let shown = programs.iter().filter(|program| share(program) >= SHOWN_SHARE_MIN).take(SHOWN_MAX);
    let shown: Vec<_> = shown.map(|program| program.describe(share(program))).collect();
    if shown.is_empty() { String::new() } else { format!(" ({})", shown.join("; ")) }
}

impl<'a> Program<'a> {
    fn named(name: &'a str) -> Self {
        Self { name, pid: 0, processes: Vec::new(), millicpus: 0, most: 0 }
    }

    fn add(&mut self, used: &ProgramUse) {
        self.millicpus += used.millicpus;
        if used.millicpus > self.most {
            (self.pid, self.most) = (used.pid, used.millicpus);
        }
        if !self.processes.contains(&used.pid) {
            self.processes.push(used.pid);
        }
    }

    /// Returns the program's name, pid and share as a phrase.
    fn describe(&self, share: f64) -> String {
        let share = whole_percent(share);
        match self.processes.len() {
            1 => format!("{}, pid {}, {share}", self.name, self.pid),
            n => format!("{}, {n} processes, pid {} first, {share}", self.name, self.pid),
        }
    }
}

/// The share of a time that intervals must fill to count as all of that time.
const MOST: f64 = 0.9;

/// The smallest share of the machine for which a program is named.
const SHOWN_SHARE_MIN: f64 = 0.05;
/// The most programs that are named.
const SHOWN_MAX: usize = 3;
