//! `tls`, and the same keys of `ws`: options of Node for the connections to a target over TLS.
//!
//! The engine http passes `tls` to got (`engine_http.ts`, `step`). The engine ws passes it with
//! `ws` to npm's `ws` (`engine_ws.ts`, `getWsConfig`), where the keys of `ws` win.

use throng_load::scenario::YamlNode;

use super::engine::Engine;
use crate::fields::{Fields, one_or_more, text};
use crate::source::Span;
use crate::tls::{CLIENT_FILES, PLAIN, TlsDraft, TlsVersionRead};
use crate::translator::Translator;

/// Returns how the connections are secured. `of_source` says whether the target of the file is over
/// TLS.
pub(super) fn read(
    translator: &mut Translator<'_>,
    config: &Fields<'_>,
    engine: Engine,
    of_source: bool,
) -> TlsDraft {
    let mut tls = TlsDraft::default();
    let is_secure = translator.is_secure(of_source);
    if is_secure {
        report_sessions(translator, engine, &mut tls);
    }
    for name in ["tls", "ws"] {
        let Some((at, node)) = config.entry(name) else { continue };
        let Some(fields) = Fields::read_any(translator, node, &format!("`{name}`")) else {
            continue;
        };
        if name == "tls" && !is_secure {
            translator.not_needed(&at, name, PLAIN);
            continue;
        }
        for (key, span, node) in fields.iter() {
            let construct = format!("{name} {key}");
            match is_key(key) {
                true if !is_secure => translator.not_needed(&span, construct, PLAIN),
                true if name == "ws" && engine == Engine::Http => {
                    let why = "it is for scenarios of the engine ws";
                    translator.not_needed(&span, construct, why);
                }
                true => read_key(translator, &mut tls, &construct, (key, &span, node)),
                false if name == "tls" => translator.not_supported(&span, construct, NO_SUCH),
                // The other keys of `ws` are read elsewhere.
                false => {}
            }
        }
    }
    tls
}

/// Reports when sessions are resumed. Each user has an agent of its own, which keeps its connection
/// and, if that is closed, its session; npm's `ws` keeps none.
fn report_sessions(translator: &mut Translator<'_>, engine: Engine, tls: &mut TlsDraft) {
    tls.is_always_full = true;
    if engine == Engine::Http {
        let how = "a user of Artillery whose connection was closed resumes its session; all \
                   handshakes of the scenario are full: `resume` sets a share";
        translator.approximated(&(0..0), "sessions of TLS", how);
    }
}

fn read_key(
    translator: &mut Translator<'_>,
    tls: &mut TlsDraft,
    construct: &str,
    (key, span, node): (&str, &Span, &YamlNode),
) {
    match key {
        "rejectUnauthorized" => match node.scalar() {
            Some("false" | "true") => {
                tls.is_unverified = node.scalar() == Some("false");
                translator.translated(span, construct);
            }
            _ => translator.mistake(
                &node.span,
                "`rejectUnauthorized` cannot be read",
                "expected `true` or `false`",
            ),
        },
        "servername" => {
            tls.server_name = text(translator, node, "`servername`").map(str::to_owned);
            translator.translated(span, construct);
        }
        "minVersion" | "maxVersion" => {
            let Some(version) = node.scalar().and_then(TlsVersionRead::named) else {
                let title = format!("`{key}` cannot be read");
                return translator.mistake(&node.span, title, "expected `TLSv1.2` or `TLSv1.3`");
            };
            match key {
                "minVersion" => tls.set_min(translator, span, construct, version),
                _ => tls.set_max(translator, span, construct, version),
            }
        }
        "ciphers" => {
            let names = one_or_more(node).into_iter().filter_map(YamlNode::scalar);
            let names = names.flat_map(|names| names.split(':')).map(str::trim);
            let names: Vec<_> = names.filter(|name| !name.is_empty()).collect();
            tls.set_ciphers(translator, span, construct, names);
        }
        _ if AUTHORITIES.contains(&key) => {
            let remedy = "its text stands in this file: write it into one, and name it: `tls: {ca: \
                          FILE}`";
            translator.not_supported(span, construct, remedy);
        }
        _ => translator.not_supported(span, construct, CLIENT_FILES),
    }
}

/// Reports whether a key concerns TLS.
pub(super) fn is_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// Keys of Node and of got that concern TLS.
pub(super) const KEYS: &[&str] = words![
    "rejectUnauthorized" "servername" "minVersion" "maxVersion" "ciphers" "ca"
    "certificateAuthority" "cert" "certificate" "key" "passphrase" "pfx"
];

/// Keys whose text has the authorities to trust.
const AUTHORITIES: [&str; 2] = ["ca", "certificateAuthority"];

const NO_SUCH: &str = "a scenario has no such option of TLS; see docs/scenario.md";
