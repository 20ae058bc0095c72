//! `tls`, and the keys of `ws` that concern TLS.

use throng_import::Fidelity;

use super::{GET, check, file, imported, web_socket};

const HTTPS: &str = "  target: https://127.0.0.1\n";

fn check_tls(keys: &str, expected: &str) {
    let text = file(&format!("{HTTPS}  tls: {keys}\n"), GET);
    check(&text, &["target: https://127.0.0.1", expected]);
}

#[test]
fn options_of_tls() {
    check(&file(HTTPS, GET), &["target: https://127.0.0.1", "tls: {resume: 0%}"]);
    check_tls("{rejectUnauthorized: false}", "tls: {verify: none, resume: 0%}");
    check_tls("{rejectUnauthorized: true}", "tls: {resume: 0%}");
    check_tls("{servername: shop.example}", "tls: {server_name: shop.example, resume: 0%}");
    check_tls("{minVersion: TLSv1.3}", "tls: {min: 1.3, resume: 0%}");
    check_tls("{minVersion: TLSv1, maxVersion: TLSv1.2}", "tls: {max: 1.2, resume: 0%}");
    check_tls(
        "{ciphers: 'ECDHE-RSA-AES128-GCM-SHA256'}",
        "tls: {ciphers: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256], resume: 0%}",
    );
}

#[test]
fn the_keys_of_a_web_socket_come_first() {
    let config = "  tls: {rejectUnauthorized: true}\n  ws: {rejectUnauthorized: false}\n";
    let text = web_socket("      - send: a\n").replace("ws://", "wss://");
    let text = text.replace("scenarios:", &format!("{config}scenarios:"));
    check(&text, &["target: wss://127.0.0.1:9000", "tls: {verify: none, resume: 0%}"]);
}

#[test]
fn a_plain_target_needs_no_tls() {
    let import = imported(&file("  tls: {rejectUnauthorized: false}\n", GET));
    assert!(!import.scenario.contains("tls:"), "{}", import.scenario);
    assert_eq!(import.fidelity.of(Fidelity::NotNeeded).count(), 1, "{}", import.fidelity);
}

#[test]
fn a_url_of_another_scheme_is_one_of_another_server() {
    let text = file(HTTPS, "      - get: {url: 'http://127.0.0.1/'}\n      - get: {url: /}\n");
    assert!(imported(&text).fidelity.is_partial());
}
