//! What a request sends: texts with the values of variables, and random bytes.

use throng_base::units::show_bytes;

use super::context::Context;
use super::tree::{Call, Expr, ExprKind};
use crate::text::{append, escape};
use crate::yaml::Yaml;

/// What the article's tcp_worker sends if the scenario says nothing else.
pub(super) const PAYLOAD: &str = "I'm requesting the service";

/// Returns the value of `send` for a message. Reports what cannot be translated, and sends the
/// worker's own text in its place.
pub(super) fn send(cx: &mut Context<'_, '_>, message: Option<&Expr>) -> Yaml {
    let Some(message) = message else { return Yaml::text(PAYLOAD) };
    if let Some(random) = random_bytes(cx, message) {
        return random;
    }
    match template(cx, message) {
        Ok(text) if text.is_empty() => {
            let label = "expected at least one byte";
            cx.translator.mistake(&message.span, "an empty message cannot be sent", label);
            Yaml::text(PAYLOAD)
        }
        Ok(text) => Yaml::text(text),
        Err(Some(remedy)) => {
            let construct = message.call().map_or("message", |call| &*call.name).to_owned();
            cx.translator.not_supported(&message.span, construct, remedy);
            Yaml::text(PAYLOAD)
        }
        // It was a mistake.
        Err(None) => Yaml::text(PAYLOAD),
    }
}

/// Returns `{random: n}` for `random_binary(n)`.
fn random_bytes(cx: &mut Context<'_, '_>, message: &Expr) -> Option<Yaml> {
    let call = message.call()?;
    let ("random_binary" | "random_string" | "random_list", [size]) =
        (&*call.name, &call.arguments[..])
    else {
        return None;
    };
    let size = match &size.kind {
        ExprKind::Quantity(value, unit) => {
            let factor = super::tree::SIZES.iter().find(|(known, _)| known == unit);
            let bytes = cx.plain_count(value, "the length of the message")?;
            bytes * factor.map_or(1.0, |(_, factor)| *factor)
        }
        _ => cx.plain_count(size, "the length of the message")?,
    };
    if size > BYTES_MAX {
        let label = "expected at most a gigabyte";
        cx.translator.mistake(&message.span, "the message is too long", label);
        return None;
    }
    let size = size as u64;
    let size = match &*call.name {
        // Base64 of as many random bytes.
        "random_string" => {
            let how = "the random bytes have all values, not only those of letters; they are as \
                       many as the letters of MZBench, which writes Base64";
            cx.translator.approximated(&message.span, "random_string", how);
            size.div_ceil(3) * 4
        }
        name => {
            cx.translator.translated(&message.span, name);
            size
        }
    };
    Some(Yaml::map([("random", Yaml::plain(show_bytes(size)))]))
}

/// Returns a text with variables, or what to do where there is none: `None` after a mistake.
pub(super) fn template(cx: &mut Context<'_, '_>, expr: &Expr) -> Result<String, Option<String>> {
    match &expr.kind {
        ExprKind::Text(text) | ExprKind::Word(text) => Ok(escape(text)),
        ExprKind::Number(number) => Ok(number.to_string()),
        ExprKind::Call(call) => of_call(cx, expr, call),
        ExprKind::List(_) | ExprKind::Quantity(..) | ExprKind::Operation(..) => {
            Err(Some("write the text that it stands for".to_owned()))
        }
    }
}

fn of_call(cx: &mut Context<'_, '_>, expr: &Expr, call: &Call) -> Result<String, Option<String>> {
    let arguments = &call.arguments[..];
    match (&*call.name, arguments) {
        ("var" | "numvar", [name, ..]) => {
            let is_iterator = |name: &str| cx.iterators.iter().any(|known| known == name);
            if name.text().is_some_and(is_iterator) {
                let how = "the number of the turn is `${counter}`, which counts the user's \
                           messages with such a number, from 0";
                cx.translator.approximated(&expr.span, "iterator", how);
                return Ok("${counter}".to_owned());
            }
            let Some((_, value)) = cx.variable(expr).ok_or(None)? else { return Err(None) };
            if value.call().is_some() {
                return Err(Some("write the text that it stands for".to_owned()));
            }
            template(cx, &value)
        }
        ("random_number", [most]) => random(cx, expr, None, most),
        ("random_number", [least, most]) => random(cx, expr, Some(least), most),
        ("choose" | "round_robin", [list]) => choice(cx, expr, call, list),
        ("concat", parts) => {
            let mut text = String::new();
            for part in parts {
                append(&mut text, &template(cx, part)?);
            }
            cx.translator.translated(&expr.span, "concat");
            Ok(text)
        }
        ("sprintf", [format, values @ ..]) => sprintf(cx, expr, format, values),
        ("resource", _) => {
            Err(Some("add `data: {file: FILE, columns: [NAME]}`, and use `${row.NAME}`".to_owned()))
        }
        ("term_to_binary", _) => Err(Some(
            "throng does not encode terms of Erlang: write the bytes, `send: {hex: ...}`"
                .to_owned(),
        )),
        _ => Err(Some("write the text that it stands for".to_owned())),
    }
}

