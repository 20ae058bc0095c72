//! The server signs with RSA, which costs it more than ECDSA would.

use throng_measure::{Finding, Severity, Side};
use throng_report::render::count;

use super::{FindingClass, Rule};
use crate::run_view::RunView;
use crate::target_tls::target_tls;

pub(super) const RULE: Rule = Rule::new("rsa_certificate", find).of_class(FindingClass::Note);

/// The price is that of the busiest interval: the full handshakes in it, by what a signature costs
/// more. A resumed handshake has none.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let certificate = target_tls(run).certificate.filter(|it| it.has_rsa_key())?;
    let bits: f64 = certificate.key.strip_prefix("RSA-")?.parse().ok()?;
    let full = run
        .load_growth("full TLS handshakes", |load| load.tls_ok.saturating_sub(load.tls_resumed))?;
    let per_s = full_per_s(run);
    let price_us = SIGNATURE_2048_US * (bits / 2_048.0).powi(3);
    let cpus = per_s * price_us / 1e6;
    if cpus < PRICE_CPUS_MIN {
        return None;
    }
    let text = format!(
        "The key of {} is {}: each full handshake costs the server about {:.1} ms of CPU time more \
         than with ECDSA, {cpus:.2} CPUs at {} a second.",
        run.header.target,
        certificate.key,
        price_us / 1_000.0,
        count(per_s)
    );
    let finding = Finding::new(RULE.id, Side::Server, text)
        .with_severity(Severity::Noted)
        .with_confidence(0.8)
        .with_evidence([full]);
    Some(finding.remedied_by(REMEDY))
}

/// Returns the full handshakes a second in the interval that has the most.
fn full_per_s(run: &RunView<'_>) -> f64 {
    let rates = run.steps().filter_map(|(before, now)| {
        let grown = now.load()?.counters.since(&before.load()?.counters);
        let full = grown.tls_ok.saturating_sub(grown.tls_resumed);
        Some(full as f64 * 1_000.0 / now.interval.span_ms as f64)
    });
    rates.fold(0.0, f64::max)
}

/// Time of a signature with RSA-2048 beyond that of one with ECDSA P-256, in microseconds of a
/// core: 0.27 ms with rustls and OpenSSL on a Xeon of 2021, 0.6 ms on a virtual CPU of a cloud. It
/// grows with the third power of the length.
const SIGNATURE_2048_US: f64 = 300.0;

/// The price that is worth a change.
const PRICE_CPUS_MIN: f64 = 0.05;

const REMEDY: &str = "make an ECDSA key and have it certified: openssl ecparam -name prime256v1 \
                      -genkey -noout -out key.pem (certbot renew --key-type ecdsa); for clients \
                      that know RSA alone, nginx (ssl_certificate twice) and HAProxy (crt \
                      FILE.ecdsa, FILE.rsa) show either";

#[cfg(test)]
mod tests {
    use super::super::fixture::Run;
    use super::*;

    fn of(key: &'static str, full_per_s: u64, resumed_per_s: u64) -> Run {
        Run::over_tls(|certificate| certificate.key = key.to_owned()).loaded(move |load, second| {
            load.counters.tls_ok = (full_per_s + resumed_per_s) * second;
            load.counters.tls_resumed = resumed_per_s * second;
            load.counters.tls_offered = load.counters.tls_resumed;
        })
    }

    #[test]
    fn the_price_is_that_of_full_handshakes_in_a_second() {
        let found = of("RSA-4096", 60, 500).speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The key of wss://chat.example:443 is RSA-4096: each full handshake costs the server \
             about 2.4 ms of CPU time more than with ECDSA, 0.14 CPUs at 60 a second"
        );
        of("RSA-4096", 60, 500).check_all(&[RULE.id]);
        of("RSA-2048", 200, 0).speaks(&RULE);
    }

    #[test]
    fn another_key_and_few_signatures_are_none() {
        of("ECDSA P-256", 5_000, 0).is_silent(&RULE);
        of("RSA-4096", 10, 5_000).is_silent(&RULE);
        of("RSA-2048", 100, 0).is_silent(&RULE);
    }
}
