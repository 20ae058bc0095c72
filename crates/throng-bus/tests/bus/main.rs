//! What each bus promises, tried on both: within the process, and over a real NATS server.

mod nats_server;
mod tls;

use std::time::{Duration, Instant};

use throng_bus::{
    Bus, BusAction, BusError, BusMessage, BusSubscription, MemoryBus, NatsBus, NatsOptions,
    PAYLOAD_BYTES_MAX, WAITING_MAX,
};

use nats_server::NatsServer;

/// Runs a test on each bus. The second argument is another connection to the same bus.
fn on_each_bus(test: impl Fn(&dyn Bus, &dyn Bus)) {
    let memory = MemoryBus::new();
    test(&memory, &memory.clone());
    let Some(server) = NatsServer::start() else { return };
    test(&server.connect(), &server.connect());
}

/// Returns the next messages, as many as `count`.
fn take(subscription: &BusSubscription, count: usize) -> Vec<BusMessage> {
    let next = || subscription.next_within(PATIENCE).expect("the bus is there").expect("a message");
    (0..count).map(|_| next()).collect()
}

fn text(message: &BusMessage) -> String {
    String::from_utf8(message.payload.clone()).unwrap()
}

/// Waits until no further message is on its way: the bus keeps the order of a publisher.
fn assert_nothing_more(bus: &dyn Bus, subscription: &BusSubscription, subject: &str) {
    bus.publish(subject, b"the last").unwrap();
    assert_eq!(text(&take(subscription, 1)[0]), "the last");
}

#[test]
fn messages_come_in_the_order_of_their_publisher() {
    on_each_bus(|here, there| {
        let all = there.subscribe("order.>").unwrap();
        for number in 0..1_000 {
            here.publish(&format!("order.{}", number % 3), number.to_string().as_bytes()).unwrap();
        }
        let numbers: Vec<_> = take(&all, 1_000).iter().map(text).collect();
        assert_eq!(numbers, (0..1_000).map(|number| number.to_string()).collect::<Vec<_>>());
        assert_eq!(all.lost(), 0);
    });
}

#[test]
fn a_message_goes_to_each_subscriber_whose_pattern_matches_and_to_no_other() {
    on_each_bus(|here, there| {
        let exact = there.subscribe("a.b").unwrap();
        let same = there.subscribe("a.b").unwrap();
        let one = here.subscribe("a.*").unwrap();
        let other = here.subscribe("a.c").unwrap();
        here.publish("a.b", b"1").unwrap();
        for subscription in [&exact, &same, &one] {
            let message = &take(subscription, 1)[0];
            assert_eq!((message.subject.as_str(), text(message)), ("a.b", "1".to_owned()));
        }
        assert_nothing_more(here, &other, "a.c");
        assert_nothing_more(here, &exact, "a.b");
    });
}

#[test]
fn a_subscriber_gets_what_is_published_after_it_has_subscribed() {
    on_each_bus(|here, there| {
        let early = there.subscribe("new").unwrap();
        here.publish("new", b"before").unwrap();
        take(&early, 1);
        for round in 0..20 {
            let subscription = there.subscribe("new").unwrap();
            here.publish("new", round.to_string().as_bytes()).unwrap();
            assert_eq!(text(&take(&subscription, 1)[0]), round.to_string());
        }
    });
}

#[test]
fn a_subscription_gets_further_patterns_and_loses_them_again() {
    on_each_bus(|here, there| {
        let subscription = there.subscribe("first").unwrap();
        let patterns: Vec<String> = (0..200).map(|number| format!("more.{number}")).collect();
        there.extend(&subscription.id(), &patterns).unwrap();
        // A pattern that it has already brings nothing twice.
        let twice = [&patterns[..100], &["more.new".into(), "more.new".into()]].concat();
        there.extend(&subscription.id(), &twice).unwrap();
        here.publish("more.new", b"once").unwrap();
        assert_eq!(text(&take(&subscription, 1)[0]), "once");
        for number in [199, 0, 77] {
            here.publish(&format!("more.{number}"), number.to_string().as_bytes()).unwrap();
        }
        let mut come: Vec<_> = take(&subscription, 3).iter().map(text).collect();
        come.sort();
        assert_eq!(come, ["0", "199", "77"]);
        there.reduce(&subscription.id(), &patterns[..100]).unwrap();
        // The end of a subscription is on its way to the server before what is published next.
        let other = there.subscribe("more.0").unwrap();
        there.publish("more.0", b"gone").unwrap();
        take(&other, 1);
        there.publish("first", b"still there").unwrap();
        there.publish("more.150", b"still there").unwrap();
        let rest: Vec<_> = take(&subscription, 2).iter().map(text).collect();
        assert_eq!(rest, ["still there", "still there"]);
        assert!(there.extend(&subscription.id(), &["a..b".to_owned()]).is_err());
    });
}

