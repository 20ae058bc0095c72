//! The two ends: `clients` and `servers`; and what is beside the load.

use std::collections::BTreeMap;
use std::ops::Range;

use super::element::Element;
use super::load::unit_free_number;
use crate::tls;
use crate::translator::Translator;
use crate::url::server_name;

/// The server that the scenario connects to.
#[derive(Debug)]
pub(super) struct TsungServer<'d> {
    pub(super) host: &'d str,
    pub(super) port: &'d str,
    /// True if tsung speaks WebSocket below whatever the session speaks.
    pub(super) is_websocket: bool,
    /// True if tsung reaches it over TLS.
    pub(super) is_secure: bool,
    /// Where the host stands.
    pub(super) span: Range<usize>,
}

impl<'d> TsungServer<'d> {
    /// Reads the servers, and returns the first one.
    pub(super) fn read(translator: &mut Translator<'_>, root: Element<'d>) -> Option<Self> {
        let list = root.child("servers").map(Element::elements);
        let servers: Vec<_> = list.into_iter().flatten().collect();
        if servers.is_empty() {
            let label = "expected `<servers><server host=\"...\" port=\"...\" type=\"tcp\"/>`";
            translator.mistake(&root.span(), "there is no server", label);
        }
        let mut read = Vec::new();
        for (index, server) in servers.into_iter().enumerate() {
            read.push(Self::read_one(translator, server, index == 0));
        }
        if read.is_empty() { None } else { read.swap_remove(0) }
    }

    fn read_one(
        translator: &mut Translator<'_>,
        server: Element<'d>,
        is_first: bool,
    ) -> Option<Self> {
        let host = translator.require(server, "host", "127.0.0.1");
        let port = translator.require(server, "port", "8080");
        let port = port.and_then(|port| {
            translator.integer(server, "port", 1..=65535).map(|_| port.value.trim())
        });
        let kind = translator.require(server, "type", "tcp");
        let kind = kind.and_then(|_| translator.word(server, "type", TYPES))?;
        unit_free_number(translator, server, "weight");
        let (host, port) = host.zip(port)?;
        if is_first {
            read_type(translator, server, kind);
        } else {
            let remedy = "a scenario has one target; make a scenario of each server, or give them \
                          one name: a name stands for all its addresses, in turn";
            translator.not_supported(&server.span(), "server", remedy);
        }
        Some(Self {
            host: host.value.trim(),
            port,
            is_websocket: kind.starts_with("websocket"),
            is_secure: ["ssl", "ssl6", "websocket_ssl"].contains(&kind),
            span: host.span,
        })
    }

    /// Returns `scheme://host:port`, over TLS if the server is.
    pub(super) fn address(&self, scheme: &'static str) -> String {
        let scheme = tls::scheme(scheme, self.is_secure);
        format!("{scheme}://{}", server_name(self.host, self.port))
    }

    /// Reports whether a URL with this scheme and this authority is one of the server.
    pub(super) fn is_at(&self, scheme: &str, authority: &str) -> bool {
        let (own, port) = if self.is_secure { ("https", "443") } else { ("http", "80") };
        let is_default = self.port == port && authority == self.host;
        scheme == own && (is_default || authority == format!("{}:{}", self.host, self.port))
    }
}

/// Reports what becomes of the type of the server.
fn read_type(translator: &mut Translator<'_>, server: Element<'_>, kind: &str) {
    let span = server.span();
    match kind {
        "tcp" | "tcp6" | "websocket" => translator.translated(&span, "server"),
        // What its connections become, `tls` reports.
        "ssl" | "ssl6" | "websocket_ssl" => {}
        kind => {
            let remedy = "throng speaks TCP, WebSockets and HTTP; the scenario uses TCP";
            translator.not_supported(&span, format!("server type {kind}"), remedy);
        }
    }
}

