//! The constructs of Artillery that need no code.

use crate::row::Row;

/// Keys of `config`.
pub(super) const CONFIG: &[Row] = rows! {
    "processor" NotNeeded "loadProcessor" =>
        "JavaScript is not run; each step that calls it is named below";
    "environments" NotNeeded "checkMergedConfig" =>
        "the values outside of it are imported; choose others with `--target` and `--arrivals`";
    "socketio" "bundling" "includeFiles" "statsInterval" "engines" NotNeeded "" => OTHER;
};

/// Keys of `http`.
pub(super) const HTTP: &[Row] = rows! {
    "http pool" NotSupported "setInitialContext" =>
        "each user has a connection of its own; let fewer users send more requests";
    "http maxSockets" NotNeeded "" => "a user has one connection, which is Artillery's default";
    "http extendedMetrics" "http cookieJar" NotNeeded "" => "a matter of reports";
};

/// Keys of `ws`.
pub(super) const WS: &[Row] = rows! {
    "ws proxy" "ws localAddress" "ws family" NotSupported "getWsConfig" => ADDRESSES;
};

/// Plugins.
pub(super) const PLUGINS: &[Row] = rows! {
    "plugin metrics-by-endpoint" "plugin apdex" "plugin slack" NotNeeded "" => NAMES;
    "plugin publish-metrics" "plugin statsd" NotNeeded "" => METRICS;
};

const OTHER: &str = "it does not concern the traffic of http and ws";

const ADDRESSES: &str = "users connect to the target by themselves; see `--source` of `throng run` \
                         for other addresses";

const NAMES: &str = "a matter of reports; steps with a `name` are measured apart";

const METRICS: &str = "pass --metrics to `throng run`, for Prometheus";
