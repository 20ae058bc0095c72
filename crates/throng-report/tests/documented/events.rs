//! The events that the document describes.

use throng_measure::{
    CertificateFacts, RunEventKind, TargetTls, TlsAgreement, TlsFailure, TlsOffer,
};

use super::any_exchange;

fn any_target_tls() -> TargetTls {
    TargetTls {
        offer: TlsOffer::default(),
        certificate: Some(CertificateFacts::default()),
        agreed: Some(TlsAgreement::default()),
        asks_for_certificate: true,
        failure: Some(TlsFailure::default()),
    }
}

/// Returns one event of each kind.
pub(crate) fn events() -> Vec<RunEventKind> {
    let text = String::new;
    let all = vec![
        RunEventKind::FdTableFull { core: 0, errno: text(), open: 0 },
        RunEventKind::AcceptResumed { core: 0, paused_ms: 0 },
        RunEventKind::ConnectionsMaxReached { connections_max: 0 },
        RunEventKind::HandlerPanicked { core: 0, message: text() },
        RunEventKind::Draining { open: 0 },
        RunEventKind::RunFileFailed { error: text() },
        RunEventKind::RunFileResumed { lines_lost: 0 },
        RunEventKind::ServerLost { reason: text() },
        RunEventKind::ServerBack { pid: 0 },
        RunEventKind::ServerProcess { pid: 0, program: text(), runtime: Some(text()) },
        RunEventKind::ServerProcessEnded { pid: 0, program: text() },
        RunEventKind::ServerFdsFull {
            pid: 0,
            open: 0,
            fds_max: 0,
            sockets: 0,
            close_wait: 0,
            files: 0,
            path: Some(text()),
            of_path: 0,
        },
        RunEventKind::ServerWorkerEnded { pid: 0, program: text() },
        RunEventKind::ServerThreadBusy {
            pid: 0,
            program: text(),
            thread: text(),
            is_main: true,
            permille: 0,
        },
        RunEventKind::PortTaken { port: 0, connection: text(), holder: text() },
        RunEventKind::ServerElsewhere {
            target: text(),
            listens_at: Vec::new(),
            holder: Some(text()),
        },
        RunEventKind::FirstError(any_exchange().exchange),
        RunEventKind::TargetTls(any_target_tls()),
        RunEventKind::FactsLost { address: text(), reason: text() },
        RunEventKind::FactsBack { address: text() },
        RunEventKind::AgentLost { agent: text(), percent: 0, from_ms: 0, reason: text() },
        RunEventKind::AgentBack { agent: text() },
        RunEventKind::NodeFound { node: text() },
        RunEventKind::NodeEnded { node: text() },
        RunEventKind::NodeLost { node: text() },
        RunEventKind::NodeNameTaken { node: text() },
        RunEventKind::NodeBusLost,
        RunEventKind::NodeBusBack,
        RunEventKind::NodeBusDenied { reason: text() },
        RunEventKind::BusLost,
        RunEventKind::BusBack,
        RunEventKind::UserLimit { users_max: 0 },
        RunEventKind::PortsExhausted { source: text() },
        RunEventKind::GeneratorFdsExhausted { core: 0 },
        RunEventKind::GeneratorWatchesExhausted { watches_max: Some(300) },
        RunEventKind::SelfConnected { ports: text() },
        RunEventKind::GeneratorBehind { lag_us_p99: 0 },
        RunEventKind::Steered { command: text() },
        RunEventKind::Interrupted { by: text() },
    ];
    // A new kind does not compile until it is named here; then add it to the list above.
    for kind in &all {
        match kind {
            RunEventKind::FdTableFull { .. }
            | RunEventKind::AcceptResumed { .. }
            | RunEventKind::ConnectionsMaxReached { .. }
            | RunEventKind::HandlerPanicked { .. }
            | RunEventKind::Draining { .. }
            | RunEventKind::RunFileFailed { .. }
            | RunEventKind::RunFileResumed { .. }
            | RunEventKind::ServerLost { .. }
            | RunEventKind::ServerBack { .. }
            | RunEventKind::ServerProcess { .. }
            | RunEventKind::ServerProcessEnded { .. }
            | RunEventKind::ServerFdsFull { .. }
            | RunEventKind::ServerWorkerEnded { .. }
            | RunEventKind::ServerThreadBusy { .. }
            | RunEventKind::PortTaken { .. }
            | RunEventKind::ServerElsewhere { .. }
            | RunEventKind::FirstError(_)
            | RunEventKind::TargetTls(_)
            | RunEventKind::FactsLost { .. }
            | RunEventKind::FactsBack { .. }
            | RunEventKind::AgentLost { .. }
            | RunEventKind::AgentBack { .. }
            | RunEventKind::NodeFound { .. }
            | RunEventKind::NodeEnded { .. }
            | RunEventKind::NodeLost { .. }
            | RunEventKind::NodeNameTaken { .. }
            | RunEventKind::NodeBusLost
            | RunEventKind::NodeBusBack
            | RunEventKind::NodeBusDenied { .. }
            | RunEventKind::BusLost
            | RunEventKind::BusBack
            | RunEventKind::UserLimit { .. }
            | RunEventKind::PortsExhausted { .. }
            | RunEventKind::GeneratorFdsExhausted { .. }
            | RunEventKind::GeneratorWatchesExhausted { .. }
            | RunEventKind::SelfConnected { .. }
            | RunEventKind::GeneratorBehind { .. }
            | RunEventKind::Steered { .. }
            | RunEventKind::Interrupted { .. }
            | RunEventKind::Unknown => {}
        }
    }
    all
}
