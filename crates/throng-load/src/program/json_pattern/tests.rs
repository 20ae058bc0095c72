use serde_json::json;
use throng_base::Prng;

use super::*;

fn holds(pattern: &JsonPattern, text: &str) -> bool {
    let stored = [b"from 7".to_vec()];
    let scope = VariableScope { stored: &stored, ..VariableScope::new(7, Prng::new(1)) };
    pattern.is_in(text, scope, &mut Vec::new())
}

fn contains(text: &str, expected: &Value) -> bool {
    holds(&expected.clone().into(), text)
}

#[test]
fn a_part_of_json_is_found_in_the_whole() {
    let whole = r#" {"a": 1, "b": {"c": [1, {"d": "x\n", "e": null}], "f": true}, "g": -2.5} "#;
    for expected in [
        json!({}),
        json!({"a": 1}),
        json!({"a": 1.0}),
        json!({"g": -2.5, "b": {}}),
        json!({"b": {"f": true, "c": [1, {"d": "x\n"}]}}),
        json!({"b": {"c": [1, {"e": null}]}}),
    ] {
        assert!(contains(whole, &expected), "{expected}");
    }
    for expected in [
        json!({"a": 2}),
        json!({"a": "1"}),
        json!({"z": null}),
        json!({"b": {"c": [1]}}),
        json!({"b": {"c": [1, {}, 3]}}),
        json!({"b": {"c": {}}}),
        json!([]),
        json!(null),
    ] {
        assert!(!contains(whole, &expected), "{expected}");
    }
    assert!(!contains("{\"a\": 1", &json!({"a": 1})), "cut short");
    assert!(!contains("{\"a\": 1} x", &json!({"a": 1})), "something follows");
    assert!(contains("[1, \"x\"]", &json!([1, "x"])) && contains("7", &json!(7)));
}

#[test]
fn a_member_that_stands_twice_counts_once() {
    assert!(!contains("{\"a\": 1, \"a\": 1}", &json!({"a": 1, "b": 2})));
}

fn text(text: &str) -> JsonPattern {
    JsonPattern::Text(Template::parse(text).unwrap())
}

#[test]
fn variables_have_the_values_of_the_user() {
    let id = || JsonPattern::Object(vec![("id".into(), text("${user.id}"))]);
    for (json, expected) in [
        ("{\"id\":\"7\"}", true),
        ("{\"id\":7}", true),
        ("{\"id\":7.0}", true),
        ("{\"id\":8}", false),
        ("{\"id\":\"07\"}", false),
        ("{\"id\":null}", false),
        ("{\"id\":[7]}", false),
    ] {
        assert_eq!(holds(&id(), json), expected, "{json}");
    }
    let body = text("from ${user.id}");
    assert!(holds(&body, "\"from 7\"") && !holds(&body, "\"from 77\""));
    let name = Variable::Stored { slot: 0, name: "sent.body".into(), is_number: false };
    let segment = crate::scenario::Segment::Variable(name, crate::scenario::Escape::None);
    let stored = JsonPattern::Text(Template::from_segments([segment]));
    assert!(holds(&stored, "\"from \\u0037\"") && !holds(&stored, "\"from\""));
    assert_eq!(stored.to_string(), "\"${sent.body}\"");
}

#[test]
fn tests_compare_a_value() {
    let order = |order, bound: &str| JsonTest::Order(order, Template::parse(bound).unwrap());
    let member = |tests| JsonPattern::Object(vec![("n".into(), JsonPattern::Tests(tests))]);
    let five = || vec![order(JsonOrder::Greater, "3"), order(JsonOrder::LessOrEqual, "5")];
    for (tests, json, expected) in [
        (vec![JsonTest::Exists(true)], "{\"n\": {}}", true),
        (vec![JsonTest::Exists(true)], "{}", false),
        (vec![JsonTest::Exists(false)], "{}", true),
        (vec![JsonTest::Exists(false)], "{\"n\": null}", false),
        (five(), "{\"n\": 5}", true),
        (five(), "{\"n\": 5.5}", false),
        (five(), "{\"n\": 3}", false),
        (five(), "{\"n\": \"4\"}", false),
        (five(), "{}", false),
        (vec![order(JsonOrder::GreaterOrEqual, "${user.id}")], "{\"n\": 7}", true),
        (vec![order(JsonOrder::Less, "${user.id}")], "{\"n\": 7}", false),
        (vec![JsonTest::Not(json!("a").into())], "{\"n\": \"b\"}", true),
        (vec![JsonTest::Not(json!("a").into())], "{\"n\": \"a\"}", false),
        (vec![JsonTest::Regex(Regex::new("^a+$").unwrap())], "{\"n\": \"aaa\"}", true),
        (vec![JsonTest::Regex(Regex::new("^a+$").unwrap())], "{\"n\": \"ab\"}", false),
        (vec![JsonTest::OneOf(vec![json!("a").into(), json!(2).into()])], "{\"n\": 2}", true),
        (vec![JsonTest::OneOf(vec![json!("a").into()])], "{\"n\": \"b\"}", false),
    ] {
        let pattern = member(tests);
        assert_eq!(holds(&pattern, json), expected, "{pattern} in {json}");
    }
}
