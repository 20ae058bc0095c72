//! rustls as it comes, with its own record layer.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig};
use rustls::{ServerConnection, SupportedCipherSuite};
use throng_tls::{CertifiedPair, Suite};

use crate::certificates::Options;
use crate::end::End;

/// End with rustls.
pub(crate) struct Theirs {
    pub connection: Connection,
    pub error: Option<rustls::Error>,
    out: Vec<u8>,
    plain: Vec<u8>,
}

impl Theirs {
    pub(crate) fn client(config: &Arc<ClientConfig>) -> Self {
        let name = "localhost".try_into().unwrap();
        Self::new(ClientConnection::new(config.clone(), name).unwrap().into())
    }

    pub(crate) fn server(config: &Arc<ServerConfig>) -> Self {
        Self::new(ServerConnection::new(config.clone()).unwrap().into())
    }

    fn new(connection: Connection) -> Self {
        Self { connection, error: None, out: Vec::new(), plain: Vec::new() }
    }
}

/// Returns a configuration of rustls that is like the client's.
pub(crate) fn client_config(options: &Options) -> Arc<ClientConfig> {
    let suites: Vec<_> = options.client.ciphers.iter().map(|cipher| cipher.suite).collect();
    let provider = provider(&suites);
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(&provider))
        .unwrap()
        .with_root_certificates(roots(options));
    Arc::new(match &options.client.certificate {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let (chain, key) = read(pair);
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    })
}

/// Returns a configuration of rustls that is like the server's.
pub(crate) fn server_config(options: &Options) -> Arc<ServerConfig> {
    let provider = provider(&options.server.suites);
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions(&provider))
        .unwrap();
    let builder = match &options.server.client_ca {
        None => builder.with_no_client_auth(),
        Some(_) => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(roots(options), provider).build().unwrap(),
        ),
    };
    let (chain, key) = read(&options.server.pairs[0]);
    Arc::new(builder.with_single_cert(chain, key).unwrap())
}

fn versions(provider: &CryptoProvider) -> Vec<&'static rustls::SupportedProtocolVersion> {
    let is_13 = |suite: &SupportedCipherSuite| suite.tls13().is_some();
    let mut versions = Vec::new();
    if provider.cipher_suites.iter().any(is_13) {
        versions.push(&rustls::version::TLS13);
    }
    if !provider.cipher_suites.iter().all(is_13) {
        versions.push(&rustls::version::TLS12);
    }
    versions
}

fn provider(suites: &[Suite]) -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    provider.cipher_suites.retain(|suite| {
        let name = format!("{:?}", suite.suite()).replace('_', "");
        suites.iter().any(|suite| match suite {
            Suite::Tls13Aes128 => name.contains("13AES128"),
            Suite::Tls13Aes256 => name.contains("13AES256"),
            Suite::Tls13ChaCha20 => name.contains("13CHACHA"),
            Suite::Tls12Aes128 => name.contains("WITHAES128"),
            Suite::Tls12Aes256 => name.contains("WITHAES256"),
            Suite::Tls12ChaCha20 => name.contains("WITHCHACHA"),
        })
    });
    Arc::new(provider)
}

fn roots(options: &Options) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(options.authority.pem.as_bytes()).unwrap()).unwrap();
    Arc::new(roots)
}

fn read(pair: &CertifiedPair) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = CertificateDer::pem_slice_iter(pair.chain.text()).map(Result::unwrap).collect();
    (chain, PrivateKeyDer::from_pem_slice(pair.key.text()).unwrap())
}

impl End for Theirs {
    fn receive(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.connection.read_tls(&mut bytes).unwrap() == 0 {
                return;
            }
            match self.connection.process_new_packets() {
                Ok(state) => {
                    let mut plain = vec![0; state.plaintext_bytes_to_read()];
                    self.connection.reader().read_exact(&mut plain).unwrap();
                    self.plain.extend(plain);
                }
                Err(error) => {
                    self.error = Some(error);
                    return;
                }
            }
        }
    }

    fn take_sent(&mut self) -> Vec<u8> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.out).unwrap();
        }
        std::mem::take(&mut self.out)
    }

    fn take_plain(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.plain)
    }

    fn write(&mut self, data: &[u8]) {
        self.connection.writer().write_all(data).unwrap();
    }

    fn update_keys(&mut self) {
        self.connection.refresh_traffic_keys().unwrap();
    }

    fn close(&mut self) {
        self.connection.send_close_notify();
    }

    fn is_open(&self) -> bool {
        !self.connection.is_handshaking() && self.error.is_none()
    }
}
