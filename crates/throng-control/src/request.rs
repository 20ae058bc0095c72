//! One line from a client: a verb and, for some verbs, a number.

use serde::Serialize;
use serde_json::Value;
use throng_base::units::nearest;

use crate::Verb;
use crate::verb::names;

/// The request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ControlRequest {
    /// The requested action.
    pub verb: Verb,
    /// The number of users, which `start` and `stop` need, or of rows, for `inspect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
}

impl ControlRequest {
    /// Returns a request without a number.
    pub fn new(verb: Verb) -> Self {
        Self { verb, n: None }
    }

    /// Returns a request about `n` users or rows.
    pub fn with_n(verb: Verb, n: u64) -> Self {
        Self { verb, n: Some(n) }
    }

    /// Parses a line. `known` lists the verbs of the process, for the error.
    ///
    /// # Errors
    /// The error in the line, for its author.
    pub fn parse(line: &str, known: &[Verb]) -> Result<Self, String> {
        let object = match serde_json::from_str(line) {
            Ok(Value::Object(object)) => object,
            Ok(_) => return Err(malformed("this is not an object", known)),
            Err(error) => return Err(malformed(&format!("this is not JSON ({error})"), known)),
        };
        if let Some(key) = object.keys().find(|key| !FIELDS.contains(&key.as_str())) {
            let meant = match nearest(key, FIELDS) {
                Some(field) => format!("; did you mean `{field}`?"),
                None => String::new(),
            };
            return Err(malformed(&format!("`{key}` is not a field of a request{meant}"), known));
        }
        let verb = match object.get("verb") {
            Some(Value::String(name)) => verb(name, known)?,
            Some(_) => return Err(malformed("`verb` must be a string", known)),
            None => return Err(malformed("`verb` is missing", known)),
        };
        let n = match object.get("n") {
            None | Some(Value::Null) => None,
            Some(n) => Some(n.as_u64().ok_or("`n` must be a whole number that is not negative")?),
        };
        match n {
            None if verb.needs_n() => {
                Err(format!(r#"`{verb}` needs a number of users: {{"verb":"{verb}","n":100}}"#))
            }
            Some(_) if !verb.takes_n() => Err(format!("`{verb}` takes no number")),
            _ => Ok(Self { verb, n }),
        }
    }
}

const FIELDS: [&str; 2] = ["verb", "n"];

fn verb(name: &str, known: &[Verb]) -> Result<Verb, String> {
    match name.parse::<Verb>() {
        Ok(verb) if known.contains(&verb) => Ok(verb),
        Ok(verb) => {
            Err(format!("this process does not support `{verb}`; its verbs are {}", names(known)))
        }
        Err(()) => {
            let meant = match nearest(name, known.iter().map(|verb| verb.name())) {
                Some(meant) => format!("; did you mean `{meant}`?"),
                None => ";".to_owned(),
            };
            Err(format!("unknown verb `{name}`{meant} The verbs are {}", names(known)))
        }
    }
}

fn malformed(what: &str, known: &[Verb]) -> String {
    format!(r#"{what}; a request is {{"verb":"count"}} on a line, the verbs are {}"#, names(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: [Verb; 3] = [Verb::Who, Verb::Snapshot, Verb::Count];

    fn refused(line: &str, known: &[Verb]) -> String {
        ControlRequest::parse(line, known).expect_err(line)
    }

    #[test]
    fn a_request_comes_back_from_its_line() {
        for request in [Verb::Snapshot, Verb::Inspect]
            .map(ControlRequest::new)
            .into_iter()
            .chain([Verb::Inspect, Verb::Start].map(|verb| ControlRequest::with_n(verb, 100)))
        {
            let line = serde_json::to_string(&request).unwrap();
            assert_eq!(ControlRequest::parse(&line, &Verb::ALL), Ok(request), "{line}");
        }
    }

    #[test]
    fn an_unknown_verb_gets_the_nearest_one_and_all_names() {
        let error = refused(r#"{"verb":"snapshto"}"#, &Verb::ALL);
        assert!(error.contains("did you mean `snapshot`?"), "{error}");
        for verb in Verb::ALL {
            assert!(error.contains(verb.name()), "{error}");
        }
        assert!(!refused(r#"{"verb":"banana"}"#, &Verb::ALL).contains("did you mean"));
    }

    #[test]
    fn a_verb_of_another_role_is_refused_with_the_verbs_of_this_one() {
        let error = refused(r#"{"verb":"start","n":1}"#, &SERVER);
        assert_eq!(
            error,
            "this process does not support `start`; its verbs are who, snapshot, count"
        );
    }

    #[test]
    fn what_is_malformed_is_named() {
        for (line, says) in [
            ("", "not JSON"),
            ("snapshot", "not JSON"),
            ("[1]", "not an object"),
            ("{}", "`verb` is missing"),
            (r#"{"verb":7}"#, "must be a string"),
            (r#"{"vreb":"count"}"#, "did you mean `verb`?"),
            (r#"{"verb":"start"}"#, r#"{"verb":"start","n":100}"#),
            (r#"{"verb":"start","n":-1}"#, "whole number"),
            (r#"{"verb":"start","n":1.5}"#, "whole number"),
            (r#"{"verb":"count","n":1}"#, "takes no number"),
        ] {
            assert!(refused(line, &Verb::ALL).contains(says), "{line}");
        }
    }
}
