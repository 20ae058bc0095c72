//! Certificates of servers over TLS: an authority, another one between, and the server's own.

use std::process::{Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

use super::stage::Stage;

/// Writes the certificates of a server for `localhost` and 127.0.0.1 into the stage's folder:
/// `ca.pem` is the authority, `chain.pem` the whole chain, `server.pem` the server's own, and
/// `key.pem` its key. `change` changes the server's own.
pub(crate) fn write(stage: &Stage, change: impl FnOnce(&mut CertificateParams)) {
    write_with_key(stage, &KeyPair::generate().unwrap(), change);
}

/// Does the same with a key of RSA.
///
/// # Errors
/// OpenSSL is missing, which makes the key.
pub(crate) fn write_rsa(stage: &Stage, bits: u32) -> Result<(), String> {
    let bits = format!("rsa_keygen_bits:{bits}");
    let made = Command::new("openssl")
        .args(["genpkey", "-algorithm", "RSA", "-pkeyopt", &bits])
        .stdin(Stdio::null())
        .output()
        .map_err(|_| "`openssl` is not installed".to_owned())?;
    let pem = String::from_utf8(made.stdout).unwrap();
    write_with_key(stage, &KeyPair::from_pem(&pem).unwrap(), |_| {});
    Ok(())
}

fn write_with_key(stage: &Stage, key: &KeyPair, change: impl FnOnce(&mut CertificateParams)) {
    let put = |name: &str, text: String| std::fs::write(stage.path(name), text).unwrap();
    let (root, root_key) = (authority("Test Root"), KeyPair::generate().unwrap());
    let (between, between_key) = (authority("Test Intermediate"), KeyPair::generate().unwrap());
    put("ca.pem", root.self_signed(&root_key).unwrap().pem());
    let root = Issuer::new(root, root_key);
    let between_pem = between.signed_by(&between_key, &root).unwrap().pem();
    let mut own = CertificateParams::new(["localhost", "127.0.0.1"].map(str::to_owned)).unwrap();
    own.distinguished_name.push(DnType::CommonName, "localhost");
    change(&mut own);
    let own = own.signed_by(key, &Issuer::new(between, between_key)).unwrap().pem();
    put("chain.pem", format!("{own}{between_pem}"));
    put("server.pem", own);
    put("key.pem", key.serialize_pem());
}

/// Writes a certificate that issued itself, and an authority that it does not have.
pub(crate) fn write_self_signed(stage: &Stage) {
    write(stage, |_| {});
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["localhost", "127.0.0.1"].map(str::to_owned)).unwrap();
    std::fs::write(stage.path("chain.pem"), own.self_signed(&key).unwrap().pem()).unwrap();
    std::fs::write(stage.path("key.pem"), key.serialize_pem()).unwrap();
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, name);
    params
}
