//! The suites that need something, or whose result is more than a fact.

use serde::{Deserialize, Serialize};

use super::job::JobTraits;

/// What a suite needs, and what its result depends on. A suite without a row states facts, needs
/// nothing, and runs as many tests at a time as there are CPUs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suite {
    /// The crate and the test target: `throng-cli walls`.
    pub(super) name: &'static str,
    pub(super) kind: SuiteKind,
    /// Changes sysctls of the whole machine for some seconds, measures the CPUs, or needs them.
    pub(super) is_exclusive: bool,
    /// Starts the `throng` program.
    pub(super) needs_program: bool,
    /// Starts the clients that `make clients` installs.
    pub(super) needs_clients: bool,
    /// The number of tests at a time, for tests that wait for most of their time.
    pub(super) threads: Option<usize>,
}

/// What a result of a suite says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum SuiteKind {
    /// The result cannot depend on speed, CPUs or neighbours: a failure is a failure.
    Facts,
    /// A verdict about the machine, too. A cause that is missed while other programs use the CPUs
    /// is not judged; the end of the output names it.
    Judgements,
}

impl Suite {
    const ANY: Self = Self {
        name: "",
        kind: SuiteKind::Facts,
        is_exclusive: false,
        needs_program: false,
        needs_clients: false,
        threads: None,
    };

    /// Returns the row of a suite.
    pub(super) fn of(name: &str) -> Self {
        SUITES.iter().copied().find(|suite| suite.name == name).unwrap_or(Self::ANY)
    }

    pub(super) fn traits(self) -> JobTraits {
        JobTraits { is_exclusive: self.is_exclusive, locks_target: false }
    }
}

/// The number of tests at a time in a suite whose tests wait.
const MANY: Option<usize> = Some(8);

const SUITES: &[Suite] = &[
    Suite {
        name: "throng-cli diseases",
        kind: SuiteKind::Judgements,
        is_exclusive: true,
        needs_program: true,
        needs_clients: true,
        ..Suite::ANY
    },
    Suite {
        name: "throng-cli walls",
        kind: SuiteKind::Judgements,
        is_exclusive: true,
        needs_program: true,
        needs_clients: true,
        ..Suite::ANY
    },
    Suite {
        name: "throng-cli preflight",
        is_exclusive: true,
        needs_program: true,
        threads: MANY,
        ..Suite::ANY
    },
    Suite {
        name: "throng-cli cli",
        needs_program: true,
        needs_clients: true,
        threads: MANY,
        ..Suite::ANY
    },
    Suite {
        // Browsers stall beside compilers and model checkers.
        name: "throng-cli clients",
        is_exclusive: true,
        needs_program: true,
        needs_clients: true,
        ..Suite::ANY
    },
    Suite { name: "throng-cli fleet", needs_program: true, needs_clients: true, ..Suite::ANY },
    Suite { name: "throng-cli budget", needs_program: true, ..Suite::ANY },
    Suite { name: "throng-lab lab", needs_program: true, threads: MANY, ..Suite::ANY },
    Suite { name: "throng-load load", threads: MANY, ..Suite::ANY },
    Suite { name: "throng-tls tls", needs_clients: true, ..Suite::ANY },
];
