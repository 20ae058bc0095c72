//! What an unknown key or step means: one that is spelled alike, or what another tool calls so.

use throng_base::units::nearest;

/// Returns the one of `known` that `name` stands for.
pub(super) fn key<'k>(name: &str, known: &[&'k str]) -> Option<&'k str> {
    let of_other_tools = || {
        let (_, keys) = SYNONYMS.iter().find(|(names, _)| names.contains(&name))?;
        known.iter().copied().find(|known| keys.contains(known))
    };
    nearest(name, known.iter().copied()).or_else(of_other_tools)
}

/// Names that other tools use, and the keys that stand for the same here.
const SYNONYMS: [(&[&str], &[&str]); 12] = [
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_another_tool_stands_for_a_known_key_only() {
        assert_eq!(key("sleep", &["wait", "send"]), Some("wait"));
        assert_eq!(key("duration", &["for", "do"]), Some("for"));
        assert_eq!(key("duration", &["to", "over"]), Some("over"));
        assert_eq!(key("url", &["headers", "path"]), Some("path"));
        assert_eq!(key("sleep", &["send"]), None);
        assert_eq!(key("conect", &["close", "connect"]), Some("connect"));
    }
}
