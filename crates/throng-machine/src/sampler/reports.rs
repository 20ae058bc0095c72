//! The events of a server's processes and threads, of which a run keeps a limited number.

use throng_measure::Endpoint;

/// What is left to report of one program.
#[derive(Debug)]
pub(super) struct ReportsLeft {
    ends: usize,
    threads: usize,
    /// The process and the name of the thread that was reported last, without its number.
    thread: Option<(u32, String)>,
}

impl Default for ReportsLeft {
    fn default() -> Self {
        Self { ends: ENDS_MAX, threads: THREADS_MAX, thread: None }
    }
}

impl ReportsLeft {
    /// Returns how many of so many ends of processes are reported.
    pub(super) fn of_ends(&mut self, program: Endpoint, ends: usize) -> usize {
        let reported = if program == Endpoint::Server { ends.min(self.ends) } else { 0 };
        self.ends -= reported;
        reported
    }

    /// Reports whether the busiest thread is another than the last time. Threads of a pool, whose
    /// names differ in their numbers, are one.
    pub(super) fn is_new_thread(&mut self, program: Endpoint, pid: u32, name: &str) -> bool {
        let name = name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
        let this = Some((pid, name));
        let is_new = program == Endpoint::Server && self.thread != this && self.threads > 0;
        if is_new {
            self.thread = this;
            self.threads -= 1;
        }
        is_new
    }
}

/// The most ends of processes that are reported.
const ENDS_MAX: usize = 32;

/// The most changes of the busiest thread that are reported.
const THREADS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_have_a_limit_and_a_pool_is_one_thread() {
        let mut left = ReportsLeft::default();
        assert_eq!(left.of_ends(Endpoint::Client, 5), 0);
        assert_eq!([30, 30, 30].map(|ends| left.of_ends(Endpoint::Server, ends)), [30, 2, 0]);
        let mut is_new = |pid, name| left.is_new_thread(Endpoint::Server, pid, name);
        assert!(is_new(1, "worker-1") && !is_new(1, "worker-12") && is_new(2, "worker-1"));
        let others = (0..50).filter(|pid| is_new(pid + 10, "loop")).count();
        assert_eq!(others, 14);
    }
}
