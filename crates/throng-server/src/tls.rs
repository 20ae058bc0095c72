//! TLS of a server's connections.

use std::time::{SystemTime, UNIX_EPOCH};

use throng_base::Instant;
use throng_driver::{Clock, CoreId};
use throng_proto::TransportFactory;
use throng_tls::{TlsConfigError, TlsServerConfig, TlsServerOptions, TlsTransport};

/// Makes the transports of a server whose connections have TLS. Each core has a configuration of
/// its own.
///
/// # Errors
/// A file is wrong, or the files do not belong together.
pub(crate) fn transports(options: &TlsServerOptions) -> Result<TransportFactory, TlsConfigError> {
    // Mistakes are found here: what is right for one core is right for all.
    TlsServerConfig::new(options, 0)?;
    let options = options.clone();
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_at_zero = since_1970.saturating_sub(Clock.now().since(Instant::ZERO));
    Ok(TransportFactory::new(move |core| {
        let config = config_of(&options, core).expect("these options made one before");
        Box::new(TlsTransport::new(unix_at_zero).with_server(config))
    }))
}

/// Makes the configuration of a core.
pub(crate) fn config_of(
    options: &TlsServerOptions,
    core: CoreId,
) -> Result<TlsServerConfig, TlsConfigError> {
    TlsServerConfig::new(options, u16::try_from(core).unwrap_or(u16::MAX))
}

/// Protocol of ALPN of servers that speak HTTP and WebSockets.
pub const HTTP_ALPN: &[u8] = b"http/1.1";
