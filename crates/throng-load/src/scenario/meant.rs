//! What an unknown key or step means: one that is spelled alike, or what another tool calls so.

use throng_base::units::nearest;

/// Returns the one of `known` that `name` stands for.
pub(super) fn key<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let of_other_tools = || {
        let groups = SYNONYMS.iter().filter(|(names, _)| names.contains(&name));
        let mut keys = groups.flat_map(|(_, keys)| *keys);
        keys.find_map(|key| known.iter().copied().find(|known| known == key))
    };
    nearest(name, known.iter().copied()).or_else(of_other_tools)
}

/// Returns where in a scenario a key belongs that stands at its top in other tools.
pub(super) fn place(name: &str) -> Option<&'static str> {
    let found = PLACES.iter().find(|(names, _)| names.contains(&name));
    found.map(|(_, place)| *place)
}

/// Names that other tools use, and the keys that stand for the same here.
const SYNONYMS: [(&[&str], &[&str]); 14] = [
    (&["stages", "phases", "vus", "duration", "arrivals", "ramp", "hold"], &["load"]),
    (&["steps", "flow", "scenario", "scenarios"], &["user"]),
    (&["sleep", "think", "pause", "delay", "thinktime"], &["wait"]),
    (&["loop", "times", "foreach"], &["repeat"]),
    (&["interval", "pace"], &["period", "every"]),
    (&["duration", "during", "time"], &["over", "for"]),
    (&["users", "vus", "connections", "clients", "target"], &["to"]),
    (&["steps", "flow", "then", "actions"], &["do"]),
    (&["count", "iterations"], &["times"]),
    (&["url", "uri"], &["path"]),
    (&["data", "payload", "message"], &["body", "text"]),
    (&["assert", "check", "match"], &["expect"]),
    (&["disconnect", "quit", "end"], &["close"]),
    (&["emit", "write", "say"], &["send"]),
];

/// Keys of other tools, each with the place where a scenario has it.
const PLACES: [(&[&str], &str); 3] = [
    (&["headers", "cookies"], "write `headers` in each request, or in `connect`"),
    (&["timeout"], "each step that waits has a `timeout`, such as `get: {path: /, timeout: 2s}`"),
    (&["connect", "send", "get", "post", "wait"], "a step stands in the list under `user`"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_another_tool_stands_for_a_known_key_only() {
        assert_eq!(key("sleep", &["wait", "send"]), Some("wait"));
        assert_eq!(key("duration", &["for", "do"]), Some("for"));
        assert_eq!(key("duration", &["to", "over"]), Some("over"));
        assert_eq!(key("url", &["headers", "path"]), Some("path"));
        assert_eq!(key("duration", &["load", "user"]), Some("load"));
        assert_eq!(key("sleep", &["send"]), None);
        assert_eq!(key("conect", &["close", "connect"]), Some("connect"));
    }
}
