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
    #[arg(long, value_name = "POLICY", default_value = Policy::default().name(), hide_possible_values = true,
        value_parser = PossibleValuesParser::new(Policy::ALL.map(Policy::name)),
        help_heading = "WebSocket options")]
    policy: String,
    /// Bytes of one topic that may wait for a client that does not read
    #[arg(long, value_name = "BYTES", default_value = "512KiB", value_parser = quantity::socket_bytes,
        help_heading = "WebSocket options")]
    queue: u32,
    /// How long a request may take to arrive, and a connection to become a WebSocket
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration,
        help_heading = "WebSocket options")]
    handshake_timeout: Duration,
    /// Bytes of a message, all its frames together and inflated; longer ones end the connection
    #[arg(long, value_name = "BYTES", default_value = "1MiB", value_parser = quantity::socket_bytes,
        help_heading = "WebSocket options")]
    message_max: u32,
    /// Whose pages may connect to channels: host (this one's), connection (scheme and port too), off, or a list of
    /// origins such as https://example.com,//*.example.org
    #[arg(long, value_name = "WHOSE", default_value = "host", value_parser = check_origin,
        help_heading = "WebSocket options")]
    check_origin: CheckOrigin,
    /// Channels that one connection may join
    #[arg(long, value_name = "N", default_value = "100", value_parser = quantity::count,
        help_heading = "WebSocket options")]
    max_channels: usize,
}

impl Flags {
    /// `channels` as the flags want them.
    pub(super) fn channels(&self, channels: Channels, timeout: Option<Duration>) -> Channels {
        let channels = channels
            .check_origin(self.check_origin.clone())
            .channels_max(self.max_channels)
            .deflate(self.deflate)
            .limits(self.limits())
            .topics(self.topics());
        match timeout {
            Some(timeout) => channels.timeout(timeout),
            None => channels,
        }
    }

    /// The chat as the flags want it.
    pub(super) fn chat(&self) -> ChatOptions {
        ChatOptions { limits: self.limits(), deflate: self.deflate, rules: self.rules() }
    }

    /// What a client may ask for.
    fn limits(&self) -> Limits {
        let message_bytes_max = self.message_max as usize;
        let handshake_timeout_ms = self.handshake_timeout.as_millis();
        Limits {
            message_bytes_max,
            frame_bytes_max: message_bytes_max,
            handshake_timeout_ms: handshake_timeout_ms.try_into().unwrap_or(u32::MAX),
            ..Limits::default()
        }
    }

    /// What becomes of broadcasts that somebody is too slow for.
    fn topics(&self) -> Rulebook {
        Rulebook::all(self.rules())
    }

    fn rules(&self) -> TopicRules {
        let policy = self.policy.parse().unwrap_or_default();
        let queue_bytes_max = self.queue as usize;
        TopicRules { policy, queue_bytes_max, ..TopicRules::default() }
    }
}

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
