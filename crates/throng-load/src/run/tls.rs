//! TLS as the transport of a run.

use std::time::{SystemTime, UNIX_EPOCH};

use throng_base::Instant;
use throng_driver::Clock;
use throng_proto::TransportFactory;
use throng_tls::{KeyLogSink, TlsClientConfig, TlsTransport};

use super::plan::LoadError;
use crate::scenario::Scenario;

/// Returns the transport of the connections to the scenario's target; `None` if they are plain.
/// Their secrets go to `key_log`.
///
/// # Errors
/// The machine has no authorities to trust, or the target's name cannot be that of a certificate.
pub(super) fn transport(
    scenario: &Scenario,
    key_log: Option<KeyLogSink>,
) -> Result<Option<TransportFactory>, LoadError> {
    if !scenario.target.is_secure {
        return Ok(None);
    }
    let mut options = scenario.tls.options(&scenario.target);
    options.key_log = key_log;
    let checked = TlsClientConfig::new(&options).map_err(|error| {
        LoadError::Options(format!("cannot reach {} over TLS: {error}", scenario.target))
    })?;
    let resume_share = scenario.tls.resume_share();
    let since_zero = Clock.now().since(Instant::ZERO);
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_at_zero = unix.saturating_sub(since_zero);
    let make = move |_core| {
        // Each core has a configuration of its own, unless the machine's authorities have just
        // become unreadable.
        let config = TlsClientConfig::new(&options).unwrap_or_else(|_| checked.clone());
        Box::new(TlsTransport::new(unix_at_zero).with_client(config, resume_share)) as _
    };
    Ok(Some(TransportFactory::new(make)))
}
