//! What a file says about TLS, and the block `tls` of the scenario.

use throng_load::scenario::Scheme;

use crate::text::escape;
use crate::yaml::Yaml;

/// TLS of the connections to a target.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsDraft {
    /// True if the tool takes any certificate.
    pub(crate) is_unverified: bool,
    /// Name that is sent, if it is not that of the target.
    pub(crate) server_name: Option<String>,
    pub(crate) min: Option<TlsBound>,
    pub(crate) max: Option<TlsBound>,
    /// Ciphers by their names in a scenario, best first; all if there are none.
    pub(crate) ciphers: Vec<&'static str>,
    /// Files of the certificate that each connection shows, and of its key.
    pub(crate) client: Option<(String, String)>,
    /// True if the tool makes a full handshake each time.
    pub(crate) is_always_full: bool,
}

/// A version of TLS that a scenario can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TlsBound {
    V12,
    V13,
}

/// A version of TLS in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TlsVersionRead {
    /// One older than TLS 1.2, which throng does not speak.
    Older,
    Known(TlsBound),
}

impl TlsDraft {
    /// Returns the block `tls`; `None` if all of it is the scenario's default.
    pub(crate) fn write(&self) -> Option<Yaml> {
        let version = |bound: TlsBound| Yaml::text(bound.text());
        let mut entries: Vec<(&str, Yaml)> = Vec::new();
        entries.extend(self.is_unverified.then(|| ("verify", Yaml::plain("none"))));
        entries.extend(self.server_name.as_ref().map(|name| ("server_name", Yaml::text(name))));
        entries.extend(self.min.map(|min| ("min", version(min))));
        entries.extend(self.max.map(|max| ("max", version(max))));
        if !self.ciphers.is_empty() {
            let ciphers = self.ciphers.iter().map(|name| Yaml::text(*name));
            entries.push(("ciphers", Yaml::list(ciphers)));
        }
        if let Some((cert, key)) = &self.client {
            let file = |path: &str| Yaml::text(escape(path));
            let key = (key != cert).then(|| ("key", file(key)));
            entries.push(("client", Yaml::map([("cert", file(cert))].into_iter().chain(key))));
        }
        entries.extend(self.is_always_full.then(|| ("resume", Yaml::plain("0%"))));
        (!entries.is_empty()).then(|| Yaml::map(entries))
    }
}

impl TlsBound {
    const fn text(self) -> &'static str {
        match self {
            Self::V12 => "1.2",
            Self::V13 => "1.3",
        }
    }
}

impl TlsVersionRead {
    /// Reads the name of a version, such as `tls1.2`, `tlsv1.2`, `TLSv1.2` or `TLS_1_2`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let name = name.trim().to_ascii_lowercase().replace('_', ".");
        let is_old = name.starts_with("ssl");
        let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let prefix = &name[..name.len() - number.len()];
        match (prefix.trim_end_matches('.'), number) {
            ("ssl" | "sslv" | "tls" | "tlsv", _) if is_old => Some(Self::Older),
            ("tls" | "tlsv", "1" | "1.0" | "1.1") => Some(Self::Older),
            ("tls" | "tlsv", "1.2") => Some(Self::Known(TlsBound::V12)),
            ("tls" | "tlsv", "1.3") => Some(Self::Known(TlsBound::V13)),
            _ => None,
        }
    }
}

/// Returns the scheme of a target over TLS in the place of the plain one.
pub(crate) fn scheme(plain: &'static str, is_secure: bool) -> &'static str {
    let found = Scheme::ALL.iter().find(|scheme| is_secure && scheme.as_str() == plain);
    found.map_or(plain, |scheme| scheme.over_tls())
}

/// Remedy for a certificate of a client that a scenario cannot have as it is.
pub(crate) const CLIENT_FILES: &str = "write the certificate and its key, without a password, into \
                                       files: `tls: {client: {cert: FILE, key: FILE}}`";

/// Note of what a plain target needs not.
pub(crate) const PLAIN: &str = "the target is not over TLS";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_many_names() {
        use TlsVersionRead::{Known, Older};
        for (name, version) in [
            ("tls1.2", Some(Known(TlsBound::V12))),
            ("'tlsv1.3'".trim_matches('\''), Some(Known(TlsBound::V13))),
            ("TLSv1.2", Some(Known(TlsBound::V12))),
            ("TLS_1_3", Some(Known(TlsBound::V13))),
            ("tlsv1", Some(Older)),
            ("TLS_1_0", Some(Older)),
            ("SSL_3_0", Some(Older)),
            ("sslv3", Some(Older)),
            ("tls2", None),
            ("", None),
        ] {
            assert_eq!(TlsVersionRead::named(name), version, "{name}");
        }
    }
}
