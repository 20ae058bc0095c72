//! What a certificate says of itself, read from its DER (RFC 5280 section 4.1), for people.

use throng_base::is_unsafe;

use super::validity::{INTEGER, SEQUENCE, element, from_issuer, time};

/// Parts of a certificate.
pub(crate) struct X509 {
    /// Subject and issuer: `CN=R11, O=Let's Encrypt`.
    pub subject: String,
    pub issuer: String,
    /// Names and addresses that it is for.
    pub names: Vec<String>,
    pub key: String,
    pub valid_from_s: u64,
    pub valid_until_s: u64,
    pub is_own_issuer: bool,
}

impl X509 {
    /// Returns the parts of a certificate; `None` if it cannot be read.
    pub(crate) fn parse(der: &[u8]) -> Option<Self> {
        let (issuer, rest) = element(from_issuer(der)?, SEQUENCE)?;
        let (times, rest) = element(rest, SEQUENCE)?;
        let (subject, rest) = element(rest, SEQUENCE)?;
        let (key, rest) = element(rest, SEQUENCE)?;
        let (valid_from_s, times) = time(times)?;
        let (valid_until_s, _) = time(times)?;
        Some(Self {
            subject: name(subject),
            issuer: name(issuer),
            names: alternative_names(rest).unwrap_or_default(),
            key: key_kind(key).unwrap_or_else(|| "unknown".to_owned()),
            valid_from_s,
            valid_until_s,
            is_own_issuer: issuer == subject,
        })
    }
}

/// Returns the attributes of a name that people know it by: its common name and its organization,
/// or else that of its unit.
fn name(mut rest: &[u8]) -> String {
    let mut parts = Vec::new();
    while let Some((set, after)) = element(rest, SET) {
        rest = after;
        let Some((attribute, _)) = element(set, SEQUENCE) else { continue };
        let Some((kind, value)) = element(attribute, OBJECT) else { continue };
        let known = ATTRIBUTES.iter().position(|(oid, _)| *oid == kind);
        let text = value.first().and_then(|tag| element(value, *tag));
        if let (Some(rank), Some((text, _))) = (known, text) {
            parts.push((rank, format!("{}={}", ATTRIBUTES[rank].1, shown(text))));
        }
    }
    parts.sort();
    let parts: Vec<_> = parts.into_iter().take(2).map(|(_, part)| part).collect();
    if parts.is_empty() { "a name without words".to_owned() } else { parts.join(", ") }
}

/// Returns text from a certificate without what no terminal may get, and not too long.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let safe = |c: char| if is_unsafe(c) { '\u{fffd}' } else { c };
    let mut shown: String = text.chars().take(TEXT_CHARS_MAX).map(safe).collect();
    if text.chars().count() > TEXT_CHARS_MAX {
        shown.push('…');
    }
    shown
}

/// Returns the kind of a public key, with its length or curve.
fn key_kind(info: &[u8]) -> Option<String> {
    let (algorithm, rest) = element(info, SEQUENCE)?;
    let (kind, parameters) = element(algorithm, OBJECT)?;
    if kind == RSA {
        let (bits, _) = element(rest, BIT_STRING)?;
        // The first byte counts the bits that the last one lacks: none.
        let (key, _) = element(bits.get(1..)?, SEQUENCE)?;
        let (modulus, _) = element(key, INTEGER)?;
        let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
        return Some(format!("RSA-{}", modulus.len() * 8));
    }
    if kind == EC {
        let (curve, _) = element(parameters, OBJECT)?;
        let known = CURVES.iter().find(|(oid, _)| *oid == curve);
        return Some(format!("ECDSA {}", known.map_or("of another curve", |(_, name)| name)));
    }
    (kind == ED25519).then(|| "Ed25519".to_owned())
}

