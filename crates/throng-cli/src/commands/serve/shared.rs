//! Flags of the servers that share their topics.

use clap::Args;
use throng_server::SharedTopics;
use throng_server::kinds::{ServerKind, ServerProtocol};

use crate::Failure;
use crate::bus::{self, BusFlags};

#[derive(Clone, Debug, Args)]
pub(super) struct SharedFlags {
    #[command(flatten)]
    bus: BusFlags,
    /// Name of this server, unique among the servers that share topics [default: the machine's name
    /// and a number]
    #[arg(long, value_name = "NAME", value_parser = bus::group, requires = "bus")]
    node: Option<String>,
    /// Address by which clients reach this server; another server that shuts down sends its clients
    /// there [default: --listen, unless that is 0.0.0.0 or \[::\]]
    #[arg(long, value_name = "ADDR", value_parser = address, requires = "bus")]
    advertise: Option<String>,
}

impl SharedFlags {
    /// Returns the flags on the command line, each with the first protocol that reads it.
    pub(super) fn given(&self) -> Vec<(&'static str, ServerProtocol)> {
        let flags = [
            ("--bus", self.bus.is_typed()),
            ("--node", self.node.is_some()),
            ("--advertise", self.advertise.is_some()),
        ];
        let given = flags.into_iter().filter(|(_, is_given)| *is_given);
        given.map(|(flag, _)| (flag, PROTOCOL_MIN)).collect()
    }

    /// Connects to the bus. `None` if the topics are not shared: there is no bus, or the kind of
    /// server has no topics. The environment may name a bus for other commands.
    pub(super) fn topics(&self, kind: &ServerKind) -> Result<Option<SharedTopics>, Failure> {
        if self.bus.bus.is_none() || kind.protocol < PROTOCOL_MIN {
            return Ok(None);
        }
        let name = match &self.node {
            Some(name) => name.clone(),
            None => format!("{}-{}", throng_fleet::host_name(), throng_fleet::random_id()),
        };
        let bus = self.bus.connect(&format!("throng serve {name}"))?;
        let group = self.bus.bus_group.clone();
        let advertise = self.advertise.clone();
        Ok(Some(SharedTopics { group, advertise, ..SharedTopics::new(bus, &name) }))
    }

    /// Describes the node.
    pub(super) fn describe(&self, node: &str) -> String {
        format!("  node {node} of group {}: topics are shared over the bus", self.bus.bus_group)
    }
}

/// Reads an address for clients, as it goes into a close frame.
fn address(text: &str) -> Result<String, String> {
    let is_good = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
    if (1..=ADDRESS_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_good) {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "expected 1 to {ADDRESS_BYTES_MAX} characters without spaces, such as \
             chat2.example.com:4000"
        ))
    }
}

/// The first protocol whose servers have topics.
const PROTOCOL_MIN: ServerProtocol = ServerProtocol::WebSocket;

/// The longest address: one of this length still fits into a close frame.
const ADDRESS_BYTES_MAX: usize = 100;
