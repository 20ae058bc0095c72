//! The limits on what a client of chat or channels can make the server keep or do: one table for
//! `--help` and docs/channels.md.

use std::time::Duration;

use throng_base::units::{show_bytes, show_count, show_duration};
use throng_report::render::{Align, Table};
use throng_server::channels::{PresenceLimits, defaults};
use throng_server::pubsub::TopicRules;
use throng_server::{ServerOptions, WebSocketLimits};

/// A row of the table.
struct Limit {
    /// The limit's name in the library.
    setting: &'static str,
    /// The default, of both kinds or of each.
    default: String,
    /// The consequence of exceeding it.
    beyond: &'static str,
    /// The flags that set it, or an empty string if no flag does.
    flag: &'static str,
}

/// Returns the last part of `throng serve --help`.
pub(super) fn help() -> String {
    let mut table = Table::new().aligned(&[Align::Left; 4]);
    for Limit { setting, default, beyond, flag } in limits() {
        table.row([format!("  {setting}"), default, beyond.to_owned(), flag.to_owned()]);
    }
    format!("Limits on clients of chat and channels, and what happens beyond them:\n{table}")
}

/// Returns all limits. The default of a limit that only channels have says so.
fn limits() -> Vec<Limit> {
    let (chat, channels) = (WebSocketLimits::default(), defaults::limits());
    let (rules, server, presence) =
        (TopicRules::default(), ServerOptions::default(), PresenceLimits::default());
    let bytes = |bytes: usize| show_bytes(bytes as u64);
    let each = |chat: String, channels: String| format!("{chat}; channels {channels}");
    let only = |channels: String| format!("channels {channels}");
    let ms = |ms: u32| show_duration(Duration::from_millis(ms.into()));
    let count = |count: usize| show_count(count as u64);
    let row = |setting, default, beyond, flag| Limit { setting, default, beyond, flag };
    vec![
        row("head_bytes_max", bytes(chat.head_bytes_max), "HTTP 431, 414", ""),
        row(
            "body_bytes_max",
            each(bytes(0), format!("{} in long-polls", bytes(channels.body_bytes_max))),
            "HTTP 413",
            "",
        ),
        row("handshake_timeout", ms(chat.handshake_timeout_ms), "HTTP 408", "--handshake-timeout"),
        row(
            "message_bytes_max",
            each(bytes(chat.message_bytes_max), bytes(channels.message_bytes_max)),
            "close 1009",
            "--message-max",
        ),
        row("inflate_ratio_max", chat.inflate_ratio_max.to_string(), "close 1009", ""),
        row("message_timeout", ms(chat.message_timeout_ms), "close 1008", "--message-timeout"),
        row(
            "idle_timeout",
            each("none".to_owned(), show_duration(defaults::TIMEOUT)),
            "close 1002",
            "--idle-timeout",
        ),
        row("close_timeout", ms(chat.close_timeout_ms), "closed", ""),
        row("queue_bytes_max", bytes(rules.queue_bytes_max), "the policy", "--policy, --queue"),
        row("pending_bytes_max", bytes(server.pending_bytes_max), "reset", ""),
        row("channels_max", only(count(defaults::CHANNELS_MAX)), "join refused", "--max-channels"),
        row("name_bytes_max", only(bytes(defaults::NAME_BYTES_MAX)), "join refused", ""),
        row(
            "poll_sessions_max",
            only(count(defaults::POLL_SESSIONS_MAX)),
            "403 in the body",
            "--poll-sessions-max",
        ),
        row(
            "poll_session_bytes_max",
            only(bytes(defaults::POLL_SESSION_BYTES_MAX)),
            "session ends",
            "",
        ),
        row(
            "poll_bytes_max",
            only(format!("{} a core", bytes(defaults::POLL_BYTES_MAX))),
            "session ends",
            "--poll-bytes-max",
        ),
        row(
            "presence_members_max",
            only(format!("{} a topic", count(presence.members_max))),
            "join refused",
            "--presence-members-max",
        ),
        row("presence_key_bytes_max", only(bytes(presence.key_bytes_max)), "join refused", ""),
        row("presence_meta_bytes_max", only(bytes(presence.meta_bytes_max)), "join refused", ""),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/channels.md");

    #[test]
    fn every_limit_is_documented_with_its_default_and_its_flag() {
        let document = std::fs::read_to_string(DOCUMENT).unwrap();
        for Limit { setting, default, beyond, flag } in limits() {
            let row = format!("| `{setting}` | {default} | {beyond} |");
            let found = document.lines().find(|line| line.starts_with(&row));
            let found = found.unwrap_or_else(|| panic!("docs/channels.md has no row {row}"));
            let flags = flag.split(", ").filter(|flag| !flag.is_empty());
            for flag in flags {
                assert!(found.contains(&format!("`{flag}`")), "{flag} is not in {found}");
            }
        }
    }

    #[test]
    fn the_help_fits_a_terminal() {
        for line in help().lines() {
            assert!(line.chars().count() <= 100, "{line}");
        }
    }
}
