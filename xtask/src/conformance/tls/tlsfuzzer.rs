//! Scripts of tlsfuzzer against `throng serve`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::Deserialize;

use super::report::Report;
use crate::conformance::python::{environment, root, run_quietly};

/// Script, by its name without `test-`.
struct Script {
    name: &'static str,
    kind: Kind,
    arguments: &'static [&'static str],
    /// Probes that do not run, and why.
    excluded: &'static [(&'static str, &'static str)],
}

/// Kind of the server. Most scripts send a request of HTTP, also in parts, and want one answer.
#[derive(Clone, Copy)]
enum Kind {
    Chat,
    Echo,
}

/// Installs what the scripts need. Returns Python.
pub(super) fn install() -> Result<PathBuf, String> {
    let check = ["python", "-c", "import tlslite"];
    let venv = environment("tlsfuzzer", "tlsfuzzer-requirements.txt", &check)?;
    Ok(venv.join("bin/python"))
}

/// Runs all scripts.
pub(super) fn run(
    sources: &Path,
    python: &Path,
    throng: &Path,
    out: &Path,
) -> Result<Report, String> {
    let throng = root().join(throng);
    let chat = ScriptServer::start(&throng, "chat", out)?;
    let echo = ScriptServer::start(&throng, "echo", out)?;
    let mut report = Report::default();
    for script in SCRIPTS {
        let server = match script.kind {
            Kind::Chat => &chat,
            Kind::Echo => &echo,
        };
        let mut command = Command::new(python);
        command.arg(sources.join("scripts").join(format!("test-{}.py", script.name)));
        command.args(["-h", &server.host, "-p", &server.port]).args(script.arguments);
        for (probe, reason) in script.excluded {
            command.args(["-e", probe]);
            *report.not_run.entry((*reason).to_owned()).or_default() += 1;
        }
        let output = command.stdin(Stdio::null()).output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let file = out.join(format!("tlsfuzzer-{}.txt", script.name));
        std::fs::write(file, &*text).map_err(|error| error.to_string())?;
        let (passed, of) = (count(&text, "PASS"), count(&text, "TOTAL"));
        report.verdicts.insert(script.name.to_owned(), format!("{passed} of {of} PASS"));
        if !output.status.success() || passed == 0 {
            let failed = text.split_once("\nFAILED:").map_or("it did not end", |(_, names)| names);
            let error = String::from_utf8_lossy(&output.stderr);
            let error = error.lines().last().unwrap_or_default();
            report.failures.push(format!("{}: {} {error}", script.name, failed.trim()));
        }
    }
    Ok(report)
}

/// Returns the number behind a word of the summary of a script.
fn count(text: &str, word: &str) -> usize {
    let of_line = |line: &str| line.strip_prefix(word)?.strip_prefix(": ")?.parse().ok();
    text.lines().rev().find_map(of_line).unwrap_or(0)
}

/// Running server. It is killed when this is dropped.
struct ScriptServer {
    process: Child,
    host: String,
    port: String,
}

#[derive(Deserialize)]
struct Listening {
    addr: String,
}

impl ScriptServer {
    /// Starts a server with a key of RSA and one of ECDSA: the scripts offer different signatures.
    fn start(throng: &Path, kind: &str, out: &Path) -> Result<Self, String> {
        let mut command = Command::new(throng);
        command.args(["serve", kind, "--listen", "127.0.0.1:0", "--json"]);
        for (name, key) in [("rsa", "rsa:2048"), ("ecdsa", "ec")] {
            let (chain, secret) =
                (out.join(format!("{name}.pem")), out.join(format!("{name}.key")));
            let mut openssl = Command::new("openssl");
            openssl.args(["req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=localhost"]);
            openssl.args(["-addext", "subjectAltName=DNS:localhost", "-newkey", key]);
            if key == "ec" {
                openssl.args(["-pkeyopt", "ec_paramgen_curve:prime256v1"]);
            }
            run_quietly(openssl.arg("-keyout").arg(&secret).arg("-out").arg(&chain))
                .map_err(|error| format!("openssl cannot make a certificate: {error}"))?;
            command.arg("--tls-cert").arg(chain).arg("--tls-key").arg(secret);
        }
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{} does not start: {error}", throng.display()))?;
        let mut line = String::new();
        let output = process.stdout.take().ok_or("the server has no output")?;
        let read = BufReader::new(output).read_line(&mut line);
        let mut server = Self { process, host: String::new(), port: String::new() };
        read.map_err(|error| error.to_string())?;
        let listening: Listening = serde_json::from_str(&line)
            .map_err(|error| format!("the server says {line}: {error}"))?;
        let address = listening.addr.rsplit_once(':').ok_or("the server has no port")?;
        (server.host, server.port) = (address.0.to_owned(), address.1.to_owned());
        Ok(server)
    }
}

