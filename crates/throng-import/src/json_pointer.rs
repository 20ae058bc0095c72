//! JSON pointers (RFC 6901), by which a scenario names a place in JSON.

use crate::yaml::Yaml;

/// A place in JSON, such as `/user/items/0`. The whole value is the empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JsonPointer(Vec<String>);

impl JsonPointer {
    /// Returns the place that a JSONPath names, such as `$.user.items[0]` or `$['a']`; `None` if it
    /// may be several.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        let path = path.strip_prefix('$').unwrap_or(path);
        let path = path.replace("['", ".").replace("[\"", ".").replace("']", "").replace("\"]", "");
        let path = path.replace('[', ".").replace(']', "");
        let path = path.strip_prefix('.').unwrap_or(&path);
        let is_kept =
            |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '@' | '/' | '~');
        let is_name = |name: &str| !name.is_empty() && name.chars().all(is_kept);
        let names: Vec<_> = path.split('.').map(str::to_owned).collect();
        names.iter().all(|name| is_name(name)).then_some(Self(names))
    }

    /// Returns the place of the member or item `key` in this one.
    pub(crate) fn join(&self, key: &str) -> Self {
        Self(self.0.iter().cloned().chain([key.to_owned()]).collect())
    }

    /// Reports whether it is the whole value.
    pub(crate) fn is_whole(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns it as the value of a capture.
    pub(crate) fn write(&self) -> Yaml {
        let escaped = |name: &String| format!("/{}", name.replace('~', "~0").replace('/', "~1"));
        Yaml::text(self.0.iter().map(escaped).collect::<String>())
    }

    /// Returns the pattern of JSON that has `value` there; `None` within an array.
    pub(crate) fn pattern(&self, value: Yaml) -> Option<Yaml> {
        let is_index = |name: &String| name.chars().all(|c| c.is_ascii_digit());
        if self.0.iter().any(is_index) {
            return None;
        }
        Some(self.0.iter().rev().fold(value, |value, name| Yaml::entry(name, value)))
    }
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
            ("$.a/b.c~d", "/a~1b/c~0d"),
        ] {
            let pointer = JsonPointer::of_path(path).map(|pointer| pointer.write());
            assert_eq!(pointer, Some(Yaml::text(expected)), "{path}");
        }
        for path in ["$", "$..id", "$.a[*]", "$.a[?(@.b>1)]", "$.a[0,1]", ""] {
            assert_eq!(JsonPointer::of_path(path), None, "{path}");
        }
    }
}
