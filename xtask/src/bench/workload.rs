//! The workloads that every peer receives.

/// The bare loop's maxima, from which the offered rates are computed.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct WorkloadLimits {
    pub(super) connections_per_s: f64,
    pub(super) messages_per_s: f64,
    pub(super) websockets_per_s: f64,
}

impl WorkloadLimits {
    /// Returns limits for the saturated workloads, which need no rate.
    pub(super) fn unknown() -> Self {
        Self { connections_per_s: 0.0, messages_per_s: 0.0, websockets_per_s: 0.0 }
    }
}

/// The size of a measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) warmup_s: f64,
    pub(super) seconds: f64,
    /// The number of WebSockets to open.
    pub(super) websockets: u32,
}

/// The kind of a workload. A server supports all workloads of a kind or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Churn,
    Messages,
    WebSockets,
}

/// One workload. Each is measured against a server that was started for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Workload {
    /// Connect, send a byte, read the reply, close: 1,000 at a time, each end starts the next.
    ChurnSaturated,
    /// [`Self::ChurnSaturated`] as even arrivals at 25 % of the bare loop's maximum, which Ranch
    /// can follow.
    Churn25,
    /// [`Self::Churn25`] at 40 %.
    Churn40,
    /// A byte in each direction on 5,000 open connections, at 25 % of the bare loop's maximum.
    Messages25,
    /// [`Self::Messages25`] at 50 %.
    Messages50,
    /// [`Self::Messages25`] with a message in flight on each connection at all times.
    MessagesSaturated,
    /// Opening of WebSockets, which then stay idle, as even arrivals at 25 % of the bare loop's
    /// maximum.
    WsOpen25,
    /// [`Self::WsOpen25`] with 256 handshakes in flight at all times.
    WsOpenSaturated,
    /// One broadcast after another, each when the one before has reached all clients.
    WsBroadcast,
}

impl Workload {
    /// All workloads, in the order of the table.
    pub(super) const ALL: [Self; 9] = [
        Self::Churn25,
        Self::Churn40,
        Self::ChurnSaturated,
        Self::Messages25,
        Self::Messages50,
        Self::MessagesSaturated,
        Self::WsOpen25,
        Self::WsOpenSaturated,
        Self::WsBroadcast,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Churn25 => "churn-25",
            Self::Churn40 => "churn-40",
            Self::ChurnSaturated => "churn-saturated",
            Self::Messages25 => "messages-25",
            Self::Messages50 => "messages-50",
            Self::MessagesSaturated => "messages-saturated",
            Self::WsOpen25 => "ws-open-25",
            Self::WsOpenSaturated => "ws-open-saturated",
            Self::WsBroadcast => "ws-broadcast",
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Churn25 | Self::Churn40 | Self::ChurnSaturated => Kind::Churn,
            Self::Messages25 | Self::Messages50 | Self::MessagesSaturated => Kind::Messages,
            Self::WsOpen25 | Self::WsOpenSaturated | Self::WsBroadcast => Kind::WebSockets,
        }
    }

    pub(super) fn is_websocket(self) -> bool {
        self.kind() == Kind::WebSockets
    }

    /// Returns the offered rate; `None` when saturated.
    pub(super) fn rate(self, limits: &WorkloadLimits) -> Option<f64> {
        match self {
            Self::Churn25 => Some(0.25 * limits.connections_per_s),
            Self::Churn40 => Some(0.40 * limits.connections_per_s),
            Self::Messages25 => Some(0.25 * limits.messages_per_s),
            Self::Messages50 => Some(0.50 * limits.messages_per_s),
            Self::WsOpen25 => Some(0.25 * limits.websockets_per_s),
            Self::ChurnSaturated
            | Self::MessagesSaturated
            | Self::WsOpenSaturated
            | Self::WsBroadcast => None,
        }
    }

    /// Returns the client's mode, number of connections, rate and times.
    pub(super) fn client_arguments(self, limits: &WorkloadLimits, size: &Size) -> Vec<String> {
        let (mode, connections) = match self {
            Self::ChurnSaturated => ("churn", CLOSED_LOOP_CONNECTIONS),
            Self::Churn25 | Self::Churn40 => ("churn", OPEN_LOOP_CONNECTIONS_MAX),
            Self::Messages25 | Self::Messages50 | Self::MessagesSaturated => {
                ("messages", OPEN_CONNECTIONS)
            }
            Self::WsOpen25 | Self::WsOpenSaturated => ("open", size.websockets),
            Self::WsBroadcast => ("broadcast", size.websockets),
        };
        let mut arguments = vec![mode.to_string()];
        let mut add = |name: &str, value: String| arguments.extend([name.to_string(), value]);
        add("--connections", connections.to_string());
        add("--seconds", size.seconds.to_string());
        if self.is_websocket() {
            add("--warm", (size.websockets / WEBSOCKETS_TO_WARM).to_string());
            add("--hold", HOLD_S.to_string());
        } else {
            add("--warmup", size.warmup_s.to_string());
        }
        if let Some(rate) = self.rate(limits) {
            add("--rate", format!("{rate:.0}"));
            if self.kind() == Kind::Messages {
                add("--tick", MESSAGE_TICK_US.to_string());
            }
            if self.is_websocket() {
                // Requests that a slow server has not answered do not delay later arrivals.
                add("--in-flight", OPEN_LOOP_CONNECTIONS_MAX.to_string());
            }
        }
        arguments
    }
}

