//! No trusted authority issued the server's certificate, or a certificate between them is missing.

use throng_measure::{CertificateFacts, Finding};

use super::tls_failures::{TlsCause, TlsFailures};
use super::{Rule, RuleTrait};
use crate::run_view::RunView;
use crate::target_tls::{address, shows_certificate};

pub(super) const RULE: Rule = Rule::new("certificate_issuer", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    let failures = TlsFailures::caused_by(run, TlsCause::UnknownIssuer)?;
    let target = &run.header.target;
    let (what, remedy) = match &failures.target.certificate {
        Some(it) if it.is_rooted && it.chain == 1 => {
            let save = shows_certificate(target, "-outform PEM").replace(" -noout", "");
            let what = format!("shows a certificate that issued itself ({})", it.subject);
            (what, format!("trust it: {save} > ca.pem, and `ca: ca.pem` in `tls`"))
        }
        Some(it) if it.is_rooted => {
            let what = format!("has a certificate of {}, which users do not trust", it.last_issuer);
            (what, format!("name the certificate of {} with `ca` in `tls`", it.last_issuer))
        }
        Some(it) => incomplete(it, target),
        None => {
            let what = "has a certificate of an authority that users do not trust".to_owned();
            (what, "name the certificate of the authority with `ca` in `tls`".to_owned())
        }
    };
    let text = format!("{target} {what}: TLS fails, with {}.", failures.share());
    Some(failures.finding(&RULE, text, remedy))
}

/// Returns the words for a chain that ends before an authority: the certificate of its last issuer
/// is missing, here or there.
fn incomplete(certificate: &CertificateFacts, target: &str) -> (String, String) {
    let CertificateFacts { chain, last_issuer, .. } = certificate;
    let sends = match chain {
        1 => "only its own certificate".to_owned(),
        chain => format!("a chain of {chain} certificates"),
    };
    let what = format!("sends {sends}, and that of its issuer is missing, {last_issuer}");
    let remedy = format!(
        "let the server send that too (cat server.pem intermediate.pem > chain.pem for nginx's \
         ssl_certificate, HAProxy's crt, Node's cert), and see what it sends: openssl s_client \
         -showcerts -connect {} </dev/null; or, if {last_issuer} is the authority itself, name its \
         certificate with `ca` in `tls`",
        address(target)
    );
    (what, remedy)
}

#[cfg(test)]
mod tests {
    use throng_measure::ErrorKind;

    use super::super::fixture::Run;
    use super::*;

    #[test]
    fn the_certificate_that_is_missing_is_named() {
        let of = |chain: u64, is_rooted: bool| {
            Run::failing_tls(ErrorKind::TlsUnknownIssuer, move |certificate| {
                (certificate.chain, certificate.is_rooted) = (chain, is_rooted);
            })
        };
        for (chain, is_rooted, says, remedy) in [
            (
                1,
                false,
                "sends only its own certificate, and that of its issuer is missing, CN=R11",
                "cat server.pem intermediate.pem",
            ),
            (2, false, "sends a chain of 2 certificates", "if CN=R11 is the authority itself"),
            (1, true, "shows a certificate that issued itself (CN=chat.example)", "`ca: ca.pem`"),
            (2, true, "of CN=R11, which users do not trust", "certificate of CN=R11 with `ca`"),
        ] {
            let run = of(chain, is_rooted);
            let found = run.speaks(&RULE);
            assert!(found.text.contains(says) && found.remedy.contains(remedy), "{found}");
            run.check_all(&[RULE.id]);
        }
    }
}
