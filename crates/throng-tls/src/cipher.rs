//! Ciphers by their names: what a client offers.

use rustls::CipherSuite;

use crate::suite::Suite;

/// Cipher that a client may offer. One of TLS 1.2 also names the kind of the server's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cipher {
    /// Name in the registry of IANA.
    pub name: &'static str,
    /// Name in OpenSSL, if it has another one.
    openssl: &'static str,
    /// Version, and what the record layer does.
    pub suite: Suite,
    pub(crate) rustls: CipherSuite,
}

impl Cipher {
    /// All ciphers, best first, as [`Suite::PREFERENCE`] has them.
    pub const PREFERENCE: [Self; 9] = [
        row("TLS_AES_128_GCM_SHA256", "", Suite::Tls13Aes128, Iana::TLS13_AES_128_GCM_SHA256),
        row("TLS_AES_256_GCM_SHA384", "", Suite::Tls13Aes256, Iana::TLS13_AES_256_GCM_SHA384),
        row(
            "TLS_CHACHA20_POLY1305_SHA256",
            "",
            Suite::Tls13ChaCha20,
            Iana::TLS13_CHACHA20_POLY1305_SHA256,
        ),
        row(
            "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            Suite::Tls12Aes128,
            Iana::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ),
        row(
            "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
            "ECDHE-RSA-AES128-GCM-SHA256",
            Suite::Tls12Aes128,
            Iana::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        ),
        row(
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            Suite::Tls12Aes256,
            Iana::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        ),
        row(
            "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
            Suite::Tls12Aes256,
            Iana::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        ),
        row(
            "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
            Suite::Tls12ChaCha20,
            Iana::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
        row(
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
            "ECDHE-RSA-CHACHA20-POLY1305",
            Suite::Tls12ChaCha20,
            Iana::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ),
    ];

    /// Returns the cipher of this name: that of IANA, of OpenSSL, of rustls (`TLS13_...`), or of Go
    /// (`..._CHACHA20_POLY1305`), in upper or lower case. `None` if it is not supported.
    pub fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_uppercase();
        let name = match name.strip_prefix("TLS13_") {
            Some(rest) => format!("TLS_{rest}"),
            None => name,
        };
        let is_it = |cipher: &Self| {
            let without_hash = cipher.name.strip_suffix("_CHACHA20_POLY1305_SHA256");
            name == cipher.name
                || (!cipher.openssl.is_empty() && name == cipher.openssl)
                || without_hash
                    .is_some_and(|begin| name.strip_suffix("_CHACHA20_POLY1305") == Some(begin))
        };
        Self::PREFERENCE.into_iter().find(is_it)
    }

    /// Returns the ciphers of these suites, in the order of the suites.
    pub fn of_suites(suites: &[Suite]) -> Vec<Self> {
        let of = |suite: &Suite| {
            let suite = *suite;
            Self::PREFERENCE.into_iter().filter(move |cipher| cipher.suite == suite)
        };
        suites.iter().flat_map(of).collect()
    }
}

const fn row(
    name: &'static str,
    openssl: &'static str,
    suite: Suite,
    rustls: CipherSuite,
) -> Cipher {
    Cipher { name, openssl, suite, rustls }
}

use CipherSuite as Iana;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cipher_has_the_names_of_the_field() {
        for (name, expected) in [
            ("TLS_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
            ("TLS13_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
            ("tls13_chacha20_poly1305_sha256", "TLS_CHACHA20_POLY1305_SHA256"),
            ("ECDHE-RSA-AES256-GCM-SHA384", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
            ("ecdhe-ecdsa-chacha20-poly1305", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"),
        ] {
            assert_eq!(Cipher::named(name).map(|cipher| cipher.name), Some(expected), "{name}");
        }
        for name in ["", "ECDHE", "AES128-SHA", "TLS_RSA_WITH_AES_128_CBC_SHA"] {
            assert_eq!(Cipher::named(name), None, "{name}");
        }
    }

    #[test]
    fn each_cipher_is_one_of_the_provider() {
        let offered = rustls::crypto::ring::default_provider().cipher_suites;
        assert_eq!(offered.len(), Cipher::PREFERENCE.len());
        for cipher in Cipher::PREFERENCE {
            assert!(offered.iter().any(|suite| suite.suite() == cipher.rustls), "{cipher:?}");
            assert_eq!(crate::config::suite_of(cipher.rustls), Some(cipher.suite));
        }
    }
}
