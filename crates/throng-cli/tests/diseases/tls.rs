//! Diseases of servers over TLS.

use std::process::{Command, Stdio};

use rcgen::date_time_ymd;

use super::stage::Stage;
use super::{Cause, Provoked, certificates, servers};

pub(crate) const DISEASES: &[Cause] = &[
    Cause {
        name: "clean TLS",
        what: "Python, ssl: answers each message over TLS, with a whole chain of certificates",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            echo(stage, "nothing", "chain.pem", "")
        },
    },
    Cause {
        name: "certificate expired",
        what: "Python, ssl: a certificate that was valid until 2024",
        expected: Some("certificate_expired"),
        says: &["expired ", "days ago, on 2024-12-31", "certbot renew", "-noout -dates"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |own| own.not_after = date_time_ymd(2024, 12, 31));
            echo(stage, "nothing", "chain.pem", "")
        },
    },
    Cause {
        name: "certificate nearly expired",
        what: "Python, ssl: a certificate of 90 days, of which 3 are left",
        expected: Some("certificate_expired"),
        says: &["Nothing stopped it", "expires in ", ", on 20"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |own| {
                let now = std::time::SystemTime::now();
                let day = std::time::Duration::from_secs(86_400);
                own.not_before = (now - 87 * day).into();
                own.not_after = (now + 3 * day).into();
            });
            echo(stage, "nothing", "chain.pem", "")
        },
    },
    Cause {
        name: "certificate of another name",
        what: "Python, ssl: a certificate for localhost; its users ask for chat.example",
        expected: Some("certificate_name"),
        says: &["is for localhost, 127.0.0.1, not for chat.example", "`server_name: localhost`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            echo(stage, "nothing", "chain.pem", ", server_name: chat.example")
        },
    },
    Cause {
        name: "chain incomplete",
        what: "Python, ssl: sends its own certificate without the one that issued it",
        expected: Some("certificate_issuer"),
        says: &[
            "sends only its own certificate, and that of its issuer is missing, CN=Test Interm",
            "cat server.pem intermediate.pem > chain.pem",
        ],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            echo(stage, "nothing", "server.pem", "")
        },
    },
    Cause {
        name: "issuer unknown",
        what: "Python, ssl: a certificate that issued itself, which its users do not trust",
        expected: Some("certificate_issuer"),
        says: &["shows a certificate that issued itself", "`ca: ca.pem` in `tls`"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write_self_signed(stage);
            echo(stage, "nothing", "chain.pem", "")
        },
    },
    Cause {
        name: "TLS at a plain port",
        what: "Node, `http`: a plain web server; its users begin with wss://",
        expected: Some("tls_at_plain_port"),
        says: &["does not speak TLS: its answer begins with `HTTP/`", "--target ws://127"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            let addr = servers::at_port(stage, "node", NODE, 8_443)?;
            stage.run(&upgrades(&format!("wss://{addr}"), "tls: {verify: none}\n"))
        },
    },
    Cause {
        name: "TLS at a plain port of throng",
        what: "throng: a plain server; its users begin with https://",
        expected: Some("tls_at_plain_port"),
        says: &["does not speak TLS: its answer begins with `HTTP/`", "--target http://127"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            let addr = stage.serve(&["channels"]);
            stage.run(&pages(&format!("https://{addr}"), "tls: {verify: none}\n"))
        },
    },
    Cause {
        name: "plain at a TLS port",
        what: "nginx: `listen ssl`; its users begin with http://",
        expected: Some("plain_at_tls_port"),
        says: &["a port that speaks TLS and says so", "--target https://127.0.0.1:8443"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            let addr = servers::nginx(stage, NGINX)?;
            stage.run(&pages(&format!("http://{addr}"), ""))
        },
    },
    Cause {
        name: "clean, TLS at a TLS port",
        what: "nginx: the same server; its users begin with https://",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            let addr = servers::nginx(stage, NGINX)?;
            stage.run(&pages(&format!("https://{addr}"), "tls: {ca: ca.pem}\n"))
        },
    },
    Cause {
        name: "plain at a TLS port of throng",
        what: "throng: a server over TLS; its users begin with ws://",
        expected: Some("plain_at_tls_port"),
        says: &["a port that speaks TLS and says so", "--target wss://127.0.0.1:"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            let addr = stage.serve(&["channels", "--tls-self-signed"]);
            stage.run(&upgrades(&format!("ws://{addr}"), ""))
        },
    },
    Cause {
        name: "RSA key",
        what: "Python, ssl: a key of RSA with 3072 bits, and 70 full handshakes a second",
        expected: Some("rsa_certificate"),
        says: &["is RSA-3072: each full handshake costs", "1.0 ms of CPU time more", "prime256v1"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write_rsa(stage, 3_072)?;
            arrive(stage, "nothing", 70, ", resume: 0%")
        },
    },
    Cause {
        name: "clean, ECDSA key",
        what: "Python, ssl: a key of ECDSA, and the same handshakes",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            arrive(stage, "nothing", 70, ", resume: 0%")
        },
    },
    Cause {
        name: "no sessions",
        what: "Python, ssl: sends no tickets, so no session is resumed",
        expected: Some("sessions_not_resumed"),
        says: &["gives its clients no session to resume", "ssl_session_tickets on"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            arrive(stage, "no tickets", 30, "")
        },
    },
    Cause {
        name: "ticket keys apart",
        what: "Python, ssl: each connection has a context with ticket keys of its own",
        expected: Some("sessions_not_resumed"),
        says: &["resumed none of the ", "the same keys for tickets"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            arrive(stage, "keys apart", 30, "")
        },
    },
    Cause {
        name: "clean, sessions resumed",
        what: "Python, ssl: one context for all connections, at the same load",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            arrive(stage, "nothing", 30, "")
        },
    },
    Cause {
        name: "client certificate missing",
        what: "Python, ssl: demands a certificate over TLS 1.3; its users have none",
        expected: Some("client_certificate"),
        says: &["users have none: the alert certificate_required ended", "`client: {cert"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            echo(stage, "demands a certificate", "chain.pem", "")
        },
    },
    Cause {
        name: "client certificate missing, 1.2",
        what: "Python, ssl: demands a certificate over TLS 1.2; its users have none",
        expected: Some("client_certificate"),
        says: &["users have none: the alert handshake_failure ended"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            echo(stage, "demands a certificate, 1.2", "chain.pem", "")
        },
    },
    Cause {
        name: "clean, asks for a certificate",
        what: "Python, ssl: asks for a certificate, and serves those who have none",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            echo(stage, "asks", "chain.pem", "")
        },
    },
    Cause {
        name: "no close_notify",
        what: "Python, ssl: ends each answer with its connection, and does not announce the end",
        expected: Some("tls_truncated"),
        says: &["connections without close_notify", "unwrap() before close()"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| one_page(stage, "cuts"),
    },
    Cause {
        name: "clean, close_notify",
        what: "Python, ssl: ends each answer with its connection, and announces the end",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| one_page(stage, "pages"),
    },
    Cause {
        name: "versions apart",
        what: "Python, ssl: TLS 1.2 at most; its users want 1.3",
        expected: Some("tls_apart"),
        says: &["allows no version of TLS that users offer (users offer 1.3)", "-tls1_2"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            echo(stage, "old version", "chain.pem", ", min: '1.3'")
        },
    },
    Cause {
        name: "clean, an old version",
        what: "Python, ssl: TLS 1.2 at most; its users take both",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| {
            certificates::write(stage, |_| {});
            echo(stage, "old version", "chain.pem", "")
        },
    },
    Cause {
        name: "protocols apart",
        what: "openssl s_server: `-alpn h2`; its users speak http/1.1",
        expected: Some("tls_apart"),
        says: &["allows no protocol of ALPN that users offer (users offer http/1.1)"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| s_server(stage, "-alpn h2"),
    },
    Cause {
        name: "ciphers apart",
        what: "openssl s_server: TLS 1.2 with CBC ciphers alone",
        expected: Some("tls_apart"),
        says: &["allows no cipher, group or signature that users offer"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| s_server(stage, "-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA"),
    },
    Cause {
        name: "clean, protocols in common",
        what: "openssl s_server: `-alpn http/1.1`, at the same load",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| s_server(stage, "-alpn http/1.1"),
    },
    Cause {
        name: "long handshakes cut",
        what: "Python: a proxy that closes what is silent for 1 s; half of the handshakes take \
               1.5 s",
        expected: Some("handshakes_cut"),
        says: &["cuts TLS handshakes that take longer than 1.0", "handshakeTimeout (Node)"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| handshakes(stage, "cut"),
    },
    Cause {
        name: "clean, short handshakes",
        what: "Python: the same proxy; half of the handshakes take 20 ms",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: false,
        stage: Stage::here,
        provoke: |stage| handshakes(stage, "short"),
    },
    Cause {
        name: "handshakes on one core",
        what: "Python, asyncio: one thread, RSA-4096, 1.5 times the handshakes that a core signs",
        expected: Some("hot_core"),
        says: &["it makes all ", "resume"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| one_core(stage, ", resume: 0%"),
    },
    Cause {
        name: "clean, resumed on one core",
        what: "Python, asyncio: the same server and users, whose sessions are resumed",
        expected: None,
        says: &["Nothing stopped it: the plan was met"],
        is_of_cpus: true,
        stage: Stage::here,
        provoke: |stage| one_core(stage, ""),
    },
];

/// Runs users that send a message twice a second over TLS to a server of `tls.py`. `tls` are more
/// settings of theirs.
fn echo(stage: &mut Stage, disease: &str, chain: &str, tls: &str) -> Provoked {
    let addr = servers::python(stage, "tls.py", &[disease, chain, "key.pem", "ca.pem"])?;
    stage.run(&format!(
        "target: tls://{addr}\n\
         tls: {{ca: ca.pem{tls}}}\n\
         load: [{{ramp: {{to: 20, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n\
         user:\n\
         \x20 - connect\n\
         \x20 - every: {{period: 500ms, do: [{{send: hello}}, {{expect: hello}}]}}\n"
    ))
}

/// Runs so many users a second over TLS that connect, send a message and leave.
fn arrive(stage: &mut Stage, disease: &str, rate: u32, tls: &str) -> Provoked {
    let addr = servers::python(stage, "tls.py", &[disease, "chain.pem", "key.pem", "ca.pem"])?;
    stage.run(&arriving(&addr.to_string(), rate, tls))
}

fn arriving(addr: &str, rate: u32, tls: &str) -> String {
    format!(
        "target: tls://{addr}\n\
         tls: {{ca: ca.pem{tls}}}\n\
         load: [{{arrivals: {{rate: {rate}/s, for: 5s}}}}]\n\
         user: [connect, send: hello, expect: hello, close]\n"
    )
}

/// Runs users that connect to `handshakes.py`, send a message and leave.
fn handshakes(stage: &mut Stage, disease: &str) -> Provoked {
    certificates::write(stage, |_| {});
    let addr = servers::python(stage, "handshakes.py", &[disease, "chain.pem", "key.pem"])?;
    stage.run(&arriving(&addr.to_string(), 20, ""))
}

/// Runs users that connect again and again: half as often again as a core of this machine can sign
/// with RSA-4096. Their resumed handshakes need little.
fn one_core(stage: &mut Stage, tls: &str) -> Provoked {
    certificates::write_rsa(stage, 4_096)?;
    let addr = servers::python(stage, "handshakes.py", &["nothing", "chain.pem", "key.pem"])?;
    let period_ms = 1_000.0 * 10.0 / (1.5 * signatures_per_s()?);
    stage.run(&format!(
        "target: tls://{addr}\n\
         tls: {{ca: ca.pem{tls}}}\n\
         load: [{{ramp: {{to: 10, over: 2s}}}}, {{hold: {{for: 4s}}}}]\n\
         user:\n\
         \x20 - every:\n\
         \x20     period: {period_ms:.0}ms\n\
         \x20     do: [connect, send: hello, expect: hello, close]\n"
    ))
}

/// Returns the signatures of RSA-4096 that a core of this machine makes in a second.
fn signatures_per_s() -> Result<f64, String> {
    let made = Command::new("openssl")
        .args(["speed", "-mr", "-seconds", "1", "rsa4096"])
        .stdin(Stdio::null())
        .output()
        .map_err(|_| "`openssl` is not installed".to_owned())?;
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    let line = text.lines().find(|line| line.starts_with("+F2:"));
    let signed = line.and_then(|line| line.split(':').nth(3)?.parse().ok());
    signed.ok_or_else(|| format!("`openssl speed` says {text:?}"))
}

/// Runs users that get a page on a connection of its own, whose end is that of the page.
fn one_page(stage: &mut Stage, disease: &str) -> Provoked {
    certificates::write(stage, |_| {});
    let addr = servers::python(stage, "tls.py", &[disease, "chain.pem", "key.pem", "ca.pem"])?;
    stage.run(&pages(&format!("https://{addr}"), "tls: {ca: ca.pem}\n"))
}

/// Runs users that send a line to `openssl s_server`, which serves one at a time and sends it back
/// reversed.
fn s_server(stage: &mut Stage, options: &str) -> Provoked {
    certificates::write(stage, |_| {});
    let line = format!(
        "openssl s_server -accept 127.0.0.1:8443 -cert server.pem -cert_chain chain.pem \
         -key key.pem -rev {options}"
    );
    let addr = servers::at_port(stage, "openssl", &line, 8_443)?;
    stage.run(&format!(
        "target: tls://{addr}\n\
         tls: {{ca: ca.pem, alpn: [http/1.1]}}\n\
         load: [{{arrivals: {{rate: 10/s, for: 5s}}}}]\n\
         user: [connect, send: \"abc\\n\", expect: \"cba\\n\", close]\n"
    ))
}

/// Returns a scenario of users that get a page twice a second.
fn pages(target: &str, tls: &str) -> String {
    format!(
        "target: {target}\n\
         {tls}\
         load: [{{ramp: {{to: 20, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n\
         user:\n\
         \x20 - every: {{period: 500ms, do: [get: /]}}\n"
    )
}

/// Returns a scenario of users that open a WebSocket, and stay.
fn upgrades(target: &str, tls: &str) -> String {
    format!(
        "target: {target}/ws\n\
         {tls}\
         load: [{{ramp: {{to: 20, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n\
         user: [connect, stay]\n"
    )
}

/// A plain web server.
const NODE: &str = "node -e \"require('http').createServer((_, answer) => answer.end('ok'))\
                    .listen(8443, '127.0.0.1')\"";

/// A web server over TLS.
const NGINX: &str = "daemon off;
master_process off;
pid nginx.pid;
error_log stderr;
events {}
http {
    access_log off;
    server {
        listen 127.0.0.1:8443 ssl;
        ssl_certificate chain.pem;
        ssl_certificate_key key.pem;
        location / { return 200 ok; }
    }
}
";
