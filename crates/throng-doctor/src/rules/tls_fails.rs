//! Handshakes of TLS fail in a way that no other rule names.

use throng_measure::Finding;

use super::tls_failures::{TlsCause, TlsFailures};
use super::{Rule, RuleTrait};
use crate::run_view::RunView;
use crate::target_tls::address;

pub(super) const RULE: Rule = Rule::new("tls_fails", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

/// What it is and what to do stand in the table of errors.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let failures = TlsFailures::caused_by(run, TlsCause::Other)?;
    let target = &run.header.target;
    let usual = format!(
        "look into the server's log, and compare with: openssl s_client -connect {}",
        address(target)
    );
    let got = failures.kind.got();
    let (fault, remedy) = got.split_once(": ").unwrap_or((got, &usual));
    let fault = match failures.alert() {
        "" => fault.to_owned(),
        alert => format!("the alert {alert} of the server"),
    };
    let text = format!("TLS with {target} fails: {} ended with {fault}.", failures.share());
    let remedy = remedy.to_owned();
    Some(failures.finding(&RULE, text, remedy))
}

#[cfg(test)]
mod tests {
    use throng_measure::ErrorKind;

    use super::super::fixture::Run;
    use super::*;

    #[test]
    fn the_fault_and_its_remedy_are_those_of_the_table() {
        let run = Run::failing_tls(ErrorKind::TlsCertificate, |_| {});
        let found = run.speaks(&RULE);
        assert!(found.text.starts_with("TLS with wss://chat.example:443 fails: all "), "{found}");
        assert!(found.text.ends_with("ended with no valid certificate of a server."), "{found}");
        assert_eq!(found.remedy, "`verify: none` in `tls` takes any");
        run.check_all(&[RULE.id]);
    }

    #[test]
    fn a_time_out_and_a_few_faults_have_other_causes() {
        Run::failing_tls(ErrorKind::TlsTimeout, |_| {}).is_silent(&RULE);
        let few = Run::failing_tls(ErrorKind::TlsAlert, |_| {}).loaded(|load, second| {
            load.connect_failed = Default::default();
            load.connect_failed.add(ErrorKind::TlsAlert, second);
            load.counters.tls_ok = 1_000 * second;
            load.counters.tls_failed = second;
            load.counters.tls_started = 1_001 * second;
        });
        few.is_silent(&RULE);
    }
}