/// Returns `${random(a,b)}`.
fn random(
    cx: &mut Context<'_, '_>,
    expr: &Expr,
    least: Option<&Expr>,
    most: &Expr,
) -> Result<String, Option<String>> {
    let what = "the bound of `random_number`";
    let least = match least {
        Some(least) => cx.plain_number(least, what).ok_or(None)?,
        None => 0.0,
    };
    let most = cx.plain_number(most, what).ok_or(None)?;
    if least.fract() != 0.0 || most.fract() != 0.0 || least < 0.0 || most <= least || most > 1e15 {
        let label = "expected whole numbers, the first one smaller";
        cx.translator.mistake(&expr.span, "there is no number between these two", label);
        return Err(None);
    }
    cx.translator.translated(&expr.span, "random_number");
    Ok(format!("${{random({least},{})}}", most - 1.0))
}

/// Returns `${choice('a', 'b')}`.
fn choice(
    cx: &mut Context<'_, '_>,
    expr: &Expr,
    call: &Call,
    list: &Expr,
) -> Result<String, Option<String>> {
    let value = cx.variable(list).ok_or(None)?.map_or_else(|| list.clone(), |(_, value)| value);
    let ExprKind::List(items) = &value.kind else {
        return Err(Some("write the values as a list".to_owned()));
    };
    let quoted = |item: &Expr| match &item.kind {
        ExprKind::Number(number) => Some(format!("'{number}'")),
        ExprKind::Text(text) | ExprKind::Word(text) if !text.contains(['\'', '}', '$']) => {
            Some(format!("'{text}'"))
        }
        _ => None,
    };
    let items: Option<Vec<String>> = items.iter().map(quoted).collect();
    let Some(items) = items.filter(|items| !items.is_empty()) else {
        return Err(Some("write a list of texts without quotes, `$` and `}`".to_owned()));
    };
    if call.name == "choose" {
        cx.translator.translated(&expr.span, "choose");
    } else {
        let how = "MZBench takes the values in turn over all workers; the scenario takes them at \
                   random";
        cx.translator.approximated(&expr.span, "round_robin", how);
    }
    if let [item] = &items[..] {
        return Ok(item.trim_matches('\'').to_owned());
    }
    Ok(format!("${{choice({})}}", items.join(", ")))
}

/// Returns a format of Erlang with its values in their places.
fn sprintf(
    cx: &mut Context<'_, '_>,
    expr: &Expr,
    format: &Expr,
    values: &[Expr],
) -> Result<String, Option<String>> {
    let format = format.text().ok_or_else(|| Some("write the text of the format".to_owned()))?;
    let format = escape(format);
    let values = match values {
        [Expr { kind: ExprKind::List(values), .. }] => &values[..],
        values => values,
    };
    let (mut values, mut text) = (values.iter(), String::new());
    let mut letters = format.chars();
    while let Some(letter) = letters.next() {
        if letter != '~' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('p' | 's' | 'w' | 'b' | 'B') => match values.next() {
                Some(value) => append(&mut text, &template(cx, value)?),
                None => {
                    let label = "expected a value for each `~`";
                    cx.translator.mistake(&expr.span, "`sprintf` has too few values", label);
                    return Err(None);
                }
            },
            Some('n') => text.push('\n'),
            Some('~') => text.push('~'),
            _ => return Err(Some("write the text of the format: it has other `~`".to_owned())),
        }
    }
    cx.translator.translated(&expr.span, "sprintf");
    Ok(text)
}

/// Longest random message, in bytes.
const BYTES_MAX: f64 = 1e9;
