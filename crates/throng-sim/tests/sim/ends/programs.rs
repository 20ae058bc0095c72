//! Random scenarios against a server that stalls at times, ended at random: everything that users
//! begin has exactly one outcome.

use std::cell::RefCell;
use std::fmt::Write as _;

use throng_base::Prng;
use throng_load::generator::GeneratorMessage;
use throng_measure::{LoadCounters, Merge};
use throng_sim::{Faults, Sim, check_over_all};

use super::world::{Speaks, World};

/// Generator of random parts of a scenario.
struct Author {
    prng: Prng,
    speaks: Speaks,
}

impl Author {
    fn below(&mut self, n: u64) -> u64 {
        self.prng.below(n)
    }

    fn one_of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len() as u64) as usize]
    }

    fn ms(&mut self, least: u64, most: u64) -> String {
        format!("{}ms", self.prng.between(least, most))
    }

    /// Returns a load of one of the two models.
    fn load(&mut self) -> String {
        let mut phases = Vec::new();
        if self.below(2) == 0 {
            let users = self.prng.between(2, 30);
            phases.push(format!("{{ramp: {{to: {users}, over: {}}}}}", self.ms(100, 2_000)));
            phases.push(format!("{{hold: {{for: {}}}}}", self.ms(500, 8_000)));
            if self.below(2) == 0 {
                phases.push(format!("{{ramp: {{to: {}, over: 1s}}}}", users / 2));
                phases.push(format!("{{hold: {{for: {}}}}}", self.ms(500, 4_000)));
            }
        } else {
            let rate = self.prng.between(1, 30);
            phases.push(format!("{{arrivals: {{rate: {rate}/s, for: {}}}}}", self.ms(500, 6_000)));
            let until = self.one_of(&["", ", until: done"]);
            phases.push(format!("{{hold: {{for: {}{until}}}}}", self.ms(100, 4_000)));
        }
        format!("load: [{}]", phases.join(", "))
    }

    fn classes(&mut self) -> String {
        let mut text = "users:\n".to_owned();
        for class in 0..self.prng.between(1, 3) {
            let on_error = self.one_of(&["restart", "continue", "stop"]);
            let weight = self.prng.between(1, 4);
            let steps = self.steps();
            _ = writeln!(
                text,
                "  c{class}: {{weight: {weight}, on_error: {on_error}, user: [{steps}]}}"
            );
        }
        text
    }

    /// Returns the steps of a class, from its first connect to its end.
    fn steps(&mut self) -> String {
        let mut steps = Vec::new();
        for connection in 0..self.prng.between(1, 2) {
            if connection > 0 {
                steps.push(self.one_of(&["close", "close: reset"]).to_owned());
            }
            steps.push(format!("connect: {{timeout: {}}}", self.ms(200, 9_000)));
            if self.speaks == Speaks::Phoenix {
                steps.push(format!("join: {{topic: a, timeout: {}}}", self.ms(200, 9_000)));
            }
            for _ in 0..self.below(4) {
                steps.push(self.talk(2));
            }
        }
        // A user that restarts at once would fill the run.
        steps.push(format!("wait: {}", self.ms(100, 900)));
        match self.below(5) {
            0 => steps.push("stay".to_owned()),
            1 => {
                let period = self.ms(20, 1_500);
                let turn = self.turn(1);
                steps.push(format!("every: {{period: {period}, do: [{turn}]}}"));
            }
            2 => steps.push("close".to_owned()),
            3 if self.speaks == Speaks::Tcp => {
                let turn =
                    format!("connect: {{timeout: {}}}, {}, close", self.ms(200, 9_000), self.ask());
                steps.push("close".to_owned());
                steps.push(format!("every: {{period: {}, do: [{turn}]}}", self.ms(100, 1_500)));
            }
            _ => {}
        }
        steps.join(", ")
    }

    /// Returns a request, a wait, or a loop of them.
    fn talk(&mut self, depth: u64) -> String {
        match self.below(if depth == 0 { 2 } else { 4 }) {
            0 => format!("wait: {} ±30%", self.ms(10, 1_000)),
            1 => self.ask(),
            2 => {
                let (period, span) = (self.ms(20, 900), self.ms(200, 5_000));
                let turn = self.turn(depth - 1);
                format!("every: {{period: {period}, for: {span}, do: [{turn}]}}")
            }
            _ => {
                let times = self.prng.between(1, 5);
                let turn = self.turn(depth - 1);
                format!("repeat: {{times: {times}, do: [{turn}]}}")
            }
        }
    }

    fn turn(&mut self, depth: u64) -> String {
        let count = self.prng.between(1, 2);
        let steps: Vec<_> = (0..count).map(|_| self.talk(depth)).collect();
        // A loop without a request would never wait.
        format!("{}, {}", steps.join(", "), self.ask())
    }

    fn ask(&mut self) -> String {
        let timeout = self.ms(100, 9_000);
        match (self.speaks, self.below(6)) {
            (Speaks::Phoenix, 0) => "push: {topic: a, event: e, reply: false}".to_owned(),
            (Speaks::Phoenix, 1) => format!(
                "leave: {{topic: a, timeout: {timeout}}}, join: {{topic: a, timeout: {timeout}}}"
            ),
            (Speaks::Phoenix, _) => format!("push: {{topic: a, event: e, timeout: {timeout}}}"),
            (_, 0) => "send: hi".to_owned(),
            (Speaks::Tcp, 1) => {
                format!("send: {{random: 40KiB}}, expect: {{bytes: 40960, timeout: {timeout}}}")
            }
            (_, 2) => format!("send: hi, expect: {{text: no, timeout: {timeout}}}"),
            _ => format!("send: hi, expect: {{text: hi, timeout: {timeout}}}"),
        }
    }
}