/// Reads the machines of the generator.
pub(super) fn read_clients(translator: &mut Translator<'_>, root: Element<'_>) {
    let mut first_line = BTreeMap::<&str, usize>::new();
    for client in root.child("clients").into_iter().flat_map(Element::elements) {
        let line = translator.line_of(client.span().start);
        let mut report = |translator: &mut Translator<'_>, construct: String, why| {
            let first = *first_line.entry(why).or_insert(line);
            let why = if first == line { why.to_owned() } else { format!("as in line {first}") };
            translator.not_needed(&client.span(), construct, why);
        };
        report(translator, "client".to_owned(), MACHINES);
        for (attribute, why) in CLIENT_ATTRIBUTES {
            if client.get(attribute).is_some() {
                report(translator, client.with(attribute), why);
            }
        }
        for attribute in ["maxusers", "cpu", "weight"] {
            unit_free_number(translator, client, attribute);
        }
        let addresses: Vec<_> = client.elements().collect();
        let Some(first) = addresses.first() else { continue };
        let values: Vec<_> = addresses
            .iter()
            .filter_map(|ip| translator.require(*ip, "value", "10.0.0.1").map(|found| found.value))
            .collect();
        let how = match first.name() {
            "iprange" => format!(
                "a scenario names no addresses of its machine; run it with `--source \
                 ADDRESS/PREFIX` for {}; throng takes them in turn, and not at random",
                values.join(", ")
            ),
            _ => format!(
                "a scenario names no addresses of its machine; run it with {}",
                source_flags(&values)
            ),
        };
        translator.approximated(&first.span(), first.name(), how);
        if let Some(scan) = addresses.iter().find(|ip| ip.get("scan").is_some()) {
            let how = "throng does not look for the addresses of an interface: name them";
            translator.approximated(&scan.span(), scan.with("scan"), how);
        }
    }
}

/// Returns the flags for these addresses.
fn source_flags(values: &[&str]) -> String {
    let shown = values.iter().take(SOURCES_SHOWN_MAX).map(|one| format!("--source {one}"));
    let flags = shown.collect::<Vec<_>>().join(" ");
    let rest = if values.len() > SOURCES_SHOWN_MAX { " and so on" } else { "" };
    format!("`{flags}`{rest}")
}

/// Reports the parts that are beside the load.
pub(super) fn read_others(translator: &mut Translator<'_>, root: Element<'_>) -> Vec<String> {
    for (attribute, why) in ROOT_ATTRIBUTES {
        if root.get(attribute).is_some() {
            translator.not_needed(&root.span(), root.with(attribute), *why);
        }
    }
    for monitor in root.child("monitoring").into_iter().flat_map(Element::elements) {
        let why = "throng records the counters of its own machine; for the server's, see \
                   docs/how-to/watch-a-server.md";
        translator.not_needed(&monitor.span(), "monitor", why);
    }
    let information = root.child("information");
    if let Some(information) = information {
        let why = "its texts are comments of the scenario";
        translator.not_needed(&information.span(), "information", why);
    }
    let texts = information.into_iter().flat_map(Element::elements).map(|element| {
        let words: Vec<_> = element.text().split_whitespace().map(str::to_owned).collect();
        words.join(" ")
    });
    texts.filter(|text| !text.is_empty()).collect()
}

const TYPES: &[&str] = words![
    "tcp" "tcp6" "ssl" "ssl6" "udp" "udp6" "erlang" "bosh" "bosh_ssl" "websocket" "websocket_ssl"
];

/// What becomes of the machines of the generator.
const MACHINES: &str = "one throng loads all cores of its machine; `throng run --agents` divides a \
                        run among several machines: see docs/fleet.md";

/// Attributes of a client that the scenario does without.
const CLIENT_ATTRIBUTES: &[(&str, &str)] = &[
    ("maxusers", "one throng holds millions of users"),
    ("cpu", "throng uses all cores; `throng run --cores N` sets their number"),
    ("weight", "it shares the users out among machines"),
    ("use_controller_vm", "throng has no other process"),
    ("type", "throng does not start processes on other machines"),
    ("batch", "throng does not ask a batch system for machines"),
    ("scan_intf", "throng does not look for the addresses of an interface"),
];

/// Attributes of the whole file that the scenario does without.
const ROOT_ATTRIBUTES: &[(&str, &str)] = &[
    ("loglevel", "throng has no log level"),
    ("version", "tsung ignores it"),
    ("dumptraffic", "`throng run --trace-user N` shows each message of a user"),
    ("backend", "the run file of throng has all numbers"),
];

/// Most addresses that a report lists.
const SOURCES_SHOWN_MAX: usize = 32;
