//! Names of a source as names of a scenario.

/// Returns the name in the letters that names of values have.
pub(crate) fn identifier(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(letter).take(NAME_CHARS_MAX).collect();
    let begins_well = name.starts_with(|first: char| first.is_ascii_alphabetic());
    let name = if begins_well { name } else { format!("v_{name}") };
    if RESERVED.contains(&&*name) { format!("{name}_value") } else { name }
}

/// Names that mean something else in a scenario.
const RESERVED: [&str; 16] = [
    "user", "row", "env", "setup", "sent", "counter", "random", "choice", "uuid", "time", "base64",
    "json", "sha256", "probe", "true", "false",
];

/// The longest name of a value.
const NAME_CHARS_MAX: usize = 32;
