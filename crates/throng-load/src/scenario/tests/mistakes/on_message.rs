//! Mistakes in `on_message`.

use super::whole;

#[track_caller]
fn check(target: &str, rules: &str, shown: &[&str]) {
    let mistakes = whole(&format!(
        "target: {target}\nload: [ramp: {{to: 1, over: 1s}}]\nuser: [connect, stay]\n\
         on_message:\n  {rules}\n"
    ));
    for part in shown {
        assert!(mistakes.contains(part), "{part:?} in {mistakes}");
    }
}

#[test]
fn a_rule_says_which_messages_it_takes_and_never_waits() {
    let ws = "ws://h:1/";
    check(ws, "- {do: [send: pong]}", &["needs exactly one pattern", "test.yaml:5:5"]);
    check(ws, "- {text: a, json: {a: 1}}", &["needs exactly one pattern"]);
    check(ws, "- {text: a, send: b}", &["unknown key `send` in a rule of `on_message`"]);
    check(ws, "- {text: a, do: [wait: 1s]}", &["unknown step `wait`", "`send`, `set`, `signal`"]);
    check(ws, "- {text: a, do: [send: '${later}']}", &["later"]);
    check(ws, "{text: a, do: [send: b]}", &["`on_message` must be a list"]);
    check(ws, "[]", &["`on_message` has too few or too many rules"]);
}

#[test]
fn only_messages_of_web_sockets_have_rules() {
    let shown = ["`protocol: tcp` has no `on_message`", "test.yaml:5:3"];
    check("tcp://h:1", "- {text: a, do: [send: b]}", &shown);
}

#[track_caller]
fn check_channels(rules: &str, shown: &[&str]) {
    let mistakes = whole(&format!(
        "target: ws://h:1/\nprotocol: phoenix\nload: [ramp: {{to: 1, over: 1s}}]\n\
         user: [connect, join: {{topic: a}}, stay]\non_message:\n  {rules}\n"
    ));
    for part in shown {
        assert!(mistakes.contains(part), "{part:?} in {mistakes}");
    }
}

#[test]
fn a_rule_of_channels_is_about_an_event_of_a_topic_that_is_joined() {
    check_channels("- {text: a}", &["unknown key `text`", "`topic`, `event`, `payload`"]);
    check_channels("- {topic: a}", &["a rule of `on_message` has no `event`"]);
    check_channels("- {topic: b, event: e}", &["no step joins this topic", "test.yaml:6:13"]);
    let push = |push: &str| format!("- {{topic: a, event: e, do: [push: {{{push}}}]}}");
    check_channels(&push("topic: b, event: f"), &["no step joins this topic"]);
    let waits = ["a `push` of a rule waits for no reply", "leave it out"];
    check_channels(&push("topic: a, event: f, reply: true"), &waits);
    check_channels(&push("topic: a, event: f, timeout: 1s"), &["unknown key `timeout`"]);
    check_channels("- {topic: a, event: e, do: [send: x]}", &["has no step `send`"]);
}

#[test]
fn rules_are_no_steps_and_have_no_place_in_setup() {
    for (list, label) in [
        ("user: [connect, on_message: [{text: a}], stay]", "belong beside `user`"),
        (
            "user: [connect, stay]\nsetup: [connect, on_message: [{text: a}], close]",
            "the only user of these steps has no rules",
        ),
        (
            "user: [connect, stay]\nteardown: [connect, on_message: [{text: a}], close]",
            "the only user of these steps has no rules",
        ),
    ] {
        let shown =
            whole(&format!("target: ws://h:1/\nload: [ramp: {{to: 1, over: 1s}}]\n{list}\n"));
        assert!(shown.contains("`on_message` is no step") && shown.contains(label), "{shown}");
    }
}

#[test]
fn no_limit_is_about_what_rules_send() {
    let shown = whole(
        "target: ws://h:1/\nload: [ramp: {to: 1, over: 1s}]\nuser: [connect, stay]\n\
         on_message: [{text: a, do: [send: b]}]\nlimits: {all: {send: 5/s}}\n",
    );
    assert!(shown.contains("no step does what `send` limits"), "{shown}");
}

#[test]
fn each_class_has_its_own_rules() {
    let shown = whole(
        "target: ws://h:1/\nload: [ramp: {to: 1, over: 1s}]\nusers: {a: {user: [connect]}}\n\
         on_message: [{text: a}]\n",
    );
    assert!(shown.contains("`on_message` belongs in each class of `users`"), "{shown}");
}
