//! The constructs of Artillery that need no code.

use crate::row::{Row, not_needed, not_supported};

/// Keys of `config`.
pub(super) const CONFIG: &[Row] = &[
    not_needed(
        "processor",
        "JavaScript is not run; each step that calls it is named below",
        "loadProcessor",
    ),
    not_needed(
        "environments",
        "the values outside of it are imported; choose others with `--target` and `--arrivals`",
        "checkMergedConfig",
    ),
    not_needed("tls", OTHER, ""),
    not_needed("socketio", OTHER, ""),
    not_needed("bundling", OTHER, ""),
    not_needed("includeFiles", OTHER, ""),
    not_needed("statsInterval", OTHER, ""),
    not_needed("engines", OTHER, ""),
];

/// Keys of `http`.
pub(super) const HTTP: &[Row] = &[
    not_supported(
        "http pool",
        "each user has a connection of its own; let fewer users send more requests",
        "setInitialContext",
    ),
    not_needed("http maxSockets", "a user has one connection, which is Artillery's default", ""),
    not_needed("http extendedMetrics", "a matter of reports", ""),
    not_needed("http cookieJar", "a matter of reports", ""),
];

/// Keys of `ws`.
pub(super) const WS: &[Row] = &[
    not_needed("ws rejectUnauthorized", "this version has no TLS", "getWsConfig"),
    not_supported("ws proxy", ADDRESSES, "getWsConfig"),
    not_supported("ws localAddress", ADDRESSES, "getWsConfig"),
    not_supported("ws family", ADDRESSES, "getWsConfig"),
];

/// Plugins.
pub(super) const PLUGINS: &[Row] = &[
    not_needed("plugin metrics-by-endpoint", NAMES, ""),
    not_needed("plugin apdex", NAMES, ""),
    not_needed("plugin slack", NAMES, ""),
    not_needed("plugin publish-metrics", METRICS, ""),
    not_needed("plugin statsd", METRICS, ""),
];

const OTHER: &str = "it does not concern the traffic of http and ws";

const ADDRESSES: &str = "users connect to the target by themselves; see `--source` of `throng run` \
                         for other addresses";

const NAMES: &str = "a matter of reports; steps with a `name` are measured apart";

const METRICS: &str = "pass --metrics to `throng run`, for Prometheus";
