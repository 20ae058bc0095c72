//! Flags of the servers that speak WebSocket.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use throng_server::channels::{CheckOrigin, Origin, PresenceLimits};
use throng_server::kinds::{ChannelsOptions, ServerProtocol, WebSocketKindOptions};
use throng_server::pubsub::{Policy, TopicRules};

use crate::quantity;

#[derive(Clone, Debug, Args)]
pub(super) struct Flags {
    /// Compress messages for clients that offer it (permessage-deflate)
    #[arg(long, help_heading = "WebSocket options")]
    deflate: bool,
    /// Policy for broadcasts to a client that does not read: drop-newest, drop-oldest, keep-latest,
    /// or close the connection [default: close]
    #[arg(long, value_name = "POLICY", hide_possible_values = true,
        value_parser = PossibleValuesParser::new(Policy::ALL.map(Policy::name)),
        help_heading = "WebSocket options")]
    policy: Option<String>,
    /// Bytes of one topic that may wait for a client that does not read [default: 512KiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes,
        help_heading = "WebSocket options")]
    queue: Option<u32>,
    /// Time for a request to arrive, and for a connection to become a WebSocket [default: 10s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration,
        help_heading = "WebSocket options")]
    handshake_timeout: Option<Duration>,
    /// Bytes of a message, all its frames together and inflated; a longer one ends the connection
    /// [default: 1MiB; channels: 8MiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes,
        help_heading = "WebSocket options")]
    message_max: Option<u32>,
    /// Time from the first byte of a message to its last, pings in between or not; a slower one
    /// ends the connection [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration,
        help_heading = "WebSocket options")]
    message_timeout: Option<Duration>,
    /// Pages that may connect: host (pages of this host, see --host), connection (the same scheme
    /// and port too), off (all pages), or a list of origins such as
    /// `https://example.com,//*.example.org` [default: host]
    #[arg(long, value_name = "WHOSE", value_parser = check_origin,
        help_heading = "WebSocket options")]
    check_origin: Option<CheckOrigin>,
    /// Name of this server in the addresses of its pages; the origin of a page must have it
    /// [default: any IP address, and localhost]
    #[arg(long, value_name = "NAME", value_parser = host, help_heading = "WebSocket options")]
    host: Option<String>,
    /// Channels that one connection may join [default: 100]
    #[arg(long, value_name = "N", value_parser = quantity::count,
        help_heading = "Channels' options")]
    max_channels: Option<usize>,
    /// Long-poll sessions over all cores; they are not part of --connections-max [default: 1000]
    #[arg(long, value_name = "N", value_parser = quantity::count,
        help_heading = "Channels' options")]
    poll_sessions_max: Option<usize>,
    /// Bytes that all long-poll sessions of a core keep for their next polls; a session that finds
    /// no room ends [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes,
        help_heading = "Channels' options")]
    poll_bytes_max: Option<u32>,
    /// Members of a topic's presence; further clients cannot join the topic [default: 10000]
    #[arg(long, value_name = "N", value_parser = quantity::count,
        help_heading = "Channels' options")]
    presence_members_max: Option<usize>,
}

impl Flags {
    /// Returns the flags on the command line, each with the first protocol that reads it.
    pub(super) fn given(&self) -> Vec<(&'static str, ServerProtocol)> {
        use ServerProtocol::{Channels, WebSocket};
        let flags = [
            (self.deflate, "--deflate", WebSocket),
            (self.policy.is_some(), "--policy", WebSocket),
            (self.queue.is_some(), "--queue", WebSocket),
            (self.handshake_timeout.is_some(), "--handshake-timeout", WebSocket),
            (self.message_max.is_some(), "--message-max", WebSocket),
            (self.message_timeout.is_some(), "--message-timeout", WebSocket),
            (self.check_origin.is_some(), "--check-origin", WebSocket),
            (self.host.is_some(), "--host", WebSocket),
            (self.max_channels.is_some(), "--max-channels", Channels),
            (self.poll_sessions_max.is_some(), "--poll-sessions-max", Channels),
            (self.poll_bytes_max.is_some(), "--poll-bytes-max", Channels),
            (self.presence_members_max.is_some(), "--presence-members-max", Channels),
        ];
        let given = flags.into_iter().filter(|(is_given, ..)| *is_given);
        given.map(|(_, name, protocol)| (name, protocol)).collect()
    }

    /// Returns the options of kinds that speak WebSocket.
    pub(super) fn websocket(&self) -> WebSocketKindOptions {
        WebSocketKindOptions {
            check_origin: self.check_origin.clone().unwrap_or_default(),
            host: self.host.clone(),
            deflate: self.deflate,
            rules: self.rules(),
            message_bytes_max: self.message_max.map(|bytes| bytes as usize),
            handshake_timeout: self.handshake_timeout,
            message_timeout: self.message_timeout,
        }
    }

    /// Returns the options of kinds that speak Phoenix Channels.
    pub(super) fn channels(&self) -> ChannelsOptions {
        let default = ChannelsOptions::default();
        let members_max = self.presence_members_max.unwrap_or(default.presence.members_max);
        ChannelsOptions {
            channels_max: self.max_channels.unwrap_or(default.channels_max),
            poll_sessions_max: self.poll_sessions_max.unwrap_or(default.poll_sessions_max),
            poll_bytes_max: self.poll_bytes_max.map_or(default.poll_bytes_max, |n| n as usize),
            presence: PresenceLimits { members_max, ..default.presence },
        }
    }

    /// Describes the pages that may connect.
    pub(super) fn origins(&self) -> String {
        match (self.check_origin.clone().unwrap_or_default(), &self.host) {
            (CheckOrigin::Host, Some(host)) => format!("pages of {host} may connect (--host)"),
            (CheckOrigin::Host, None) => "pages of IP addresses and of localhost may connect; \
                 --host NAME allows pages of a name"
                .to_owned(),
            (CheckOrigin::Connection, _) => {
                "pages of the host that they connect to may connect".to_owned()
            }
            (CheckOrigin::List(_), _) => {
                "pages of the origins in --check-origin may connect".to_owned()
            }
            (CheckOrigin::Off, _) => {
                "pages of any site may connect (--check-origin off)".to_owned()
            }
        }
    }

    /// Returns the rules for broadcasts to slow readers.
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

/// Reads a host as a page's address contains it.
fn host(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    let has_port = !text.starts_with('[') && text.matches(':').count() == 1;
    if text.bytes().all(is_name) && !text.is_empty() && !has_port {
        Ok(text.to_owned())
    } else {
        Err("expected a host without a scheme or a port, such as chat.example.com".to_owned())
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
    fn a_host_is_a_name_or_an_address_without_anything_around_it() {
        for good in ["chat.example.com", "localhost", "10.0.0.7", "fd00::7", "[fd00::7]"] {
            assert_eq!(host(good).as_deref(), Ok(good));
        }
        for bad in ["", "http://a.com", "a.com:80", "a.com/", "a b"] {
            assert!(host(bad).unwrap_err().contains("chat.example.com"), "{bad}");
        }
    }

    #[test]
    fn an_origin_that_is_none_is_refused_with_examples() {
        assert_eq!(check_origin("off"), Ok(CheckOrigin::Off));
        let list = check_origin("//a.com,https://b.org");
        assert!(matches!(list, Ok(CheckOrigin::List(list)) if list.len() == 2));
        assert!(check_origin("//a.com,b.org").unwrap_err().contains("`b.org`"));
    }
}
