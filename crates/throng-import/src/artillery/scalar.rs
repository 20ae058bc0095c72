//! Single values as Artillery has them: its parser (js-yaml 3, `type/int.js`, `type/float.js`,
//! `type/timestamp.js`) takes more forms for numbers than JSON has.

use throng_load::scenario::YamlNode;

use crate::javascript::show_number;
use crate::source::Source;

/// What a single value without quotes is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    /// A number, `true` or `false`, as JavaScript writes it in JSON and in a text.
    Typed {
        json: String,
        text: String,
    },
    Text(String),
}

impl Scalar {
    /// Returns what the text of `node` is.
    pub(super) fn of(source: &Source<'_>, node: &YamlNode, text: &str) -> Self {
        let begin = source.slice(&node.span).trim_start().chars().next();
        let is_plain = !matches!(begin, Some('"' | '\'' | '|' | '>'));
        let typed = is_plain.then(|| parse(text)).flatten();
        typed.unwrap_or_else(|| Self::Text(text.to_owned()))
    }

    /// Returns what stands in a text.
    pub(super) fn into_text(self) -> String {
        match self {
            Self::Typed { text, .. } | Self::Text(text) => text,
        }
    }
}

/// Returns the value of a word that is no text.
fn parse(word: &str) -> Option<Scalar> {
    let same = |word: &str| Scalar::Typed { json: word.to_owned(), text: word.to_owned() };
    let special = |text: &str| Scalar::Typed { json: "null".to_owned(), text: text.to_owned() };
    match word {
        "true" | "True" | "TRUE" => return Some(same("true")),
        "false" | "False" | "FALSE" => return Some(same("false")),
        ".nan" | ".NaN" | ".NAN" => return Some(special("NaN")),
        _ => {}
    }
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => (-1.0, digits),
        None => (1.0, word.strip_prefix('+').unwrap_or(word)),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return Some(special(if sign < 0.0 { "-Infinity" } else { "Infinity" }));
    }
    if let Some(date) = date(word) {
        return Some(Scalar::Typed { json: format!("\"{date}\""), text: date });
    }
    // A fraction without a digit before it has no sign.
    let is_signed = digits.len() < word.len();
    let number = magnitude(digits).filter(|_| !(is_signed && digits.starts_with('.')))?;
    Some(same(&show_number(sign * number)))
}

/// Returns the value of a number without its sign.
fn magnitude(digits: &str) -> Option<f64> {
    if digits.starts_with('_') || digits.ends_with('_') {
        return None;
    }
    let bare = digits.replace('_', "");
    let of_base = |digits: &str, base: u32| {
        let value = |sum: Option<f64>, digit: char| {
            sum.and_then(|sum| Some(sum * f64::from(base) + f64::from(digit.to_digit(base)?)))
        };
        (!digits.is_empty()).then(|| digits.chars().fold(Some(0.0), value)).flatten()
    };
    if let Some(digits) = bare.strip_prefix("0x") {
        return of_base(digits, 16);
    }
    if let Some(digits) = bare.strip_prefix("0b") {
        return of_base(digits, 2);
    }
    if bare.len() > 1 && bare.starts_with('0') && bare.chars().all(|c| c.is_ascii_digit()) {
        return of_base(&bare, 8);
    }
    if bare.contains(':') {
        return sexagesimal(&bare);
    }
    let (mantissa, exponent) = match bare.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (bare.as_str(), 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_number = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let is_whole = whole == "0" || (!whole.starts_with('0') && is_number(whole));
    let has_digits = !(whole.is_empty() && fraction.is_empty());
    let fits = is_whole && is_number(fraction) && has_digits;
    fits.then(|| format!("0{whole}.{fraction}0e{exponent}").parse().ok()).flatten()
}

/// Returns the value of `190:20:30`.
fn sexagesimal(digits: &str) -> Option<f64> {
    let (first, rest) = digits.split_once(':')?;
    let first: f64 = first.parse::<u32>().ok().filter(|first| *first > 0)?.into();
    rest.split(':').try_fold(first, |sum, part| {
        let part = part.parse::<u32>().ok().filter(|part| *part < 60)?;
        Some(sum * 60.0 + f64::from(part))
    })
}

/// Returns the moment of `2001-01-31`, as JavaScript writes it in JSON.
fn date(word: &str) -> Option<String> {
    let parts: Vec<_> = word.split('-').collect();
    let [year, month, day] = parts.as_slice() else { return None };
    let has = |part: &str, digits: usize| {
        part.len() == digits && part.chars().all(|c| c.is_ascii_digit())
    };
    (has(year, 4) && has(month, 2) && has(day, 2)).then(|| format!("{word}T00:00:00.000Z"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures are those that Artillery 2.0.34 has sent.
    #[test]
    fn a_number_is_what_artillery_sends() {
        for (word, sent) in [
            (".5", "0.5"),
            ("+1", "1"),
            ("1.", "1"),
            ("0x1F", "31"),
            ("1_000", "1000"),
            ("017", "15"),
            ("-017", "-15"),
            ("1e3", "1000"),
            ("1e+3", "1000"),
            ("1.50", "1.5"),
            ("0b11", "3"),
            ("190:20:30", "685230"),
            ("1_0.5", "10.5"),
            ("0x_F", "15"),
            ("1e300", "1e+300"),
            ("1e-7", "1e-7"),
            ("-0", "0"),
            ("True", "true"),
            (".inf", "null"),
            ("2001-01-01", "\"2001-01-01T00:00:00.000Z\""),
        ] {
            let Some(Scalar::Typed { json, .. }) = parse(word) else { panic!("{word}") };
            assert_eq!(json, sent, "{word}");
        }
        for word in ["-.5", "08", "yes", "0o17", "1:60", "", ".", "_1", "1_", "e3", "1e", "x", "-"]
        {
            assert_eq!(parse(word), None, "{word}");
        }
    }
}
