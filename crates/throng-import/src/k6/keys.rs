//! The keys of `options`, and of its scenarios.

use crate::row::{Row, not_needed, not_supported};

/// Options of the load, the requests and the thresholds.
pub(super) const TRAFFIC: [&str; 9] = [
    "vus",
    "duration",
    "iterations",
    "stages",
    "scenarios",
    "thresholds",
    "maxDuration",
    "rps",
    "userAgent",
];

/// The other options.
pub(super) const OPTIONS: &[Row] = &[
    not_supported("noConnectionReuse", NO_SUCH, OPTIONS_GO),
    not_supported("httpDebug", NO_SUCH, OPTIONS_GO),
    not_supported("hosts", NO_SUCH, OPTIONS_GO),
    not_supported("tlsAuth", NO_SUCH, OPTIONS_GO),
    not_supported("blockHostnames", NO_SUCH, OPTIONS_GO),
    not_needed("tags", REPORTS, OPTIONS_GO),
    not_needed("summaryTrendStats", REPORTS, OPTIONS_GO),
    not_needed("summaryTimeUnit", REPORTS, OPTIONS_GO),
    not_needed("systemTags", REPORTS, OPTIONS_GO),
    not_needed("discardResponseBodies", REPORTS, OPTIONS_GO),
    not_needed("insecureSkipTLSVerify", REPORTS, OPTIONS_GO),
    not_needed("noVUConnectionReuse", REPORTS, OPTIONS_GO),
    not_needed("setupTimeout", REPORTS, OPTIONS_GO),
    not_needed("teardownTimeout", REPORTS, OPTIONS_GO),
    not_needed("ext", REPORTS, OPTIONS_GO),
    not_needed("cloud", REPORTS, OPTIONS_GO),
    not_needed("dns", REPORTS, OPTIONS_GO),
    not_needed("gracefulStop", REPORTS, OPTIONS_GO),
];

const NO_SUCH: &str = "a scenario has no such option; see docs/scenario.md";

const REPORTS: &str = "a matter of reports, or throng does it by itself";

const OPTIONS_GO: &str = "lib/options.go";

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