/// Returns the workloads with these names; all workloads without names.
pub(super) fn selected(names: &[String]) -> Result<Vec<Workload>, String> {
    if names.is_empty() {
        return Ok(Workload::ALL.to_vec());
    }
    names
        .iter()
        .map(|name| {
            Workload::ALL.into_iter().find(|w| w.name() == name).ok_or_else(|| {
                let known = Workload::ALL.map(Workload::name).join(", ");
                format!("unknown workload `{name}`; the workloads are {known}")
            })
        })
        .collect()
}

/// The connections of a closed loop: enough to keep a server busy that sleeps 20 ms, and below
/// every backlog.
const CLOSED_LOOP_CONNECTIONS: u32 = 1_000;
/// The most connections of an open loop. Further arrivals wait in the client, and their latency
/// counts.
const OPEN_LOOP_CONNECTIONS_MAX: u32 = 4_000;
const OPEN_CONNECTIONS: u32 = 5_000;
/// The interval at which the client wakes. A client that woke for each message would saturate the
/// machine before the server does.
const MESSAGE_TICK_US: u32 = 200;
/// One in this many WebSockets is opened before the window, because memory that a server takes once
/// does not belong to its connections.
const WEBSOCKETS_TO_WARM: u32 = 15;
/// The time for a server to free the memory that only the handshakes needed.
const HOLD_S: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offered_rates_are_shares_of_the_bare_maximum() {
        let limits = WorkloadLimits {
            connections_per_s: 1_000.0,
            messages_per_s: 10_000.0,
            websockets_per_s: 800.0,
        };
        assert_eq!(Workload::Churn40.rate(&limits), Some(400.0));
        assert_eq!(Workload::Messages25.rate(&limits), Some(2_500.0));
        assert_eq!(Workload::Messages50.rate(&limits), Some(5_000.0));
        assert_eq!(Workload::WsOpen25.rate(&limits), Some(200.0));
        assert_eq!(Workload::ChurnSaturated.rate(&limits), None);
    }

    #[test]
    fn a_client_receives_only_flags_that_it_knows() {
        let size = Size { warmup_s: 1.0, seconds: 2.0, websockets: 3_000 };
        let arguments =
            |workload: Workload| workload.client_arguments(&WorkloadLimits::unknown(), &size);
        assert!(!arguments(Workload::MessagesSaturated).contains(&"--rate".into()));
        assert!(!arguments(Workload::WsBroadcast).contains(&"--warmup".into()));
        assert!(!arguments(Workload::Churn25).contains(&"--hold".into()));
        let open = arguments(Workload::WsOpen25).join(" ");
        assert!(open.contains("--connections 3000") && open.contains("--warm 200"), "{open}");
    }

    #[test]
    fn an_unknown_workload_is_refused_with_the_known_names() {
        let error = selected(&["chrun".into()]).unwrap_err();
        assert!(error.contains("churn-saturated"), "{error}");
        assert_eq!(selected(&[]).unwrap(), Workload::ALL);
    }
}
