//! Flags of the servers that speak WebSocket.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use throng_server::channels::{Channels, CheckOrigin};
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
            .topics(self.topics());
        match timeout {
            Some(timeout) => channels.timeout(timeout),
            None => channels,
        }
    }

    /// What becomes of broadcasts that somebody is too slow for.
    pub(super) fn topics(&self) -> Rulebook {
        let policy = self.policy.parse().unwrap_or_default();
        let queue_bytes_max = self.queue as usize;
        Rulebook::all(TopicRules { policy, queue_bytes_max, ..TopicRules::default() })
    }
}

fn check_origin(text: &str) -> Result<CheckOrigin, String> {
    Ok(match text {
        "host" => CheckOrigin::Host,
        "connection" => CheckOrigin::Connection,
        "off" => CheckOrigin::Off,
        list => {
            let origins = list.split(',').map(str::parse).collect::<Result<_, _>>();
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
        assert!(matches!(check_origin("//a.com,https://b.org"), Ok(CheckOrigin::List(list)) if list.len() == 2));
        assert!(check_origin("//a.com,b.org").unwrap_err().contains("`b.org`"));
    }
}
