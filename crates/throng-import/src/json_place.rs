//! Places in JSON.

use crate::yaml::Yaml;

/// Returns the JSON pointer of a JSONPath that names one place, such as `$.user.items[0]`.
pub(crate) fn pointer(path: &str) -> Option<String> {
    let path = path.strip_prefix('$').unwrap_or(path);
    let path = path.replace("['", ".").replace("[\"", ".").replace("']", "").replace("\"]", "");
    let path = path.replace('[', ".").replace(']', "");
    let path = path.strip_prefix('.').unwrap_or(&path);
    let is_name = |name: &str| {
        !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@'))
    };
    let names: Vec<_> = path.split('.').collect();
    names.iter().all(|name| is_name(name)).then(|| format!("/{}", names.join("/")))
}

/// Returns the pattern of JSON that has `value` at `pointer`; `None` within an array.
pub(crate) fn at(pointer: &str, value: Yaml) -> Option<Yaml> {
    let names: Vec<_> = pointer.trim_start_matches('/').split('/').collect();
    let is_index = |name: &&str| name.chars().all(|c| c.is_ascii_digit());
    if names.iter().any(is_index) {
        return None;
    }
    Some(names.iter().rev().fold(value, |value, name| Yaml::entry(name, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_to_one_place_is_a_pointer() {
        for (path, expected) in [
            ("$.id", "/id"),
            ("id", "/id"),
            ("$.a.b[0].c", "/a/b/0/c"),
            ("$['a']['b-c']", "/a/b-c"),
            ("$[0].id", "/0/id"),
        ] {
            assert_eq!(pointer(path).as_deref(), Some(expected), "{path}");
        }
        for path in ["$", "$..id", "$.a[*]", "$.a[?(@.b>1)]", ""] {
            assert_eq!(pointer(path), None, "{path}");
        }
    }
}
