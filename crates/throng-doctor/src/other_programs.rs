//! Other programs that had CPUs of the run's machines: how much, when, and who they were.

use throng_report::ProgramUse;

use crate::cpus::{CpuUse, whole_percent};
use crate::history::Sample;
use crate::kernels::Kernel;
use crate::run_view::{Endpoint, RunView};

/// What other programs had of one machine, in the intervals in which it was much.
#[derive(Clone, Debug)]
pub(crate) struct OtherPrograms {
    /// Their share of all CPUs of the machine, 0 to 1.
    pub(crate) share: f64,
    /// The intervals.
    pub(crate) uses: Vec<CpuUse>,
    /// When, in words: `from 5.0 to 9.0 s`.
    pub(crate) when: String,
    /// Who, in words, with a space before it: ` (sh, pid 4711, 50 %)`. Empty when that is not known.
    pub(crate) who: String,
}

impl OtherPrograms {
    /// Returns what they had in these intervals of a machine; none where that is not known.
    pub(crate) fn of(run: &RunView<'_>, machine: &Kernel, uses: Vec<CpuUse>) -> Option<Self> {
        let shares: Vec<f64> =
            uses.iter().filter_map(|used| Some(used.strangers(run)? / used.cpus)).collect();
        let share = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let cpus = uses.first()?.cpus;
        let who = who(run, machine.end, &uses, cpus);
        Some(Self { share, when: when(run, &uses), who, uses })
    }

    /// Returns it as the beginning of a sentence.
    pub(crate) fn words(&self, machine: &Kernel) -> String {
        let first = self.uses.first().copied().unwrap_or_default();
        let ends = [first.server, first.client].into_iter().flatten();
        let held_to = ends.map(|process| process.allowed).fold(first.cpus, f64::min) as u64;
        let of = match first.cpus as u64 {
            1 => format!("the CPU of {}", machine.whose),
            cpus if held_to < cpus => {
                let whose = machine.whose;
                format!("the {cpus} CPUs of {whose}, {held_to} of which the run is held to,")
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

/// The time of these intervals in words.
fn when(run: &RunView<'_>, uses: &[CpuUse]) -> String {
    let seconds = |ms: u64| ms as f64 / 1000.0;
    let from_ms = uses.iter().map(|used| used.from_ms).min().unwrap_or(0);
    let to_ms = uses.iter().map(|used| used.at_ms).max().unwrap_or(0);
    let covered_ms: u64 = uses.iter().map(|used| used.at_ms - used.from_ms).sum();
    let whole_ms = run.samples().last().map_or(0, |moment| moment.interval.at_ms);
    let is_most_of = |ms: u64| covered_ms as f64 >= MOST * ms as f64;
    match () {
        () if is_most_of(whole_ms) => "throughout".to_owned(),
        () if is_most_of(to_ms - from_ms) => {
            format!("from {:.1} to {:.1} s", seconds(from_ms), seconds(to_ms))
        }
        () => format!(
            "for {:.0} s between {:.1} and {:.1} s",
            seconds(covered_ms),
            seconds(from_ms),
            seconds(to_ms)
        ),
    }
}

/// One program, which may be several processes.
#[derive(Debug)]
struct Program<'a> {
    name: &'a str,
    /// Its busiest process.
    pid: u32,
    processes: Vec<u32>,
    millicpus: u64,
    most: u64,
}

/// Who they were, the busiest first.
fn who(run: &RunView<'_>, end: Endpoint, uses: &[CpuUse], cpus: f64) -> String {
    let is_in = |moment: &&Sample| uses.iter().any(|used| used.at_ms == moment.interval.at_ms);
    let lists = run.samples().iter().filter(is_in).map(|moment| run.programs(end, moment));
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
    let told = programs.iter().filter(|program| share(program) >= TOLD_MIN).take(TOLD_MOST);
    let told: Vec<_> = told.map(|program| program.words(share(program))).collect();
    if told.is_empty() { String::new() } else { format!(" ({})", told.join("; ")) }
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

    fn words(&self, share: f64) -> String {
        let share = whole_percent(share);
        match self.processes.len() {
            1 => format!("{}, pid {}, {share}", self.name, self.pid),
            n => format!("{}, {n} processes, pid {} first, {share}", self.name, self.pid),
        }
    }
}

/// Intervals that fill so much of a time are that time.
const MOST: f64 = 0.75;

/// A program that had less of the machine is not told by name, …
const TOLD_MIN: f64 = 0.05;
/// … nor one after so many others.
const TOLD_MOST: usize = 3;
