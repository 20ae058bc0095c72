//! `expect` and `match`: what an answer must be.

use throng_load::scenario::{YamlKind, YamlNode};

use crate::request::Expectation;
use crate::source::Span;
use crate::translator::Translator;
use crate::yaml::Yaml;

use super::json::value;
use super::variables::Variables;
use crate::fields::{Fields, one_or_more, text};
use crate::json_pointer::JsonPointer;

impl Expectation {
    /// Reads `expect`: one check, or a list of them.
    pub(super) fn read(&mut self, translator: &mut Translator<'_>, node: &YamlNode) {
        for node in one_or_more(node) {
            let Some(fields) = Fields::read(translator, node, "`expect`", KEYS) else { continue };
            for (key, span, node) in fields.iter() {
                let pattern = match key {
                    "statusCode" => {
                        self.read_statuses(translator, node);
                        continue;
                    }
                    "hasProperty" => {
                        let exists = Yaml::map([("$exists", Yaml::plain("true"))]);
                        let pointer = node.scalar().and_then(JsonPointer::of_path);
                        pointer.and_then(|it| it.pattern(exists)).map(|json| ("json", json))
                    }
                    "matchesRegexp" => node.scalar().map(|regex| ("regex", Yaml::text(regex))),
                    "equals" | "contentType" | "hasHeader" | "headerEquals" | "cdnHit"
                    | "notStatusCode" | "notHasProperty" => None,
                    _ => continue,
                };
                self.keep(translator, &span, &format!("expect {key}"), pattern);
            }
        }
    }

    /// Reads `match: {json, value}` or `match: {regexp, value}`, one or a list of them
    /// (`engine_util.ts`, `captureOrMatch`: one without a value compares nothing).
    pub(super) fn read_match(
        &mut self,
        translator: &mut Translator<'_>,
        variables: &mut Variables,
        node: &YamlNode,
    ) {
        for node in one_or_more(node) {
            let Some(fields) = Fields::read(translator, node, "`match`", &MATCH_KEYS) else {
                continue;
            };
            let Some(wanted) = fields.get("value") else {
                let why = "without `value`, Artillery takes any answer; write `value`";
                translator.suspicious(&node.span, "match", why);
                continue;
            };
            let text = wanted.scalar();
            let wanted = value(translator, variables, wanted).pattern();
            let json = fields.get("json").and_then(YamlNode::scalar);
            let json = json.and_then(JsonPointer::of_path);
            let regexp = fields.get("regexp").and_then(YamlNode::scalar);
            let has_group = fields.get("group").is_some() || fields.get("flags").is_some();
            let pattern = match (json, regexp) {
                (Some(pointer), _) => pointer.pattern(wanted).map(|json| ("json", json)),
                // The whole match must be the value; a text that is its own pattern is one.
                (None, Some(regexp)) if text == Some(regexp) && !has_group && is_word(regexp) => {
                    Some(("contains", Yaml::text(regexp)))
                }
                _ => None,
            };
            self.keep(translator, &node.span, "match", pattern);
        }
    }

    fn read_statuses(&mut self, translator: &mut Translator<'_>, node: &YamlNode) {
        if let YamlKind::Nothing = node.kind {
            return;
        }
        for node in one_or_more(node) {
            let Some(status) = text(translator, node, "`statusCode`") else { continue };
            let is_status = status.parse::<u16>().is_ok_and(|n| (200..=599).contains(&n));
            if !is_status {
                let title = format!("`{status}` is no status");
                translator.mistake(&node.span, title, "expected a number from 200 to 599");
                continue;
            }
            translator.translated(&node.span, "expect statusCode");
            self.statuses.push(status.to_owned());
        }
    }

    /// Keeps the pattern of an answer, or reports that it is not kept. Artillery ends a user whose
    /// `match` fails, and goes on where `expect` does.
    fn keep(
        &mut self,
        translator: &mut Translator<'_>,
        span: &Span,
        construct: &str,
        pattern: Option<(&'static str, Yaml)>,
    ) {
        match pattern {
            Some(pattern) if self.body.is_none() => {
                translator.translated(span, construct);
                self.body = Some(pattern);
            }
            Some(_) => {
                let remedy = "a step has one pattern for the body; put both into one `json` or \
                              `regex`";
                omit(translator, span, construct, remedy);
            }
            None => {
                let remedy = "the scenario does not check this; see `expect` in \
                              docs/scenario.md for what it can check";
                omit(translator, span, construct, remedy);
            }
        }
    }
}

/// Reports whether a regular expression matches nothing but itself.
fn is_word(regexp: &str) -> bool {
    regexp.chars().all(|c| c.is_alphanumeric() || " _-:,\"'".contains(c))
}

fn omit(translator: &mut Translator<'_>, span: &Span, construct: &str, remedy: &str) {
    match construct.starts_with("expect ") {
        true => translator.not_checked(span, construct, remedy),
        false => translator.not_supported(span, construct, remedy),
    }
}

const KEYS: &[&str] = words![
    "statusCode" "notStatusCode" "contentType" "hasProperty" "notHasProperty" "hasHeader"
    "headerEquals" "equals" "matchesRegexp" "cdnHit"
];

const MATCH_KEYS: [&str; 6] = ["json", "regexp", "value", "strict", "group", "flags"];