#[test]
fn a_pattern_that_two_callers_add_at_the_same_time_brings_each_message_once() {
    on_each_bus(|here, there| {
        let subscription = there.subscribe("first").unwrap();
        let id = subscription.id();
        for round in 0..100 {
            let pattern = [format!("same.{round}")];
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| there.extend(&id, &pattern).unwrap());
                }
            });
            here.publish(&pattern[0], b"once").unwrap();
            assert_eq!(text(&take(&subscription, 1)[0]), "once");
            assert_nothing_more(here, &subscription, "first");
        }
    });
}

#[test]
fn a_subscriber_that_does_not_read_loses_what_it_cannot_hold_and_counts_it() {
    on_each_bus(|here, there| {
        let idle = there.subscribe("flood").unwrap();
        let end = there.subscribe("end").unwrap();
        let sent = WAITING_MAX as u64 + 100;
        for number in 0..sent {
            publish(here, "flood", number.to_string().as_bytes());
        }
        publish(here, "end", b"");
        take(&end, 1);
        let deadline = Instant::now() + PATIENCE;
        while idle.lost() < 100 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(idle.lost(), 100);
        let first: Vec<_> = take(&idle, WAITING_MAX).iter().map(text).collect();
        assert_eq!(first[0], "0");
        assert_eq!(first[WAITING_MAX - 1], (WAITING_MAX - 1).to_string());
        assert_eq!(idle.try_next(), Ok(None));
    });
}