/// Runs a random scenario against a server that stalls at most twice, with random control messages.
/// Returns the counters.
fn play(sim: &mut Sim, speaks: Speaks) -> LoadCounters {
    let mut author = Author { prng: sim.prng(), speaks };
    let scenario = format!("{}\n{}", author.load(), author.classes());
    if author.below(3) == 0 {
        sim.set_faults(Faults { syn_loss: 0.0, window_bytes_min: 4_000, ..Faults::rough() });
    } else if author.below(3) == 0 {
        sim.set_faults(Faults { refuse: 0.05, cut: 0.2, ..Faults::none() });
    }
    let cores = author.prng.between(1, 3) as usize;
    let world = World::start(sim, speaks, cores, &scenario);
    let mut at_ms = 0;
    for _ in 0..author.prng.between(1, 2) {
        at_ms += author.prng.between(1, 5_000);
        world.run_to(sim, at_ms);
        world.freeze(sim);
        match author.below(8) {
            0 => world.send_to_all(|| GeneratorMessage::StopUsers(2)),
            1 => world.send_to_all(|| GeneratorMessage::AddUsers(3)),
            2 => world.send_to_all(|| GeneratorMessage::RampDown),
            _ => {}
        }
        if author.below(3) > 0 {
            at_ms += author.prng.between(1, 6_000);
            world.run_to(sim, at_ms);
            world.thaw(sim);
        }
    }
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| world.finish(sim)));
    match played {
        Ok(totals) => totals.counters,
        Err(panic) => {
            eprintln!("{speaks:?}\n{scenario}");
            std::panic::resume_unwind(panic);
        }
    }
}

/// Runs many scenarios and returns their summed counters, because a sum of zeros would also add up.
fn play_all(speaks: Speaks) -> LoadCounters {
    let sum = RefCell::new(LoadCounters::default());
    check_over_all(RUNS, |sim| {
        let counters = play(sim, speaks);
        sum.borrow_mut().merge(&counters);
    });
    let c = sum.into_inner();
    for (what, count) in [
        ("iterations finished", c.users_finished),
        ("iterations failed", c.users_failed),
        ("iterations cut", c.users_cut),
        ("connects failed", c.connects_failed),
        ("connects waiting", c.connects_waiting),
        ("turns failed", c.turns_failed),
        ("turns waiting", c.turns_waiting),
    ] {
        assert!(count > 0 || is_single(), "{what}: none in {RUNS} runs: {c:?}");
    }
    c
}

/// Reports whether only one seed runs.
fn is_single() -> bool {
    std::env::var_os("THRONG_SIM_SEED").is_some()
}

const RUNS: u64 = 60;

#[test]
fn every_sum_adds_up_for_random_users_over_tcp() {
    let c = play_all(Speaks::Tcp);
    let sums = [c.messages_failed, c.messages_waiting, c.sends_waiting];
    assert!(sums.iter().all(|sum| *sum > 0) || is_single(), "{c:?}");
}

#[test]
fn every_sum_adds_up_for_random_users_over_websockets() {
    let c = play_all(Speaks::Ws);
    let sums = [c.messages_failed, c.messages_waiting, c.upgrades_failed, c.upgrades_waiting];
    assert!(sums.iter().all(|sum| *sum > 0) || is_single(), "{c:?}");
}

#[test]
fn every_sum_adds_up_for_random_users_in_channels() {
    let c = play_all(Speaks::Phoenix);
    let sums = [c.joins_waiting, c.pushes_failed, c.pushes_waiting, c.pushes_without_reply];
    assert!(sums.iter().all(|sum| *sum > 0) || is_single(), "{c:?}");
}
