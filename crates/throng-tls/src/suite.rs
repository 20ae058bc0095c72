//! Cipher suites: what the record layer must know of each.

use ring::{aead, hkdf};

/// Version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    V12,
    /// TLS 1.3 (RFC 8446).
    V13,
}

impl TlsVersion {
    /// Returns the number: `1.3`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V12 => "1.2",
            Self::V13 => "1.3",
        }
    }
}

/// Version and cipher of a connection. How keys and certificates were agreed does not matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Suite {
    /// TLS 1.3 with AES-128-GCM and SHA-256.
    Tls13Aes128,
    /// TLS 1.3 with AES-256-GCM and SHA-384.
    Tls13Aes256,
    /// TLS 1.3 with ChaCha20-Poly1305 and SHA-256.
    Tls13ChaCha20,
    /// TLS 1.2 with AES-128-GCM.
    Tls12Aes128,
    /// TLS 1.2 with AES-256-GCM.
    Tls12Aes256,
    /// TLS 1.2 with ChaCha20-Poly1305 (RFC 7905).
    Tls12ChaCha20,
}

impl Suite {
    /// All suites, best first: a connection with AES-128 owns the least, and costs the least where
    /// processors have instructions for AES.
    pub const PREFERENCE: [Self; 6] = [
        Self::Tls13Aes128,
        Self::Tls13Aes256,
        Self::Tls13ChaCha20,
        Self::Tls12Aes128,
        Self::Tls12Aes256,
        Self::Tls12ChaCha20,
    ];

    /// Returns the version of TLS.
    pub const fn version(self) -> TlsVersion {
        match self {
            Self::Tls13Aes128 | Self::Tls13Aes256 | Self::Tls13ChaCha20 => TlsVersion::V13,
            Self::Tls12Aes128 | Self::Tls12Aes256 | Self::Tls12ChaCha20 => TlsVersion::V12,
        }
    }

    /// Returns the name of the cipher, without that of the version: `AES-128-GCM`.
    pub const fn cipher_name(self) -> &'static str {
        match self {
            Self::Tls13Aes128 | Self::Tls12Aes128 => "AES-128-GCM",
            Self::Tls13Aes256 | Self::Tls12Aes256 => "AES-256-GCM",
            Self::Tls13ChaCha20 | Self::Tls12ChaCha20 => "ChaCha20-Poly1305",
        }
    }

    /// Reports whether the version is 1.3.
    pub(crate) const fn is_13(self) -> bool {
        matches!(self.version(), TlsVersion::V13)
    }

    pub(crate) fn aead(self) -> &'static aead::Algorithm {
        match self {
            Self::Tls13Aes128 | Self::Tls12Aes128 => &aead::AES_128_GCM,
            Self::Tls13Aes256 | Self::Tls12Aes256 => &aead::AES_256_GCM,
            Self::Tls13ChaCha20 | Self::Tls12ChaCha20 => &aead::CHACHA20_POLY1305,
        }
    }

    /// Returns the hash of the key schedule. TLS 1.2 has no key updates, and needs none.
    pub(crate) fn hkdf(self) -> hkdf::Algorithm {
        match self {
            Self::Tls13Aes256 => hkdf::HKDF_SHA384,
            _ => hkdf::HKDF_SHA256,
        }
    }

    /// Returns the bytes of a key.
    pub(crate) const fn key_bytes(self) -> usize {
        match self {
            Self::Tls13Aes128 | Self::Tls12Aes128 => 16,
            _ => 32,
        }
    }

    /// Returns the bytes of a traffic secret; 0 in TLS 1.2.
    pub(crate) const fn secret_bytes(self) -> usize {
        match self {
            Self::Tls13Aes256 => 48,
            Self::Tls13Aes128 | Self::Tls13ChaCha20 => 32,
            _ => 0,
        }
    }

    /// Reports whether a secret and a key do not fit in the smaller form of a connection's keys.
    pub(crate) const fn needs_large_keys(self) -> bool {
        matches!(self, Self::Tls13Aes256 | Self::Tls13ChaCha20)
    }

    /// Returns the bytes of the nonce that each record carries.
    pub(crate) const fn explicit_nonce_bytes(self) -> usize {
        match self {
            // "struct { opaque nonce_explicit[8]; }" (RFC 5288 section 3)
            Self::Tls12Aes128 | Self::Tls12Aes256 => 8,
            _ => 0,
        }
    }

    /// Returns the records that one key may seal.
    ///
    /// "For AES-GCM, up to 2^24.5 full-size records may be encrypted on a given connection" (RFC
    /// 8446 section 5.5). The standard has no such limit for ChaCha20-Poly1305, but "sequence
    /// numbers MUST NOT wrap".
    pub(crate) const fn records_max(self) -> u64 {
        match self {
            Self::Tls13ChaCha20 | Self::Tls12ChaCha20 => u64::MAX - 1,
            _ => 1 << 24,
        }
    }

    /// Returns the number of records after which the next key is taken: half of what a key may
    /// seal. TLS 1.2 cannot.
    pub(crate) const fn update_after(self) -> u64 {
        if self.is_13() { self.records_max() / 2 } else { u64::MAX }
    }
}
