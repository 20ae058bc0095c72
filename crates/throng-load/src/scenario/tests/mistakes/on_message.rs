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
fn only_messages_of_a_plain_web_socket_have_rules() {
    let shown = ["`protocol: tcp` has no `on_message`", "test.yaml:5:3"];
    check("tcp://h:1", "- {text: a, do: [send: b]}", &shown);
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
