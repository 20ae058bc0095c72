//! The keys of `options`, and of its scenarios.

use crate::row::Row;

/// Options of the load, the requests, TLS and the thresholds.
pub(super) const TRAFFIC: &[&str] = words![
    "vus" "duration" "iterations" "stages" "scenarios" "thresholds" "maxDuration" "rps" "userAgent"
    "insecureSkipTLSVerify" "tlsVersion" "tlsCipherSuites" "tlsAuth"
];

/// The other options.
pub(super) const OPTIONS: &[Row] = rows! {
    "noConnectionReuse" "httpDebug" "hosts" "blockHostnames" NotSupported OPTIONS_GO =>
        NO_SUCH;
    "tags" "summaryTrendStats" "summaryTimeUnit" "systemTags" "discardResponseBodies"
        "noVUConnectionReuse" "setupTimeout" "teardownTimeout" "ext" "cloud"
        "dns" "gracefulStop" NotNeeded OPTIONS_GO => REPORTS;
};

const NO_SUCH: &str = "a scenario has no such option; see docs/scenario.md";

const REPORTS: &str = "a matter of reports, or throng does it by itself";

const OPTIONS_GO: &str = "lib/options.go";

/// All keys of a scenario.
pub(super) const SCENARIO: &[&str] = words![
    "executor" "exec" "vus" "duration" "iterations" "maxDuration" "stages" "startVUs" "rate"
    "startRate" "timeUnit" "preAllocatedVUs" "maxVUs" "startTime" "gracefulStop" "gracefulRampDown"
    "tags" "env"
];
