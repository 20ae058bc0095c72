//! The keys of `options`, and of its scenarios.

/// What an option concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Concern {
    /// The load, the requests or the thresholds.
    Traffic,
    /// The traffic, and a scenario has nothing like it.
    NotSupported,
    /// Reports, time-outs, or what throng does by itself.
    Other,
}

/// All options.
pub(super) const OPTIONS: [(&str, Concern); 27] = [
    ("vus", Concern::Traffic),
    ("duration", Concern::Traffic),
    ("iterations", Concern::Traffic),
    ("stages", Concern::Traffic),
    ("scenarios", Concern::Traffic),
    ("thresholds", Concern::Traffic),
    ("maxDuration", Concern::Traffic),
    ("rps", Concern::Traffic),
    ("noConnectionReuse", Concern::NotSupported),
    ("httpDebug", Concern::NotSupported),
    ("hosts", Concern::NotSupported),
    ("tlsAuth", Concern::NotSupported),
    ("blockHostnames", Concern::NotSupported),
    ("tags", Concern::Other),
    ("summaryTrendStats", Concern::Other),
    ("summaryTimeUnit", Concern::Other),
    ("systemTags", Concern::Other),
    ("discardResponseBodies", Concern::Other),
    ("insecureSkipTLSVerify", Concern::Other),
    ("noVUConnectionReuse", Concern::Other),
    ("userAgent", Concern::Traffic),
    ("setupTimeout", Concern::Other),
    ("teardownTimeout", Concern::Other),
    ("ext", Concern::Other),
    ("cloud", Concern::Other),
    ("dns", Concern::Other),
    ("gracefulStop", Concern::Other),
];

/// All keys of a scenario.
pub(super) const SCENARIO: [&str; 18] = [
    "executor",
    "exec",
    "vus",
    "duration",
    "iterations",
    "maxDuration",
    "stages",
    "startVUs",
    "rate",
    "startRate",
    "timeUnit",
    "preAllocatedVUs",
    "maxVUs",
    "startTime",
    "gracefulStop",
    "gracefulRampDown",
    "tags",
    "env",
];
