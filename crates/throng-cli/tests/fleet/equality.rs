//! A fleet does what one machine does with the same seed: exactly, where the schedule decides.

use rustix::process::Signal;
use throng_measure::{LoadCounters, LoadInterval, Operation};

use super::fleet::{Fleet, FleetRun, bus_url};
use super::sums::Recorded;

/// What the schedule decides of a run.
#[derive(Debug, PartialEq, Eq)]
struct Decided {
    users: u64,
    connects: u64,
    sent: u64,
    answered: u64,
    finished: u64,
    bytes_sent: u64,
    bytes_received: u64,
    connect_latencies: u64,
    message_latencies: u64,
}

impl Decided {
    fn of(recorded: &Recorded) -> Self {
        let LoadInterval { counters, core, .. } = recorded.last();
        Self {
            users: counters.users_started,
            connects: counters.connects_ok,
            sent: counters.messages_sent,
            answered: counters.messages_answered,
            finished: counters.users_finished,
            bytes_sent: core.bytes_sent,
            bytes_received: core.bytes_received,
            connect_latencies: recorded
                .loads()
                .map(|load| load.times[Operation::Connect].count())
                .sum(),
            message_latencies: recorded
                .loads()
                .map(|load| load.times[Operation::Message].count())
                .sum(),
        }
    }
}

/// Runs a scenario on all three agents with two cores each, and on one machine with six. Ends each
/// run when all users have done their work.
fn both(
    fleet: &Fleet,
    scenario: &str,
    is_done: fn(&LoadCounters) -> u64,
    users: u64,
) -> [Recorded; 2] {
    let scenario = fleet.scenario(scenario);
    let end = |mut run: FleetRun| {
        run.until("the work of all", |recorded| is_done(&recorded.last().counters) == users);
        run.process.signal(Signal::INT);
        let recorded = run.finish();
        recorded.check_sums();
        recorded
    };
    let flags = ["--bus", &bus_url(), "--agents", "all", "--cores", "2"];
    let many = end(fleet.run(&scenario, "many.jsonl", &flags));
    let record = fleet.folder.path().join("one.jsonl");
    let one = end(fleet.run_on(&fleet.hosts.agents[0], &scenario, record, &["--cores", "6"]));
    [many, one]
}

#[test]
fn random_arrivals_and_what_users_draw_are_those_of_one_machine() {
    let Some(fleet) = Fleet::start("random arrivals") else { return };
    let rows: String = (0..50).map(|row| format!("{}\n", "x".repeat(1 + row % 7))).collect();
    std::fs::write(fleet.folder.path().join("rows.csv"), format!("word\n{rows}")).unwrap();
    // There are 2,000 of them on average in the phase, so 300 come for certain.
    let scenario = "
data: {file: rows.csv, order: random}
load: [{arrivals: {rate: 100/s, for: 20s, most: 300, spacing: poisson}}, {hold: {for: 1h}}]
user:
  - connect: {timeout: 60s}
  - send: '${row.word} ${random(1,100000)} ${user.id}?'
  - expect: {until: '?', timeout: 60s}
  - choose:
      - {weight: 2, do: [{send: more?}, {expect: {until: '?', timeout: 60s}}]}
      - {do: [{wait: 1ms}]}
  - close
";
    let [many, one] = both(&fleet, scenario, |counters| counters.users_finished, 300);
    let alone = Decided::of(&one);
    assert_eq!(alone.users, 300, "{alone:?}");
    assert!((401..600).contains(&alone.answered), "they draw: {alone:?}");
    assert_eq!(Decided::of(&many), alone);
    // Each machine has its part, and both servers theirs.
    let parts: Vec<_> = many.last().machines.iter().map(|machine| machine.users_started).collect();
    assert_eq!(parts, [100; 3]);
    let addresses = &many.last().addresses;
    assert_eq!(addresses.iter().map(|it| it.ok).collect::<Vec<_>>(), [150; 2], "{addresses:?}");
}

/// 60,000 users in all, or fewer on a machine with one CPU.
#[test]
fn sixty_thousand_users_are_those_of_one_machine() {
    let Some(fleet) = Fleet::start("sixty thousand users") else { return };
    // One machine alone needs a port for each user.
    let ports = "echo 1024 65535 > /proc/sys/net/ipv4/ip_local_port_range";
    fleet.hosts.agents[0].shell(ports).unwrap();
    let cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let users = 60_000.min(30_000 * cpus);
    let scenario = format!(
        "
load: [{{ramp: {{to: {users}, over: 10s}}}}, {{hold: {{for: 1h}}}}]
user:
  - connect: {{timeout: 60s}}
  - send: 'user ${{user.id}}?'
  - expect: {{until: '?', timeout: 60s}}
  - stay
"
    );
    let [many, one] = both(&fleet, &scenario, |counters| counters.messages_answered, users);
    let alone = Decided::of(&one);
    assert_eq!((alone.users, alone.connects, alone.answered), (users, users, users), "{alone:?}");
    assert_eq!(Decided::of(&many), alone);
    for machine in &many.last().machines {
        assert_eq!(machine.users_started, users / 3, "{machine:?}");
    }
}