impl Drop for ScriptServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

const RUSTLS_ALERT: &str = "rustls ends the handshake with another alert";

const SCRIPTS: &[Script] = &[
    Script { name: "fuzzed-ciphertext", kind: Kind::Chat, arguments: TLS12, excluded: &[] },
    Script { name: "zero-length-data", kind: Kind::Chat, arguments: TLS12, excluded: &[] },
    Script {
        name: "aes-gcm-nonces",
        kind: Kind::Chat,
        // The first and the last probe, which cannot be left out, offer CBC only.
        arguments: &["-d", "-x", "sanity", "-X", "handshake_failure"],
        excluded: &[],
    },
    Script {
        name: "record-layer-fragmentation",
        kind: Kind::Chat,
        arguments: TLS12,
        excluded: &[(
            "maximum size: max fragment - 65385B extension",
            "a peer may send 64 KiB in a handshake",
        )],
    },
    Script {
        name: "ccs",
        kind: Kind::Chat,
        arguments: TLS12,
        excluded: &[("two bytes long CCS", RUSTLS_ALERT)],
    },
    Script {
        name: "tls13-keyupdate",
        kind: Kind::Chat,
        arguments: &["-n", "0", "--coalescing"],
        excluded: &[(
            "app data split, conversation with KeyUpdate msg",
            "a request for keys is answered before the next data, for which the probe does not ask",
        )],
    },
    Script { name: "tls13-record-padding", kind: Kind::Chat, arguments: &[], excluded: &[] },
    Script { name: "tls13-conversation", kind: Kind::Chat, arguments: &[], excluded: &[] },
    Script { name: "tls13-unencrypted-alert", kind: Kind::Chat, arguments: &[], excluded: &[] },
    Script { name: "tls13-ccs", kind: Kind::Chat, arguments: &[], excluded: &[] },
    Script { name: "tls13-count-tickets", kind: Kind::Chat, arguments: &[], excluded: &[] },
    Script { name: "tls13-lengths", kind: Kind::Echo, arguments: &[], excluded: &[] },
    Script {
        name: "tls13-record-layer-limits",
        kind: Kind::Chat,
        arguments: &[],
        excluded: &[
            (
                "max size payload (2**14) of Finished msg, with 16348 bytes of left padding, \
                 cipher TLS_AES_128_GCM_SHA256",
                RUSTLS_ALERT,
            ),
            (
                "max size payload (2**14) of Finished msg, with 16348 bytes of left padding, \
                 cipher TLS_CHACHA20_POLY1305_SHA256",
                RUSTLS_ALERT,
            ),
        ],
    },
    Script {
        name: "tls13-zero-content-type",
        kind: Kind::Chat,
        arguments: &[],
        excluded: &[
            ("zero content type during handshake", RUSTLS_ALERT),
            ("zero content type with padding during handshake", RUSTLS_ALERT),
        ],
    },
    Script {
        name: "tls13-zero-length-data",
        kind: Kind::Chat,
        arguments: &[],
        excluded: &[
            ("zero-length app data interleaved in handshake", RUSTLS_ALERT),
            ("zero-len app data with padding interleaved in handshake", RUSTLS_ALERT),
            ("zero-len app data with large padding interleaved in handshake", RUSTLS_ALERT),
        ],
    },
    Script {
        name: "tls13-finished-plaintext",
        kind: Kind::Chat,
        arguments: &[],
        excluded: &[("Unencrypted Finished message", RUSTLS_ALERT)],
    },
    Script {
        name: "tls13-empty-alert",
        kind: Kind::Chat,
        arguments: &[],
        excluded: &[
            ("empty alert with no padding using handshake keys", RUSTLS_ALERT),
            ("empty alert with 2 bytes of padding using handshake keys", RUSTLS_ALERT),
            ("empty alert with 5 bytes of padding using handshake keys", RUSTLS_ALERT),
            ("empty alert with 30 bytes of padding using handshake keys", RUSTLS_ALERT),
        ],
    },
    Script {
        name: "tls13-session-resumption",
        kind: Kind::Chat,
        arguments: &["--tls1.2-cipher", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
        excluded: &[("session resumption - PSK_ONLY", "a session is resumed with a new key only")],
    },
    Script {
        name: "tls13-connection-abort",
        kind: Kind::Chat,
        arguments: &[],
        excluded: &[("After NewSessionTicket", "the client offers no way to use a ticket")],
    },
];

/// Scripts of TLS 1.2 offer the key exchange of RSA if nothing else is asked for.
const TLS12: &[&str] = &["-C", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"];
