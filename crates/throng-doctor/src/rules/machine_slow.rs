//! A few machines of a fleet were slow, and the others were not: so it is not the server.

use throng_measure::{Evidence, Finding, Grade, Severity, Side};
use throng_report::render::micros;

use super::{FindingClass, Rule, RuleTrait};
use crate::cpus::{FULL_SHARE, whole_percent};
use crate::fleet_machines::{SlowMachines, SlowSign};
use crate::impact::impact;
use crate::run_view::RunView;

pub(super) const RULE: Rule = Rule::new("machine_slow", find)
    .of_class(FindingClass::Note)
    .with(&[RuleTrait::OnlyDelays])
    .explains(&[
        "generator_saturated",
        "server_stalled",
        "latency_grows",
        "slow_instance",
        "server_at_capacity",
        "server_slow",
        "turns_missed",
    ]);

/// All machines load the same server at the same time. If it were slow, all of them would see it.
fn find(run: &RunView<'_>) -> Option<Finding> {
    let slow = SlowMachines::of(run)?;
    let is_server_slow = others_wait(run, &slow);
    if slow.sign == SlowSign::Latency && is_server_slow {
        return None;
    }
    let what = match slow.sign {
        SlowSign::Lag => "it was late by",
        SlowSign::Latency => "its users waited for",
    };
    let what = match slow.names.len() {
        1 => what.to_owned(),
        _ => what.replace("it was", "they were").replace("its", "their"),
    };
    let (verb, not) = match (slow.names.len(), is_server_slow) {
        (1, false) => ("was", ", not the server"),
        (1, true) => ("was", ""),
        (_, false) => ("were", ", not the server"),
        (_, true) => ("were", ""),
    };
    let subject = slow.describe();
    let text = format!(
        "{} {verb} slow{not}: {what} {} (p99 of the worst interval), the others {}. {}",
        capital(&subject),
        micros(slow.worst_us),
        micros(slow.others_us),
        cause(&slow)
    );
    let is_felt = run.summary.generator.lag_grade != Grade::Valid || impact(run).is_some();
    let name = slow.names.first()?;
    let field = match slow.sign {
        SlowSign::Lag => "lag_us_p99",
        SlowSign::Latency => "message_us_p99",
    };
    let finding = Finding::new(RULE.id, Side::Client, text)
        .with_severity(match is_felt && !is_server_slow {
            true => Severity::Slowed,
            false => Severity::Noted,
        })
        .with_confidence(0.9)
        .with_evidence([Evidence {
            counter: format!("load.machines.{name}.{field}"),
            from: slow.others_us as f64,
            to: slow.worst_us as f64,
            at_ms: slow.first_ms,
        }])
        .remedied_by(remedy(&slow));
    Some(Finding { machines: slow.names, ..finding })
}

/// Reports whether the users of the other machines waited for long, too.
fn others_wait(run: &RunView<'_>, slow: &SlowMachines) -> bool {
    let others = || {
        let samples = run.samples().iter().filter_map(|sample| sample.load());
        let machines = samples.flat_map(|load| &load.machines);
        machines.filter(|machine| !machine.lost && !slow.names.contains(&machine.name))
    };
    let waits = others().filter_map(|machine| machine.message_us_p99.or(machine.connect_us_p99));
    let (mut all, mut long) = (0, 0);
    for us in waits {
        all += 1;
        long += u64::from(us > SLOW_US);
    }
    long * LONG_ONE_IN >= all && long > 0
}

/// Returns what the slow machines lacked, as a sentence.
fn cause(slow: &SlowMachines) -> String {
    let SlowMachines { cpus_busy, busiest_core, .. } = *slow;
    if let Some(share) = cpus_busy.filter(|share| *share > FULL_SHARE) {
        return format!(
            "No CPU was free there: {} of the CPU time was used.",
            whole_percent(share)
        );
    }
    if let Some(share) = busiest_core.filter(|share| *share > BUSY_MIN) {
        return format!("An event loop there was busy for {} of the time.", whole_percent(share));
    }
    match slow.sign {
        SlowSign::Lag => "No shortage of CPU time was seen there.".to_owned(),
        SlowSign::Latency => {
            let subject = if slow.names.len() == 1 { "It was" } else { "They were" };
            format!("{subject} on time and had CPU time left: the way to the server is slow.")
        }
    }
}

