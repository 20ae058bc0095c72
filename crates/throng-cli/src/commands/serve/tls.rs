//! Flags of servers whose connections have TLS.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use throng_server::kinds::{ServerKind, ServerProtocol};
use throng_server::{HTTP_ALPN, ServerOptions, tls_transport};
use throng_tls::{
    CertifiedPair, PemFile, SelfSigned, TicketMaster, TlsConfigError, TlsServerOptions, TlsVersion,
};

use crate::Failure;

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
}

/// What the first lines of a server with TLS say.
pub(super) struct TlsFacts {
    /// The addresses of a certificate, or that it is self-signed.
    certificate: String,
    /// SHA-256 of the self-signed certificate.
    fingerprint: Option<String>,
    min: TlsVersion,
    needs_client_certificate: bool,
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
                let signed = SelfSigned::new(&names(options.listen)).map_err(failure)?;
                (vec![signed.pair], Some(signed.fingerprint))
            }
            false => (self.pairs()?, None),
        };
        if pairs.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = pairs.iter().map(|pair| pair.chain.name()).collect();
        let certificate = names.join(", ");
        let mut tls = TlsServerOptions::new(pairs);
        if let Some(path) = &self.tls_client_ca {
            tls.client_ca = Some(PemFile::read(path).map_err(failure)?);
        }
        if self.tls_min.as_deref() == Some("1.3") {
            tls.min = TlsVersion::V13;
        }
        if kind.protocol >= ServerProtocol::WebSocket {
            tls.alpn = vec![HTTP_ALPN.to_vec()];
        }
        tls.tickets = TicketMaster::random();
        let needs_client_certificate = tls.client_ca.is_some();
        let facts = TlsFacts { certificate, fingerprint, min: tls.min, needs_client_certificate };
        options.transport = Some(tls_transport(tls).map_err(failure)?);
        Ok(Some(facts))
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
        let pair = |(chain, key): (&PathBuf, &PathBuf)| {
            Ok(CertifiedPair { chain: PemFile::read(chain)?, key: PemFile::read(key)? })
        };
        let pairs = self.tls_cert.iter().zip(&self.tls_key).map(pair);
        pairs.collect::<Result<_, _>>().map_err(failure)
    }
}

impl TlsFacts {
    /// Returns the facts for `--json`.
    pub(super) fn json(&self) -> Value {
        json!({
            "certificate": self.certificate,
            "fingerprint_sha256": self.fingerprint,
            "min": version(self.min),
            "client_certificates": self.needs_client_certificate,
        })
    }

    /// Returns lines for people, with a label each: what is served, and how to try it.
    pub(super) fn rows(&self, kind: &ServerKind, listen: &str) -> Vec<(&'static str, String)> {
        let client = match self.needs_client_certificate {
            true => ", clients show a certificate",
            false => "",
        };
        let from = version(self.min);
        let mut rows = vec![("tls", format!("{}; TLS {from} or later{client}", self.certificate))];
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
fn failure(error: TlsConfigError) -> Failure {
    let hint = match &error {
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
