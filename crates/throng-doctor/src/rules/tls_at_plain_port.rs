//! Users speak TLS to a port that does not.

use throng_measure::Finding;

use super::tls_failures::{TlsCause, TlsFailures};
use super::{Rule, RuleTrait};
use crate::run_view::RunView;
use crate::target_tls::address;

pub(super) const RULE: Rule = Rule::new("tls_at_plain_port", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    let failures = TlsFailures::caused_by(run, TlsCause::NotTls)?;
    let target = &run.header.target;
    let first = failures.target.failure.as_ref().and_then(|it| it.first_bytes.as_deref());
    let answer = match first {
        Some(bytes) => format!("its answer begins with `{bytes}`"),
        None => "it sends back what is no answer to a handshake".to_owned(),
    };
    let share = failures.share();
    let text = format!("{target} does not speak TLS: {answer}. TLS fails, with {share}.");
    let remedy = format!(
        "if it is to be plain, use --target {}; if not, use the port that speaks TLS, or let this \
         one: listen PORT ssl (nginx), https.createServer (Node), bind :PORT ssl crt FILE \
         (HAProxy), throng serve --tls-cert FILE --tls-key FILE; check with: openssl s_client \
         -connect {}",
        plain(target),
        address(target)
    );
    Some(failures.finding(&RULE, text, remedy))
}

/// Returns the target without TLS.
fn plain(target: &str) -> String {
    let schemes = [("wss://", "ws://"), ("https://", "http://"), ("tls://", "tcp://")];
    let plain = schemes
        .into_iter()
        .find_map(|(secure, plain)| Some(format!("{plain}{}", target.strip_prefix(secure)?)));
    plain.unwrap_or_else(|| target.to_owned())
}

#[cfg(test)]
mod tests {
    use throng_measure::ErrorKind;

    use super::super::fixture::Run;
    use super::*;

    #[test]
    fn its_first_bytes_are_shown() {
        let run = Run::failing_tls(ErrorKind::TlsNotSpoken, |_| {}).seen_over_tls(|seen| {
            seen.certificate = None;
            seen.failure.as_mut().unwrap().first_bytes = Some("HTTP/".to_owned());
        });
        let found = run.speaks(&RULE);
        assert!(
            found.text.starts_with(
                "wss://chat.example:443 does not speak TLS: its answer begins with `HTTP/`. TLS"
            ),
            "{found}"
        );
        assert!(found.remedy.contains("--target ws://chat.example:443;"), "{found}");
        run.check_all(&[RULE.id]);
    }

    #[test]
    fn a_server_that_sends_back_the_handshake_speaks_no_tls_and_one_with_a_certificate_does() {
        let echo = Run::failing_tls(ErrorKind::TlsViolation, |_| {});
        echo.is_silent(&RULE);
        echo.seen_over_tls(|seen| seen.certificate = None).speaks(&RULE);
    }
}