/// Returns the names in the extension `subjectAltName` (RFC 5280 section 4.2.1.6).
fn alternative_names(mut rest: &[u8]) -> Option<Vec<String>> {
    // Unique identifiers may stand before the extensions.
    while rest.first()? != &EXTENSIONS {
        (_, rest) = element(rest, *rest.first()?)?;
    }
    let (extensions, _) = element(rest, EXTENSIONS)?;
    let (mut extensions, _) = element(extensions, SEQUENCE)?;
    while let Some((extension, after)) = element(extensions, SEQUENCE) {
        extensions = after;
        let (kind, mut value) = element(extension, OBJECT)?;
        if kind != ALTERNATIVE_NAMES {
            continue;
        }
        if value.first() == Some(&BOOLEAN) {
            (_, value) = element(value, BOOLEAN)?;
        }
        let (value, _) = element(value, OCTET_STRING)?;
        let (mut all, _) = element(value, SEQUENCE)?;
        let mut names = Vec::new();
        while let Some(tag) = all.first().filter(|_| names.len() < NAMES_MAX) {
            let (content, after) = element(all, *tag)?;
            names.extend(match *tag {
                DNS_NAME => Some(shown(content)),
                IP_ADDRESS => address(content),
                _ => None,
            });
            all = after;
        }
        return Some(names);
    }
    None
}

fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(std::net::Ipv4Addr::from(v4).to_string());
    }
    <[u8; 16]>::try_from(bytes).ok().map(|v6| std::net::Ipv6Addr::from(v6).to_string())
}

const BOOLEAN: u8 = 0x01;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const SET: u8 = 0x31;
const EXTENSIONS: u8 = 0xa3;
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;

/// Attributes of names that are shown, the best first (RFC 5280 appendix A.1).
const ATTRIBUTES: [(&[u8], &str); 3] =
    [(&[0x55, 4, 3], "CN"), (&[0x55, 4, 10], "O"), (&[0x55, 4, 11], "OU")];
/// `id-ce-subjectAltName`.
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 17];
/// `rsaEncryption`, `id-ecPublicKey` and `id-Ed25519`.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
/// `secp256r1`, `secp384r1` and `secp521r1` (RFC 5480 section 2.1.1.1).
const CURVES: [(&[u8], &str); 3] = [
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], "P-256"),
    (&[0x2b, 0x81, 4, 0, 34], "P-384"),
    (&[0x2b, 0x81, 4, 0, 35], "P-521"),
];

/// Names that are kept of a certificate, and characters of a text.
const NAMES_MAX: usize = 8;
const TEXT_CHARS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    /// `openssl req -x509 -newkey rsa:1024 -subj /O=Old/CN=rsa.example -days 1`, its public part.
    const RSA_INFO: &str = "30819f300d06092a864886f70d010101050003818d0030818902818100";

    #[test]
    fn the_parts_of_a_certificate_are_read() {
        let mut params =
            CertificateParams::new(["chat.example".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, "Chat\u{1b}[2J");
        params.distinguished_name.push(DnType::OrganizationName, "Example");
        for (algorithm, key) in
            [(&PKCS_ECDSA_P384_SHA384, "ECDSA P-384"), (&PKCS_ED25519, "Ed25519")]
        {
            let pair = KeyPair::generate_for(algorithm).unwrap();
            let certificate = params.clone().self_signed(&pair).unwrap();
            let parts = X509::parse(certificate.der()).unwrap();
            assert_eq!(parts.key, key);
            assert_eq!(parts.names, ["chat.example", "127.0.0.1"]);
            assert_eq!(parts.subject, "CN=Chat\u{fffd}[2J, O=Example");
            assert!(parts.is_own_issuer && parts.issuer == parts.subject);
            // A certificate that is cut is read in part, or not at all.
            for length in 0..certificate.der().len() {
                let _ = X509::parse(&certificate.der()[..length]);
            }
        }
    }

    #[test]
    fn the_length_of_an_rsa_key_is_that_of_its_modulus() {
        let mut info: Vec<u8> = (0..RSA_INFO.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&RSA_INFO[at..at + 2], 16).unwrap())
            .collect();
        info.extend([0xc5; 128]);
        info.extend([2, 3, 1, 0, 1]);
        let (info, _) = element(&info, SEQUENCE).unwrap();
        assert_eq!(key_kind(info).as_deref(), Some("RSA-1024"));
    }
}