/// Publishes, again and again while the queue of the bus is full.
fn publish(bus: &dyn Bus, subject: &str, payload: &[u8]) {
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = bus.publish(subject, payload) {
        assert!(Instant::now() < deadline, "{error}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn what_is_no_subject_or_too_large_is_refused_and_nothing_is_sent() {
    on_each_bus(|here, there| {
        let all = there.subscribe("*").unwrap();
        for wrong in ["", "a..b", "a.*", "a b"] {
            assert!(matches!(here.publish(wrong, b""), Err(BusError::Subject(_))), "{wrong}");
        }
        assert!(matches!(here.subscribe("a.>.b").unwrap_err(), BusError::Subject(_)));
        let large = vec![0; PAYLOAD_BYTES_MAX + 1];
        let error = here.publish("a", &large).unwrap_err();
        assert_eq!(
            error,
            BusError::TooLarge { bytes: PAYLOAD_BYTES_MAX + 1, bytes_max: PAYLOAD_BYTES_MAX }
        );
        here.publish("a", &large[1..]).unwrap();
        assert_eq!(take(&all, 1)[0].payload.len(), PAYLOAD_BYTES_MAX);
    });
}

#[test]
fn a_bus_that_is_away_refuses_and_one_that_is_back_keeps_its_subscriptions() {
    let memory = MemoryBus::new();
    let subscription = memory.subscribe("a").unwrap();
    memory.set_reachable(false);
    assert!(matches!(memory.publish("a", b"lost"), Err(BusError::Away(_))));
    memory.set_reachable(true);
    memory.publish("a", b"back").unwrap();
    assert_eq!(text(&take(&subscription, 1)[0]), "back");

    let Some(mut server) = NatsServer::start() else { return };
    let bus = server.connect();
    let subscription = bus.subscribe("a").unwrap();
    server.stop();
    wait_until(|| !bus.is_reachable());
    assert!(matches!(bus.publish("a", b"lost"), Err(BusError::Away(_))));
    server.start_again();
    wait_until(|| bus.is_reachable());
    // The client has sent its subscriptions before it says that it is connected again.
    bus.publish("a", b"back").unwrap();
    assert_eq!(text(&take(&subscription, 1)[0]), "back");
}

#[test]
fn what_was_published_last_is_sent_before_a_connection_ends() {
    let Some(server) = NatsServer::start() else { return };
    let there = server.connect();
    let subscription = there.subscribe("last").unwrap();
    for round in 0..20 {
        let here = server.connect();
        here.publish("last", round.to_string().as_bytes()).unwrap();
        drop(here);
        assert_eq!(text(&take(&subscription, 1)[0]), round.to_string());
    }
}

#[test]
fn a_server_with_a_password_wants_it() {
    let Some(server) = NatsServer::start_with(&["--user", "ada", "--pass", "s/e@c"]) else {
        return;
    };
    let connect = |address: String| {
        NatsBus::connect(&NatsOptions { address, name: "test".into(), ..NatsOptions::default() })
    };
    let port = server.port();
    let error = connect(format!("nats://ada:wrong@127.0.0.1:{port}")).unwrap_err().to_string();
    assert!(error.contains("authorization") && !error.contains("wrong"), "{error}");
    let bus = connect(format!("nats://ada:s%2Fe%40c@127.0.0.1:{port}")).unwrap();
    assert!(bus.is_reachable());
}

#[test]
fn a_bus_tells_what_its_user_may_not_do() {
    let folder = std::env::temp_dir().join(format!("throng-bus-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("nats-server.conf");
    std::fs::write(&file, LIMITED_USER).unwrap();
    let server = NatsServer::start_with(&["--config", file.to_str().unwrap()]);
    let Some(server) = server else { return };
    let bus = server.connect();
    let known = bus.subscribe("t.g.may").unwrap();
    for _ in 0..20 {
        let BusError::Denied(denial) = bus.subscribe("t.g.no.one").unwrap_err() else { panic!() };
        assert_eq!((denial.action, &*denial.subject), (BusAction::Subscribe, "t.g.no.one"));
    }
    // A permission that lacks is told with the subscription that lacks it, and with no other.
    bus.extend(&known.id(), &["t.g.may.too".to_owned()]).unwrap();
    let both = ["t.g.may.more".to_owned(), "t.g.no.two".to_owned()];
    assert!(matches!(bus.extend(&known.id(), &both), Err(BusError::Denied(_))));
    bus.publish("t.g.secret", b"lost").unwrap();
    bus.publish("t.g.secret", b"lost").unwrap();
    wait_until(|| bus.denials_after(0).len() > 1);
    bus.publish("t.g.may", b"heard").unwrap();
    bus.publish("t.g.may.too", b"heard").unwrap();
    take(&known, 2);
    let told: Vec<_> = bus.denials_after(0).iter().map(|it| (it.action, it.needed())).collect();
    let expected = [(BusAction::Subscribe, "t.g.no.>"), (BusAction::Publish, "t.g.secret")];
    assert_eq!(told, expected.map(|(action, needed)| (action, needed.to_owned())));
    assert_eq!(bus.denials_after(1)[0].subject, "t.g.secret");
    assert_eq!(bus.denials_after(2), []);
    _ = std::fs::remove_dir_all(folder);
}

/// The configuration of a server that permits its users some subjects.
const LIMITED_USER: &str = r#"
authorization {
  default_permissions: {
    publish: { allow: ["t.g.may.>", "t.g.may", "_INBOX.>"] }
    subscribe: { allow: ["t.g.may.>", "t.g.may", "_INBOX.>"] }
  }
  users: [ { user: "one", password: "pass" } ]
}
no_auth_user: "one"
"#;

#[test]
fn with_a_login_of_its_own_an_agent_speaks_for_no_other() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/nats/nats-server.conf");
    let Some(server) = NatsServer::start_with(&["--config", file]) else { return };
    let connect = |user: &str| {
        let address = format!("nats://{user}:change-me@127.0.0.1:{}", server.port());
        let options = NatsOptions { address, name: user.into(), ..NatsOptions::default() };
        NatsBus::connect(&options).unwrap()
    };
    let (team, one, web) = (connect("team-a"), connect("eu-1"), connect("web"));
    let heard: Vec<_> = ["hellos.*", "coordinator.me.*", "answer.me.*", "observers.*", "samples.*"]
        .map(|what| team.subscribe(&format!("throng.g.{what}")).unwrap())
        .into();
    for what in ["hellos", "coordinator.me", "answer.me"] {
        one.publish(&format!("throng.g.{what}.eu-2"), b"forged").unwrap();
        one.publish(&format!("throng.g.{what}.eu-1"), b"own").unwrap();
    }
    for what in ["observers", "samples"] {
        web.publish(&format!("throng.g.{what}.other"), b"forged").unwrap();
        web.publish(&format!("throng.g.{what}.web"), b"own").unwrap();
    }
    // Messages of one publisher come in order: the forged one would be the first.
    heard.iter().for_each(|heard| assert_eq!(text(&take(heard, 1)[0]), "own"));
    wait_until(|| one.denials_after(0).len() == 3 && web.denials_after(0).len() == 2);
    let denied = &one.denials_after(0)[1];
    assert_eq!(denied.subject, "throng.g.coordinator.me.eu-2");
    assert_eq!(denied.needed(), "throng.g.coordinator.*.eu-2");
    for pattern in ["throng.g.agent.eu-2", "throng.g.request.eu-2", "throng.g.hellos.*"] {
        assert!(matches!(one.subscribe(pattern), Err(BusError::Denied(_))), "{pattern}");
    }
    for pattern in ["throng.g.questions", "throng.g.agent.eu-1", "throng.g.request.eu-1"] {
        one.subscribe(pattern).unwrap();
    }
    one.publish("throng.g.agent.eu-2", b"an order").unwrap();
    wait_until(|| one.denials_after(0).iter().any(|it| it.subject == "throng.g.agent.eu-2"));
}

fn wait_until(mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_true() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(300);
