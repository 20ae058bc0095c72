//! Flags of the servers that speak WebSocket.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use throng_server::Limits;
use throng_server::channels::{Channels, CheckOrigin, Origin};
use throng_server::handlers::ChatOptions;
use throng_server::pubsub::{Policy, Rulebook, TopicRules};

use crate::quantity;

#[derive(Clone, Debug, Args)]
pub(super) struct Flags {
    /// Compress messages for clients that offer it (permessage-deflate)
    #[arg(long, help_heading = "WebSocket options")]
    deflate: bool,
    /// What becomes of broadcasts for a client that does not read: drop-newest, drop-oldest, keep-latest, or close it
    /// [default: close]
    #[arg(long, value_name = "POLICY", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(Policy::ALL.map(Policy::name)),
        help_heading = "WebSocket options")]
    policy: Option<String>,
    /// Bytes of one topic that may wait for a client that does not read [default: 512KiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes,
        help_heading = "WebSocket options")]
    queue: Option<u32>,
    /// How long a request may take to arrive, and a connection to become a WebSocket [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration,
        help_heading = "WebSocket options")]
    handshake_timeout: Option<Duration>,
    /// Bytes of a message, all its frames together and inflated; longer ones end the connection [default: 1MiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes,
        help_heading = "WebSocket options")]
    message_max: Option<u32>,
    /// Whose pages may connect to channels: host (this one's), connection (scheme and port too), off, or a list of
    /// origins such as https://example.com,//*.example.org [default: host]
    #[arg(long, value_name = "WHOSE", value_parser = check_origin, help_heading = "WebSocket options")]
    check_origin: Option<CheckOrigin>,
    /// Channels that one connection may join [default: 100]
    #[arg(long, value_name = "N", value_parser = quantity::count, help_heading = "WebSocket options")]
    max_channels: Option<usize>,
}

impl Flags {
    /// A flag that was given and that only channels understand.
    pub(super) fn of_channels(&self) -> Option<&'static str> {
        let given = [
            (self.check_origin.is_some(), "--check-origin"),
            (self.max_channels.is_some(), "--max-channels"),
        ];
        given.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name)
    }

    /// A flag that was given and that a server of plain TCP does not understand.
    pub(super) fn of_websockets(&self) -> Option<&'static str> {
        let given = [
            (self.deflate, "--deflate"),
            (self.policy.is_some(), "--policy"),
            (self.queue.is_some(), "--queue"),
            (self.handshake_timeout.is_some(), "--handshake-timeout"),
            (self.message_max.is_some(), "--message-max"),
        ];
        let given = given.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name);
        given.or_else(|| self.of_channels())
    }

    /// `channels` as the flags want them.
    pub(super) fn channels(&self, channels: Channels, timeout: Option<Duration>) -> Channels {
        let channels = channels
            .check_origin(self.check_origin.clone().unwrap_or(CheckOrigin::Host))
            .channels_max(self.max_channels.unwrap_or(CHANNELS_MAX_DEFAULT))
            .deflate(self.deflate)
            .limits(self.limits())
            .topics(self.topics());
        match timeout {
            Some(timeout) => channels.timeout(timeout),
            None => channels,
        }
    }

    /// The chat as the flags want it.
    pub(super) fn chat(&self, idle_timeout: Option<Duration>) -> ChatOptions {
        ChatOptions {
            limits: self.limits(),
            deflate: self.deflate,
            rules: self.rules(),
            idle_timeout,
        }
    }

    /// What a client may ask for.
    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        if let Some(bytes) = self.message_max {
            limits.message_bytes_max = bytes as usize;
            limits.frame_bytes_max = bytes as usize;
        }
        if let Some(timeout) = self.handshake_timeout {
            limits.handshake_timeout_ms = timeout.as_millis().try_into().unwrap_or(u32::MAX);
        }
        limits
    }

    /// What becomes of broadcasts that somebody is too slow for.
    fn topics(&self) -> Rulebook {
        Rulebook::all(self.rules())
    }

    fn rules(&self) -> TopicRules {
        let mut rules = TopicRules::default();
        if let Some(policy) = self.policy.as_deref().and_then(|policy| policy.parse().ok()) {
            rules.policy = policy;
        }
        if let Some(bytes) = self.queue {
            rules.queue_bytes_max = bytes as usize;
        }
        rules
    }
}

/// Phoenix's own.
const CHANNELS_MAX_DEFAULT: usize = 100;

fn check_origin(text: &str) -> Result<CheckOrigin, String> {
    Ok(match text {
        "host" => CheckOrigin::Host,
        "connection" => CheckOrigin::Connection,
        "off" => CheckOrigin::Off,
        list => {
            let origins = list.split(',').map(str::parse::<Origin>).collect::<Result<_, _>>();
            CheckOrigin::List(origins.map_err(|error| error.to_string())?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_that_is_none_is_refused_with_examples() {
        assert_eq!(check_origin("off"), Ok(CheckOrigin::Off));
        assert!(
            matches!(check_origin("//a.com,https://b.org"), Ok(CheckOrigin::List(list)) if list.len() == 2)
        );
        assert!(check_origin("//a.com,b.org").unwrap_err().contains("`b.org`"));
    }
}