fn remedy(slow: &SlowMachines) -> &'static str {
    match slow.sign {
        SlowSign::Lag => {
            "stop other programs there, give it more CPUs, or end its agent and run without it"
        }
        SlowSign::Latency => {
            "look at the way from there to the server (ping, mtr, ip -s link), or end its agent \
             and run without it"
        }
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The latency above which answers are slow: what a person notices, as in `impact`.
const SLOW_US: u64 = 100_000;
/// The others wait, too, if they do in one of so many intervals.
const LONG_ONE_IN: u64 = 4;
/// The load above which an event loop has no time left to be punctual.
const BUSY_MIN: f64 = 0.85;

#[cfg(test)]
mod tests {
    use throng_measure::{MachineInterval, MachineUse, Operation, RunMachine};

    use super::super::fixture::Run;
    use super::*;

    /// The values of one machine: lag, latency, and the use of its busiest core.
    type Values = (u64, u64, u64);

    /// A run of these machines.
    fn fleet(machines: &[Values]) -> Run {
        let name = |n: usize| format!("a{}", n + 1);
        let mut run = Run::quiet().loaded(|load, second| {
            let of = |(n, (lag, latency, core)): (usize, &Values)| MachineInterval {
                name: name(n),
                lag_us_p99: (second > 2).then_some(*lag),
                message_us_p99: (second > 2).then_some(*latency),
                busiest_core_permille: (second > 2).then_some(*core),
                machine: Some(MachineUse {
                    cpus: 1,
                    cpu_busy_us: core * 1_000 * second,
                    cpu_idle_us: (1_000 - core) * 1_000 * second,
                    cpu_stolen_us: 0,
                }),
                ..MachineInterval::default()
            };
            load.machines = machines.iter().enumerate().map(of).collect();
            if second > 2 {
                load.lag.clear();
                load.times[Operation::Message].clear();
                for (lag, latency, _) in machines {
                    load.lag.record_n(*lag, 100);
                    load.times[Operation::Message].record_n(*latency, 250);
                }
            }
        });
        run.header.target_is_here = false;
        run.header.machines = (0..machines.len())
            .map(|n| RunMachine { name: name(n), ..RunMachine::default() })
            .collect();
        run
    }

    const FINE: Values = (200, 2_000, 300);

    #[test]
    fn one_machine_that_lags_is_named_and_is_not_the_server() {
        let run = fleet(&[FINE, FINE, (120_000, 150_000, 990), FINE]);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The machine a3 (1 of 4) was slow, not the server: it was late by 120 ms (p99 of the \
             worst interval), the \
             others 200 µs"
        );
        assert!(found.text.ends_with("No CPU was free there: 99 % of the CPU time was used."));
        assert_eq!((found.side, found.began_ms()), (Side::Client, Some(3_000)));
        run.check_all(&["machine_slow", "generator_saturated"]);
        let verdict = run.verdict();
        assert!(verdict.contains("the machine a3 (1 of 4) was slow, not the server"), "{verdict}");
        assert!(!verdict.contains(", at a3"), "{verdict}");
    }

    #[test]
    fn several_machines_that_lag_are_named() {
        let slow = (60_000, 2_000, 900);
        let found = fleet(&[slow, FINE, FINE, slow]).speaks(&RULE);
        assert!(found.text.starts_with("2 of 4 machines (a1 and a4) were slow"), "{found}");
        assert_eq!(found.machines, ["a1", "a4"]);
        assert!(found.text.contains(": they were late by 60.0 ms (p99 of"), "{found}");
        assert!(found.text.contains("An event loop there was busy for 90 %"), "{found}");
    }

    #[test]
    fn a_machine_whose_users_wait_alone_has_a_slow_way() {
        let run = fleet(&[FINE, (200, 400_000, 300), FINE]);
        let found = run.speaks(&RULE);
        assert_eq!(
            found.first_sentence(),
            "The machine a2 (1 of 3) was slow, not the server: its users waited for 400 ms (p99 \
             of the worst interval), \
             the others 2.00 ms"
        );
        assert!(found.text.contains("the way to the server is slow"), "{found}");
        run.check_all(&["machine_slow", "slow_instance", "server_slow"]);
        assert!(run.verdict().starts_with("Slowed down on the client side"), "{}", run.verdict());
    }

    #[test]
    fn what_all_machines_see_is_the_servers() {
        let waits = (200, 400_000, 300);
        let run = fleet(&[waits; 4]);
        run.is_silent(&RULE);
        run.check_all(&["server_slow"]);
        let (history, summary) = run.whole();
        let found = crate::diagnose(&history, &summary, &[]).findings.remove(0);
        assert!(found.text.ends_with(" All 4 machines saw it."), "{found}");
        assert!(run.verdict().starts_with("Slowed down on the server side"), "{}", run.verdict());
        // Also if most of them do.
        fleet(&[waits, waits, waits, FINE]).is_silent(&RULE);
        // A little more than the others is a longer way.
        fleet(&[FINE, FINE, (200, 7_000, 300)]).is_silent(&RULE);
    }

    #[test]
    fn a_machine_that_lags_does_not_hide_a_slow_server() {
        let waits = (200, 400_000, 300);
        let run = fleet(&[waits, waits, (30_000, 420_000, 300), waits]);
        let found = run.speaks(&RULE);
        assert_eq!(found.severity, Severity::Noted);
        assert!(found.text.starts_with("The machine a3 (1 of 4) was slow: it was late"), "{found}");
        let verdict = run.verdict();
        assert!(verdict.starts_with("Slowed down on the server side"), "{verdict}");
    }

    #[test]
    fn machines_that_all_lag_are_the_generators() {
        let late = (120_000, 150_000, 990);
        let run = fleet(&[late; 3]);
        run.is_silent(&RULE);
        run.check_all(&["generator_saturated"]);
    }

    #[test]
    fn a_run_of_one_machine_and_a_short_hiccup_are_none() {
        Run::quiet().is_silent(&RULE);
        fleet(&[FINE]).is_silent(&RULE);
        let once = fleet(&[FINE, FINE]).loaded(|load, second| {
            if second == 7 {
                load.machines[0].lag_us_p99 = Some(300_000);
            }
        });
        once.is_silent(&RULE);
    }
}
