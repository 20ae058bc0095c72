//! Options of TLS that several tools have, and what the report says of each.

use throng_load::scenario::cipher_named;

use crate::source::Span;
use crate::tls::{TlsDraft, TlsVersionRead};
use crate::translator::Translator;

impl TlsDraft {
    /// Sets the lowest version that the file allows.
    pub(crate) fn set_min(
        &mut self,
        translator: &mut Translator<'_>,
        span: &Span,
        construct: &str,
        version: TlsVersionRead,
    ) {
        match version {
            TlsVersionRead::Known(bound) => {
                self.min = Some(bound);
                translator.translated(span, construct);
            }
            TlsVersionRead::Older => {
                let how = "the lowest version of a scenario is TLS 1.2";
                translator.approximated(span, construct, how);
            }
        }
    }

    /// Sets the highest version that the file allows.
    pub(crate) fn set_max(
        &mut self,
        translator: &mut Translator<'_>,
        span: &Span,
        construct: &str,
        version: TlsVersionRead,
    ) {
        match version {
            TlsVersionRead::Known(bound) => {
                self.max = Some(bound);
                translator.translated(span, construct);
            }
            TlsVersionRead::Older => translator.not_supported(span, construct, OLD),
        }
    }

    /// Sets the ciphers with these names, as far as throng has them.
    pub(crate) fn set_ciphers<'n>(
        &mut self,
        translator: &mut Translator<'_>,
        span: &Span,
        construct: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) {
        let mut unknown = Vec::new();
        for name in names {
            match cipher_named(name) {
                Some(known) if self.ciphers.contains(&known) => {}
                Some(known) => self.ciphers.push(known),
                None => unknown.push(name),
            }
        }
        let shown = unknown.iter().take(SHOWN_MAX).map(|name| format!("`{name}`"));
        let shown = shown.collect::<Vec<_>>().join(", ");
        let rest = if unknown.len() > SHOWN_MAX { " and others" } else { "" };
        if unknown.is_empty() {
            translator.translated(span, construct);
        } else if self.ciphers.is_empty() {
            let remedy = format!(
                "throng has none of them ({shown}{rest}): the scenario offers all that it has, \
                 AES-GCM and ChaCha20-Poly1305 with ECDHE"
            );
            translator.not_supported(span, construct, remedy);
        } else {
            let how = format!("throng does not have {shown}{rest}: the scenario offers the others");
            translator.approximated(span, construct, how);
        }
    }
}

/// Remedy where only versions before TLS 1.2 are allowed.
const OLD: &str = "throng speaks TLS 1.2 and 1.3: the scenario offers both";

/// Most names that a note lists.
const SHOWN_MAX: usize = 4;
