//! Configuration of a server.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::server::{ClientCertVerifierBuilder, NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig};

use super::certificate::{PairResolver, certified_key, is_rsa, parse};
use super::versions::{provider, versions};
use super::{PemFile, TlsConfigError, validity};
use crate::cipher::Cipher;
use crate::handshake::{
    CLIENT_CERTIFICATE_US, ECDSA_FLIGHT_US, KeyLogSink, RECORD_US, RSA_FLIGHT_US, SecretCatcher,
    StepClock,
};
use crate::suite::{Suite, TlsVersion};
use crate::tickets::{TicketKeys, TicketSealer};

/// Chain of certificates, the server's own before those of its issuers, and its key.
#[derive(Clone)]
pub struct CertifiedPair {
    /// Certificates.
    pub chain: PemFile,
    /// Key of the first certificate.
    pub key: PemFile,
}

impl CertifiedPair {
    /// Reads a chain and its key from files.
    ///
    /// # Errors
    /// A file cannot be read, or is larger than a megabyte.
    pub fn read(chain: &Path, key: &Path) -> Result<Self, TlsConfigError> {
        Ok(Self { chain: PemFile::read(chain)?, key: PemFile::read(key)? })
    }

    /// Returns the second of Unix at which the first certificate of the chain expires; `None` if
    /// none can be read.
    pub fn valid_until(&self) -> Option<u64> {
        let chain = self.chain.certificates().ok()?;
        chain.iter().filter_map(|it| validity(it)).map(|(_, until)| until).min()
    }
}

/// What a server is configured with.
#[derive(Clone)]
pub struct TlsServerOptions {
    /// Certificates. With several, the name that a client asks for chooses.
    pub pairs: Vec<CertifiedPair>,
    /// Authorities of client certificates. With them, each client must show one, and no session is
    /// resumed: a resumption would skip the check.
    pub client_ca: Option<PemFile>,
    /// Lowest version [default: 1.2].
    pub min: TlsVersion,
    /// Highest version [default: 1.3].
    pub max: TlsVersion,
    /// Ciphers, best first. A connection with AES-128 owns the least.
    pub suites: Vec<Suite>,
    /// Protocols of ALPN, best first.
    pub alpn: Vec<Vec<u8>>,
    /// Keys of tickets; no sessions are resumed without them.
    pub tickets: Option<TicketKeys>,
    /// Receiver of all secrets, for Wireshark.
    pub key_log: Option<KeyLogSink>,
}

impl TlsServerOptions {
    /// Creates options with these certificates, defaults, and no resumption.
    pub fn new(pairs: Vec<CertifiedPair>) -> Self {
        Self {
            pairs,
            client_ca: None,
            min: TlsVersion::V12,
            max: TlsVersion::V13,
            suites: Suite::PREFERENCE.to_vec(),
            alpn: Vec::new(),
            tickets: None,
            key_log: None,
        }
    }
}

impl fmt::Debug for TlsServerOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chains: Vec<_> = self.pairs.iter().map(|pair| pair.chain.name()).collect();
        f.debug_struct("TlsServerOptions").field("chains", &chains).finish_non_exhaustive()
    }
}

/// Configuration of a server, for one core.
#[derive(Clone)]
pub struct TlsServerConfig {
    pub(crate) rustls: Arc<ServerConfig>,
    /// Cost of the step that signs, and of the last one.
    pub(crate) costs_us: [u32; 2],
}

impl TlsServerConfig {
    /// Creates the configuration of the core with this number.
    ///
    /// # Errors
    /// A file is wrong, or what it has does not belong together.
    pub fn new(options: &TlsServerOptions, core: u16) -> Result<Self, TlsConfigError> {
        let keys: Result<Vec<_>, _> =
            options.pairs.iter().map(|pair| certified_key(&pair.chain, &pair.key)).collect();
        let keys = keys?;
        if keys.is_empty() {
            return Err(TlsConfigError::NoPair);
        }
        let has_rsa = keys.iter().any(|key| is_rsa(key));
        let ciphers = Cipher::of_suites(&options.suites);
        let provider = provider(&ciphers);
        let builder = ServerConfig::builder_with_details(provider.clone(), Arc::new(StepClock))
            .with_protocol_versions(&versions(options.min, options.max, &ciphers)?)
            .map_err(refused)?;
        let builder = match &options.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots(file)?, provider);
                let verifier = ClientCertVerifierBuilder::build(verifier)
                    .map_err(|error| TlsConfigError::Refused(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut rustls = builder.with_cert_resolver(Arc::new(PairResolver(keys)));
        rustls.ignore_client_order = true;
        rustls.alpn_protocols.clone_from(&options.alpn);
        rustls.enable_secret_extraction = true;
        rustls.key_log = Arc::new(SecretCatcher { sink: options.key_log.clone() });
        rustls.session_storage = Arc::new(NoServerSessionStorage {});
        rustls.send_tls13_tickets = 0;
        if let (Some(keys), None) = (&options.tickets, &options.client_ca) {
            let sealer = TicketSealer::new(keys.clone(), core);
            let none = || TlsConfigError::Refused("the system has no random bytes".into());
            rustls.ticketer = Arc::new(sealer.ok_or_else(none)?);
            rustls.send_tls13_tickets = 1;
        }
        let costs_us = [
            if has_rsa { RSA_FLIGHT_US } else { ECDSA_FLIGHT_US },
            if options.client_ca.is_some() { CLIENT_CERTIFICATE_US } else { RECORD_US },
        ];
        Ok(Self { rustls: Arc::new(rustls), costs_us })
    }
}

/// Returns the authorities of a file.
pub(super) fn roots(file: &PemFile) -> Result<Arc<RootCertStore>, TlsConfigError> {
    let mut roots = RootCertStore::empty();
    for (at, certificate) in file.certificates()?.into_iter().enumerate() {
        parse(file, at, &certificate)?;
        roots.add(certificate).map_err(|error| TlsConfigError::BadCertificate {
            file: file.name().to_owned(),
            number: at + 1,
            problem: error.to_string(),
        })?;
    }
    Ok(Arc::new(roots))
}

pub(super) fn refused(error: rustls::Error) -> TlsConfigError {
    TlsConfigError::Refused(error.to_string())
}
