//! The flags of the runner: what each means here, or why its cases do not run.

use throng_tls::TlsVersion;

/// What a connection of a case does and expects.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub settings: Settings,
    pub port: u16,
    pub is_ipv6: bool,
    pub shim_id: u64,
    pub resume_count: usize,
    pub resumption_delay_secs: u64,
    /// Bytes arrive one by one.
    pub is_async: bool,
    pub writes_first: bool,
    pub writes_sizes: bool,
    pub shuts_down: bool,
    pub checks_close: bool,
    pub updates_keys: bool,
    pub updates_before_read: bool,
    pub expects_version: Option<u16>,
    pub expects_alpn: Option<String>,
    pub expects_retry: Option<bool>,
    pub expects_full: bool,
}

/// What an end is configured with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Settings {
    pub is_server: bool,
    pub chain: String,
    pub key: String,
    /// Authority of the runner's certificate.
    pub trust: String,
    pub verifies: bool,
    pub min: TlsVersion,
    pub max: TlsVersion,
    pub alpn: Vec<Vec<u8>>,
    pub host_name: String,
    pub has_tickets: bool,
}

/// Why a case does not run, or did not go well.
pub(crate) enum FlagError {
    NotOffered { flag: String, reason: &'static str },
    Failed(String),
}

/// What a flag does.
#[derive(Clone, Copy)]
enum Effect {
    Switch(fn(&mut Options)),
    Value(fn(&mut Options, &str)),
    /// The flag changes nothing that this crate has, or expects what it does not report.
    Nothing,
    /// The same, with a value.
    NothingOf,
}

impl Options {
    /// Reads the flags, for the first connection and for later ones.
    pub(crate) fn read(arguments: &[String]) -> Result<[Self; 2], FlagError> {
        let mut both = [Self::new(), Self::new()];
        let mut arguments = arguments.iter();
        while let Some(flag) = arguments.next() {
            let (applies, name) = if let Some(name) = flag.strip_prefix("-on-initial-") {
                (&mut both[..1], name)
            } else if let Some(name) = flag.strip_prefix("-on-resume-") {
                (&mut both[1..], name)
            } else {
                (&mut both[..], flag.trim_start_matches('-'))
            };
            let row = FLAGS.iter().find(|(known, _)| *known == name);
            let Some((_, effect)) = row else { return Err(unknown(flag, name)) };
            let value = match effect {
                Effect::Value(_) | Effect::NothingOf => arguments.next().map_or("", String::as_str),
                Effect::Switch(_) | Effect::Nothing => "",
            };
            for options in applies {
                match effect {
                    Effect::Switch(set) => set(options),
                    Effect::Value(set) => set(options, value),
                    Effect::Nothing | Effect::NothingOf => {}
                }
            }
        }
        for options in &both {
            options.settings.check()?;
        }
        Ok(both)
    }

    fn new() -> Self {
        Self {
            settings: Settings {
                is_server: false,
                chain: String::new(),
                key: String::new(),
                trust: String::new(),
                verifies: false,
                min: TlsVersion::V12,
                max: TlsVersion::V13,
                alpn: Vec::new(),
                host_name: "test".into(),
                has_tickets: true,
            },
            port: 0,
            is_ipv6: false,
            shim_id: 0,
            resume_count: 0,
            resumption_delay_secs: 0,
            is_async: false,
            writes_first: false,
            writes_sizes: false,
            shuts_down: false,
            checks_close: false,
            updates_keys: false,
            updates_before_read: false,
            expects_version: None,
            expects_alpn: None,
            expects_retry: None,
            expects_full: false,
        }
    }
}

impl Settings {
    fn check(&self) -> Result<(), FlagError> {
        match self.min <= self.max {
            true => Ok(()),
            false => Err(FlagError::NotOffered {
                flag: "-max-version".into(),
                reason: "TLS 1.0 and 1.1 are not offered",
            }),
        }
    }
}

/// Returns the reason why a flag without effect ends the case.
fn unknown(flag: &str, name: &str) -> FlagError {
    let is_meant = |pattern: &str| match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    };
    match NOT_OFFERED.iter().find(|(_, patterns)| patterns.iter().any(|it| is_meant(it))) {
        Some((reason, _)) => FlagError::NotOffered { flag: flag.to_owned(), reason },
        None => FlagError::Failed(format!("{flag} is in no table of flags.rs")),
    }
}

/// Returns the version of a number: 0x0303 is TLS 1.2.
fn version(number: &str) -> u16 {
    number.parse().unwrap_or_default()
}

