//! What is asked of every peer.

/// The bare loop's maxima, from which offered rates are taken.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub(super) struct WorkloadLimits {
    pub(super) connections_per_s: f64,
    pub(super) messages_per_s: f64,
    pub(super) websockets_per_s: f64,
}

impl WorkloadLimits {
    /// For the saturated workloads, which need no rate.
    pub(super) fn unknown() -> Self {
        Self { connections_per_s: 0.0, messages_per_s: 0.0, websockets_per_s: 0.0 }
    }
}

/// How much of everything is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) warmup_s: f64,
    pub(super) seconds: f64,
    /// How many WebSockets are opened.
    pub(super) websockets: u32,
}

/// What a workload is about. A server takes all workloads of a kind or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Churn,
    Messages,
    WebSockets,
}

/// One workload; each is measured on its own, against a server started for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Workload {
    /// Connect, a byte, the reply, close; 1,000 at a time, each end starting the next.
    ChurnSaturated,
    /// The same as even arrivals at 25 % of the bare loop's maximum, which Ranch can follow.
    Churn25,
    /// The same at 40 %.
    Churn40,
    /// A byte each way on 5,000 open connections at 25 % of the bare loop's maximum.
    Messages25,
    /// The same at 50 %.
    Messages50,
    /// The same with a message under way on each connection at all times.
    MessagesSaturated,
    /// WebSockets are opened, as even arrivals at 25 % of the bare loop's maximum, and left alone.
    WsOpen25,
    /// The same with 256 on their way at all times.
    WsOpenSaturated,
    /// One message after another to everyone, each when the one before has reached all.
    WsBroadcast,
}

impl Workload {
    /// In the order of the table.
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

    /// The rate that is offered, or nothing when saturated.
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

    /// The client's mode, number of connections, rate and times.
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
                // What a slow server has not answered yet keeps no later arrival waiting.
                add("--in-flight", OPEN_LOOP_CONNECTIONS_MAX.to_string());
            }
        }
        arguments
    }
}

/// The workloads with these names; all when there are none.
pub(super) fn chosen(names: &[String]) -> Result<Vec<Workload>, String> {
    if names.is_empty() {
        return Ok(Workload::ALL.to_vec());
    }
    names
        .iter()
        .map(|name| {
            Workload::ALL.into_iter().find(|w| w.name() == name).ok_or_else(|| {
                let known = Workload::ALL.map(Workload::name).join(", ");
                format!("no workload is called {name}; there are {known}")
            })
        })
        .collect()
}

/// Enough for a server that sleeps 20 ms to be kept busy, and below every backlog.
const CLOSED_LOOP_CONNECTIONS: u32 = 1_000;
/// Arrivals beyond this wait in the client, with their latency running.
const OPEN_LOOP_CONNECTIONS_MAX: u32 = 4_000;
const OPEN_CONNECTIONS: u32 = 5_000;
/// A client that woke for each message by itself would use up the machine before the server does.
const MESSAGE_TICK_US: u32 = 200;
/// One of so many is opened before the window: memory that a server takes once is not its connections'.
const WEBSOCKETS_TO_WARM: u32 = 15;
/// Time for a server to give back what it needed while they came.
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
    fn a_client_is_told_only_what_it_knows() {
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
        let error = chosen(&["chrun".into()]).unwrap_err();
        assert!(error.contains("churn-saturated"), "{error}");
        assert_eq!(chosen(&[]).unwrap(), Workload::ALL);
    }
}
