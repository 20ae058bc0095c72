//! TLS of a server's connections.

use std::time::{SystemTime, UNIX_EPOCH};

use throng_base::Instant;
use throng_driver::Clock;
use throng_proto::TransportFactory;
use throng_tls::{TlsConfigError, TlsServerConfig, TlsServerOptions, TlsTransport};

/// Makes the transport of a server whose connections have TLS, for
/// [`ServerOptions::transport`](crate::ServerOptions::transport). Each core has a configuration of
/// its own. No file is read when a core starts.
///
/// # Errors
/// A file is wrong, or the files do not belong together.
pub fn tls_transport(options: TlsServerOptions) -> Result<TransportFactory, TlsConfigError> {
    // Mistakes are found here: what is right for one core is right for all.
    TlsServerConfig::new(&options, 0)?;
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix_at_zero = since_1970.saturating_sub(Clock.now().since(Instant::ZERO));
    Ok(TransportFactory::new(move |core| {
        let core = u16::try_from(core).unwrap_or(u16::MAX);
        let config = TlsServerConfig::new(&options, core).expect("these options made one before");
        Box::new(TlsTransport::new(unix_at_zero).with_server(config))
    }))
}

/// Protocol of ALPN of servers that speak HTTP and WebSockets.
pub const HTTP_ALPN: &[u8] = b"http/1.1";