/// Returns the names of a list of ALPN, each behind its length.
fn names(mut list: &[u8]) -> Vec<Vec<u8>> {
    let mut names = Vec::new();
    while let Some((length, rest)) = list.split_first() {
        let (name, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        names.push(name.to_vec());
        list = rest;
    }
    names
}

/// The flags that have an effect, and those that need none.
const FLAGS: &[(&str, Effect)] = &[
    ("port", Effect::Value(|it, value| it.port = value.parse().unwrap_or_default())),
    ("shim-id", Effect::Value(|it, value| it.shim_id = value.parse().unwrap_or_default())),
    ("ipv6", Effect::Switch(|it| it.is_ipv6 = true)),
    ("server", Effect::Switch(|it| it.settings.is_server = true)),
    ("cert-file", Effect::Value(|it, value| value.clone_into(&mut it.settings.chain))),
    ("key-file", Effect::Value(|it, value| value.clone_into(&mut it.settings.key))),
    ("trust-cert", Effect::Value(|it, value| value.clone_into(&mut it.settings.trust))),
    ("verify-peer", Effect::Switch(|it| it.settings.verifies = true)),
    ("require-any-client-certificate", Effect::Switch(|it| it.settings.verifies = true)),
    ("host-name", Effect::Value(|it, value| value.clone_into(&mut it.settings.host_name))),
    ("no-ticket", Effect::Switch(|it| it.settings.has_tickets = false)),
    ("no-tls12", Effect::Switch(|it| it.settings.min = TlsVersion::V13)),
    ("no-tls13", Effect::Switch(|it| it.settings.max = TlsVersion::V12)),
    (
        "min-version",
        Effect::Value(|it, value| {
            let is_13 = version(value) > 0x0303;
            it.settings.min = if is_13 { TlsVersion::V13 } else { TlsVersion::V12 };
        }),
    ),
    (
        "max-version",
        Effect::Value(|it, value| match version(value) {
            0x0304.. => it.settings.max = TlsVersion::V13,
            0x0303 => it.settings.max = TlsVersion::V12,
            // `Settings::check` refuses it.
            _ => (it.settings.min, it.settings.max) = (TlsVersion::V13, TlsVersion::V12),
        }),
    ),
    ("advertise-alpn", Effect::Value(|it, value| it.settings.alpn = names(value.as_bytes()))),
    ("select-alpn", Effect::Value(|it, value| it.settings.alpn = vec![value.into()])),
    (
        "resume-count",
        Effect::Value(|it, value| it.resume_count = value.parse().unwrap_or_default()),
    ),
    (
        "resumption-delay",
        Effect::Value(|it, value| it.resumption_delay_secs = value.parse().unwrap_or_default()),
    ),
    ("async", Effect::Switch(|it| it.is_async = true)),
    ("shim-writes-first", Effect::Switch(|it| it.writes_first = true)),
    ("write-different-record-sizes", Effect::Switch(|it| it.writes_sizes = true)),
    ("shim-shuts-down", Effect::Switch(|it| it.shuts_down = true)),
    ("check-close-notify", Effect::Switch(|it| it.checks_close = true)),
    ("key-update", Effect::Switch(|it| it.updates_keys = true)),
    ("key-update-before-read", Effect::Switch(|it| it.updates_before_read = true)),
    ("expect-version", Effect::Value(|it, value| it.expects_version = Some(version(value)))),
    ("expect-alpn", Effect::Value(|it, value| it.expects_alpn = Some(value.to_owned()))),
    ("expect-hrr", Effect::Switch(|it| it.expects_retry = Some(true))),
    ("expect-no-hrr", Effect::Switch(|it| it.expects_retry = Some(false))),
    ("expect-session-miss", Effect::Switch(|it| it.expects_full = true)),
    // Ways to call BoringSSL.
    ("implicit-handshake", Effect::Nothing),
    ("handshake-twice", Effect::Nothing),
    ("no-op-extra-handshake", Effect::Nothing),
    ("use-early-callback", Effect::Nothing),
    ("use-old-client-cert-callback", Effect::Nothing),
    ("read-size", Effect::NothingOf),
    ("handshaker-path", Effect::NothingOf),
    // What is never sent or asked for here.
    ("no-tls1", Effect::Nothing),
    ("no-tls11", Effect::Nothing),
    ("decline-alpn", Effect::Nothing),
    ("renegotiate-ignore", Effect::Nothing),
    ("forbid-renegotiation-after-handshake", Effect::Nothing),
    // What a handshake agrees and this crate does not report.
    ("expect-advertised-alpn", Effect::NothingOf),
    ("expect-client-ca-list", Effect::NothingOf),
    ("expect-curve-id", Effect::NothingOf),
    ("expect-extended-master-secret", Effect::Nothing),
    ("expect-no-session", Effect::Nothing),
    ("expect-no-session-id", Effect::Nothing),
    ("expect-peer-cert-file", Effect::NothingOf),
    ("expect-peer-signature-algorithm", Effect::NothingOf),
    ("expect-secure-renegotiation", Effect::Nothing),
    ("expect-server-name", Effect::NothingOf),
    ("expect-session-id", Effect::Nothing),
    ("expect-ticket-renewal", Effect::Nothing),
];

/// Why cases do not run, and their flags. A `*` at the end stands for any text.
const NOT_OFFERED: &[(&str, &[&str])] = &[
    ("DTLS is not offered", &["dtls"]),
    ("QUIC is not offered", &["quic*"]),
    (
        "0-RTT is off",
        &[
            "enable-early-data",
            "early-write-after-message",
            "expect-accept-early-data",
            "expect-early-data-reason",
            "expect-no-offer-early-data",
            "expect-reject-early-data",
            "expect-ticket-supports-early-data",
            "on-retry-*",
            "repeat-shim-initial-write",
            "shim-initial-write",
        ],
    ),
    (
        "a handshake is not handed over to another process",
        &["allow-hint-mismatch", "handshake-hints", "on-handshaker-*", "on-shim-*"],
    ),
    (
        "each end has one certificate here, and only of X.509",
        &[
            "accepted-peer-cert-types",
            "available-client-cert-types",
            "cert-properties",
            "delegated-credential",
            "expect-peer-certificate-type",
            "expect-peer-rpk-sha256",
            "expect-selected-credential",
            "must-match-issuer",
            "new-*",
            "pake-*",
            "psk*",
            "wrong-pake-role",
        ],
    ),
    ("groups are those of ring", &["curves*", "key-shares", "no-key-shares", "server-supported-*"]),
    (
        "ciphers and signatures are chosen by suite, not by BoringSSL's lists",
        &[
            "cipher",
            "cnsa*",
            "expect-cipher*",
            "expect-peer-verify-pref",
            "fips-*",
            "server-preference",
            "signing-prefs",
            "verify-prefs",
            "wpa-*",
        ],
    ),
    (
        "there are no callbacks",
        &[
            "expect-msg-callback",
            "expect-verify-result",
            "fail-cert-callback",
            "fail-ddos-callback",
            "fail-early-callback*",
            "install-ddos-callback",
            "reverify-on-resume",
            "use-custom-verify-callback",
            "use-ticket-*",
            "verify-fail",
        ],
    ),
    (
        "the extension is not offered",
        &[
            "advertise-empty-npn",
            "advertise-npn",
            "allow-unknown-alpn-protos",
            "alps-*",
            "application-settings",
            "available-trust-anchors",
            "defer-alps",
            "enable-channel-id",
            "enable-grease",
            "enable-signed-cert-timestamps",
            "expect-certificate-types",
            "expect-channel-id",
            "expect-next-proto",
            "expect-no-next-proto",
            "expect-no-peer-match-trust-anchor",
            "expect-not-resumable-across-names",
            "expect-peer-application-settings",
            "expect-peer-available-trust-anchors",
            "expect-peer-match-trust-anchor",
            "expect-resumable-across-names",
            "expect-server-sent-requested-padding",
            "expect-signed-cert-timestamps",
            "install-cert-compression-algs",
            "install-one-cert-compression-alg",
            "permute-extensions",
            "request-server-padding",
            "requested-trust-anchors",
            "resumption-across-names-enabled",
            "select-empty-*",
            "select-next-proto",
            "send-channel-id",
            "server-supports-padding",
            "signed-cert-timestamps",
            "srtp-profiles",
        ],
    ),
    (
        "OCSP is not offered",
        &[
            "decline-ocsp-callback",
            "enable-ocsp-stapling",
            "expect-ocsp-response",
            "fail-ocsp-callback",
            "ocsp-response",
            "set-ocsp-in-callback",
            "use-ocsp-callback",
        ],
    ),
    ("ECH is not offered", &["ech-*", "enable-ech-grease", "expect-ech-*", "expect-no-ech-*"]),
    (
        "no keying material is exported",
        &["export-*", "tls-unique", "use-export-context", "use-exporter-between-reads"],
    ),
    ("renegotiation is off", &["expect-total-renegotiations", "renegotiate-*"]),
    (
        "the API has no such call or option",
        &[
            "allow-false-start-without-alpn",
            "cbc-record-splitting",
            "expect-no-peer-cert",
            "expect-no-secure-renegotiation",
            "expect-no-server-name",
            "expect-sha256-client-cert",
            "expect-ticket-age-skew",
            "fallback-scsv",
            "false-start",
            "handshake-never-done",
            "jdk11-workaround",
            "max-cert-list",
            "max-send-fragment",
            "no-legacy-server-connect",
            "no-server-name-ack",
            "partial-write",
            "peek-then-read",
            "read-with-unfinished-write",
            "reject-alpn",
            "reject-unusable-ech-config",
            "renew-ticket",
            "retain-only-sha256-client-cert",
            "send-alert",
            "skip-ticket",
            "ticket-key",
            "use-client-ca-list",
        ],
    ),
];
