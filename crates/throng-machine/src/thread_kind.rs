//! What a thread of a foreign program does, by its name.

/// The work of a thread that its name gives away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// It collects garbage, for all threads of the program.
    Collector,
    /// It compiles what the program runs most often.
    Compiler,
    /// It runs processes of Erlang, any of them.
    ErlangScheduler,
}

impl ThreadKind {
    /// Returns the work of a thread with this name, which the kernel cuts to 15 bytes.
    pub fn of(name: &str) -> Option<Self> {
        // The schedulers of Erlang have their number in front: `2_scheduler`.
        let name = name.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
        let is_row = |(begin, _): &&(&str, Self)| name.starts_with(begin);
        NAMES.iter().find(is_row).map(|(_, kind)| *kind)
    }
}

/// Beginnings of names.
const NAMES: &[(&str, ThreadKind)] = &[
    // Java. The VM thread collects by itself where the collector is the serial one.
    ("VM Thread", ThreadKind::Collector),
    ("GC Thread#", ThreadKind::Collector),
    ("GC task thread#", ThreadKind::Collector),
    ("G1 ", ThreadKind::Collector),
    ("ParGC Thread#", ThreadKind::Collector),
    ("Gang worker#", ThreadKind::Collector),
    ("Concurrent Mark", ThreadKind::Collector),
    ("ZWorker", ThreadKind::Collector),
    ("XWorker", ThreadKind::Collector),
    ("ZDriver", ThreadKind::Collector),
    ("Shenandoah GC", ThreadKind::Collector),
    ("C1 CompilerThre", ThreadKind::Compiler),
    ("C2 CompilerThre", ThreadKind::Compiler),
    ("JVMCI CompilerT", ThreadKind::Compiler),
    // .NET, and Mono.
    (".NET Server GC", ThreadKind::Collector),
    (".NET BGC", ThreadKind::Collector),
    ("SGen worker", ThreadKind::Collector),
    (".NET Tiered Com", ThreadKind::Compiler),
    // Erlang and Elixir.
    ("scheduler", ThreadKind::ErlangScheduler),
    ("erts_sched_", ThreadKind::ErlangScheduler),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_of_a_thread_is_known_by_its_name() {
        for name in ["VM Thread", "GC Thread#0", "G1 Conc#0", "ZWorkerYoung#1", ".NET BGC"] {
            assert_eq!(ThreadKind::of(name), Some(ThreadKind::Collector), "{name}");
        }
        assert_eq!(ThreadKind::of("C2 CompilerThre"), Some(ThreadKind::Compiler));
        for name in ["2_scheduler", "erts_sched_12"] {
            assert_eq!(ThreadKind::of(name), Some(ThreadKind::ErlangScheduler), "{name}");
        }
        for name in
            ["node", "python3", "http-nio-8080-e", "1_dirty_cpu_sche", "VM Periodic Tas", ""]
        {
            assert_eq!(ThreadKind::of(name), None, "{name}");
        }
    }
}
