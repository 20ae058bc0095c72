//! What a file says about TLS: the type of the server, and the options `ssl_...`.
//!
//! tsung connects with Erlang's `ssl` and asks for no verification, so any certificate is taken
//! (`ts_ssl:protocol_options`).

use super::element::Element;
use super::ends::TsungServer;
use crate::tls::{PLAIN, TlsDraft, TlsVersionRead};
use crate::translator::Translator;

/// Options of TLS.
pub(super) const OPTIONS: [&str; 4] =
    ["ssl_ciphers", "ssl_versions", "ssl_reuse_sessions", "ssl_disable_sni"];

/// Returns how the connections are secured, and reports the server and its options.
pub(super) fn read(
    translator: &mut Translator<'_>,
    root: Element<'_>,
    server: &TsungServer<'_>,
) -> TlsDraft {
    let options = root.child("options").into_iter().flat_map(Element::elements);
    let options = options.filter(|option| OPTIONS.contains(&name(*option)));
    if !translator.is_secure(server.is_secure) {
        for option in options {
            translator.not_needed(&option.span(), format!("option {}", name(option)), PLAIN);
        }
        if server.is_secure {
            translator.not_needed(&server.span, "server over TLS", PLAIN);
        }
        return TlsDraft::default();
    }
    // The first connection of a user is a full handshake in tsung, too (`is_first_connect`).
    let mut tls = TlsDraft { is_unverified: true, is_always_full: true, ..TlsDraft::default() };
    let mut reuses = true;
    for option in options {
        match name(option) {
            "ssl_reuse_sessions" => {
                let value = translator.word(option, "value", &["true", "false"]);
                reuses = value != Some("false");
                if !reuses {
                    translator.translated(&option.span(), "option ssl_reuse_sessions");
                }
            }
            _ => read_option(translator, option, &mut tls),
        }
    }
    tls.client = client_files(root);
    if reuses {
        let how = "a user that connects again resumes its session of TLS 1.2 in tsung; all \
                   handshakes of the scenario are full: `resume` sets a share";
        translator.approximated(&server.span, "ssl_reuse_sessions", how);
    }
    translator.translated(&server.span, "server");
    tls
}

/// Returns the files of the certificate that the sessions set, if it is one, without variables and
/// without a password.
fn client_files(root: Element<'_>) -> Option<(String, String)> {
    let sessions = root.child("sessions").into_iter().flat_map(Element::elements);
    let options = sessions.flat_map(|session| session.all("set_option").collect::<Vec<_>>());
    let mut found = None;
    for certificate in options.filter_map(|option| option.child("certificate")) {
        let file = |name: &str| certificate.value(name).filter(|path| !path.contains("%%"));
        let cert = file("certfile")?;
        let files = (cert.to_owned(), file("keyfile").unwrap_or(cert).to_owned());
        let has_variable = certificate.value("keyfile").is_some_and(|path| path.contains("%%"));
        let is_another = found.as_ref().is_some_and(|known| *known != files);
        if has_variable || is_another || certificate.value("keypass").is_some() {
            return None;
        }
        found = Some(files);
    }
    found
}

fn read_option(translator: &mut Translator<'_>, option: Element<'_>, tls: &mut TlsDraft) {
    let (span, construct) = (option.span(), format!("option {}", name(option)));
    let value = option.value("value").unwrap_or("negotiate").trim().trim_matches('\'');
    match name(option) {
        "ssl_disable_sni" if value != "true" => translator.translated(&span, construct),
        "ssl_disable_sni" => {
            let how = "the scenario sends the name of its target (SNI), unless that is an address";
            translator.approximated(&span, construct, how);
        }
        _ if value == "negotiate" => translator.translated(&span, construct),
        "ssl_ciphers" => {
            let names = value.split([',', ':']).map(str::trim).filter(|name| !name.is_empty());
            tls.set_ciphers(translator, &span, &construct, names);
        }
        _ => match TlsVersionRead::named(value) {
            Some(TlsVersionRead::Known(version)) => {
                (tls.min, tls.max) = (Some(version), Some(version));
                translator.translated(&span, construct);
            }
            Some(old) => tls.set_max(translator, &span, &construct, old),
            None => {
                let label = "expected a version of Erlang, such as `'tlsv1.2'`";
                translator.mistake(&span, format!("`{value}` is no version of TLS"), label);
            }
        },
    }
}

fn name<'d>(option: Element<'d>) -> &'d str {
    option.value("name").unwrap_or_default().trim()
}
