//! Certificates of the tests: an authority, and what it has signed.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use throng_tls::{
    CertifiedPair, Cipher, PemFile, Suite, TlsClientConfig, TlsClientOptions, TlsServerConfig,
    TlsServerOptions, TlsVersion, TrustAnchors,
};

/// Authority of a test.
pub(crate) struct Authority {
    pub pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    /// Signs a certificate for these names.
    pub(crate) fn sign(&self, names: &[&str]) -> CertifiedPair {
        self.sign_with(names, |_| {})
    }

    /// Signs a certificate that `change` has changed.
    pub(crate) fn sign_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> CertifiedPair {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let name = names.first().cloned().unwrap_or_default();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        CertifiedPair {
            chain: PemFile::new("chain.pem", certificate.pem()),
            key: PemFile::new("key.pem", key.serialize_pem()),
        }
    }

    pub(crate) fn file(&self) -> PemFile {
        PemFile::new("ca.pem", self.pem.clone())
    }
}

/// Makes a certificate for this name that is its own authority, as `openssl req -x509` does.
pub(crate) fn own_authority(name: &str, until_year: i32) -> CertifiedPair {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.not_after = rcgen::date_time_ymd(until_year, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    CertifiedPair {
        chain: PemFile::new("chain.pem", certificate.pem()),
        key: PemFile::new("key.pem", key.serialize_pem()),
    }
}

/// Options of two ends that trust each other.
pub(crate) struct Options {
    pub authority: Authority,
    pub client: TlsClientOptions,
    pub server: TlsServerOptions,
}

impl Options {
    pub(crate) fn new() -> Self {
        let authority = Authority::new("authority");
        let mut client = TlsClientOptions::new("localhost");
        client.trust = TrustAnchors::File(authority.file());
        let server = TlsServerOptions::new(vec![authority.sign(&["localhost"])]);
        Self { authority, client, server }
    }

    /// Allows only this suite.
    pub(crate) fn only(mut self, suite: Suite) -> Self {
        self.client.ciphers = Cipher::of_suites(&[suite]);
        self.server.suites = vec![suite];
        self
    }

    /// Makes the server ask for a certificate, and the client have one.
    pub(crate) fn with_client_certificate(mut self) -> Self {
        self.server.client_ca = Some(self.authority.file());
        self.client.certificate = Some(self.authority.sign(&["user-1"]));
        self
    }

    /// Makes a folder with the certificates.
    pub(crate) fn folder(&self) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let pair = &self.server.pairs[0];
        for (name, text) in [
            ("ca.pem", self.authority.pem.as_bytes()),
            ("chain.pem", pair.chain.text()),
            ("key.pem", pair.key.text()),
        ] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    pub(crate) fn client(&self) -> TlsClientConfig {
        TlsClientConfig::new(&self.client).unwrap()
    }

    pub(crate) fn server(&self) -> TlsServerConfig {
        TlsServerConfig::new(&self.server, 0).unwrap()
    }
}

pub(crate) const VERSIONS: [TlsVersion; 2] = [TlsVersion::V13, TlsVersion::V12];
