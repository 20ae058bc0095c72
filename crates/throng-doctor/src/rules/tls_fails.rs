//! Handshakes of TLS fail: the certificate, the version, or what listens there.

use throng_measure::{ErrorKind, Finding, Operation, Side};
use throng_report::render::count;

use super::{Rule, RuleTrait};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("tls_fails", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

/// The most frequent fault is named. What it is and what to do stand in the table of errors.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let growths = KINDS.iter().filter_map(|kind| Some((*kind, run.connect_failures(kind)?)));
    let (kind, failed) = growths.max_by_key(|(_, failed)| failed.by())?;
    let begun = run.summary.operation(Operation::Tls).map_or(0, |tls| tls.ok) + failed.by();
    if failed.by() * FAILED_PART < begun {
        return None;
    }
    let (fault, remedy) = kind.got().split_once(": ").unwrap_or((kind.got(), REMEDY));
    let text = format!(
        "TLS with {} fails: {} of {} handshakes ended with {fault}.",
        run.header.target,
        count(failed.by() as f64),
        count(begun as f64)
    );
    Some(Finding::new(RULE.id, Side::Server, text).with_evidence([failed]).remedied_by(remedy))
}

/// Faults that a handshake shows. A time-out and an early end have causes besides TLS.
const KINDS: &[ErrorKind] = &[
    ErrorKind::TlsExpired,
    ErrorKind::TlsWrongName,
    ErrorKind::TlsUnknownIssuer,
    ErrorKind::TlsCertificate,
    ErrorKind::TlsNoAgreement,
    ErrorKind::TlsAlert,
    ErrorKind::TlsNotSpoken,
    ErrorKind::TlsViolation,
];

/// One of so many handshakes must fail.
const FAILED_PART: u64 = 100;

const REMEDY: &str = "look into the server's log, and compare with `openssl s_client -connect`";

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    fn failing(kind: ErrorKind, each_second: u64) -> Run {
        let mut run = Run::quiet()
            .loaded(move |load, second| load.connect_failed.add(kind, each_second * second));
        run.header.target = "wss://chat.example".into();
        run
    }

    #[test]
    fn the_fault_and_its_remedy_are_those_of_the_table() {
        let run = failing(ErrorKind::TlsWrongName, 20);
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("TLS with wss://chat.example fails: "), "{found}");
        assert!(found.text.ends_with("ended with a certificate for other names."), "{found}");
        assert_eq!(found.remedy, "set `server_name` in `tls` to one of its names");
        run.check_all(&[RULE.id]);
        for kind in KINDS {
            failing(*kind, 20).speaks(&RULE);
        }
    }

    #[test]
    fn a_time_out_and_a_few_faults_have_other_causes() {
        failing(ErrorKind::TlsTimeout, 20).is_silent(&RULE);
        let few = failing(ErrorKind::TlsAlert, 1).loaded(|load, second| {
            load.counters.tls_ok = 1_000 * second;
            load.counters.tls_failed = second;
            load.counters.tls_started = 1_001 * second;
        });
        few.is_silent(&RULE);
    }
}
