//! The flags of a bus, and the connection to it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use throng_bus::{Bus, ClientCertificate, Name, NatsBus, NatsOptions};
use throng_fleet::GroupSubjects;
pub(crate) use throng_run::test_bed::BUS_VARIABLE;
use throng_run::test_bed::BusAccess;

use crate::Failure;

/// The bus between machines.
#[derive(Clone, Args)]
pub(crate) struct BusFlags {
    /// NATS server: `nats://host:4222` or `tls://host:4222`, with `user:password@` before the host
    /// if it needs them; separate several servers by commas
    #[arg(long, value_name = "URL", env = BUS_VARIABLE, hide_env_values = true)]
    pub(crate) bus: Option<String>,
    /// Group on the bus; groups do not see each other
    #[arg(
        long,
        visible_alias = "group",
        value_name = "NAME",
        default_value = "default",
        value_parser = group
    )]
    pub(crate) bus_group: String,
    /// File with the credentials of a NATS user
    #[arg(long, visible_alias = "bus-creds", value_name = "FILE")]
    pub(crate) bus_credentials: Option<PathBuf>,
    /// File with CA certificates that the bus may use, beside the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) bus_ca: Option<PathBuf>,
    /// File with a client certificate, for a bus that requires one
    #[arg(long, value_name = "FILE", requires = "bus_key")]
    pub(crate) bus_cert: Option<PathBuf>,
    /// File with the key of --bus-cert
    #[arg(long, value_name = "FILE", requires = "bus_cert")]
    pub(crate) bus_key: Option<PathBuf>,
}

impl fmt::Debug for BusFlags {
    /// Shows no address: a user and a password may stand in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BusFlags").field("bus_group", &self.bus_group).finish_non_exhaustive()
    }
}

impl BusFlags {
    /// Returns the bus for the processes of a lab; `None` if no bus was named.
    pub(crate) fn of_lab(&self) -> Option<BusAccess> {
        let mut flags: Vec<OsString> = vec!["--bus-group".into(), (&self.bus_group).into()];
        let files = [
            ("--bus-credentials", &self.bus_credentials),
            ("--bus-ca", &self.bus_ca),
            ("--bus-cert", &self.bus_cert),
            ("--bus-key", &self.bus_key),
        ];
        for (flag, file) in files {
            flags.extend(file.iter().flat_map(|file| [flag.into(), file.into()]));
        }
        Some(BusAccess { address: self.bus.clone()?, flags })
    }

    /// Reports whether the command line names another bus than the environment does. That one is
    /// for the commands that use a bus; other commands ignore it.
    pub(crate) fn is_typed(&self) -> bool {
        self.bus.is_some() && self.bus != std::env::var(BUS_VARIABLE).ok()
    }

    /// Connects to the bus. `name` is shown in the lists of the NATS server.
    ///
    /// # Errors
    /// No bus was named, or it does not answer.
    pub(crate) fn connect(&self, name: &str) -> Result<Arc<dyn Bus>, Failure> {
        let certificate = self.bus_cert.clone().zip(self.bus_key.clone());
        let options = NatsOptions {
            address: self.address()?.to_owned(),
            name: name.to_owned(),
            credentials: self.bus_credentials.clone(),
            root_certificates: self.bus_ca.clone(),
            client_certificate: certificate
                .map(|(certificate, key)| ClientCertificate { certificate, key }),
        };
        match NatsBus::connect(&options) {
            Ok(bus) => Ok(Arc::new(bus)),
            Err(error) => {
                let error = error.to_string();
                Err(Failure::new(format!("--bus: {error}\n  {}", remedy(&error))))
            }
        }
    }

    /// Returns the address of the bus.
    ///
    /// # Errors
    /// No bus was named.
    pub(crate) fn address(&self) -> Result<&str, Failure> {
        self.bus.as_deref().ok_or_else(|| {
            Failure::new(format!(
                "--bus is missing: name a NATS server, such as --bus nats://host:4222, or set \
                 {BUS_VARIABLE}"
            ))
        })
    }

    /// Returns the subjects of the group.
    pub(crate) fn subjects(&self) -> GroupSubjects {
        GroupSubjects::new(&self.bus_group).expect("the flag was checked")
    }
}

/// Returns what to do about a bus that cannot be reached, by the error of the NATS client. An
/// address or the name of a file may stand in it, so only the client's own words count.
fn remedy(error: &str) -> &'static str {
    let asks_for_certificate = ["BadCertificate", "CertificateRequired", "UnknownCA"]
        .iter()
        .any(|alert| error.contains(&format!("received fatal alert: {alert}")));
    if error.contains("authorization violation") {
        "the server knows its users: write one into the address, nats://user:password@host:4222, \
         or give --bus-credentials FILE"
    } else if asks_for_certificate {
        "the server asks its clients for a certificate that its authority has signed: --bus-cert \
         FILE and --bus-key FILE"
    } else if error.contains("received fatal alert: ") {
        "the server and this client agree on no way to encrypt: look at the block `tls` of its \
         configuration, and at its version"
    } else if error.contains("cannot read the credentials ") {
        "--bus-credentials FILE names the file of a user, as `nsc` writes it"
    } else if error.contains("invalid peer certificate: ") {
        "the server's certificate is not one that this machine trusts: --bus-ca FILE names its \
         authority"
    } else {
        "is a NATS server there? `nats-server` starts one on port 4222"
    }
}

/// Checks the name of a group.
pub(crate) fn group(text: &str) -> Result<String, String> {
    name(text).map(String::from)
}

/// Parses the name of a process, or a label.
pub(crate) fn name(text: &str) -> Result<Name, String> {
    Name::new(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::remedy;

    #[test]
    fn the_remedy_fits_the_error() {
        for (error, flag) in [
            ("tls://h:1: IO error: received fatal alert: BadCertificate", "--bus-cert"),
            ("tls://h:1: IO error: received fatal alert: CertificateRequired", "--bus-cert"),
            ("IO error: invalid peer certificate: UnknownIssuer", "--bus-ca"),
            ("nats: authorization violation", "--bus-credentials"),
            ("no answer from nats://h:1 within 5s", "nats-server"),
            ("no answer from nats://authorization.certificate.example:1", "nats-server"),
            ("nats://certificate:1: IO error: No such file or directory", "nats-server"),
            ("cannot read the credentials certificate.creds: no file", "--bus-credentials"),
            ("tls://h:1: IO error: received fatal alert: ProtocolVersion", "`tls`"),
            ("tls://h:1: IO error: received fatal alert: HandshakeFailure", "`tls`"),
        ] {
            assert!(remedy(error).contains(flag), "{error}: {}", remedy(error));
        }
    }
}
