//! A server that encrypts, and one that also asks its clients for a certificate.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, Certificate, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair,
};
use throng_bus::{Bus, BusError, ClientCertificate, NatsBus, NatsOptions};

use super::nats_server::NatsServer;

/// A directory with certificates. It is removed when this is dropped.
struct Certificates(PathBuf);

impl Certificates {
    /// Makes an authority `ca`, and what it has signed: `server` and `client`. The certificate
    /// `stranger` is signed by another authority, `other-ca`.
    fn new(test: &str) -> Self {
        let name = format!("throng-{test}-{}", std::process::id());
        let all = Self(std::env::temp_dir().join(name));
        std::fs::create_dir_all(&all.0).unwrap();
        let ours = all.authority("ca");
        all.signed("server", &ours, ExtendedKeyUsagePurpose::ServerAuth);
        all.signed("client", &ours, ExtendedKeyUsagePurpose::ClientAuth);
        let other = all.authority("other-ca");
        all.signed("stranger", &other, ExtendedKeyUsagePurpose::ClientAuth);
        all
    }

    fn authority(&self, name: &str) -> Issuer<'static, KeyPair> {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        self.write(name, &params.self_signed(&key).unwrap(), &key);
        Issuer::new(params, key)
    }

    fn signed(
        &self,
        name: &str,
        authority: &Issuer<'_, KeyPair>,
        purpose: ExtendedKeyUsagePurpose,
    ) {
        let mut params = CertificateParams::new([Ipv4Addr::LOCALHOST.to_string()]).unwrap();
        params.extended_key_usages.push(purpose);
        let key = KeyPair::generate().unwrap();
        self.write(name, &params.signed_by(&key, authority).unwrap(), &key);
    }

    fn write(&self, name: &str, certificate: &Certificate, key: &KeyPair) {
        std::fs::write(self.certificate(name), certificate.pem()).unwrap();
        std::fs::write(self.key(name), key.serialize_pem()).unwrap();
    }

    fn certificate(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.pem"))
    }

    fn key(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.key"))
    }

    /// Starts a server that encrypts. `further` are more options.
    fn server(&self, further: &[&str]) -> Option<NatsServer> {
        let path = |path: &Path| path.to_str().unwrap().to_owned();
        let (certificate, key) = (path(&self.certificate("server")), path(&self.key("server")));
        let options = ["--tls", "--tlscert", &certificate, "--tlskey", &key];
        NatsServer::start_with(&[&options, further].concat())
    }

    /// Connects with the certificate `name`, if there is one.
    fn connect(&self, server: &NatsServer, name: Option<&str>) -> Result<NatsBus, BusError> {
        let client_certificate = name.map(|name| ClientCertificate {
            certificate: self.certificate(name),
            key: self.key(name),
        });
        NatsBus::connect(&NatsOptions {
            address: format!("tls://127.0.0.1:{}", server.port()),
            name: "test".to_owned(),
            root_certificates: Some(self.certificate("ca")),
            client_certificate,
            ..NatsOptions::default()
        })
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Sends a message from one connection to another.
fn check_delivery(here: &NatsBus, there: &NatsBus) {
    let subscription = there.subscribe("a").unwrap();
    here.publish("a", b"secret").unwrap();
    assert_eq!(super::take(&subscription, 1)[0].payload, b"secret");
}

#[test]
fn an_encrypted_server_is_trusted_by_its_authority_alone() {
    let all = Certificates::new("tls");
    let Some(server) = all.server(&[]) else { return };
    check_delivery(&all.connect(&server, None).unwrap(), &all.connect(&server, None).unwrap());
    let strange = NatsOptions {
        address: format!("tls://127.0.0.1:{}", server.port()),
        name: "test".to_owned(),
        root_certificates: Some(all.certificate("other-ca")),
        ..NatsOptions::default()
    };
    let error = NatsBus::connect(&strange).unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate"), "{error}");
}

#[test]
fn a_server_that_asks_for_certificates_takes_those_of_its_authority_alone() {
    let all = Certificates::new("mutual-tls");
    let authority = all.certificate("ca");
    let further = ["--tlsverify", "--tlscacert", authority.to_str().unwrap()];
    let Some(server) = all.server(&further) else { return };
    let known = || all.connect(&server, Some("client")).unwrap();
    check_delivery(&known(), &known());
    for refused in [None, Some("stranger")] {
        let error = all.connect(&server, refused).unwrap_err().to_string();
        assert!(error.contains("fatal alert"), "{refused:?}: {error}");
    }
}
