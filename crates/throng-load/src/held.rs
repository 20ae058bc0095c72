//! The memory of what users hold of what the target sent: how much a core may have, and how much a
//! run may need.

use crate::capacity::Demand;
use crate::program::Program;
use crate::protocols::MessageForm;
use crate::scenario::ScenarioLoad;

/// Returns the bytes that all users of a core may hold together, where a run has so many cores on
/// all its machines: those of the scenario, or [`HELD_BYTES_MAX`]. Many users may hold
/// [`HELD_BYTES_EACH`] each. The contexts of compressed messages have room beside it.
pub fn held_bytes_max(program: &Program, load: &ScenarioLoad, cores: usize) -> u64 {
    program.held_bytes_max().unwrap_or_else(|| {
        let connections = Demand::of(program, load).connections;
        let connections = connections.div_ceil(cores.max(1) as u64);
        let contexts = connections.saturating_mul(program.context_bytes());
        connections.saturating_mul(HELD_BYTES_EACH).max(HELD_BYTES_MAX).saturating_add(contexts)
    })
}

/// Returns the most bytes that a target can make `connections` of a machine with so many cores
/// hold, where a core has `held_bytes_max` for them.
pub(crate) fn most_held(
    program: &Program,
    connections: u64,
    cores: usize,
    held_bytes_max: u64,
) -> u64 {
    let protocol = program.protocol();
    // Of a stream, only what a step expects is kept.
    let receives = protocol.messages != MessageForm::Bytes
        || (0..program.classes().len()).any(|class| program.expects(class));
    let each = if receives { protocol.held_bytes_max } else { 0 };
    connections.saturating_mul(each).min(held_bytes_max.saturating_mul(cores as u64))
}

/// Longest WebSocket message that a user accepts. The generator does not judge the server's message
/// sizes.
pub(crate) const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// The default of `held_bytes_max`, of a core.
pub const HELD_BYTES_MAX: u64 = 64 << 20;
/// Bytes of each planned user of a core, if they are more together: enough for what users capture,
/// and for the heads of their answers.
pub const HELD_BYTES_EACH: u64 = 4 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Protocol, Scenario};

    fn compiled(text: &str) -> (Program, ScenarioLoad) {
        let scenario = Scenario::parse(text, "test").unwrap_or_else(|wrong| panic!("{wrong}"));
        (Program::compile(&scenario), scenario.load)
    }

    fn budget(head: &str, users: &str) -> u64 {
        let load = format!("load: [{{ramp: {{to: {users}, over: 1m}}}}]");
        let (program, load) =
            compiled(&format!("target: ws://h:1/\n{head}\n{load}\nuser: [connect, stay]\n"));
        held_bytes_max(&program, &load, 4)
    }

    #[test]
    fn a_core_has_64_mib_or_4_kib_for_each_user_or_what_the_scenario_says() {
        assert_eq!(budget("", "1000"), 64 << 20);
        assert_eq!(budget("", "4M"), 1_000_000 << 12);
        assert_eq!(budget("limits: {held_bytes_max: 3MiB}", "4M"), 3 << 20);
        // What browsers offer: 32 KiB of what the server sends, 8 KiB of what the user sends.
        let (program, load) = compiled(
            "target: ws://h:1/\nload: [{ramp: {to: 1000, over: 1m}}]\n\
             user: [connect: {deflate: true}, stay]\n",
        );
        assert_eq!(held_bytes_max(&program, &load, 4), (64 << 20) + 250 * (40 << 10));
    }

    #[test]
    fn the_most_is_that_of_all_users_or_of_all_cores() {
        let most = |target: &str, user: &str, connections| {
            let load = "load: [{ramp: {to: 9, over: 1s}}]";
            let (program, _) = compiled(&format!("target: {target}\n{load}\nuser: {user}\n"));
            most_held(&program, connections, 2, 64 << 20)
        };
        assert_eq!(most("ws://h:1/", "[connect, stay]", 3), 48 << 20);
        assert_eq!(most("ws://h:1/", "[connect, stay]", 1_000), 128 << 20);
        assert_eq!(most("http://h:1", "[get: /]", 2), 2 * Protocol::Http.held_bytes_max);
        assert_eq!(
            most("tcp://h:1", "[connect, expect: a]", 100),
            100 * Protocol::Tcp.held_bytes_max
        );
        assert_eq!(most("tcp://h:1", "[connect, stay]", 100), 0, "nothing is kept");
    }
}
