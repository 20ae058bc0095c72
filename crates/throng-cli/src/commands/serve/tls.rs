//! Flags of servers whose connections have TLS.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use throng_server::kinds::{ServerKind, ServerProtocol};
use throng_server::{HTTP_ALPN, ServerOptions};
use throng_tls::{
    CertifiedPair, PemFile, SelfSigned, TicketKeys, TlsConfigError, TlsServerOptions, TlsVersion,
};

use crate::Failure;
use crate::certificates::{self, CertificateFacts};
use crate::key_log::{KeyLog, KeyLogFlag};

#[derive(Clone, Debug, Args)]
pub(super) struct TlsFlags {
    /// Puts all connections over TLS: a PEM file with the server's certificate, then those of its
    /// issuers. Repeat it, with --tls-key in the same order, for several names: the name that a
    /// client asks for chooses
    #[arg(long, value_name = "FILE", group = CERTIFICATE, requires = "tls_key",
        help_heading = "TLS options")]
    tls_cert: Vec<PathBuf>,
    /// PEM file with the key of a certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "TLS options")]
    tls_key: Vec<PathBuf>,
    /// Puts all connections over TLS, with a certificate made now that no client trusts: for labs.
    /// It is for localhost, 127.0.0.1, ::1 and the address of --listen
    #[arg(long, group = CERTIFICATE, help_heading = "TLS options")]
    tls_self_signed: bool,
    /// PEM file with the authorities of client certificates; each client must show one, and no
    /// session is resumed
    #[arg(long, value_name = "FILE", requires = CERTIFICATE, help_heading = "TLS options")]
    tls_client_ca: Option<PathBuf>,
    /// Lowest version of TLS [default: 1.2]
    #[arg(long, value_name = "VERSION", requires = CERTIFICATE, help_heading = "TLS options",
        value_parser = PossibleValuesParser::new(["1.2", "1.3"]))]
    tls_min: Option<String>,
    /// File of keys for the tickets by which clients resume their sessions: a line each, 48 random
    /// bytes in Base64, the newest last; the last but one seals. Servers with the same file resume
    /// each other's sessions [default: a random key]
    #[arg(long, value_name = "FILE", requires = CERTIFICATE, help_heading = "TLS options",
        conflicts_with = "tls_client_ca")]
    tls_ticket_keys: Option<PathBuf>,
    #[command(flatten)]
    key_log: KeyLogFlag,
}

/// What the first lines of a server with TLS say.
pub(super) struct TlsFacts {
    /// The certificates, one of them self-signed perhaps.
    certificates: Vec<CertificateFacts>,
    /// SHA-256 of the self-signed certificate.
    fingerprint: Option<String>,
    min: TlsVersion,
    needs_client_certificate: bool,
    /// The file of secrets. It is whole when this is dropped.
    key_log: Option<KeyLog>,
}

impl TlsFlags {
    /// Puts the connections of a server over TLS, if the flags say so.
    pub(super) fn set(
        &self,
        kind: &ServerKind,
        options: &mut ServerOptions,
    ) -> Result<Option<TlsFacts>, Failure> {
        let (pairs, fingerprint) = match self.tls_self_signed {
            true => {
                let signed = SelfSigned::new(&names(options.listen));
                let signed = signed.map_err(|error| failure(&error))?;
                (vec![signed.pair], Some(signed.fingerprint))
            }
            false => (self.pairs()?, None),
        };
        let key_log = self.key_log.open(!pairs.is_empty())?;
        if pairs.is_empty() {
            return Ok(None);
        }
        let certificates = CertificateFacts::of(&pairs);
        let mut tls = TlsServerOptions::new(pairs);
        tls.tickets = TicketKeys::random();
        tls.key_log = key_log.as_ref().map(KeyLog::sink);
        let mut tls = self.read_shared(tls)?;
        if self.tls_min.as_deref() == Some("1.3") {
            tls.min = TlsVersion::V13;
        }
        if kind.protocol >= ServerProtocol::WebSocket {
            tls.alpn = vec![HTTP_ALPN.to_vec()];
        }
        let needs_client_certificate = tls.client_ca.is_some();
        let min = tls.min;
        options.tls = Some(tls);
        let facts = TlsFacts { certificates, fingerprint, min, needs_client_certificate, key_log };
        Ok(Some(facts))
    }

    /// Reports whether a file is named that can be read again.
    pub(super) fn has_files(&self) -> bool {
        let others = [&self.tls_client_ca, &self.tls_ticket_keys];
        !self.tls_cert.is_empty() || others.iter().any(|path| path.is_some())
    }

