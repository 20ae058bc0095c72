//! Configurations, and what is said of wrong ones.

use throng_tls::{
    CertifiedPair, PemFile, TicketKeys, TlsClientConfig, TlsConfigError, TlsServerConfig,
    TlsServerOptions, TlsVersion,
};

use crate::certificates::{Authority, Options};
use crate::end::{End, Ours, exchange};

/// Returns what is said of a server's options.
fn mistake(options: &TlsServerOptions) -> String {
    match TlsServerConfig::new(options, 0) {
        Ok(_) => panic!("the options are accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn mistakes_name_the_file_and_the_remedy() {
    let authority = Authority::new("other");
    let (good, other) = (authority.sign(&["localhost"]), authority.sign(&["localhost"]));
    let pair = |chain: &PemFile, key: &PemFile| {
        TlsServerOptions::new(vec![CertifiedPair { chain: chain.clone(), key: key.clone() }])
    };
    assert_eq!(
        mistake(&TlsServerOptions::new(Vec::new())),
        "a TLS server needs a certificate and its key"
    );
    assert_eq!(
        mistake(&pair(&good.key, &good.key)),
        "key.pem has no certificate: it needs a block `-----BEGIN CERTIFICATE-----`"
    );
    assert_eq!(
        mistake(&pair(&good.chain, &good.chain)),
        "chain.pem has no private key: it needs a block `-----BEGIN PRIVATE KEY-----`. A key with \
         a passphrase is not read: write it without one with `openssl pkey -in chain.pem`"
    );
    assert_eq!(
        mistake(&pair(&good.chain, &other.key)),
        "the key of key.pem does not belong to the first certificate of chain.pem: give its own \
         key, and put the server's certificate before those of its issuers"
    );
    let cut = "-----BEGIN CERTIFICATE-----\nMIIB\n";
    assert!(
        mistake(&pair(&PemFile::new("cut.pem", cut), &good.key)).starts_with("cut.pem is no PEM")
    );
    let short = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    assert!(
        mistake(&pair(&PemFile::new("short.pem", short), &good.key))
            .starts_with("certificate 1 of short.pem is wrong: ")
    );
    let mut versions = pair(&good.chain, &good.key);
    (versions.min, versions.max) = (TlsVersion::V13, TlsVersion::V12);
    assert_eq!(mistake(&versions), TlsConfigError::NoVersion.to_string());
    let missing = PemFile::read(std::path::Path::new("/nowhere/chain.pem")).err().unwrap();
    assert!(missing.to_string().starts_with("/nowhere/chain.pem cannot be read: "));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tickets");
    std::fs::write(&path, "bm8ga2V5\n").unwrap();
    let wrong = TicketKeys::read(&path).err().unwrap().to_string();
    let says = "tickets has no usable ticket keys: line 1 has 6 bytes, and not 48 or 80. Each line";
    assert!(wrong.contains(says), "{wrong}");
    let mut client = Options::new().client;
    client.server_name = "not a name".into();
    let error = TlsClientConfig::new(&client).err().unwrap();
    assert_eq!(
        error.to_string(),
        "`not a name` is neither a host name nor an address that a certificate can be for"
    );
}

#[test]
fn the_name_that_a_client_asks_for_chooses_the_certificate() {
    let mut options = Options::new();
    options.server.pairs = ["one.example", "two.example", "*.wild.example"]
        .map(|name| options.authority.sign(&[name]))
        .to_vec();
    for (name, is_open) in [
        ("one.example", true),
        ("two.example", true),
        ("a.wild.example", true),
        ("other.example", false),
    ] {
        options.client.server_name = name.into();
        let mut client = Ours::client(&options.client(), false);
        exchange(&mut client, &mut Ours::server(&options.server()), usize::MAX);
        assert_eq!(client.is_open(), is_open, "{name}");
    }
}

#[test]
fn without_verification_any_certificate_is_believed() {
    let mut options = Options::new();
    options.client.trust = throng_tls::TrustAnchors::Unverified;
    options.client.server_name = "[::1]".into();
    options.server.pairs = vec![Authority::new("other").sign(&["other.example"])];
    let mut client = Ours::client(&options.client(), false);
    exchange(&mut client, &mut Ours::server(&options.server()), usize::MAX);
    assert!(client.is_open());
}
