//! The server's certificate is for other names than the one that users ask for.

use throng_measure::Finding;

use super::tls_failures::{TlsCause, TlsFailures};
use super::{Rule, RuleTrait};
use crate::run_view::RunView;
use crate::target_tls::shows_certificate;

pub(super) const RULE: Rule = Rule::new("certificate_name", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::DelaysNothing])
    .explains(&["server_closes_early"]);

fn find(run: &RunView<'_>) -> Option<Finding> {
    let failures = TlsFailures::caused_by(run, TlsCause::WrongName)?;
    let target = &run.header.target;
    let names = failures.target.certificate.as_ref().map(|it| it.names.as_slice());
    let names = names.unwrap_or_default();
    let asked = match failures.target.offer.name.as_str() {
        "" => "the name that users ask for",
        name => name,
    };
    let share = failures.share();
    let text = match names {
        [] => format!("{target} has no certificate for {asked}: TLS fails, with {share}."),
        _ => format!(
            "The certificate of {target} is for {}, not for {asked}: TLS fails, with {share}.",
            shown(names)
        ),
    };
    let name = names.first().map_or("NAME", String::as_str);
    let remedy = format!(
        "set `server_name: {name}` in `tls`, or use the name in the target; or issue a certificate \
         for {asked}; see its names: {}",
        shows_certificate(target, "-ext subjectAltName")
    );
    Some(failures.finding(&RULE, text, remedy))
}

/// Returns the first names.
fn shown(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let first = names[..names.len() - more].join(", ");
    if more == 0 { first } else { format!("{first} and others") }
}

/// Names in a sentence.
const NAMES_MAX: usize = 2;

#[cfg(test)]
mod tests {
    use throng_measure::ErrorKind;

    use super::super::fixture::Run;
    use super::*;

    #[test]
    fn both_names_are_told() {
        let run = Run::failing_tls(ErrorKind::TlsWrongName, |certificate| {
            certificate.names = ["a.example", "b.example", "c.example"].map(str::to_owned).into();
        });
        let found = run.speaks(&RULE);
        assert!(
            found.text.contains("is for a.example, b.example and others, not for chat.example"),
            "{found}"
        );
        assert!(found.remedy.starts_with("set `server_name: a.example` in `tls`"), "{found}");
        run.check_all(&[RULE.id]);
    }

    #[test]
    fn a_server_that_refuses_the_name_has_no_certificate_for_it() {
        let run = Run::failing_tls(ErrorKind::TlsAlert, |_| {});
        let run = run.seen_over_tls(|seen| {
            seen.certificate = None;
            seen.failure.as_mut().unwrap().alert = Some("unrecognized_name".to_owned());
        });
        let found = run.speaks(&RULE);
        assert!(found.text.contains("has no certificate for chat.example"), "{found}");
    }
}
