//! What the first handshakes of a run show of a target over TLS.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A target over TLS, as far as handshakes have shown it. Texts from outside are shortened, and
/// what no terminal may get is replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TargetTls {
    /// What the users offer in their handshakes.
    pub offer: TlsOffer,
    /// The chain of certificates that the target showed first; absent if it showed none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<CertificateFacts>,
    /// What the first complete handshake agreed; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agreed: Option<TlsAgreement>,
    /// True if the target asks for a certificate of its client.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_for_certificate: bool,
    /// The first failure; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<TlsFailure>,
}

/// What users offer in their handshakes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TlsOffer {
    /// The name under which they ask for the target.
    pub name: String,
    /// The versions: `1.2 to 1.3`, `1.3`.
    pub versions: String,
    /// The application protocols of ALPN, best first.
    pub alpn: Vec<String>,
    /// True if they have a certificate.
    pub has_certificate: bool,
    /// True if they may offer to resume a session.
    pub may_resume: bool,
}

/// A chain of certificates, and the first one of it: the server's own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CertificateFacts {
    /// The subject: `CN=chat.example, O=Example`.
    pub subject: String,
    /// The issuer.
    pub issuer: String,
    /// The names and addresses that it is for, the first 8 of them.
    pub names: Vec<String>,
    /// Its key: `RSA-2048`, `ECDSA P-256`, `Ed25519`; `unknown` for any other.
    pub key: String,
    /// Its first valid moment, in seconds of Unix.
    pub valid_from_s: u64,
    /// Its last valid moment, in seconds of Unix.
    pub valid_until_s: u64,
    /// The moment of the handshake, in seconds of Unix.
    pub seen_at_s: u64,
    /// Number of certificates in the chain.
    pub chain: u64,
    /// The issuer of the last certificate in the chain.
    pub last_issuer: String,
    /// True if the last certificate in the chain issued itself.
    pub is_rooted: bool,
}

/// What a handshake agreed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TlsAgreement {
    /// The version: `1.3`.
    pub version: String,
    /// The cipher: `AES-128-GCM`.
    pub cipher: String,
    /// The application protocol of ALPN; absent if none was agreed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpn: Option<String>,
}

/// The failure of a connection over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TlsFailure {
    /// The name of the failure: `certificate_expired`.
    pub cause: String,
    /// The alert that the target sent, by its name in the standard: `protocol_version`; absent if
    /// it sent none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alert: Option<String>,
    /// The first bytes of the target, if they are no TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_bytes: Option<String>,
}

impl TargetTls {
    /// Adds what other handshakes of users that offer the same have shown, and these have not.
    pub fn complete_with(&mut self, other: &Self) {
        let Self { certificate, agreed, asks_for_certificate, failure, .. } = other;
        self.certificate = self.certificate.take().or_else(|| certificate.clone());
        self.agreed = self.agreed.take().or_else(|| agreed.clone());
        self.failure = self.failure.take().or_else(|| failure.clone());
        self.asks_for_certificate |= asks_for_certificate;
    }
}

impl CertificateFacts {
    /// Returns the seconds that were left of its validity; negative if it had expired.
    pub fn left_s(&self) -> i64 {
        self.valid_until_s as i64 - self.seen_at_s as i64
    }

    /// Reports whether its key signs with RSA.
    pub fn has_rsa_key(&self) -> bool {
        self.key.starts_with("RSA")
    }
}

impl fmt::Display for TargetTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(agreed) = &self.agreed {
            let alpn = agreed.alpn.as_deref();
            let alpn = alpn.map_or_else(String::new, |alpn| format!(", {alpn}"));
            parts.push(format!("TLS {} with {}{alpn}", agreed.version, agreed.cipher));
        }
        if let Some(certificate) = &self.certificate {
            let CertificateFacts { names, key, issuer, .. } = certificate;
            parts.push(format!(
                "a certificate for {} ({key}) of {issuer}, which expires in {} days",
                names.join(", "),
                certificate.left_s().div_euclid(86_400)
            ));
        }
        if self.asks_for_certificate {
            parts.push("it asks for a certificate of the client".to_owned());
        }
        if let Some(TlsFailure { cause, alert, .. }) = &self.failure {
            let alert = alert.as_deref();
            let alert = alert.map_or_else(String::new, |alert| format!(" ({alert})"));
            parts.push(format!("the first failure is {cause}{alert}"));
        }
        write!(f, "the target over TLS: {}", parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_a_sentence_and_is_completed_by_what_comes_later() {
        let certificate = CertificateFacts {
            names: vec!["chat.example".into()],
            key: "ECDSA P-256".into(),
            issuer: "CN=R11".into(),
            valid_until_s: 10 * 86_400,
            seen_at_s: 86_400,
            ..CertificateFacts::default()
        };
        let mut first =
            TargetTls { certificate: Some(certificate.clone()), ..TargetTls::default() };
        assert_eq!(
            first.to_string(),
            "the target over TLS: a certificate for chat.example (ECDSA P-256) of CN=R11, which \
             expires in 9 days"
        );
        let failure = TlsFailure {
            cause: "handshake_alert".into(),
            alert: Some("protocol_version".into()),
            first_bytes: None,
        };
        let later = TargetTls {
            certificate: Some(CertificateFacts::default()),
            failure: Some(failure.clone()),
            asks_for_certificate: true,
            ..TargetTls::default()
        };
        first.complete_with(&later);
        assert_eq!(
            (first.certificate.as_ref(), &first.failure),
            (Some(&certificate), &Some(failure))
        );
        assert!(first.to_string().ends_with("handshake_alert (protocol_version)"), "{first}");
        let json = serde_json::to_string(&first).unwrap();
        assert_eq!(serde_json::from_str::<TargetTls>(&json).unwrap(), first);
        assert_eq!(serde_json::from_str::<TargetTls>("{}").unwrap(), TargetTls::default());
    }
}
