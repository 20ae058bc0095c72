//! TLS as the transport of a run.

use std::time::{SystemTime, UNIX_EPOCH};

use throng_base::Instant;
use throng_driver::Clock;
use throng_measure::{RunEventKind, TargetTls, TlsOffer};
use throng_proto::TransportFactory;
use throng_tls::{KeyLogSink, SeenServer, TlsClientConfig, TlsTransport};

use super::client_keys::ClientKeys;
use super::plan::LoadError;
use crate::scenario::Scenario;

/// Returns the transport of the connections to the scenario's target; `None` if they are plain.
/// Their secrets go to `key_log`. They note in `seen` what they see of the target.
///
/// # Errors
/// The machine has no authorities to trust, or the target's name cannot be that of a certificate.
pub(super) fn transport(
    scenario: &Scenario,
    key_log: Option<KeyLogSink>,
    seen: SeenServer,
) -> Result<Option<TransportFactory>, LoadError> {
    if !scenario.target.is_secure {
        return Ok(None);
    }
    let mut options = scenario.tls.options(&scenario.target);
    (options.key_log, options.seen) = (key_log, seen);
    let config = TlsClientConfig::new(&options).map_err(|error| {
        LoadError::Options(format!("cannot reach {} over TLS: {error}", scenario.target))
    })?;
    let settings = scenario.tls.clone();
    let since_zero = Clock.now().since(Instant::ZERO);
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_at_zero = unix.saturating_sub(since_zero);
    let make = move |_core| {
        let transport = TlsTransport::new(unix_at_zero);
        let mut transport = transport.with_client(config.for_other_core(), settings.resume_share());
        if settings.has_own_sessions() {
            transport = transport.with_own_sessions();
        }
        if let Some(files) = &settings.client {
            let mut keys = ClientKeys::new(files.clone());
            transport = transport.with_client_keys(Box::new(move |user| keys.get(user)));
        }
        Box::new(transport) as _
    };
    Ok(Some(TransportFactory::new(make)))
}

/// What is reported of a target over TLS.
#[derive(Clone, Debug)]
pub(super) struct TargetWatch {
    seen: SeenServer,
    offer: TlsOffer,
    reported: TargetTls,
}

impl TargetWatch {
    /// Creates the watch of the connections of a scenario that note what they see in `seen`.
    pub(super) fn new(scenario: &Scenario, seen: SeenServer) -> Self {
        let options = scenario.tls.options(&scenario.target);
        let versions = match (options.min, options.max) {
            (min, max) if min == max => min.name().to_owned(),
            (min, max) => format!("{} to {}", min.name(), max.name()),
        };
        let alpn = options.alpn.iter().map(|name| name.escape_ascii().to_string());
        let offer = TlsOffer {
            name: options.server_name,
            versions,
            alpn: alpn.collect(),
            has_certificate: scenario.tls.client.is_some(),
            may_resume: scenario.tls.resume_share() > 0.0,
        };
        Self { seen, offer, reported: TargetTls::default() }
    }

    /// Returns what the connections have seen, if that is more than at the last call.
    pub(super) fn event(&mut self) -> Option<RunEventKind> {
        let seen = TargetTls { offer: self.offer.clone(), ..self.seen.facts()? };
        if seen == self.reported {
            return None;
        }
        self.reported.clone_from(&seen);
        Some(RunEventKind::TargetTls(seen))
    }
}