    /// Reads all files again. What is from no file stays as it is.
    pub(super) fn read_again(
        &self,
        mut tls: TlsServerOptions,
    ) -> Result<TlsServerOptions, Failure> {
        if !self.tls_self_signed {
            tls.pairs = self.pairs()?;
        }
        self.read_shared(tls)
    }

    /// Reads the files that belong to all certificates.
    fn read_shared(&self, mut tls: TlsServerOptions) -> Result<TlsServerOptions, Failure> {
        if let Some(path) = &self.tls_client_ca {
            tls.client_ca = Some(PemFile::read(path).map_err(|error| failure(&error))?);
        }
        if let Some(path) = &self.tls_ticket_keys {
            tls.tickets = Some(TicketKeys::read(path).map_err(|error| failure(&error))?);
        }
        Ok(tls)
    }

    /// Reads the certificates and their keys.
    fn pairs(&self) -> Result<Vec<CertifiedPair>, Failure> {
        let (chains, keys) = (self.tls_cert.len(), self.tls_key.len());
        if chains != keys {
            return Err(Failure::new(format!(
                "{chains} times --tls-cert and {keys} times --tls-key: give each certificate its \
                 key, in the same order"
            )));
        }
        let files = self.tls_cert.iter().zip(&self.tls_key);
        let pairs = files.map(|(chain, key)| CertifiedPair::read(chain, key));
        pairs.collect::<Result<_, _>>().map_err(|error| failure(&error))
    }
}

impl TlsFacts {
    /// Returns the facts for `--json`.
    pub(super) fn json(&self) -> Value {
        json!({
            "certificates": self.certificates,
            "fingerprint_sha256": self.fingerprint,
            "min": version(self.min),
            "client_certificates": self.needs_client_certificate,
            "key_log": self.key_log.as_ref().map(KeyLog::path),
        })
    }

    /// Returns what the user should know before the first connection.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> {
        let expiring = self.certificates.iter().filter_map(CertificateFacts::warning);
        expiring.chain(self.key_log.as_ref().map(KeyLog::warning))
    }

    /// Returns lines for people, with a label each: what is served, and how to try it.
    pub(super) fn rows(&self, kind: &ServerKind, listen: &str) -> Vec<(&'static str, String)> {
        let client = match self.needs_client_certificate {
            true => ", clients show a certificate",
            false => "",
        };
        let from = version(self.min);
        let certificates = certificates::show(&self.certificates);
        let mut rows = vec![("tls", format!("{certificates}; TLS {from} or later{client}"))];
        if let Some(fingerprint) = &self.fingerprint {
            rows.push(("sha256", fingerprint.clone()));
            let client = match kind.protocol >= ServerProtocol::WebSocket {
                true => format!("curl -k https://{listen}/"),
                false => format!("openssl s_client -connect {listen}"),
            };
            rows.push(("try", client));
        }
        rows
    }
}

/// Returns the names of a self-signed certificate.
fn names(listen: SocketAddr) -> Vec<String> {
    let mut names = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let ip = listen.ip().to_string();
    if !listen.ip().is_unspecified() && !names.contains(&ip) {
        names.push(ip);
    }
    names
}

fn version(version: TlsVersion) -> &'static str {
    match version {
        TlsVersion::V12 => "1.2",
        TlsVersion::V13 => "1.3",
    }
}

/// Says what is wrong with a file, and what to do.
pub(super) fn failure(error: &TlsConfigError) -> Failure {
    let hint = match error {
        TlsConfigError::Unreadable { file, .. } => {
            format!("\n  `ls -l {file}` shows whether it is there and who may read it")
        }
        TlsConfigError::KeyOfOther { key, .. } => {
            format!("\n  `openssl pkey -in {key} -pubout` shows what the key belongs to")
        }
        _ => String::new(),
    };
    Failure::new(format!("{error}{hint}"))
}

/// Group of the flags that bring a certificate.
const CERTIFICATE: &str = "server_certificate";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_self_signed_certificate_is_for_the_address_too() {
        assert_eq!(names("0.0.0.0:1".parse().unwrap()), ["localhost", "127.0.0.1", "::1"]);
        assert_eq!(names("127.0.0.1:1".parse().unwrap()).len(), 3);
        assert_eq!(names("[fd00::7]:1".parse().unwrap())[3], "fd00::7");
    }
}
