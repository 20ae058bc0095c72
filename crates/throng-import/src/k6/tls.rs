//! What the options say about TLS (`internal/js/runner.go`, `newVU`).

use super::load::Members;
use super::option;
use super::syntax::{Expression, ExpressionKind};
use crate::source::Span;
use crate::tls::{CLIENT_FILES, PLAIN, TlsBound, TlsDraft, TlsVersionRead};
use crate::translator::Translator;

/// Returns how the connections are secured. `server` says whether the script's is over TLS, and
/// where it stands.
pub(super) fn read(
    translator: &mut Translator<'_>,
    options: Option<&Expression>,
    (of_source, span): (bool, &Span),
    has_requests: bool,
) -> TlsDraft {
    let given = |key: &'static str| option(options, key).map(|value| (key, value));
    if !translator.is_secure(of_source) {
        for (key, value) in KEYS.into_iter().filter_map(given) {
            translator.not_needed(&value.span, key, PLAIN);
        }
        return TlsDraft::default();
    }
    if has_requests {
        let how = "k6 speaks HTTP/2 where the server offers it, and the scenario HTTP/1.1";
        translator.approximated(span, "https", how);
    }
    // A client of Go without a `ClientSessionCache` resumes no session.
    let mut tls = TlsDraft { is_always_full: true, ..TlsDraft::default() };
    if let Some((key, value)) = given("insecureSkipTLSVerify") {
        tls.is_unverified = matches!(value.kind, ExpressionKind::Truth(true));
        translator.translated(&value.span, key);
    }
    if let Some((_, value)) = given("tlsVersion") {
        read_versions(translator, value, &mut tls);
    }
    if let Some((key, value)) = given("tlsCipherSuites") {
        read_ciphers(translator, key, value, &mut tls);
    }
    if let Some((key, value)) = given("tlsAuth") {
        match client_files(value) {
            Some(files) => {
                tls.client = Some(files);
                translator.translated(&value.span, key);
            }
            None => translator.not_supported(&value.span, key, CLIENT_FILES),
        }
    }
    tls
}

/// Returns the files of the only certificate, if the script opens them and they have no password.
fn client_files(value: &Expression) -> Option<(String, String)> {
    let ExpressionKind::List(items) = &value.kind else { return None };
    let [only] = &items[..] else { return None };
    let members = only.object()?;
    let member = |key: &str| members.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    let file = |key: &str| {
        let (function, arguments) = member(key)?.call()?;
        let path = arguments.first()?.text()?;
        (function == "open").then(|| path.to_owned())
    };
    let files = Some((file("cert")?, file("key")?));
    files.filter(|_| member("password").is_none())
}

/// Reads one version, or the lowest and the highest one.
fn read_versions(translator: &mut Translator<'_>, value: &Expression, tls: &mut TlsDraft) {
    let construct = "tlsVersion";
    if value.object().is_none() {
        match version(translator, value) {
            Some(TlsVersionRead::Known(version)) => {
                (tls.min, tls.max) = (Some(version), Some(version));
                translator.translated(&value.span, construct);
            }
            Some(old) => tls.set_max(translator, &value.span, construct, old),
            None => {}
        }
        return;
    }
    let Some(members) = Members::read(translator, value, "`tlsVersion`") else { return };
    members.check(translator, "`tlsVersion`", &["min", "max"]);
    if let Some(min) = members.get("min")
        && let Some(read) = version(translator, min)
    {
        tls.set_min(translator, &min.span, "tlsVersion min", read);
    }
    if let Some(max) = members.get("max")
        && let Some(read) = version(translator, max)
    {
        tls.set_max(translator, &max.span, "tlsVersion max", read);
    }
}

/// Reads a version: a text, or a constant of `k6/http`.
fn version(translator: &mut Translator<'_>, value: &Expression) -> Option<TlsVersionRead> {
    let path = value.path();
    let name = value.text().or(path.as_deref()).unwrap_or_default();
    let name = name.rsplit_once("http.").map_or(name, |(_, name)| name);
    let read = TlsVersionRead::named(name);
    if read.is_none() {
        let label = "expected a version such as 'tls1.2' or http.TLS_1_2";
        translator.mistake(&value.span, "this is no version of TLS", label);
    }
    read
}

/// Reads ciphers. Go lets a client choose those of TLS 1.2 alone, and always offers the three of
/// TLS 1.3.
fn read_ciphers(
    translator: &mut Translator<'_>,
    key: &str,
    value: &Expression,
    tls: &mut TlsDraft,
) {
    let ExpressionKind::List(items) = &value.kind else {
        let label = "expected a list such as ['TLS_AES_128_GCM_SHA256']";
        return translator.mistake(&value.span, "`tlsCipherSuites` is no list", label);
    };
    let mut names = Vec::new();
    for item in items {
        match item.text() {
            Some(name) => names.push(name),
            None => {
                let label = "expected the name of a cipher";
                return translator.mistake(&item.span, "this is no cipher", label);
            }
        }
    }
    tls.set_ciphers(translator, &value.span, key, names);
    if !tls.ciphers.is_empty() && tls.max != Some(TlsBound::V12) {
        for name in OF_TLS_13 {
            if !tls.ciphers.contains(&name) {
                tls.ciphers.push(name);
            }
        }
    }
}

/// Options of TLS.
pub(super) const KEYS: [&str; 4] =
    ["insecureSkipTLSVerify", "tlsVersion", "tlsCipherSuites", "tlsAuth"];

const OF_TLS_13: [&str; 3] =
    ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
