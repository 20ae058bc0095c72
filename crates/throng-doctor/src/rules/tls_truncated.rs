//! The server ends connections over TLS without saying so.

use throng_measure::{Finding, Severity, Side};

use super::{FindingClass, Rule};
use crate::counted::part_of;
use crate::run_view::RunView;

/// A server that is killed, and one that closes early, end their connections in this way too: then
/// that is the cause.
pub(super) const RULE: Rule =
    Rule::new("tls_truncated", find).of_class(FindingClass::Note).follows_from(&[
        "server_closes_early",
        "server_lost",
        "server_restarted",
        "client_certificate",
    ]);

/// "Each party MUST send a 'close_notify' alert before closing its write side of the connection"
/// (RFC 8446 section 6.1). Without it, a cut looks like an end.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let cut = run.load_growth("tls_truncated", |load| load.tls_truncated)?;
    let all = run.load_growth("tls_ok", |load| load.tls_ok).map_or(0, |growth| growth.by());
    if cut.by() < CUT_MIN || cut.by() * CUT_PART < all {
        return None;
    }
    let text = format!(
        "{} ended {} without close_notify: an answer that ends with its connection may have been \
         cut, and no user can tell.",
        run.header.target,
        part_of(cut.by(), all.max(cut.by()), "connection", "connections")
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Noted)
        .with_evidence([cut]);
    Some(finding.remedied_by(
        "end TLS before the socket: socket.end(), not destroy() (Node), unwrap() before close() \
         (Python), SSL_shutdown (OpenSSL), conn.Close() of crypto/tls (Go); send content-length or \
         chunked, so that each answer shows its end; a proxy or balancer that cuts does it too",
    ))
}

/// Connections fewer than these may have been cut by chance, and so may fewer than one in so many.
const CUT_MIN: u64 = 10;
const CUT_PART: u64 = 20;

#[cfg(test)]
mod tests {
    use throng_measure::ErrorKind;

    use super::super::fixture::Run;
    use super::*;

    fn cutting(cut: u64) -> Run {
        Run::over_tls(|_| {}).loaded(move |load, second| {
            load.counters.tls_ok = 200 * second;
            load.counters.tls_truncated = cut * second;
        })
    }

    #[test]
    fn ends_without_a_word_are_noted() {
        let found = cutting(150).speaks(&RULE);
        assert!(
            found.text.starts_with(
                "wss://chat.example:443 ended 1.5k of 2k connections without close_notify"
            ),
            "{found}"
        );
        cutting(150).check_all(&[RULE.id]);
        cutting(5).is_silent(&RULE);
        cutting(0).is_silent(&RULE);
    }

    #[test]
    fn a_server_that_closes_early_is_the_cause() {
        let early = cutting(150)
            .loaded(|load, second| load.errors.add(ErrorKind::ClosedByPeer, 150 * second));
        early.check_all(&["server_closes_early", RULE.id]);
    }
}
