//! Versions and ciphers that are allowed.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::{CipherSuite, SupportedCipherSuite, SupportedProtocolVersion};

use super::TlsConfigError;
use crate::cipher::Cipher;
use crate::suite::{Suite, TlsVersion};

/// Returns the versions from `min` to `max` of which a cipher is allowed, newest first.
pub(super) fn versions(
    min: TlsVersion,
    max: TlsVersion,
    ciphers: &[Cipher],
) -> Result<Vec<&'static SupportedProtocolVersion>, TlsConfigError> {
    let all =
        [(TlsVersion::V13, &rustls::version::TLS13), (TlsVersion::V12, &rustls::version::TLS12)];
    let allowed = all.into_iter().filter(|(version, _)| {
        let has_some = ciphers.iter().any(|cipher| cipher.suite.version() == *version);
        (min..=max).contains(version) && has_some
    });
    let allowed: Vec<_> = allowed.map(|(_, version)| version).collect();
    if allowed.is_empty() { Err(TlsConfigError::NoVersion) } else { Ok(allowed) }
}

/// Returns the provider with these ciphers, in this order.
pub(super) fn provider(ciphers: &[Cipher]) -> Arc<CryptoProvider> {
    let mut provider = ring::default_provider();
    let rank = |suite: &SupportedCipherSuite| {
        ciphers.iter().position(|allowed| allowed.rustls == suite.suite())
    };
    provider.cipher_suites.retain(|suite| rank(suite).is_some());
    provider.cipher_suites.sort_by_key(rank);
    Arc::new(provider)
}

/// Returns the suite of a name in the registry of IANA.
pub(crate) fn suite_of(name: CipherSuite) -> Option<Suite> {
    use rustls::CipherSuite as Name;
    Some(match name {
        Name::TLS13_AES_128_GCM_SHA256 => Suite::Tls13Aes128,
        Name::TLS13_AES_256_GCM_SHA384 => Suite::Tls13Aes256,
        Name::TLS13_CHACHA20_POLY1305_SHA256 => Suite::Tls13ChaCha20,
        Name::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | Name::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => Suite::Tls12Aes128,
        Name::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | Name::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => Suite::Tls12Aes256,
        Name::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        | Name::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => Suite::Tls12ChaCha20,
        _ => return None,
    })
}
