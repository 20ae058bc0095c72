//! `tls`: how the connections to a target over TLS are secured.

use std::ops::Range;
use std::path::Path;

use throng_base::input_file::{self, CREDENTIALS_BYTES_MAX};
use throng_base::units::nearest;
use throng_tls::{
    Cipher, PemFile, TlsClientConfig, TlsClientOptions, TlsConfigError, TlsVersion, TrustAnchors,
};

use super::client_files::{self, ClientFiles};
use super::inputs::CarriedFile;
use super::node::{Kind, Node};
use super::reader::{Fields, Reader};
use super::target::Target;

/// How the connections to a target over TLS are secured.
#[derive(Clone, Debug, Default)]
pub struct TlsSettings {
    /// Path and text of the file with the authorities to trust; `None` for those of the machine.
    ca: Option<(String, CarriedFile)>,
    /// Place of `verify: none`: any certificate is taken for the right one.
    pub(crate) unverified_at: Option<Range<usize>>,
    /// Name that is sent, and that the certificate must be for; `None` for that of the target.
    server_name: Option<String>,
    min: Option<TlsVersion>,
    max: Option<TlsVersion>,
    /// Ciphers, best first; `None` for all.
    ciphers: Option<Vec<Cipher>>,
    /// Protocols of ALPN, best first; `None` for that of the scheme.
    alpn: Option<Vec<String>>,
    /// Certificates that the users show; `None` if they have none.
    pub(crate) client: Option<ClientFiles>,
    /// Share of the connections that offer to resume a session; `None` for all.
    resume: Option<f64>,
    /// True if a user resumes its own sessions alone.
    tickets_of_user: bool,
}

impl TlsSettings {
    /// Returns the share of the connections that offer to resume a session, if there is one.
    pub(crate) fn resume_share(&self) -> f64 {
        self.resume.unwrap_or(1.0)
    }

    /// Reports whether a user resumes its own sessions alone. A session stands for the certificate
    /// that was shown when it began.
    pub(crate) fn has_own_sessions(&self) -> bool {
        self.tickets_of_user || self.client.as_ref().is_some_and(|files| !files.is_one())
    }

    /// Returns the options of connections to `target`.
    pub(crate) fn options(&self, target: &Target) -> TlsClientOptions {
        let name = self.server_name.as_deref().unwrap_or_else(|| target.server_name());
        let mut options = TlsClientOptions::new(name);
        options.trust = match &self.ca {
            _ if self.unverified_at.is_some() => TrustAnchors::Unverified,
            Some((path, text)) => TrustAnchors::File(PemFile::new(path, text.as_ref())),
            None => TrustAnchors::System,
        };
        options.min = self.min.unwrap_or(options.min);
        options.max = self.max.unwrap_or(options.max);
        if let Some(ciphers) = &self.ciphers {
            options.ciphers.clone_from(ciphers);
        }
        if self.resume_share() == 0.0 {
            options.tickets_max = 0;
        } else if self.has_own_sessions() {
            options.tickets_max = OWN_TICKETS_MAX;
            options.keeps_newest_ticket = true;
        }
        let bytes = |name: &str| name.as_bytes().to_vec();
        options.alpn = match &self.alpn {
            Some(names) => names.iter().map(|name| bytes(name)).collect(),
            None => target.scheme.rules().alpn.into_iter().map(bytes).collect(),
        };
        options
    }
}

/// Returns the name in a scenario of the cipher with this name: that of IANA, of OpenSSL, of rustls
/// or of Go. `None` if it is not supported.
pub fn cipher_named(name: &str) -> Option<&'static str> {
    Cipher::named(name).map(|cipher| cipher.name)
}

/// Reads the key `tls` of a scenario. Paths are relative to `folder`.
pub(super) fn read(
    reader: &mut Reader<'_>,
    scenario: &Fields<'_>,
    folder: &Path,
    target: Option<&Target>,
) -> Option<TlsSettings> {
    let Some(node) = scenario.get("tls") else { return Some(TlsSettings::default()) };
    if let Some(target) = target.filter(|target| !target.is_secure) {
        let secure = Target { is_secure: true, ..target.clone() };
        let label = format!("the target is plain: over TLS it is `{}://`", secure.scheme_name());
        reader.error(scenario.key_span("tls"), "`tls` needs a target over TLS", label);
        return None;
    }
    let fields = reader.fields(node, "`tls`", &KEYS)?;
    let versions = [("1.2", TlsVersion::V12), ("1.3", TlsVersion::V13)];
    let mut version = |key: &str| match fields.get(key) {
        None => Some(None),
        Some(node) => reader.one_of(node, &format!("`{key}`"), &versions).map(Some),
    };
    let (min, max) = (version("min"), version("max"));
    let unverified_at = match fields.get("verify") {
        None => Some(None),
        Some(node) => reader
            .one_of(node, "`verify`", &[("none", true), ("full", false)])
            .map(|is_none| is_none.then(|| node.span.clone())),
    };
    let ciphers =
        fields.get("ciphers").map_or(Some(None), |node| read_ciphers(reader, node).map(Some));
    let alpn = fields.get("alpn").map_or(Some(None), |node| read_alpn(reader, node).map(Some));
    let server_name = match fields.get("server_name") {
        None => Some(None),
        Some(node) => reader
            .text(node, "`server_name`", "a host name such as chat.example")
            .map(|name| Some(name.to_owned())),
    };
    let resume = match fields.get("resume") {
        None => Some(None),
        Some(node) => read_resume(reader, node).map(Some),
    };
    let client = fields
        .get("client")
        .map_or(Some(None), |node| client_files::read(reader, node, folder).map(Some));
    let tickets_of_user = match fields.get("tickets") {
        None => Some(false),
        Some(node) => reader.one_of(node, "`tickets`", &[("user", true), ("core", false)]),
    };
    let ca = fields.get("ca").map_or(Some(None), |node| read_ca(reader, node, folder).map(Some));
    let settings = TlsSettings {
        ca: ca?,
        unverified_at: unverified_at?,
        server_name: server_name?,
        min: min?,
        max: max?,
        ciphers: ciphers?,
        alpn: alpn?,
        client: client?,
        resume: resume?,
        tickets_of_user: tickets_of_user?,
    };
    if settings.unverified_at.is_some() && settings.ca.is_some() {
        let title = "`ca` has no meaning with `verify: none`";
        reader.error(fields.key_span("ca"), title, "leave out one of them");
        return None;
    }
    check(reader, &fields, settings, target?)
}

