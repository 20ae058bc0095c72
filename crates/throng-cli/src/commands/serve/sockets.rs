//! Flags of the servers that speak WebSocket.

use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use throng_server::WebSocketLimits;
use throng_server::channels::{Channels, CheckOrigin, Origin, PresenceLimits, defaults};
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
    /// Bytes of a message, all its frames together and inflated; longer ones end the connection
    /// [default: 1MiB; channels: 8MiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes,
        help_heading = "WebSocket options")]
    message_max: Option<u32>,
    /// How long a message may take that has begun, whatever pings come meanwhile; longer ones end
    /// the connection [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = quantity::duration,
        help_heading = "WebSocket options")]
    message_timeout: Option<Duration>,
    /// Whose pages may connect: host (this one's, see --host), connection (scheme and port too), off, or a list of
    /// origins such as https://example.com,//*.example.org [default: host]
    #[arg(long, value_name = "WHOSE", value_parser = check_origin, help_heading = "WebSocket options")]
    check_origin: Option<CheckOrigin>,
    /// What this server is called in the addresses of its pages, which is what their origin is
    /// compared with [default: any IP address, and localhost]
    #[arg(long, value_name = "NAME", value_parser = host, help_heading = "WebSocket options")]
    host: Option<String>,
    /// Channels that one connection may join [default: 100]
    #[arg(long, value_name = "N", value_parser = quantity::count, help_heading = "Channels' options")]
    max_channels: Option<usize>,
    /// Long-poll sessions over all cores, beside the connections of --connections-max [default:
    /// 1000]
    #[arg(long, value_name = "N", value_parser = quantity::count, help_heading = "Channels' options")]
    poll_sessions_max: Option<usize>,
    /// Bytes that all long-poll sessions of a core keep for their next polls; a session that finds
    /// no room ends [default: 64MiB]
    #[arg(long, value_name = "BYTES", value_parser = quantity::socket_bytes,
        help_heading = "Channels' options")]
    poll_bytes_max: Option<u32>,
    /// Members of a topic's presence; further ones may not join it [default: 10000]
    #[arg(long, value_name = "N", value_parser = quantity::count, help_heading = "Channels' options")]
    presence_members_max: Option<usize>,
}

impl Flags {
    /// A flag that was given and that only channels understand.
    pub(super) fn of_channels(&self) -> Option<&'static str> {
        let given = [
            (self.max_channels.is_some(), "--max-channels"),
            (self.poll_sessions_max.is_some(), "--poll-sessions-max"),
            (self.poll_bytes_max.is_some(), "--poll-bytes-max"),
            (self.presence_members_max.is_some(), "--presence-members-max"),
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
            (self.message_timeout.is_some(), "--message-timeout"),
            (self.check_origin.is_some(), "--check-origin"),
            (self.host.is_some(), "--host"),
        ];
        let given = given.iter().find(|(is_given, _)| *is_given).map(|(_, name)| *name);
        given.or_else(|| self.of_channels())
    }

    /// `channels` as the flags want them.
    pub(super) fn channels(&self, channels: Channels, timeout: Option<Duration>) -> Channels {
        let members_max = PresenceLimits::default().members_max;
        let presence = PresenceLimits {
            members_max: self.presence_members_max.unwrap_or(members_max),
            ..PresenceLimits::default()
        };
        let poll_bytes_max = self.poll_bytes_max.map_or(defaults::POLL_BYTES_MAX, |n| n as usize);
        let channels = channels
            .check_origin(self.check_origin.clone().unwrap_or_default())
            .channels_max(self.max_channels.unwrap_or(defaults::CHANNELS_MAX))
            .poll_sessions_max(self.poll_sessions_max.unwrap_or(defaults::POLL_SESSIONS_MAX))
            .poll_bytes_max(poll_bytes_max)
            .presence(presence)
            .timeout(timeout.unwrap_or(defaults::TIMEOUT))
            .deflate(self.deflate)
            .limits(self.limits(defaults::limits()))
            .topics(self.topics());
        match &self.host {
            Some(host) => channels.host(host),
            None => channels,
        }
    }

    /// The chat as the flags want it.
    pub(super) fn chat(&self, idle_timeout: Option<Duration>) -> ChatOptions {
        ChatOptions {
            limits: self.limits(WebSocketLimits::default()),
            check_origin: self.check_origin.clone().unwrap_or_default(),
            host: self.host.clone(),
            deflate: self.deflate,
            rules: self.rules(),
            idle_timeout,
        }
    }

    /// Whose pages may connect, for people.
    pub(super) fn origins(&self) -> String {
        match (self.check_origin.clone().unwrap_or_default(), &self.host) {
            (CheckOrigin::Host, Some(host)) => format!("pages of {host} may connect (--host)"),
            (CheckOrigin::Host, None) => "pages of IP addresses and of localhost may connect; \
                 --host NAME lets those of a name"
                .to_owned(),
            (CheckOrigin::Connection, _) => {
                "pages of the host that they ask may connect".to_owned()
            }
            (CheckOrigin::List(_), _) => {
                "pages of the sites of --check-origin may connect".to_owned()
            }
            (CheckOrigin::Off, _) => {
                "pages of any site may connect (--check-origin off)".to_owned()
            }
        }
    }

    /// What a client may ask for.
    fn limits(&self, mut limits: WebSocketLimits) -> WebSocketLimits {
        if let Some(bytes) = self.message_max {
            limits.message_bytes_max = bytes as usize;
            limits.frame_bytes_max = bytes as usize;
        }
        if let Some(timeout) = self.handshake_timeout {
            limits.handshake_timeout_ms = millis(timeout);
        }
        if let Some(timeout) = self.message_timeout {
            limits.message_timeout_ms = millis(timeout);
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

fn millis(timeout: Duration) -> u32 {
    timeout.as_millis().try_into().unwrap_or(u32::MAX)
}

/// A host as it stands in the address of a page.
fn host(text: &str) -> Result<String, String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
    let has_port = !text.starts_with('[') && text.matches(':').count() == 1;
    match text.bytes().all(is_name) && !text.is_empty() && !has_port {
        true => Ok(text.to_owned()),
        false => {
            Err("a host belongs here, such as chat.example.com, without a scheme or a port"
                .to_owned())
        }
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
        assert!(
            matches!(check_origin("//a.com,https://b.org"), Ok(CheckOrigin::List(list)) if list.len() == 2)
        );
        assert!(check_origin("//a.com,b.org").unwrap_err().contains("`b.org`"));
    }
}
