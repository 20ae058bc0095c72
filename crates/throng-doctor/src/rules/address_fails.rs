//! The target's name has several addresses, and one of them does not work.

use throng_measure::{AddressConnects, Evidence, Finding, Side};
use throng_report::render::count;

use super::{Rule, RuleTrait};
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("address_fails", find)
    .with(&[RuleTrait::ServerFault, RuleTrait::GoesOn])
    .explains(&[
        "server_lost",
        "handshakes_refused",
        "server_closes_early",
        "server_slow",
        "retransmits",
        "syn_queue_overflow",
        "accept_queue_overflow",
    ]);

/// Users are spread over the addresses in turn, so each has the same load.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let addresses = &run.samples().last()?.load()?.addresses;
    let (dead, alive): (Vec<_>, Vec<_>) = addresses.iter().partition(|one| fails(one));
    let first = *dead.first()?;
    let good = alive.into_iter().find(|one| works(one))?;
    let (kind, _) = first.failed.0.iter().max_by_key(|(_, count)| **count)?;
    let host = run.header.target.split("://").last().unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    let more = match dead.len() {
        1 => String::new(),
        more => format!(" and {} more of them", more - 1),
    };
    let text = format!(
        "{host} has {} addresses, and {}{more} does not work: {} of {} connects there failed \
         ({kind}), while {} of {} at {} succeeded.",
        addresses.len(),
        first.address,
        count(first.failed.total() as f64),
        count((first.failed.total() + first.ok) as f64),
        count(good.ok as f64),
        count((good.failed.total() + good.ok) as f64),
        good.address,
    );
    let at_ms = began_ms(run, &first.address)?;
    let finding = Finding::new(RULE.id, Side::Server, text).with_evidence([Evidence {
        counter: format!("load.addresses.{}.failed", first.address),
        from: 0.0,
        to: first.failed.total() as f64,
        at_ms,
    }]);
    Some(finding.remedied_by(format!(
        "start the server at {}, or take that address out of the name (DNS, /etc/hosts); to load \
         the other alone, write its address into --target",
        first.address
    )))
}

/// Reports whether most connects to an address fail.
fn fails(one: &AddressConnects) -> bool {
    let failed = one.failed.total();
    failed >= FAILED_MIN && failed > one.ok
}

/// Reports whether hardly any connect to an address fails.
fn works(one: &AddressConnects) -> bool {
    one.ok >= FAILED_MIN && one.failed.total().saturating_mul(WORKS_ONE_IN) <= one.ok
}

/// Returns the end of the first interval in which a connect to this address failed.
fn began_ms(run: &RunView<'_>, address: &str) -> Option<u64> {
    let failed = run.samples().iter().find(|sample| {
        let addresses = sample.load().map_or(&[][..], |load| &load.addresses[..]);
        addresses.iter().any(|one| one.address == address && one.failed.total() > 0)
    });
    failed.map(|sample| sample.interval.at_ms)
}

/// The fewest connects that show how an address does.
const FAILED_MIN: u64 = 3;

/// The share of failed connects, one in so many, at an address that works.
const WORKS_ONE_IN: u64 = 20;

#[cfg(test)]
mod tests {
    use throng_measure::Tally;

    use super::super::fixture::Run;
    use super::*;

    /// A run of two addresses, at which so many connects succeed and fail in each second.
    fn two(first: [u64; 2], second: [u64; 2]) -> Run {
        let mut run = Run::quiet().loaded(move |load, at| {
            let one = |address: &str, [ok, failed]: [u64; 2]| {
                let mut tally = Tally::default();
                tally.add("ECONNREFUSED", failed * at);
                AddressConnects { address: address.to_owned(), ok: ok * at, failed: tally }
            };
            load.connect_failed.add("ECONNREFUSED", (first[1] + second[1]) * at);
            load.addresses = vec![one("10.0.0.1:80", first), one("10.0.0.2:80", second)];
        });
        run.header.target = "ws://chat.test:80/ws".into();
        run
    }

    #[test]
    fn the_address_that_fails_is_named() {
        let run = two([20, 0], [0, 20]);
        assert_eq!(
            run.speaks(&RULE).first_sentence(),
            "chat.test:80 has 2 addresses, and 10.0.0.2:80 does not work: 200 of 200 connects \
             there failed (ECONNREFUSED), while 200 of 200 at 10.0.0.1:80 succeeded"
        );
        run.check_all(&["address_fails"]);
    }

    #[test]
    fn addresses_that_are_alike_are_not_it() {
        two([20, 0], [20, 0]).is_silent(&RULE);
        two([0, 20], [0, 20]).is_silent(&RULE);
        two([10, 10], [10, 10]).is_silent(&RULE);
        Run::quiet().is_silent(&RULE);
    }
}
