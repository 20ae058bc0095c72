//! Messages that a server begins and never ends.

use std::time::Duration;

use throng_load::generator::ErrorKind;
use throng_sim::Sim;

use super::room::{Reply, Room, To};
use super::run::play;

/// The server answers `more` by 64 KiB of a message that never ends, and all else by the same.
fn room() -> Room {
    let more = "more".repeat(16 << 10);
    let reply = move |text: &str, _| {
        let text = if text == "more" { more.clone() } else { text.to_owned() };
        vec![Reply { after: Duration::from_millis(1), to: To::Sender, text }]
    };
    Room::new(reply).with_fragments("more")
}

#[test]
fn unfinished_messages_of_some_users_leave_room_for_the_others() {
    let scenario = |limits: &str| {
        format!(
            "load: [{{ramp: {{to: 40, over: 1s}}}}, {{hold: {{for: 5s}}}}]\n{limits}\nusers:\n  \
             large:\n    on_error: stop\n    user:\n      - connect\n      - every: {{period: \
             100ms, do: [{{send: {{text: more, reply: false}}}}]}}\n  small:\n    user:\n      \
             - connect\n      - every: {{period: 50ms, do: [send: hi, expect: hi]}}\n"
        )
    };
    let run = |limits: &str| {
        let stats = play(&mut Sim::new(3), room(), Duration::ZERO, &scenario(limits));
        let counters = &stats.counters;
        assert_eq!(counters.messages_failed, 0, "{counters:?}");
        assert!(counters.messages_answered > 1_000, "{counters:?}");
        let refused = stats.errors[ErrorKind::WebSocketTooLarge as usize];
        assert_eq!(stats.errors.iter().sum::<u64>(), refused, "{:?}", stats.errors);
        assert_eq!(counters.messages_incomplete, refused);
        refused
    };
    // 20 users, each with up to 3.2 MiB.
    assert_eq!(run("limits: {held_bytes_max: 256MiB}"), 0);
    assert_eq!(run("limits: {held_bytes_max: 2MiB}"), 20);
}
