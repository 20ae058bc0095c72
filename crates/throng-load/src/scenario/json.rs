//! JSON written as YAML: `{user: "${user.id}", age: 7}`, or as one text that is JSON already.

use throng_base::Prng;
use throng_proto::phoenix::json;

use super::escape::Escape;
use super::node::{Kind, Node};
use super::reader::Reader;
use super::template::{Segment, Template};
use super::variable::VariableScope;
use super::yaml_number;

/// Reads the JSON text of `node`; its strings may contain variables. A text that begins with a
/// brace or a bracket is JSON itself, so that a variable can stand for a number: `'{"n":
/// ${counter}}'`.
pub(crate) fn read(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Template> {
    match node.scalar() {
        Some(text) if text.trim_start().starts_with(['{', '[']) => read_text(reader, node, what),
        _ => {
            let mut segments = Vec::new();
            write(reader, node, &mut segments)?;
            Some(Template::from_segments(segments))
        }
    }
}

/// Reads JSON that must be an object; a missing node gives an empty one.
pub(crate) fn read_object(
    reader: &mut Reader<'_>,
    node: Option<&Node>,
    what: &str,
) -> Option<Template> {
    let Some(node) = node else { return Some(Template::from_bytes(b"{}".to_vec())) };
    let template = read(reader, node, what)?;
    if json::is_object(&sample(&template)) {
        return Some(template);
    }
    reader.wrong_kind(node, what, "a mapping such as {body: hello}");
    None
}

fn read_text(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Template> {
    let text = reader.text(node, what, "JSON")?;
    let template = with_escapes(&reader.template(node, text.trim())?);
    if json::is_valid(&sample(&template)) {
        return Some(template);
    }
    let span = reader.first_line(&node.span);
    reader
        .error(
            span,
            format!("{what} is not JSON"),
            "text that begins with a brace or a bracket must be JSON",
        )
        .help = Some("as YAML it needs no quotes: {body: hello}".to_owned());
    None
}

/// Returns the template in which the variables in strings of JSON are escaped. A variable outside
/// of strings is JSON itself: a number, or what an answer had there.
fn with_escapes(template: &Template) -> Template {
    let (mut is_in_string, mut is_escaped) = (false, false);
    let segments = template.segments().iter().map(|segment| match segment {
        Segment::Literal(bytes) => {
            for byte in &**bytes {
                match byte {
                    _ if is_escaped => is_escaped = false,
                    b'\\' => is_escaped = is_in_string,
                    b'"' => is_in_string = !is_in_string,
                    _ => {}
                }
            }
            segment.clone()
        }
        Segment::Variable(..) if is_in_string => escaped(segment),
        Segment::Variable(..) => segment.clone(),
    });
    Template::from_segments(segments)
}

fn write(reader: &mut Reader<'_>, node: &Node, segments: &mut Vec<Segment>) -> Option<()> {
    let literal = |text: &str| Segment::Literal(text.as_bytes().into());
    match &node.kind {
        Kind::Nothing => segments.push(literal("null")),
        Kind::Scalar(text) if node.is_typed => {
            segments.push(literal(&typed_scalar(reader, node, text)?))
        }
        Kind::Scalar(text) => {
            let template = reader.template(node, text)?;
            segments.push(literal("\""));
            segments.extend(template.segments().iter().map(escaped));
            segments.push(literal("\""));
        }
        Kind::List(items) => {
            for (index, item) in items.iter().enumerate() {
                segments.push(literal(if index == 0 { "[" } else { "," }));
                write(reader, item, segments)?;
            }
            segments.push(literal(if items.is_empty() { "[]" } else { "]" }));
        }
        Kind::Map(entries) => {
            for (index, (key, value)) in entries.iter().enumerate() {
                segments.push(literal(if index == 0 { "{" } else { "," }));
                let key = reader.text(key, "a JSON key", "a text")?;
                segments.push(literal(&quoted(key)));
                segments.push(literal(":"));
                write(reader, value, segments)?;
            }
            segments.push(literal(if entries.is_empty() { "{}" } else { "}" }));
        }
    }
    Some(())
}

/// Converts a plain scalar that YAML takes for a number or a boolean to JSON.
pub(crate) fn typed_scalar(reader: &mut Reader<'_>, node: &Node, text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "true" | "false" => Some(lower),
        // Some YAML parsers read `no` as false; here it is a string.
        _ if text.starts_with(|c: char| c.is_alphabetic()) => Some(quoted(text)),
        _ => match yaml_number::to_json(text) {
            Ok(number) => Some(number),
            Err(why) => {
                reader.error(node.span.clone(), format!("`{text}` is not valid in JSON"), why);
                None
            }
        },
    }
}

/// Brings a segment into the form that it has in a string of JSON.
fn escaped(segment: &Segment) -> Segment {
    match segment {
        Segment::Literal(bytes) => {
            let quoted = quoted(&String::from_utf8_lossy(bytes));
            Segment::Literal(quoted.as_bytes()[1..quoted.len() - 1].into())
        }
        Segment::Variable(variable, _) => Segment::escaped(variable, Escape::Json),
    }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    json::write_string(text, &mut out);
    String::from_utf8(out).expect("a string of JSON is UTF-8")
}

/// Renders the template with sample values: a number for each that only a run knows.
fn sample(template: &Template) -> String {
    let segments = template.segments().iter().map(|segment| match segment {
        Segment::Variable(variable, escape) => {
            Segment::Variable(variable.with_sample_values(), *escape)
        }
        Segment::Literal(_) => segment.clone(),
    });
    let template = Template::from_segments(segments);
    let mut out = Vec::new();
    let mut vars = VariableScope::new(0, Prng::new(0));
    template.render(&mut vars, &mut out);
    String::from_utf8(out).expect("a template of a scenario is UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(yaml: &str) -> Result<String, String> {
        let mut reader = Reader::new(yaml);
        let node = Node::parse(yaml).map_err(|mistake| mistake.title)?;
        match read(&mut reader, &node, "`json`") {
            Some(template) => Ok(sample(&template)),
            None => Err(reader.mistakes.remove(0).title),
        }
    }

    #[test]
    fn yaml_becomes_the_json_that_it_means() {
        for (yaml, json) in [
            ("{}", "{}"),
            ("[]", "[]"),
            (
                "{a: 1, b: -2.5e3, c: true, d: ~, e: text}",
                r#"{"a":1,"b":-2.5e3,"c":true,"d":null,"e":"text"}"#,
            ),
            ("{a: \"1\", b: 'true'}", r#"{"a":"1","b":"true"}"#),
            ("[x, [y, {z: \"say \\\"hi\\\"\\n\"}]]", r#"["x",["y",{"z":"say \"hi\"\n"}]]"#),
            ("{a: False, b: [], c: no}", r#"{"a":false,"b":[],"c":"no"}"#),
            ("{\"k\\\"\": \"${user.id}\"}", r#"{"k\"":"0"}"#),
            ("'{\"n\": ${counter}, \"u\": [${user.id}]}'", r#"{"n": 0, "u": [0]}"#),
            ("hello", "\"hello\""),
            ("[.5, +1, 1., 0x1F, 0o17, 1_000]", "[0.5,1,1,31,15,1000]"),
            ("[10.0.0.1, 1.2.3, 12:30]", r#"["10.0.0.1","1.2.3","12:30"]"#),
        ] {
            assert_eq!(rendered(yaml).as_deref(), Ok(json), "{yaml}");
            assert!(json::is_valid(json));
        }
    }

    #[test]
    fn values_that_only_a_run_knows_are_json_or_within_a_string() {
        let yaml = r#"'{"id": ${id}, "say": "${id} \"${user.id}\" ${text}", "all": [${id}]}'"#;
        let mut reader = Reader::new(yaml);
        let [id, text] = ["id", "text"].map(|name| reader.names.define(name, false));
        let node = Node::parse(yaml).unwrap();
        let template = read(&mut reader, &node, "`json`").expect("it is JSON with any value of id");
        assert!(json::is_object(&sample(&template)));
        let mut stored = vec![Vec::new(); 2];
        stored[usize::from(id)] = b"12".to_vec();
        stored[usize::from(text)] = b"a \"b\"".to_vec();
        let mut scope = VariableScope { stored: &stored, ..VariableScope::new(7, Prng::new(0)) };
        let mut out = Vec::new();
        template.render(&mut scope, &mut out);
        let expected = r#"{"id": 12, "say": "12 \"7\" a \"b\"", "all": [12]}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn what_is_not_json_is_a_mistake() {
        for (yaml, says) in [
            ("{a: .inf}", "`.inf` is not valid in JSON"),
            ("'{\"a\": }'", "`json` is not JSON"),
            ("{a: \"${what}\"}", "unknown variable `what`"),
        ] {
            assert_eq!(rendered(yaml), Err(says.to_owned()), "{yaml}");
        }
    }
}
