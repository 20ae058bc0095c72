//! The flags of a bus, and the connection to it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use throng_bus::{Bus, NatsBus, NatsOptions};
use throng_fleet::GroupSubjects;

use crate::Failure;

/// The bus between machines.
#[derive(Clone, Debug, Args)]
pub(crate) struct BusFlags {
    /// NATS server, `nats://host:4222` or `tls://host:4222`; several between commas; a user and a
    /// password may stand before an `@`
    #[arg(long, value_name = "URL")]
    pub(crate) bus: Option<String>,
    /// Group on the bus: groups do not hear each other
    #[arg(long, value_name = "NAME", default_value = "default", value_parser = group)]
    pub(crate) bus_group: String,
    /// File with the credentials of a NATS user
    #[arg(long, value_name = "FILE")]
    pub(crate) bus_credentials: Option<PathBuf>,
    /// File with certificates of authorities to trust on the bus, beside the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) bus_ca: Option<PathBuf>,
}

impl BusFlags {
    /// Connects to the bus. `name` is shown in the lists of the NATS server.
    ///
    /// # Errors
    /// No bus was named, or it does not answer.
    pub(crate) fn connect(&self, name: &str) -> Result<Arc<dyn Bus>, Failure> {
        let Some(address) = self.bus.clone() else {
            return Err(Failure::new(
                "--bus is missing: name a NATS server, such as --bus nats://host:4222",
            ));
        };
        let options = NatsOptions {
            address,
            name: name.to_owned(),
            credentials: self.bus_credentials.clone(),
            root_certificates: self.bus_ca.clone(),
        };
        match NatsBus::connect(&options) {
            Ok(bus) => Ok(Arc::new(bus)),
            Err(error) => Err(Failure::new(format!(
                "--bus: {error}\n  is a NATS server there? `nats-server` starts one on port 4222"
            ))),
        }
    }

    /// Returns the subjects of the group.
    pub(crate) fn subjects(&self) -> GroupSubjects {
        GroupSubjects::new(&self.bus_group).expect("the flag was checked")
    }
}

/// Checks the name of a group.
pub(crate) fn group(text: &str) -> Result<String, String> {
    throng_fleet::check_name(text).map_err(|error| error.to_string())?;
    Ok(text.to_owned())
}
