//! Configuration of a client.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{ResolvesClientCert, Resumption, Tls12Resumption, WebPkiServerVerifier};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};

use super::certificate::certified_key;
use super::named_certificate::NamedCertificates;
use super::server::{CertifiedPair, refused, roots};
use super::verify_none::VerifyNone;
use super::versions::{provider, versions};
use super::{PemFile, TlsConfigError};
use crate::handshake::{KeyLogSink, SecretCatcher, StepClock};
use crate::seen_server::{NotingResolver, NotingVerifier, SeenServer};
use crate::suite::{Suite, TlsVersion};
use crate::tickets::{PoolStore, TicketPool};

/// Authorities that a client trusts.
#[derive(Clone)]
pub enum TrustAnchors {
    /// Those of the machine.
    System,
    /// Those of a file.
    File(PemFile),
    /// No check: any server is believed to be the right one.
    Unverified,
}

/// What a client is configured with.
#[derive(Clone)]
pub struct TlsClientOptions {
    /// Name of the server: it is sent, and its certificate must be for it.
    pub server_name: String,
    /// Authorities that may have issued the server's certificate.
    pub trust: TrustAnchors,
    /// Certificate of the client, if the server asks for one.
    pub certificate: Option<CertifiedPair>,
    /// Lowest version [default: 1.2].
    pub min: TlsVersion,
    /// Highest version [default: 1.3].
    pub max: TlsVersion,
    /// Ciphers, best first.
    pub suites: Vec<Suite>,
    /// Protocols of ALPN, best first.
    pub alpn: Vec<Vec<u8>>,
    /// Tickets that are kept at most.
    pub tickets_max: usize,
    /// Receiver of secrets, for Wireshark.
    pub key_log: Option<KeyLogSink>,
    /// Receives what the connections see of the server.
    pub seen: SeenServer,
}

impl TlsClientOptions {
    /// Creates options for this server, with the machine's authorities and defaults.
    pub fn new(server_name: impl Into<String>) -> Self {
        Self {
            server_name: server_name.into(),
            trust: TrustAnchors::System,
            certificate: None,
            min: TlsVersion::V12,
            max: TlsVersion::V13,
            suites: Suite::PREFERENCE.to_vec(),
            alpn: Vec::new(),
            tickets_max: 4_096,
            key_log: None,
            seen: SeenServer::default(),
        }
    }
}

/// Configuration of a client, for one core.
#[derive(Clone)]
pub struct TlsClientConfig {
    pub(crate) rustls: Arc<ClientConfig>,
    pub(crate) server_name: ServerName<'static>,
    tickets: TicketPool,
    pub(crate) seen: SeenServer,
}

impl TlsClientConfig {
    /// Creates a configuration, with an empty pool of tickets.
    ///
    /// # Errors
    /// A file or the name is wrong, or the machine has no authorities.
    pub fn new(options: &TlsClientOptions) -> Result<Self, TlsConfigError> {
        let name = options.server_name.trim_start_matches('[').trim_end_matches(']').to_owned();
        let server_name = ServerName::try_from(name)
            .map_err(|_| TlsConfigError::BadName { name: options.server_name.clone() })?;
        let provider = provider(&options.suites);
        let verifier: Arc<dyn ServerCertVerifier> = match &options.trust {
            TrustAnchors::Unverified => Arc::new(VerifyNone(provider.clone())),
            trust => {
                let (roots, named) = match trust {
                    TrustAnchors::File(file) => (roots(file)?, file.certificates()?),
                    _ => (system_roots()?, Vec::new()),
                };
                let authorities =
                    WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                        .build()
                        .map_err(|error| TlsConfigError::Refused(error.to_string()))?;
                Arc::new(NamedCertificates { authorities, named })
            }
        };
        let seen = options.seen.clone();
        let verifier = Arc::new(NotingVerifier { verifier, seen: seen.clone() });
        let builder = ClientConfig::builder_with_details(provider, Arc::new(StepClock))
            .with_protocol_versions(&versions(options.min, options.max, &options.suites)?)
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let resolver: Option<Arc<dyn ResolvesClientCert>> = match &options.certificate {
            None => None,
            Some(pair) => {
                let key = certified_key(&pair.chain, &pair.key)?;
                Some(Arc::new(SingleCertAndKey::from(Arc::unwrap_or_clone(key))))
            }
        };
        let resolver = Arc::new(NotingResolver { resolver, seen: seen.clone() });
        let mut rustls = builder.with_client_cert_resolver(resolver);
        let tickets = TicketPool::new(options.tickets_max);
        rustls.alpn_protocols.clone_from(&options.alpn);
        rustls.enable_secret_extraction = true;
        rustls.key_log = Arc::new(SecretCatcher { sink: options.key_log.clone() });
        rustls.resumption = Resumption::store(Arc::new(PoolStore(tickets.clone())))
            .tls12_resumption(Tls12Resumption::SessionIdOrTickets);
        Ok(Self { rustls: Arc::new(rustls), server_name, tickets, seen })
    }

    /// Returns the tickets of this configuration.
    pub const fn tickets(&self) -> &TicketPool {
        &self.tickets
    }

    /// Reports whether the next connection can offer a session.
    pub fn has_session(&self) -> bool {
        self.tickets.has_session(&self.server_name)
    }
}

/// Returns the authorities of the machine. Those that cannot be read are left out, as browsers do.
fn system_roots() -> Result<Arc<RootCertStore>, TlsConfigError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let problem = found.errors.first().map_or("none found".to_owned(), ToString::to_string);
        return Err(TlsConfigError::NoSystemRoots { problem });
    }
    Ok(Arc::new(roots))
}
