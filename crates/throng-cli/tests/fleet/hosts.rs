//! Hosts: network namespaces with a bridge between them.
//!
//! ```text
//!   bus 10.77.0.1    server 10.77.0.11, .12    agent 10.77.0.21, .22, .23
//!        |                  |    |                   |    |    |
//!        +------------------+----+---- bridge -------+----+----+
//! ```
//!
//! A host is a process that waits for the end of its standard input, in namespaces of its own for
//! networks and mounts. So all of it is gone when the test has ended, however that ends.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::process::first_line;

/// The six hosts, and the bridge between them.
pub(crate) struct Hosts {
    pub(crate) bus: Host,
    pub(crate) servers: Vec<Host>,
    pub(crate) agents: Vec<Host>,
    _bridge: Host,
}

/// A host.
pub(crate) struct Host {
    keeper: Child,
    stdin: Option<ChildStdin>,
    pub(crate) address: String,
}

/// The address of the bus.
pub(crate) const BUS: &str = "10.77.0.1";

impl Hosts {
    /// Makes the hosts. `names` is a file as `/etc/hosts`, which all of them get.
    ///
    /// # Errors
    /// The reason why this machine cannot have them.
    pub(crate) fn new(folder: &Path) -> Result<Self, String> {
        let address = |last: usize| format!("10.77.0.{last}");
        let (servers, agents) = ([11, 12].map(address), [21, 22, 23].map(address));
        let names = folder.join("hosts");
        let lines = servers.iter().map(|address| format!("{address} servers\n"));
        let text = format!("127.0.0.1 localhost\n{}", lines.collect::<String>());
        std::fs::write(&names, text).expect("a file for the names");
        let bridge = Host::new(&names, "")?;
        bridge.shell("ip link add br0 type bridge\nip link set br0 up")?;
        let host = |address: &str| -> Result<Host, String> {
            let host = Host::new(&names, address)?;
            let port = format!("v{}", address.replace('.', "-").trim_start_matches("10-77-"));
            bridge.shell(&format!(
                "ip link add {port} type veth peer name eth0 netns {}\n\
                 ip link set {port} master br0 up",
                host.keeper.id()
            ))?;
            host.shell(&format!("ip addr add {address}/24 dev eth0\nip link set eth0 up"))?;
            Ok(host)
        };
        Ok(Self {
            bus: host(BUS)?,
            servers: servers.iter().map(|it| host(it)).collect::<Result<_, _>>()?,
            agents: agents.iter().map(|it| host(it)).collect::<Result<_, _>>()?,
            _bridge: bridge,
        })
    }
}

impl Host {
    fn new(names: &Path, address: &str) -> Result<Self, String> {
        let mut command = Command::new("unshare");
        let script = "mount --bind \"$0\" /etc/hosts && ip link set lo up && echo ready && \
                      exec cat >/dev/null";
        command.args(["--net", "--mount", "sh", "-c", script]).arg(names);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut keeper = command.spawn().map_err(|error| format!("unshare: {error}"))?;
        let stdin = keeper.stdin.take();
        let is_ready = first_line(&mut keeper) == "ready";
        let host = Self { keeper, stdin, address: address.to_owned() };
        if is_ready { Ok(host) } else { Err(host.why_not()) }
    }

    /// Returns a command that runs in the host. Its paths are absolute.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new("nsenter");
        command.args([
            "--target",
            &self.keeper.id().to_string(),
            "--net",
            "--mount",
            "--",
            program,
        ]);
        command
    }

    /// Returns the path by which this process sees a file of the host.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        format!("/proc/{}/root{}", self.keeper.id(), path.display()).into()
    }

    /// Runs lines of shell in the host.
    ///
    /// # Errors
    /// One of them failed; the error is their output.
    pub(crate) fn shell(&self, lines: &str) -> Result<(), String> {
        let output = self.command("sh").args(["-ec", lines]).output();
        let output = output.map_err(|error| format!("nsenter: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        Err(format!("{lines}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// Cuts the host off from the bus, as a firewall does, and from nothing else.
    pub(crate) fn cut_off(&self) {
        let rules = format!(
            "nft 'add table ip cut'\n\
             nft 'add chain ip cut in {{ type filter hook input priority 0; }}'\n\
             nft 'add chain ip cut out {{ type filter hook output priority 0; }}'\n\
             nft 'add rule ip cut in ip saddr {BUS} drop'\n\
             nft 'add rule ip cut out ip daddr {BUS} drop'"
        );
        self.shell(&rules).expect("nft");
    }

    /// Undoes [`Self::cut_off`].
    pub(crate) fn reconnect(&self) {
        self.shell("nft 'delete table ip cut'").expect("nft");
    }

    fn why_not(mut self) -> String {
        drop(self.stdin.take());
        let mut text = String::new();
        if let Some(mut stderr) = self.keeper.stderr.take() {
            _ = std::io::Read::read_to_string(&mut stderr, &mut text);
        }
        format!("namespaces need root: {}", text.trim())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.keeper.kill();
        let _ = self.keeper.wait();
    }
}

/// Says past the capture of the test's output that a test is skipped.
pub(crate) fn skip(test: &str, why: &str) {
    _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
    println!("skipped: {why}");
}
