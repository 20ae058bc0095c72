//! What a run shows of its target over TLS, and the words for it.

use std::time::Duration;

use throng_base::units::show_utc;
use throng_measure::{RunEventKind, TargetTls};

use crate::outages::events;
use crate::run_view::RunView;

/// Returns what the handshakes of all machines have shown of the target, the first of each; empty
/// if the run is not over TLS, or its file is an older one.
pub(crate) fn target_tls(run: &RunView<'_>) -> TargetTls {
    let mut all: Option<TargetTls> = None;
    for (_, event) in events(run) {
        let RunEventKind::TargetTls(seen) = event else { continue };
        match &mut all {
            Some(all) => all.complete_with(seen),
            None => all = Some(seen.clone()),
        }
    }
    all.unwrap_or_default()
}

/// Returns the address of a target, for commands: `127.0.0.1:443`.
pub(crate) fn address(target: &str) -> &str {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    rest.split(['/', '?', ',']).next().unwrap_or(rest)
}

/// Returns the command that shows the certificate of a target.
pub(crate) fn shows_certificate(target: &str, what: &str) -> String {
    let address = address(target);
    format!("openssl s_client -connect {address} </dev/null | openssl x509 -noout {what}")
}

/// Returns the day of a moment in seconds of Unix: `2026-11-29`.
pub(crate) fn day(unix_s: u64) -> String {
    let mut text = show_utc(Duration::from_secs(unix_s));
    text.truncate(text.find('T').unwrap_or(text.len()));
    text
}

/// Returns a length of time in the largest unit of which it has two: `40 days`, `26 hours`.
pub(crate) fn length(seconds: u64) -> String {
    let units = [("days", 86_400), ("hours", 3_600), ("minutes", 60)];
    let unit = units.into_iter().find(|(_, length)| seconds >= 2 * length);
    unit.map_or_else(
        || format!("{seconds} seconds"),
        |(name, length)| format!("{} {name}", seconds / length),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_target_and_for_times() {
        for (target, expected) in [
            ("wss://chat.example:443/live/ws?vsn=2", "chat.example:443"),
            ("https://[::1]:8443", "[::1]:8443"),
            ("tls://10.0.0.1:1,10.0.0.2:1", "10.0.0.1:1"),
        ] {
            assert_eq!(address(target), expected);
        }
        assert_eq!(day(1_795_824_000), "2026-11-28");
        let lengths = [59, 119, 3_599, 7_200, 172_799, 40 * 86_400].map(length);
        assert_eq!(
            lengths,
            ["59 seconds", "119 seconds", "59 minutes", "2 hours", "47 hours", "40 days"]
        );
    }
}
