//! The kernels and machines that a run's counters describe.

use throng_measure::{Endpoint, Side};

use crate::run_view::RunView;

/// A machine, or a kernel or network namespace on it, that was sampled during the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kernel {
    /// Side by which its counters are looked up.
    pub(crate) endpoint: Endpoint,
    /// Side of a limit in it.
    pub(crate) side: Side,
    /// Possessive phrase for it, such as `the server's machine`.
    pub(crate) whose: &'static str,
}

/// Returns the machines whose CPUs the run used, each once, the generator's first: no other machine
/// can distort the numbers.
pub(crate) fn machines(run: &RunView<'_>) -> Vec<Kernel> {
    let client = |whose| Kernel { endpoint: Endpoint::Client, side: Side::Client, whose };
    let server =
        Kernel { endpoint: Endpoint::Server, side: Side::Server, whose: "the server's machine" };
    if !run.header.machines.is_empty() {
        vec![client("the agents' machines"), server]
    } else if run.header.target_is_here {
        vec![client("this machine")]
    } else {
        vec![client("the generator's machine"), server]
    }
}

/// Returns the sampled kernels, each once, the server's first: a drop there is the nearest to the
/// cause.
pub(crate) fn kernels(run: &RunView<'_>) -> Vec<Kernel> {
    let server =
        Kernel { endpoint: Endpoint::Server, side: Side::Server, whose: "the server's machine" };
    let client =
        Kernel { endpoint: Endpoint::Client, side: Side::Client, whose: "the generator's machine" };
    let both = Kernel { endpoint: Endpoint::Server, side: Side::Kernel, whose: "this machine" };
    if is_shared(run) {
        vec![both]
    } else if run.has_facts(Endpoint::Server) {
        vec![server, client]
    } else {
        vec![client]
    }
}

/// Reports whether clients and server use one kernel. A server elsewhere whose kernel was not
/// sampled has another one.
pub(crate) fn is_shared(run: &RunView<'_>) -> bool {
    run.has_facts(Endpoint::Server) && run.shares_kernel()
}

#[cfg(test)]
mod tests {
    use throng_measure::Metric;

    use super::*;
    use crate::rules::fixture::Run;

    fn of(run: &Run) -> Vec<Side> {
        let (history, summary) = run.whole();
        kernels(&RunView::new(&history, &summary)).iter().map(|kernel| kernel.side).collect()
    }

    #[test]
    fn a_machine_of_server_and_generator_is_one() {
        let mut run = Run::quiet();
        let sides = |run: &Run| -> Vec<Side> {
            let (history, summary) = run.whole();
            let machines = machines(&RunView::new(&history, &summary));
            machines.iter().map(|machine| machine.side).collect()
        };
        assert_eq!(sides(&run), [Side::Client]);
        run.header.target_is_here = false;
        assert_eq!(sides(&run), [Side::Client, Side::Server]);
    }

    #[test]
    fn one_kernel_is_read_once_and_an_unseen_one_never() {
        let here = Run::quiet().with(Metric::TCPEXT_LISTEN_OVERFLOWS, 0);
        assert_eq!(of(&here), [Side::Kernel]);
        let apart = Run::quiet().with(Metric::TCPEXT_LISTEN_OVERFLOWS, 0).changed(|interval, _| {
            interval.server_kernel = interval.kernel.clone();
        });
        assert_eq!(of(&apart), [Side::Server, Side::Client]);
        let mut elsewhere = Run::quiet().with(Metric::TCPEXT_LISTEN_OVERFLOWS, 0);
        elsewhere.header.target_is_here = false;
        assert_eq!(of(&elsewhere), [Side::Client]);
    }
}
