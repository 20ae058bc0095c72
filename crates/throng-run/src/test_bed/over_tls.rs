//! Targets and scenarios over TLS, in the place of plain ones.

use throng_load::scenario::Scheme;

/// Returns the target with the scheme over TLS.
pub(super) fn target_over_tls(target: &str) -> String {
    let of = |scheme: &Scheme| {
        let rest = target.strip_prefix(scheme.as_str()).filter(|rest| rest.starts_with("://"))?;
        Some(format!("{}{rest}", scheme.over_tls()))
    };
    Scheme::ALL.iter().find_map(of).unwrap_or_else(|| target.to_owned())
}

/// Returns the text of a scenario with its target over TLS, and without a check of the server's
/// certificate. One that is over TLS already stays as it is.
pub(super) fn scenario_over_tls(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let target = line.strip_prefix("target:").map(str::trim);
        let secure = target.map(target_over_tls);
        match target.zip(secure) {
            Some((target, secure)) if target != secure => {
                out.push_str(&format!("target: {secure}\ntls: {{verify: none}}\n"));
            }
            _ => out.push_str(line),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use throng_load::scenario::Scenario;

    use super::*;

    #[test]
    fn a_scenario_is_moved_to_a_target_over_tls() {
        let text = "# target: tcp://h:1\ntarget: ws://127.0.0.1:5555/chat\n\
                    load: [ramp: {to: 1, over: 1s}]\nuser: [connect, stay]\n";
        let secure = scenario_over_tls(text);
        let scenario = Scenario::parse(&secure, "lab.yaml").unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(scenario.target.to_string(), "wss://127.0.0.1:5555/chat");
        assert_eq!(scenario_over_tls(&secure), secure);
        assert_eq!(target_over_tls("tcp://127.0.0.1:1"), "tls://127.0.0.1:1");
    }
}
