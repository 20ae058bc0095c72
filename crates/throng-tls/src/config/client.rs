//! Configuration of a client.

use std::sync::Arc;

use rustls::client::{Resumption, Tls12Resumption};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};

use super::client_key::StepKey;
use super::server::{CertifiedPair, refused, roots};
use super::server_verifier::ServerVerifier;
use super::versions::{provider, versions};
use super::{PemFile, TlsConfigError};
use crate::cipher::Cipher;
use crate::client::ClientKey;
use crate::handshake::{KeyLogSink, SecretCatcher, StepClock};
use crate::seen_server::{NotingResolver, NotingVerifier, SeenServer};
use crate::suite::TlsVersion;
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
    /// Certificate of a client that has none of its own, if the server asks for one.
    pub certificate: Option<CertifiedPair>,
    /// Lowest version [default: 1.2].
    pub min: TlsVersion,
    /// Highest version [default: 1.3].
    pub max: TlsVersion,
    /// Ciphers, best first.
    pub ciphers: Vec<Cipher>,
    /// Protocols of ALPN, best first.
    pub alpn: Vec<Vec<u8>>,
    /// Tickets that are kept at most [default: 4,096].
    pub tickets_max: usize,
    /// Each owner keeps its newest ticket alone: its next connection needs no other.
    pub keeps_newest_ticket: bool,
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
            ciphers: Cipher::PREFERENCE.to_vec(),
            alpn: Vec::new(),
            tickets_max: 4_096,
            keeps_newest_ticket: false,
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
        let provider = provider(&options.ciphers);
        let verifier = match &options.trust {
            TrustAnchors::Unverified => ServerVerifier::believing_all(provider.clone()),
            TrustAnchors::File(file) => {
                ServerVerifier::new(provider.clone(), roots(file)?, file.certificates()?)?
            }
            TrustAnchors::System => {
                ServerVerifier::new(provider.clone(), system_roots()?, Vec::new())?
            }
        };
        let seen = options.seen.clone();
        let verifier = Arc::new(NotingVerifier { verifier, seen: seen.clone() });
        let builder = ClientConfig::builder_with_details(provider, Arc::new(StepClock))
            .with_protocol_versions(&versions(options.min, options.max, &options.ciphers)?)
            .map_err(refused)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let of_all = options.certificate.as_ref().map(ClientKey::new).transpose()?;
        let resolver = NotingResolver { resolver: StepKey { of_all }, seen: seen.clone() };
        let mut rustls = builder.with_client_cert_resolver(Arc::new(resolver));
        let tickets = TicketPool::new(options.tickets_max, options.keeps_newest_ticket);
        rustls.alpn_protocols.clone_from(&options.alpn);
        rustls.enable_secret_extraction = true;
        rustls.key_log = Arc::new(SecretCatcher { sink: options.key_log.clone() });
        rustls.resumption = resumption(&tickets);
        Ok(Self { rustls: Arc::new(rustls), server_name, tickets, seen })
    }

    /// Returns the configuration of another core, with an empty pool of tickets of its own. Nothing
    /// is read again: the cores share what was read.
    #[must_use]
    pub fn for_other_core(&self) -> Self {
        let tickets = self.tickets.empty();
        let mut rustls = ClientConfig::clone(&self.rustls);
        rustls.resumption = resumption(&tickets);
        Self { rustls: Arc::new(rustls), tickets, ..self.clone() }
    }

    /// Returns the tickets of this configuration.
    pub const fn tickets(&self) -> &TicketPool {
        &self.tickets
    }

    /// Reports whether the next connection of this owner's clients can offer a session.
    pub fn has_session(&self, owner: u64) -> bool {
        self.tickets.has_session(owner, &self.server_name)
    }
}

/// Returns the use of a pool of tickets.
fn resumption(tickets: &TicketPool) -> Resumption {
    Resumption::store(Arc::new(PoolStore(tickets.clone())))
        .tls12_resumption(Tls12Resumption::SessionIdOrTickets)
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