/// Reads the file with the authorities.
fn read_ca(reader: &mut Reader<'_>, node: &Node, folder: &Path) -> Option<(String, CarriedFile)> {
    let text = reader.text(node, "`ca`", "the path of a file such as test-ca.pem")?;
    let path = folder.join(text);
    let opened = reader.inputs.open(&path);
    match opened.and_then(|file| input_file::read_all(file, CREDENTIALS_BYTES_MAX)) {
        Ok(bytes) => {
            let name = path.display().to_string();
            reader.files.push(path);
            Some((name, bytes.into()))
        }
        Err(error) => {
            let title = format!("cannot use `{text}`: {error}");
            let label = "a PEM file with the certificate of the authority";
            reader.error(node.span.clone(), title, label);
            None
        }
    }
}

fn read_resume(reader: &mut Reader<'_>, node: &Node) -> Option<f64> {
    let share = reader.quantity(node, "`resume`", throng_base::units::parse_share)?;
    if share > 1.0 {
        reader.error(node.span.clone(), "`resume` is a share of the connects", "at most 100%");
        return None;
    }
    Some(share)
}

fn read_alpn(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<String>> {
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, "`alpn`", "a list of protocols such as [http/1.1]");
        return None;
    };
    let read = |item| reader.text(item, "a protocol in `alpn`", "a name such as http/1.1");
    let names: Vec<_> = items.iter().map(read).collect();
    names.into_iter().map(|name| name.map(str::to_owned)).collect()
}

fn read_ciphers(reader: &mut Reader<'_>, node: &Node) -> Option<Vec<Cipher>> {
    let expected = "a list of ciphers such as [TLS_AES_128_GCM_SHA256]";
    let Kind::List(items) = &node.kind else {
        reader.wrong_kind(node, "`ciphers`", expected);
        return None;
    };
    if items.is_empty() {
        reader.error(node.span.clone(), "`ciphers` is empty", format!("expected {expected}"));
        return None;
    }
    let (mut ciphers, mut is_wrong) = (Vec::new(), false);
    for item in items {
        match read_cipher(reader, item) {
            Some(cipher) if ciphers.contains(&cipher) => {}
            Some(cipher) => ciphers.push(cipher),
            None => is_wrong = true,
        }
    }
    (!is_wrong).then_some(ciphers)
}

fn read_cipher(reader: &mut Reader<'_>, node: &Node) -> Option<Cipher> {
    let name = reader.text(node, "a name in `ciphers`", "the name of a cipher")?;
    let cipher = Cipher::named(name);
    if cipher.is_none() {
        let label = match nearest(name, Cipher::PREFERENCE.iter().map(|cipher| cipher.name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "not among AES-GCM and ChaCha20-Poly1305 with ECDHE".to_owned(),
        };
        let title = format!("the cipher `{name}` is not supported");
        let names = Cipher::PREFERENCE.map(|cipher| format!("`{}`", cipher.name)).join(", ");
        let mistake = reader.error(node.span.clone(), title, label);
        mistake.help = Some(format!("expected one of: {names}, or its name in OpenSSL"));
    }
    cipher
}

/// Checks that connections can be made with the settings.
fn check(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    settings: TlsSettings,
    target: &Target,
) -> Option<TlsSettings> {
    let mut options = settings.options(target);
    if settings.ca.is_none() {
        // Only a run needs the authorities of the machine.
        options.trust = TrustAnchors::Unverified;
    }
    let Err(error) = TlsClientConfig::new(&options) else { return Some(settings) };
    let key = match &error {
        TlsConfigError::BadName { .. } => "server_name",
        TlsConfigError::NoVersion if settings.min.is_some() || settings.max.is_none() => "min",
        TlsConfigError::NoVersion => "max",
        _ => "ca",
    };
    let span = fields.get(key).map_or_else(|| fields.key_span(key), |node| node.span.clone());
    reader.error(span, error.to_string(), format!("see `{key}`"));
    None
}

const KEYS: [&str; 10] =
    ["ca", "verify", "server_name", "min", "max", "ciphers", "alpn", "client", "resume", "tickets"];

/// Most tickets that a core keeps where each user has its own.
const OWN_TICKETS_MAX: usize = 65_536;
