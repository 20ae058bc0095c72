//! Options of TLS.

use throng_import::{Fidelity, ImportOptions, import};

use super::{GET, HTTPS, USERS, check, imported, script};

fn over_tls(options: &str, expected: &str) {
    check(&script(&format!("{USERS}, {options}"), HTTPS), &["target: https://127.0.0.1", expected]);
}

#[test]
fn a_script_over_tls_makes_full_handshakes() {
    check(&script(USERS, HTTPS), &["target: https://127.0.0.1", "tls: {resume: 0%}"]);
    let session = "ws.connect('wss://127.0.0.1/', null, function (socket) { socket.close(); });";
    check(&script(USERS, session), &["target: wss://127.0.0.1/", "tls: {resume: 0%}"]);
    check(&script(USERS, &format!("{HTTPS}\n{session}")), &["target: wss://127.0.0.1/"]);
}

#[test]
fn options_of_tls() {
    over_tls("insecureSkipTLSVerify: true", "tls: {verify: none, resume: 0%}");
    over_tls("insecureSkipTLSVerify: false", "tls: {resume: 0%}");
    over_tls("tlsVersion: 'tls1.2'", "tls: {min: 1.2, max: 1.2, resume: 0%}");
    over_tls("tlsVersion: http.TLS_1_3", "tls: {min: 1.3, max: 1.3, resume: 0%}");
    over_tls("tlsVersion: {min: 'tls1.0', max: http.TLS_1_2}", "tls: {max: 1.2, resume: 0%}");
    over_tls(
        "tlsAuth: [{ domains: ['a'], cert: open('./a.pem'), key: open('a.key') }]",
        "tls: {client: {cert: ./a.pem, key: a.key}, resume: 0%}",
    );
    let one = "tlsCipherSuites: ['TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305']";
    let import = imported(&script(&format!("{USERS}, tlsVersion: 'tls1.2', {one}"), HTTPS));
    let only = "ciphers: [TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256]";
    assert!(import.scenario.contains(only), "{}", import.scenario);
    let import = imported(&script(&format!("{USERS}, {one}"), HTTPS));
    for cipher in ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"] {
        assert!(import.scenario.contains(cipher), "Go offers all of TLS 1.3: {}", import.scenario);
    }
}

#[test]
fn a_plain_target_needs_no_tls() {
    let text = script(&format!("{USERS}, insecureSkipTLSVerify: true"), GET);
    let plain = imported(&text);
    let options = ImportOptions { target: Some("http://127.0.0.9:1".parse().unwrap()) };
    let text = text.replace("http:", "https:");
    let elsewhere = import(&text, "load.js", &options).unwrap();
    for import in [plain, elsewhere] {
        assert!(!import.scenario.contains("tls:"), "{}", import.scenario);
        let notes = import.fidelity.of(Fidelity::NotNeeded);
        let options: Vec<_> = notes.filter(|it| it.construct.contains("TLS")).collect();
        assert_eq!(options.len(), 1, "{}", import.fidelity);
    }
}
